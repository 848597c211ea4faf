// How the rungs of a fixed number of blocks read an array.

#pragma once

#include "types.cuh"

// What this thread finds on its way through the whole array in steps of all threads: any n by any grid, in a register.
template <class X>
__device__ __forceinline__ T add_grid_stride(const X *in, u64 n)
{
    const u64 step = u64(gridDim.x) * blockDim.x;
    T sum = 0;
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
        sum += value(in[i]);
    return sum;
}
