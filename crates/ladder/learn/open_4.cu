// Four elements a thread. The lanes of a warp should read elements side by side.
extern "C" __global__ void sum(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[1024];
    const unsigned tid = threadIdx.x, width = blockDim.x;
    int mine = 0;
    for (unsigned k = 0; k < 4; ++k) {
        const unsigned i = (blockIdx.x * width + tid) * 4 + k; // HOLE: right, but lanes are four elements apart
        if (i < n)
            mine += in[i];
    }
    slots[tid] = mine;
    __syncthreads();
    for (unsigned half = width / 2; half > 0; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}
