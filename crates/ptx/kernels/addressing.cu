// The classic trees over global memory, worst to best: which threads work, and on which elements. They fold in place.

extern "C" __global__ void neighbored(int *data, int *partials, unsigned n)
{
    const unsigned tid = threadIdx.x;
    const unsigned i = blockIdx.x * blockDim.x + tid;
    int *block = data + blockIdx.x * blockDim.x;
    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        if (tid % (2 * stride) == 0 && i + stride < n)
            block[tid] += block[tid + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = block[0];
}

extern "C" __global__ void compact(int *data, int *partials, unsigned n)
{
    const unsigned tid = threadIdx.x;
    const unsigned first = blockIdx.x * blockDim.x;
    int *block = data + first;
    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        const unsigned index = 2 * stride * tid;
        if (index + stride < blockDim.x && first + index + stride < n)
            block[index] += block[index + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = block[0];
}

extern "C" __global__ void interleaved(int *data, int *partials, unsigned n)
{
    const unsigned tid = threadIdx.x;
    const unsigned first = blockIdx.x * blockDim.x;
    int *block = data + first;
    for (unsigned stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (tid < stride && first + tid + stride < n)
            block[tid] += block[tid + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = block[0];
}
