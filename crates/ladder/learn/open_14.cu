// Sixteen elements a thread. Right, and slow for every reason of this course: lanes are far apart in memory, a load waits for the one
// before, every level has its barrier, and its warps diverge. The array begins at a multiple of sixteen bytes. Blocks are powers of two.
extern "C" __global__ void sum(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[1024];
    const unsigned tid = threadIdx.x, width = blockDim.x;
    int mine = 0;
    for (unsigned k = 0; k < 16; ++k) { // HOLE: everything
        const unsigned i = (blockIdx.x * width + tid) * 16 + k;
        if (i < n)
            mine += in[i];
    }
    slots[tid] = mine;
    __syncthreads();
    for (unsigned stride = 1; stride < width; stride *= 2) {
        if (tid % (2 * stride) == 0 && tid + stride < width)
            slots[tid] += slots[tid + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}
