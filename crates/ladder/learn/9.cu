// Every thread adds to one slot. Atomics order themselves, but not what is around them.
extern "C" __global__ void sum(const int *in, int *partials, unsigned n)
{
    __shared__ int slot;
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    // HOLE: the slot is 0 before anybody adds, and is read when everybody has
    if (i < n)
        atomicAdd(&slot, in[i]);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = slot;
}
