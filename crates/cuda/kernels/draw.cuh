// The last tiles of a large array are no block's share: blocks draw them, a few at a time, once they are done with their own. Equal
// shares do not end at once, since some multiprocessors are farther from memory than others.
//
// A block draws until it draws nothing. So a launch draws as many numbers as there are draws and blocks, whoever draws which, and the
// last number sets the counter back to 0.

#pragma once

#include "element.cuh"

// Where the counter is in the scratch memory, in words: not in the ticket's line of the cache.
constexpr int SCRATCH_DRAWS = 16;

// Tiles of a draw.
constexpr u32 DRAW = 2;

// An array has drawn tiles if its blocks have at least so many, and then an eighth of them: an H200's blocks differ by more than a
// sixteenth. But no more than 2^28 elements, so that words of 32 bits count what a block has even if it drew them all.
constexpr u32 FEWEST_TILES = 32;
constexpr u32 MOST_DRAWN = 1 << 28;

// How many of an array's tiles, of so many elements each, are drawn.
__device__ __forceinline__ u32 drawn_of(u64 tiles, u32 elements)
{
    if (gridDim.x == 1 || tiles < u64(FEWEST_TILES) * gridDim.x)
        return 0;
    return u32(min(tiles / 8, u64(MOST_DRAWN / elements)));
}

// A block's draws. All of its threads call `next`.
struct Draws {
    u32 *counter;
    u32 tiles;
    u32 turn = 0;

    __device__ __forceinline__ Draws(u32 tiles, u64 *scratch) : counter(reinterpret_cast<u32 *>(scratch + SCRATCH_DRAWS)), tiles(tiles) {}

    // The next `count` of the drawn tiles are those from `first` on; false if there are none left.
    __device__ __forceinline__ bool next(u32 &first, u64 &count)
    {
        if (tiles == 0)
            return false;
        // In turn, since whoever is late still reads the number before.
        __shared__ u32 drawn[2];
        const u32 draws = (tiles + DRAW - 1) / DRAW;
        if (threadIdx.x == 0)
            drawn[turn] = atomicInc(counter, draws + gridDim.x - 1);
        __syncthreads();
        const u32 mine = drawn[turn];
        turn ^= 1;
        if (mine >= draws)
            return false;
        first = mine * DRAW;
        count = min(tiles - first, DRAW);
        return true;
    }
};
