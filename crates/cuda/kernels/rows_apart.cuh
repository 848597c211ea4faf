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
    using Format = Element<Item>;
    constexpr u32 BATCH = Acc::MOST / ITEMS<Item>; // vectors
    const u32 lanes = rows.lanes(), sets = rows.sets();
    RowTile<Item> tile;
    tile.load(rows, index);
    u32 lost = 0;
#pragma unroll 1
    for (u32 first = 0; first < sets; first += lanes) {
        Acc mine;
#pragma unroll 1
        for (u32 s = first; s < min(first + lanes, sets); ++s) {
            const u32 end = (s + 1) * rows.each;
            // All lanes of a row begin where its largest element will be, so that none moves, and all have the same place when they merge.
            Bits most = 0;
#pragma unroll 1
            for (u32 k = s * rows.each; k < end; ++k) {
#pragma unroll
                for (int i = 0; i < ITEMS<Item>; ++i)
                    most = max(most, Format::magnitude(item<Item>(tile.v[k], i)));
            }
            int top = Format::top(most);
            for (u32 d = lanes / 2; d > 0; d /= 2)
                top = max(top, __shfl_xor_sync(ALL_LANES, top, d));
            Acc acc;
            acc.move_to(Acc::place_above(top));
#pragma unroll 1
            for (u32 k = s * rows.each; k < end; k += BATCH) {
                Elements<Bits, Acc::MOST> some;
#pragma unroll
                for (u32 b = 0; b < BATCH; ++b) {
                    const uint4 v = k + b < end ? tile.v[k + b] : uint4();
                    memcpy(some.bits + b * ITEMS<Item>, &v, sizeof(v));
                }
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
