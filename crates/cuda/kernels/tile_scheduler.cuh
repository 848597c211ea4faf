// Dynamic tile scheduling: the last tiles of a large array are no block's share. Blocks that are done with their own take them, a few
// at a time. Equal shares do not end at once, since some multiprocessors are farther from memory than others.
//
// A block asks until nothing is left. So a launch counts as many requests as there are batches of tiles and blocks, in any order, and
// the last request sets the counter back to 0.

#pragma once

#include "element.cuh"

// Where the counter is in the scratch memory, in words: not in the ticket's line of the cache.
constexpr int SCRATCH_SCHEDULER = 16;

// Tiles of a request.
constexpr u32 TILES_AT_ONCE = 2;

// Tiles of an array are scheduled if its blocks have at least so many, and then an eighth of them: an H200's blocks differ by more than
// a sixteenth. But no more than 2^28 elements, so that words of 32 bits count what a block has even if it takes them all.
constexpr u32 FEWEST_TILES = 32;
constexpr u32 MOST_SCHEDULED = 1 << 28;

// How many of an array's tiles, of so many elements each, are scheduled.
__device__ __forceinline__ u32 scheduled_of(u64 tiles, u32 elements)
{
    if (gridDim.x == 1 || tiles < u64(FEWEST_TILES) * gridDim.x)
        return 0;
    return u32(min(tiles / 8, u64(MOST_SCHEDULED / elements)));
}

// What gives a block its tiles. All of its threads call `next`.
struct TileScheduler {
    u32 *counter;
    u32 tiles;
    u32 turn = 0;

    __device__ __forceinline__ TileScheduler(u32 tiles, u64 *scratch) : counter(reinterpret_cast<u32 *>(scratch + SCRATCH_SCHEDULER)), tiles(tiles) {}

    // The next `count` of the scheduled tiles are those from `first` on; false if there are none left.
    __device__ __forceinline__ bool next(u32 &first, u64 &count)
    {
        if (tiles == 0)
            return false;
        // In turn, since a late thread still reads the number before.
        __shared__ u32 given[2];
        const u32 batches = (tiles + TILES_AT_ONCE - 1) / TILES_AT_ONCE;
        if (threadIdx.x == 0)
            given[turn] = atomicInc(counter, batches + gridDim.x - 1);
        __syncthreads();
        const u32 mine = given[turn];
        turn ^= 1;
        if (mine >= batches)
            return false;
        first = mine * TILES_AT_ONCE;
        count = min(tiles - first, TILES_AT_ONCE);
        return true;
    }
};
