// One launch: whoever leaves last folds what all have left.
// elements: i32 u32 i64 u64 f16 bf16 f32 f64

#include "grid_stride.cuh"
#include "shuffles.cuh"

// Each block writes its partial, and then draws a ticket; whoever draws the last one knows that all partials are there. The fence
// before the ticket puts the partial ahead of it, the one behind it keeps the reads behind it. `atomicInc` sets the tickets back to 0
// with the last draw, so that the next launch finds them so. The partials are added in the order of the blocks, whoever is last.
extern "C" __global__ void last_block(const In *in, T *partials, T *out, u32 *tickets, u64 n)
{
    __shared__ bool last;
    T sum = add_block(add_grid_stride(in, n));
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(tickets, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!last)
        return;
    sum = 0;
    for (u32 i = threadIdx.x; i < gridDim.x; i += blockDim.x)
        sum += partials[i];
    sum = add_block(sum);
    if (threadIdx.x == 0)
        *out = sum;
}
