// Lesson 4: solutions that are wrong, or that do not do what the lesson is about.
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
    int mine = 0;
    for (unsigned k = 0; k < 4; ++k) {
        const unsigned near = (blockIdx.x * 4 + k) * width + tid, far = (blockIdx.x * width + tid) * 4 + k;
        const unsigned i = MISTAKE == 1 ? far : MISTAKE == 2 ? (blockIdx.x + k) * width + tid : MISTAKE == 5 ? (blockIdx.x * 4 + 3 - k) * width + tid / 2 * 2 : near;
        if (MISTAKE == 3 ? i <= n : MISTAKE == 4 ? near + (3 - k) * width < n : i < n)
            mine += in[i];
    }
    slots[tid] = mine;
    fold(slots, partials);
}

// Right, and a warp's load touches four times as many sectors.
WRONG(1) { add<1>(in, partials, n); }
// The tiles of blocks overlap.
WRONG(2) { add<2>(in, partials, n); }
// The element behind the last one.
WRONG(3) { add<3>(in, partials, n); }
// One test for all four.
WRONG(4) { add<4>(in, partials, n); }
// Every second element twice.
WRONG(5) { add<5>(in, partials, n); }
