// The fold in shared memory: a block reads its elements once and leaves one value; all between stays on the multiprocessor.
// elements: i32 u32 i64 u64 f32 f64

#include "types.cuh"

extern __shared__ T slots[];

// `neighbored` in shared memory. Lanes far apart meet in the same banks, but no level goes through global memory any more, and there
// is nothing to write but the partials.
extern "C" __global__ void shared_neighbored(const T *in, T *partials, u64 n)
{
    const u32 tid = threadIdx.x, width = blockDim.x;
    const u64 i = u64(blockIdx.x) * width + tid;
    slots[tid] = i < n ? in[i] : T(0);
    __syncthreads();
    for (u32 stride = 1; stride < width; stride *= 2) {
        if (tid % (2 * stride) == 0 && tid + stride < width)
            slots[tid] += slots[tid + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

// The same pairs by the first threads, side by side: thread t folds slots 2 s t and 2 s t + s. Warps leave, and there is no remainder.
// But lanes are 2 s words apart, and where 2 s divides the 32 banks several lanes want one bank: they wait for each other. Halves that
// are folded onto each other (`block_sum.cu`) keep the first threads and have no conflicts.
extern "C" __global__ void shared_strided(const T *in, T *partials, u64 n)
{
    const u32 tid = threadIdx.x, width = blockDim.x;
    const u64 i = u64(blockIdx.x) * width + tid;
    slots[tid] = i < n ? in[i] : T(0);
    __syncthreads();
    for (u32 stride = 1; stride < width; stride *= 2) {
        const u32 at = 2 * stride * tid;
        if (at + stride < width)
            slots[at] += slots[at + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

// `shared_neighbored`, and each thread adds two elements while it loads: no thread is there for loading alone, and half the blocks do. With as
// many blocks as before, the second half of them would load nothing and fold zeros.
extern "C" __global__ void shared_first_add(const T *in, T *partials, u64 n)
{
    const u32 tid = threadIdx.x, width = blockDim.x;
    const u64 i = u64(blockIdx.x) * 2 * width + tid;
    const T first = i < n ? in[i] : T(0);
    const T second = i + width < n ? in[i + width] : T(0);
    slots[tid] = first + second;
    __syncthreads();
    for (u32 stride = 1; stride < width; stride *= 2) {
        if (tid % (2 * stride) == 0 && tid + stride < width)
            slots[tid] += slots[tid + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

// The same load, and the upper half of the block's values onto the lower half, as in `block_sum.cu`: no remainder, no idle lane beside a
// busy one, no two lanes in one bank. It is the fourth step of Mark Harris, "Optimizing Parallel Reduction in CUDA" (NVIDIA, 2007), whose
// third is `block_sum`; his takes whole tiles only. Blocks are powers of two.
extern "C" __global__ void sequential_first_add(const T *in, T *partials, u64 n)
{
    const u32 tid = threadIdx.x, width = blockDim.x;
    const u64 i = u64(blockIdx.x) * 2 * width + tid;
    const T first = i < n ? in[i] : T(0);
    const T second = i + width < n ? in[i + width] : T(0);
    slots[tid] = first + second;
    __syncthreads();
    for (u32 half = width / 2; half > 0; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}
