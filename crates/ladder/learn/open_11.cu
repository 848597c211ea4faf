// Two elements a thread, a block's width apart. Right, and the first level of the tree goes through shared memory, with a barrier of its
// own and twice as many slots. Blocks are powers of two.
extern "C" __global__ void sum(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[2048];
    const unsigned tid = threadIdx.x, width = blockDim.x, i = blockIdx.x * 2 * width + tid;
    slots[tid] = i < n ? in[i] : 0;
    slots[tid + width] = i + width < n ? in[i + width] : 0; // HOLE: add the two before they are stored, and leave out the level
    __syncthreads();
    for (unsigned half = width; half > 0; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}
