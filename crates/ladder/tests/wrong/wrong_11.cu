// Lesson 11: solutions that are wrong, or that do not do what the lesson is about.
// elements: i32
#define ARGUMENTS const int *in, int *partials, unsigned n
#define WRONG(number) extern "C" __global__ void wrong_##number(ARGUMENTS)

// The levels of a block of a power of two, from `first` slots on.
__device__ __forceinline__ void fold(int *slots, int *partials, unsigned first)
{
    const unsigned tid = threadIdx.x;
    __syncthreads();
    for (unsigned half = first; half > 0; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

// The level in shared memory, with its barrier.
WRONG(1)
{
    __shared__ int slots[2048];
    const unsigned tid = threadIdx.x, width = blockDim.x, i = blockIdx.x * 2 * width + tid;
    slots[tid] = i < n ? in[i] : 0;
    slots[tid + width] = i + width < n ? in[i + width] : 0;
    fold(slots, partials, width);
}
// One test for both elements.
WRONG(2)
{
    __shared__ int slots[1024];
    const unsigned tid = threadIdx.x, width = blockDim.x, i = blockIdx.x * 2 * width + tid;
    slots[tid] = i + width < n ? in[i] + in[i + width] : 0;
    fold(slots, partials, width / 2);
}
// The second element has no test.
WRONG(3)
{
    __shared__ int slots[1024];
    const unsigned tid = threadIdx.x, width = blockDim.x, i = blockIdx.x * 2 * width + tid;
    slots[tid] = i < n ? in[i] + in[i + width] : 0;
    fold(slots, partials, width / 2);
}
// Neighbours: each load moves twice the sectors.
WRONG(4)
{
    __shared__ int slots[1024];
    const unsigned tid = threadIdx.x, width = blockDim.x, i = (blockIdx.x * width + tid) * 2;
    int mine = i < n ? in[i] : 0;
    if (i + 1 < n)
        mine += in[i + 1];
    slots[tid] = mine;
    fold(slots, partials, width / 2);
}
// The first level is left out, and its elements were not added.
WRONG(5)
{
    __shared__ int slots[2048];
    const unsigned tid = threadIdx.x, width = blockDim.x, i = blockIdx.x * 2 * width + tid;
    slots[tid] = i < n ? in[i] : 0;
    slots[tid + width] = i + width < n ? in[i + width] : 0;
    fold(slots, partials, width / 2);
}
