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

// Takes tiles as SETS rows of a lane, whose tallies outlast the parts of a tile. `take` does with all vectors of a set.
template <int SETS, class T, class Tally, class Take>
__device__ __forceinline__ void tally_part(const ShortRows &rows, u64 index, u32 part, Tally (&row)[VECTORS], void *out,
    const typename Tally::Asked &asked, Take take)
{
    Tally sets[SETS];
#pragma unroll
    for (u32 s = 0; s < SETS; ++s) {
        if (part != 0)
            sets[s] = row[s];
        take(sets[s], s, VECTORS / SETS);
        row[s] = sets[s];
    }
    if (part + 1 == rows.parts)
        write_rows<T>(rows, index, sets, out, asked);
}

// Tallies of all rows: `take` gives a tally the vectors of one set of a part.
template <class T, class Tally, class Take>
__device__ __forceinline__ void each_row_tallied(ShortRows rows, void *out, const typename Tally::Asked &asked, Take take)
{
    rows.fill = asked.fill();
    Tally row[VECTORS];
    each_part<T>(rows, [&](const RowTile<T> &tile, u64 index, u32 part) {
        const auto set = [&](Tally &tally, u32 s, u32 each) { take(tally, tile, index, part, s, each); };
        switch (rows.each) {
        case 1: return tally_part<4, T>(rows, index, part, row, out, asked, set);
        case 2: return tally_part<2, T>(rows, index, part, row, out, asked, set);
        default: return tally_part<1, T>(rows, index, part, row, out, asked, set);
        }
    });
}

template <class T, class Tally>
__device__ __forceinline__ void tally_rows(const ShortRows &rows, void *out, const typename Tally::Asked &asked)
{
    each_row_tallied<T, Tally>(rows, out, asked, [&](Tally &row, const RowTile<T> &tile, u64, u32, u32 s, u32 each) {
#pragma unroll
        for (u32 q = s * each; q < (s + 1) * each; ++q)
            take_vector<T>(row, tile.v[q], asked);
    });
}
