// Lesson 2: solutions that are wrong, or that do not do what the lesson is about.
// elements: i32
#define ARGUMENTS const int *in, int *partials, unsigned n
#define WRONG(number) extern "C" __global__ void wrong_##number(ARGUMENTS)

template <int MISTAKE>
__device__ __forceinline__ void add(ARGUMENTS)
{
    __shared__ int slots[1024];
    const unsigned tid = threadIdx.x, width = blockDim.x, i = blockIdx.x * width + tid;
    // Past the end a thread leaves, and the others wait without it.
    if (MISTAKE == 4 && i >= n)
        return;
    slots[tid] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned stride = 1; stride < width; stride *= 2) {
        const bool active = tid % (2 * stride) == 0;
        if (active && (MISTAKE == 1 || tid + stride < width))
            slots[tid] += slots[tid + stride];
        // A barrier in a branch.
        if (MISTAKE == 5) {
            if (tid < 32)
                __syncthreads();
            else
                __syncthreads();
        } else if (MISTAKE != 2 && !(MISTAKE == 3 && stride < 32)) {
            __syncthreads();
        }
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

// A partner past the block.
WRONG(1) { add<1>(in, partials, n); }
// No barrier.
WRONG(2) { add<2>(in, partials, n); }
// No barrier where a warp is thought to be in step.
WRONG(3) { add<3>(in, partials, n); }
WRONG(4) { add<4>(in, partials, n); }
WRONG(5) { add<5>(in, partials, n); }
