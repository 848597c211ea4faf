// Eight elements a thread. Right, and a multiprocessor has little on its way: each load waits for the addition before it, and few blocks
// fit beside each other. Blocks are powers of two.
extern "C" __global__ void sum(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[12288]; // HOLE: how many blocks fit, and how many loads of a thread are on their way at once
    const unsigned tid = threadIdx.x, width = blockDim.x, i = blockIdx.x * 8 * width + tid;
    int mine = 0;
    for (unsigned k = 0; k < 8; ++k)
        if (i + k * width < n)
            mine += in[i + k * width];
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
