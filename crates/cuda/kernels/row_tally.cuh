// Tallies of short rows.

#pragma once

#include "rows.cuh"
#include "tally.cuh"

// Folds what the lanes of each row of a tile have, and writes the answers.
template <class T, class Tally, int SETS>
__device__ __forceinline__ void write_rows(const ShortRows &rows, u64 index, Tally (&row)[SETS], void *out, const typename Tally::Asked &asked)
{
    const bool skip[SETS] = {};
#pragma unroll
    for (int s = 0; s < SETS; ++s) {
#pragma unroll 1
        for (u32 d = rows.lanes() / 2; d > 0; d /= 2)
            row[s].merge(row[s].from_lane(d));
    }
    each_answer<T>(rows, index, row, skip, [&](const Tally &mine, u64 r) { mine.write(out, r, asked); });
}

template <class T, class Tally, int SETS>
__device__ __forceinline__ void tally_tile(const ShortRows &rows, const RowTile<T> &tile, u64 index, void *out,
    const typename Tally::Asked &asked)
{
    Tally row[SETS];
#pragma unroll
    for (int q = 0; q < VECTORS; ++q) {
#pragma unroll
        for (int i = 0; i < ITEMS<T>; ++i)
            row[q * SETS / VECTORS].take(item<T>(tile.v[q], i), asked);
    }
    write_rows<T>(rows, index, row, out, asked);
}

template <class T, class Tally>
__device__ __forceinline__ void tally_rows(ShortRows rows, void *out, const typename Tally::Asked &asked)
{
    rows.fill = asked.fill();
    each_tile<T>(rows, [&](const RowTile<T> &tile, u64 index) {
        switch (rows.each) {
        case 1: return tally_tile<T, Tally, 4>(rows, tile, index, out, asked);
        case 2: return tally_tile<T, Tally, 2>(rows, tile, index, out, asked);
        default: return tally_tile<T, Tally, 1>(rows, tile, index, out, asked);
        }
    });
}
