// Every thread adds to one slot. Atomics order themselves, but not what is around them.
// elements: i32
extern "C" __global__ void sum(const int *in, int *partials, unsigned n)
{
    __shared__ int slot;
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0)
        slot = 0;
    __syncthreads();
    if (i < n)
        atomicAdd(&slot, in[i]);
    __syncthreads();
    if (threadIdx.x == 0)
        partials[blockIdx.x] = slot;
}
