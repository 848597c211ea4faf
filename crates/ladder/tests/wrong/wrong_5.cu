// Lesson 5: solutions that are wrong, or that do not do what the lesson is about.
// elements: i32
#define ARGUMENTS const int *in, int *partials, unsigned n
#define WRONG(number) extern "C" __global__ void wrong_##number(ARGUMENTS)

template <int MISTAKE>
__device__ __forceinline__ void add(ARGUMENTS)
{
    __shared__ int slots[1056];
    const unsigned tid = threadIdx.x, width = blockDim.x, i = blockIdx.x * width + tid;
    slots[tid] = i < n ? in[i] : 0;
    __syncthreads();
    if (MISTAKE == 1) {
        for (unsigned stride = 1; stride < width; stride *= 2) {
            const unsigned at = 2 * stride * tid;
            if (at + stride < width)
                slots[at] += slots[at + stride];
            __syncthreads();
        }
    } else {
        for (unsigned half = width / 2; MISTAKE == 3 ? half > 1 : half > 0; half /= 2) {
            if (MISTAKE == 2 ? tid <= half : tid < half)
                slots[tid] += slots[tid + half];
            if (MISTAKE != 4 || half > 32)
                __syncthreads();
            if (MISTAKE == 5 && tid >= half)
                return;
        }
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

// Right, and with conflicts as before.
WRONG(1) { add<1>(in, partials, n); }
// One thread too many.
WRONG(2) { add<2>(in, partials, n); }
// One level too few.
WRONG(3) { add<3>(in, partials, n); }
// The last warp without barriers.
WRONG(4) { add<4>(in, partials, n); }
// Who has nothing to do leaves, and others wait at the next barrier.
WRONG(5) { add<5>(in, partials, n); }
