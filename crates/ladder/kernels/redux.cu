// A warp's fold in one instruction, which integers of 32 bits have from compute capability 8.0 on.
// elements: i32 u32
// compute: 80

#include "grid_stride.cuh"

// `warp_shuffle` with one `redux.sync` instead of five shuffles and five adds; every lane gets the sum.
template <class X>
__device__ __forceinline__ void redux_of(const X *in, T *out, u64 n)
{
    __shared__ T slots[32];
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    T sum = __reduce_add_sync(0xffffffff, add_grid_stride(in, n));
    if (lane == 0)
        slots[warp] = sum;
    __syncthreads();
    if (warp == 0)
        sum = __reduce_add_sync(0xffffffff, lane < blockDim.x / 32 ? slots[lane] : T(0));
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}
TWO_LAUNCHES(redux)
