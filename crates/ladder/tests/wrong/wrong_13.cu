// Lesson 13: solutions that are wrong, or that do not do what the lesson is about.
// elements: i32
#define ARGUMENTS const int *in, int *partials, unsigned n
#define WRONG(number) extern "C" __global__ void wrong_##number(ARGUMENTS)

// The levels of a block of a power of two.
__device__ __forceinline__ void fold(int *slots, int mine, int *partials)
{
    const unsigned tid = threadIdx.x;
    slots[tid] = mine;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

// `AT_ONCE` loads, and their additions behind them.
template <int AT_ONCE>
__device__ __forceinline__ int add(const int *in, unsigned n)
{
    const unsigned width = blockDim.x, i = blockIdx.x * 8 * width + threadIdx.x;
    int found[AT_ONCE], mine = 0;
    for (unsigned first = 0; first < 8; first += AT_ONCE) {
        for (unsigned k = 0; k < AT_ONCE; ++k)
            found[k] = i + (first + k) * width < n ? in[i + (first + k) * width] : 0;
        for (unsigned k = 0; k < AT_ONCE; ++k)
            mine += found[k];
    }
    return mine;
}

// As many blocks as there are warps for, and one load at a time.
WRONG(1)
{
    __shared__ int slots[1024];
    fold(slots, add<1>(in, n), partials);
}
// Two at a time.
WRONG(2)
{
    __shared__ int slots[1024];
    fold(slots, add<2>(in, n), partials);
}
// Four at a time, in four blocks.
WRONG(3)
{
    __shared__ int slots[12288];
    fold(slots, add<4>(in, n), partials);
}
// All at once, and without a test.
WRONG(4)
{
    __shared__ int slots[1024];
    const unsigned width = blockDim.x, i = blockIdx.x * 8 * width + threadIdx.x;
    int found[8], mine = 0;
    for (unsigned k = 0; k < 8; ++k)
        found[k] = in[i + k * width];
    for (unsigned k = 0; k < 8; ++k)
        mine += found[k];
    fold(slots, mine, partials);
}
// All at once, or none.
WRONG(5)
{
    __shared__ int slots[1024];
    const unsigned width = blockDim.x, i = blockIdx.x * 8 * width + threadIdx.x;
    int found[8], mine = 0;
    if (i + 7 * width < n) {
        for (unsigned k = 0; k < 8; ++k)
            found[k] = in[i + k * width];
        for (unsigned k = 0; k < 8; ++k)
            mine += found[k];
    }
    fold(slots, mine, partials);
}
