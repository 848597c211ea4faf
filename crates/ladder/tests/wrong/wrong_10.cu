// Lesson 10: solutions that are wrong, or that do not do what the lesson is about.
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
    const unsigned tid = threadIdx.x, at = (blockIdx.x * blockDim.x + tid) * 4;
    int mine = 0;
    if (MISTAKE != 1 && (MISTAKE == 2 ? at < n : MISTAKE == 3 ? at + 3 <= n : at + 4 <= n)) {
        const int4 four = *reinterpret_cast<const int4 *>(in + at + (MISTAKE == 5 ? 1 : 0));
        mine = four.x + four.y + four.z + four.w;
    } else if (MISTAKE != 4) {
        for (unsigned i = at; i < n && i < at + 4; ++i)
            mine += in[i];
    }
    slots[tid] = mine;
    fold(slots, partials);
}

// Right, an element a load.
WRONG(1) { add<1>(in, partials, n); }
// Four where one is left.
WRONG(2) { add<2>(in, partials, n); }
// Four where three are left.
WRONG(3) { add<3>(in, partials, n); }
// The ragged end is forgotten.
WRONG(4) { add<4>(in, partials, n); }
// From an address that is no multiple of sixteen.
WRONG(5) { add<5>(in, partials, n); }
