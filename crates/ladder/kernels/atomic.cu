// One launch, and no partials: blocks add to the answer itself.
// elements: i32 u32 i64 u64 f16 bf16 f32 f64

#include "grid_stride.cuh"
#include "shuffles.cuh"

// One atomic a block, not one a thread: they all go to one address, one after the other. The answer must be 0 before the launch. In
// which order blocks come is not fixed, and float sums depend on it: two runs may differ in their last bits.
extern "C" __global__ void atomic(const In *in, T *out, u64 n)
{
    const T sum = add_block(add_grid_stride(in, n));
    if (threadIdx.x == 0)
        atomicAdd(out, sum);
}
