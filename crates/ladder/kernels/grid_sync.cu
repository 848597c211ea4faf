// One launch with a barrier of the whole grid in its middle.
// elements: i32 u32 i64 u64 f16 bf16 f32 f64

#include "grid_stride.cuh"
#include "shuffles.cuh"

// Waits until all blocks have come, all of which must be on the device at once: the launch is cooperative. Every block adds 1 to
// `arrived`, block 0 what is left to 2^31: when all have come the highest bit has changed and the others are what they were, so that
// the next barrier, or the next launch, can begin from there.
__device__ __forceinline__ void wait_for_grid(u32 *arrived)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        const u32 before = atomicAdd(arrived, blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1u);
        while (((*(volatile u32 *)arrived ^ before) & 0x80000000u) == 0) {
        }
        __threadfence();
    }
    __syncthreads();
}

// As `last_block`, but all blocks wait for all partials instead of leaving, and the first one folds them: what a kernel needs that
// goes on with the sum. The wait is the price.
extern "C" __global__ void grid_sync(const In *in, T *partials, T *out, u32 *arrived, u64 n)
{
    T sum = add_block(add_grid_stride(in, n));
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
    wait_for_grid(arrived);
    if (blockIdx.x > 0)
        return;
    sum = 0;
    for (u32 i = threadIdx.x; i < gridDim.x; i += blockDim.x)
        sum += partials[i];
    sum = add_block(sum);
    if (threadIdx.x == 0)
        *out = sum;
}
