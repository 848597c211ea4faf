// Eight elements a thread. The text asks once for all eight, and drops a ragged tail.
extern "C" __global__ void sum(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[1024];
    const unsigned tid = threadIdx.x, width = blockDim.x, i = blockIdx.x * 8 * width + tid;
    int mine = 0;
    for (int k = 0; k < 8; ++k)
        mine += i + k * width < n ? in[i + k * width] : 0;
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
