// A warp folds through registers. Blocks are whole warps.
extern "C" __global__ void sum(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[32];
    const unsigned tid = threadIdx.x, warp = tid / 32, lane = tid % 32, i = blockIdx.x * blockDim.x + tid;
    int sum = i < n ? in[i] : 0;
    // HOLE: add what the lanes above have: 16, 8, 4, 2 and 1 higher
    if (lane == 0)
        slots[warp] = sum;
    __syncthreads();
    if (tid == 0) {
        for (unsigned other = 1; other < blockDim.x / 32; ++other)
            sum += slots[other];
        partials[blockIdx.x] = sum;
    }
}
