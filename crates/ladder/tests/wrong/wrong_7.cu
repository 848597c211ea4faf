// Lesson 7: solutions that are wrong, or that do not do what the lesson is about.
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
    const unsigned tid = threadIdx.x, width = blockDim.x, i = blockIdx.x * 8 * width + tid;
    int mine = 0;
    if (MISTAKE == 1 && i + 7 * width >= n) {
        mine = i < n ? in[i] : 0;
    } else {
        for (unsigned k = MISTAKE == 2 ? 1 : 0; k < (MISTAKE == 3 ? 7 : 8); ++k) {
            const unsigned at = MISTAKE == 4 ? blockIdx.x * 8 * width + 8 * tid + k + 1 : i + k * width;
            mine += (MISTAKE == 5 ? at <= n : at < n) ? in[at] : 0;
        }
    }
    slots[tid] = mine;
    fold(slots, partials);
}

// The tail's first tile alone.
WRONG(1) { add<1>(in, partials, n); }
// Without the first.
WRONG(2) { add<2>(in, partials, n); }
// Without the eighth.
WRONG(3) { add<3>(in, partials, n); }
// Elements side by side, and one too far.
WRONG(4) { add<4>(in, partials, n); }
// The element behind the last one.
WRONG(5) { add<5>(in, partials, n); }
