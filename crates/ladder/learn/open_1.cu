// One thread of each block adds the block's tile. Blocks have blockDim.x elements each; the last one may have fewer.
extern "C" __global__ void sum(const int *in, int *partials, unsigned n)
{
    if (threadIdx.x > 0)
        return;
    const unsigned begin = blockIdx.x * blockDim.x;
    int sum = 0;
    // HOLE: add the elements from begin on, as many as there are
    partials[blockIdx.x] = sum;
}
