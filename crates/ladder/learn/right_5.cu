// Right, and lanes wait for each other's banks. Fold without conflicts. Blocks are powers of two.
extern "C" __global__ void sum(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[1024];
    const unsigned tid = threadIdx.x, width = blockDim.x, i = blockIdx.x * width + tid;
    slots[tid] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned half = width / 2; half > 0; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}
