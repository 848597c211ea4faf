// A warp's and a block's fold through registers. Blocks are whole warps, so that every mask names the lanes that there are.

#pragma once

#include "types.cuh"

constexpr u32 ALL_LANES = 0xffffffff;

// The sum of a warp in its lane 0: each lane adds what the lane 16 above has, then 8 above, ... No memory, no barrier.
__device__ __forceinline__ T add_down(T sum)
{
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2)
        sum += __shfl_down_sync(ALL_LANES, sum, distance);
    return sum;
}

// The sum of a block in its thread 0: warps leave theirs in a slot each, and the first warp folds the slots. There must be a barrier
// between two calls.
__device__ __forceinline__ T add_block(T sum)
{
    __shared__ T slots[32];
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    sum = add_down(sum);
    if (lane == 0)
        slots[warp] = sum;
    __syncthreads();
    if (warp == 0)
        sum = add_down(lane < blockDim.x / 32 ? slots[lane] : T(0));
    return sum;
}
