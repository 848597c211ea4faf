// Lesson 3: solutions that are wrong, or that do not do what the lesson is about.
// elements: i32
#define ARGUMENTS const int *in, int *partials, unsigned n
#define WRONG(number) extern "C" __global__ void wrong_##number(ARGUMENTS)

template <int MISTAKE>
__device__ __forceinline__ void add(ARGUMENTS)
{
    __shared__ int slots[1024];
    const unsigned tid = threadIdx.x, width = blockDim.x, i = blockIdx.x * width + tid;
    slots[tid] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned stride = 1; stride < width; stride *= 2) {
        const unsigned at = MISTAKE == 1 ? tid : MISTAKE == 2 ? stride * tid : 2 * stride * tid;
        const bool pairs = MISTAKE != 1 || at % (2 * stride) == 0;
        if (pairs && (MISTAKE == 3 ? at < width : MISTAKE == 5 ? at + stride <= width : at + stride < width))
            slots[at] += slots[at + stride];
        if (MISTAKE == 4 && 2 * stride * tid >= width)
            break;
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

// Right, and its lanes diverge as before.
WRONG(1) { add<1>(in, partials, n); }
// Pairs that overlap.
WRONG(2) { add<2>(in, partials, n); }
// A partner past the block, where the block is no power of two.
WRONG(3) { add<3>(in, partials, n); }
// Who has nothing to do leaves the loop, and its barriers.
WRONG(4) { add<4>(in, partials, n); }
// The slot behind the last one.
WRONG(5) { add<5>(in, partials, n); }
