// Warps folded through registers: a shuffle hands a value from lane to lane without shared memory.
// elements: i32 u32 i64 u64 f16 bf16 f32 f64

#include "grid_stride.cuh"
#include "shuffles.cuh"

// Five shuffles fold a warp, and one slot of shared memory for each warp is all that a block needs: one barrier instead of ten.
template <class X>
__device__ __forceinline__ void warp_shuffle_of(const X *in, T *out, u64 n)
{
    const T sum = add_block(add_grid_stride(in, n));
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}
TWO_LAUNCHES(warp_shuffle)

// The sum of a warp in all of its lanes: partners exchange, at distance 16, 8, 4, 2 and 1.
__device__ __forceinline__ T add_all(T sum)
{
#pragma unroll
    for (u32 bit = 16; bit > 0; bit /= 2)
        sum += __shfl_xor_sync(ALL_LANES, sum, bit);
    return sum;
}

// The same, but every thread of the block ends with the block's sum: lanes exchange instead of handing down, and every warp folds the
// slots. It costs no step more, where somebody needs the sum everywhere.
template <class X>
__device__ __forceinline__ void warp_allreduce_of(const X *in, T *out, u64 n)
{
    __shared__ T slots[32];
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    T sum = add_all(add_grid_stride(in, n));
    if (lane == 0)
        slots[warp] = sum;
    __syncthreads();
    sum = add_all(lane < blockDim.x / 32 ? slots[lane] : T(0));
    // Any thread could write; the last one shows that it knows.
    if (threadIdx.x == blockDim.x - 1)
        out[blockIdx.x] = sum;
}
TWO_LAUNCHES(warp_allreduce)
