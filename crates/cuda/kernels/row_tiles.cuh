// Tiles of rows that a block takes at once, some of which each thread has under way.

#pragma once

#include "element.cuh"

constexpr u32 GROUP_THREADS = 512;
// Rows that a thread has under way.
constexpr int GROUP_ROWS = 8;
constexpr u32 GROUP_TILE = GROUP_THREADS * GROUP_ROWS;

// The thread's rows of `left`, one or more. Those that there are not are the last one: without a branch all loads are under way at once.
template <class Item>
__device__ __forceinline__ void load_rows(Item (&items)[GROUP_ROWS], const Item *all, u32 left)
{
#pragma unroll
    for (int k = 0; k < GROUP_ROWS; ++k)
        items[k] = all[min(threadIdx.x + k * GROUP_THREADS, left - 1)];
}

// Calls `take` with the first row of each of the block's tiles, and with how many rows it has.
template <class Take>
__device__ __forceinline__ void each_tile(u64 n, Take take)
{
#pragma unroll 1
    for (u64 first = u64(blockIdx.x) * GROUP_TILE; first < n; first += u64(gridDim.x) * GROUP_TILE)
        take(first, u32(min(n - first, u64(GROUP_TILE))));
}
