// Two matrices added, an element a thread, in blocks of two dimensions: the shape of a block decides which elements lie side by side
// in a warp, and how many blocks fit.

#include "element.cuh"

__device__ __forceinline__ void add(const f32 *a, const f32 *b, f32 *sum, u32 width, u32 height)
{
    const u32 x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        const u64 at = u64(y) * width + x;
        sum[at] = a[at] + b[at];
    }
}

extern "C" __global__ void matrix_add(const f32 *a, const f32 *b, f32 *sum, u32 width, u32 height)
{
    add(a, b, sum, width, height);
}

__device__ __forceinline__ u64 nanoseconds()
{
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// The same, and each warp leaves when it came and when it went, from which follows how many there were at once. The clock is the
// device's, in nanoseconds, and moves in steps of up to a microsecond.
extern "C" __global__ void matrix_add_observed(const f32 *a, const f32 *b, f32 *sum, u32 width, u32 height, u64 *began, u64 *ended)
{
    const u64 begin = nanoseconds();
    add(a, b, sum, width, height);
    // What was stored is on its way before the time is taken.
    __threadfence_block();
    const u32 thread = threadIdx.y * blockDim.x + threadIdx.x;
    if (thread % 32 == 0) {
        const u64 warps = (blockDim.x * blockDim.y + 31) / 32;
        const u64 block = u64(blockIdx.y) * gridDim.x + blockIdx.x;
        began[block * warps + thread / 32] = begin;
        ended[block * warps + thread / 32] = nanoseconds();
    }
}
