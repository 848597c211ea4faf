// Lesson 1: solutions that are wrong, or that do not do what the lesson is about.
// elements: i32
#define ARGUMENTS const int *in, int *partials, unsigned n
#define WRONG(number) extern "C" __global__ void wrong_##number(ARGUMENTS)

template <class Last>
__device__ __forceinline__ void add(ARGUMENTS, Last last)
{
    if (threadIdx.x > 0)
        return;
    const unsigned begin = blockIdx.x * blockDim.x;
    int sum = 0;
    for (unsigned i = begin; last(i, begin); ++i)
        sum += in[i];
    partials[blockIdx.x] = sum;
}

// The end of the array is not asked for.
WRONG(1) { add(in, partials, n, [](unsigned i, unsigned begin) { return i < begin + blockDim.x; }); }
// One element too many.
WRONG(2) { add(in, partials, n, [=](unsigned i, unsigned begin) { return i <= n && i < begin + blockDim.x; }); }
// One too few.
WRONG(3) { add(in, partials, n, [=](unsigned i, unsigned begin) { return i < n && i + 1 < begin + blockDim.x; }); }
// The tile of the next block, too.
WRONG(4) { add(in, partials, n, [=](unsigned i, unsigned begin) { return i < n && i < begin + 2 * blockDim.x; }); }
// A block of 32 was meant.
WRONG(5) { add(in, partials, n, [=](unsigned i, unsigned begin) { return i < n && i < begin + 32; }); }
