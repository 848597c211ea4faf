// Two elements a thread, a block's width apart, added in a register before the first barrier: a level less, and half of the slots.
extern "C" __global__ void sum(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[1024];
    const unsigned tid = threadIdx.x, width = blockDim.x, i = blockIdx.x * 2 * width + tid;
    int mine = i < n ? in[i] : 0;
    if (i + width < n)
        mine += in[i + width];
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
