// How the unrolled rungs begin.

#pragma once

#include "types.cuh"

// Each thread adds the elements of K tiles side by side that are `blockDim.x` apart, its own place in each. The loads do not wait for
// each other, so that K of them are on their way at once. Elements beyond the end count as zero, one by one: no tail is dropped.
template <int K>
__device__ __forceinline__ T fold_columns(const T *in, u64 n)
{
    const u32 width = blockDim.x, length = tile_length(n, K * width);
    const T *tiles = in + u64(blockIdx.x) * K * width;
    T sum = 0;
#pragma unroll
    for (int k = 0; k < K; ++k) {
        const u32 at = threadIdx.x + k * width;
        sum += at < length ? tiles[at] : T(0);
    }
    return sum;
}
