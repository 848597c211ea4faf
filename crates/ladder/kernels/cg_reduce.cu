// Cooperative groups: a group says which threads take part, and `cg::reduce` picks the instructions for the device.
// elements: i32 u32 i64 u64 f16 bf16 f32 f64
// compute: 75 80
// toolkit: headers

#include "grid_stride.cuh"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

// `warp_shuffle` without a mask, a distance or a lane's number: the toolkit makes five shuffles of a reduce, and from compute capability
// 8.0 on one `redux.sync` where integers have 32 bits.
template <class X>
__device__ __forceinline__ void cg_reduce_of(const X *in, T *out, u64 n)
{
    __shared__ T slots[32];
    const auto block = cg::this_thread_block();
    const auto warp = cg::tiled_partition<32>(block);
    const T sum = cg::reduce(warp, add_grid_stride(in, n), cg::plus<T>());
    if (warp.thread_rank() == 0)
        slots[warp.meta_group_rank()] = sum;
    block.sync();
    if (warp.meta_group_rank() > 0)
        return;
    const T slot = warp.thread_rank() < warp.meta_group_size() ? slots[warp.thread_rank()] : T(0);
    const T all = cg::reduce(warp, slot, cg::plus<T>());
    if (warp.thread_rank() == 0)
        out[blockIdx.x] = all;
}
TWO_LAUNCHES(cg_reduce)
