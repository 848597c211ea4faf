// Neighbours add up in shared memory: distance 1, 2, 4, ... Any number of threads.
extern "C" __global__ void sum(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[1024];
    const unsigned tid = threadIdx.x, width = blockDim.x, i = blockIdx.x * width + tid;
    slots[tid] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned stride = 1; stride < width; stride *= 2) {
        if (tid % (2 * stride) == 0 && tid + stride < width)
            slots[tid] += slots[tid + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}
