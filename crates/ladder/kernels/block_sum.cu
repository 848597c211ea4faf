// A block's sum, and the same again over the blocks' sums until one is left: so any n is summed, not only up to the square of a block.
// elements: i32 u32 i64 u64 f16 bf16 f32 f64

#include "types.cuh"

extern __shared__ T slots[];

// One element a thread, of any type that can be added; the upper half of the block's values goes onto the lower half, so that the
// threads at work and the banks they touch stay side by side. Blocks are powers of two.
template <class X>
__device__ __forceinline__ void block_sum_of(const X *in, T *out, u64 n)
{
    const u32 tid = threadIdx.x;
    const u64 i = u64(blockIdx.x) * blockDim.x + tid;
    slots[tid] = i < n ? value(in[i]) : T(0);
    __syncthreads();
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        out[blockIdx.x] = slots[0];
}
TWO_LAUNCHES(block_sum)
