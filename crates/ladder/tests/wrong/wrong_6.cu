// Lesson 6: solutions that are wrong, or that do not do what the lesson is about.
// elements: i32
#define ARGUMENTS const int *in, int *partials, unsigned n
#define WRONG(number) extern "C" __global__ void wrong_##number(ARGUMENTS)

// The levels of a block of a power of two.
__device__ __forceinline__ void fold(int *slots, int *partials)
{
    const unsigned tid = threadIdx.x;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

template <int MISTAKE>
__device__ __forceinline__ void add(ARGUMENTS)
{
    __shared__ int slots[1024];
    const unsigned tid = threadIdx.x, width = blockDim.x;
    const unsigned i = blockIdx.x * (MISTAKE == 5 ? 1 : 2) * width + tid;
    int mine = 0;
    if (MISTAKE == 1)
        mine = i < n ? in[i] + in[i + width] : 0;
    else if (MISTAKE == 2)
        mine = i + width < n ? in[i] + in[i + width] : 0;
    else if (MISTAKE == 3)
        mine = (i < n ? in[i] : 0) + (i + 1 < n ? in[i + 1] : 0);
    else if (MISTAKE == 4)
        mine = i < n ? in[i] : 0;
    else
        mine = (i < n ? in[i] : 0) + (i + width < n ? in[i + width] : 0);
    slots[tid] = mine;
    fold(slots, partials);
}

// The second one is not tested.
WRONG(1) { add<1>(in, partials, n); }
// One test for both, which forgets the first one.
WRONG(2) { add<2>(in, partials, n); }
// The neighbour instead of the element a block's width apart.
WRONG(3) { add<3>(in, partials, n); }
// The second one is forgotten.
WRONG(4) { add<4>(in, partials, n); }
// Tiles of one block's width, which overlap.
WRONG(5) { add<5>(in, partials, n); }
