// Short rows of floats that are far apart, by the accumulators of any view.

#pragma once

#include "rows.cuh"
#include "strided.cuh"

// Answers the rows of a tile that `lacking` says by sets, of which each lane has some. Returns those whose totals are lost.
template <class Acc>
__device__ __noinline__ u32 answer_apart(const ShortRows &rows, u64 index, u32 lacking, void *out, const typename Acc::Asked &asked)
{
    using Item = typename Acc::Item;
    using Bits = typename Acc::Bits;
    const u32 lanes = rows.lanes(), sets = rows.sets();
    RowTile<Item> tile;
    tile.load(rows, index);
    u32 lost = 0;
#pragma unroll 1
    for (u32 first = 0; first < sets; first += lanes) {
        Acc mine;
#pragma unroll 1
        for (u32 s = first; s < min(first + lanes, sets); ++s) {
            Acc acc;
#pragma unroll 1
            for (u32 k = s * rows.each; k < (s + 1) * rows.each; ++k) {
                Elements<Bits, ITEMS<Item>> some;
                memcpy(some.bits, &tile.v[k], sizeof(some.bits));
                acc.settle(some, asked);
            }
#pragma unroll 1
            for (u32 d = lanes / 2; d > 0; d /= 2)
                acc.merge(from_lane(acc, d));
            if (s == first + rows.slot())
                mine = acc;
        }
        const u32 set = first + rows.slot();
        const u64 r = RowTile<Item>::row(rows, index, set);
        if (set < sets && r < rows.count && (lacking >> set & 1) != 0 && !mine.write(out, r, asked))
            lost |= 1u << set;
        __syncwarp();
    }
    for (u32 d = lanes / 2; d > 0; d /= 2)
        lost |= __shfl_xor_sync(ALL_LANES, lost, d);
    return lost;
}
