// Right, and lanes wait for each other's banks. Fold without conflicts. Blocks are powers of two.
extern "C" __global__ void sum(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[1024];
    const unsigned tid = threadIdx.x, width = blockDim.x, i = blockIdx.x * width + tid;
    slots[tid] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned stride = 1; stride < width; stride *= 2) { // HOLE: other pairs
        const unsigned at = 2 * stride * tid;
        if (at + stride < width)
            slots[at] += slots[at + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}
