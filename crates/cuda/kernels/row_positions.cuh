// Where the smallest or the largest element of each short row is first.

#pragma once

#include "positions.cuh"
#include "row_tally.cuh"

// Takes a vector's elements with numbers from `number` on.
template <class T>
__device__ __forceinline__ void take_vector(FirstTaken<T> &first, const uint4 &v, u32 number, const typename PositionRank<T>::Asked &asked)
{
    using First = FirstTaken<T>;
    if constexpr (sizeof(typename First::Bits) < 4) {
        constexpr u32 TOP = ~0u << (32 - First::WIDTH);
        const u32 words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (u32 w = 0; w < 4; ++w) {
            const u32 ranks = First::ranks(words[w], asked);
#pragma unroll
            for (u32 e = 0; e < First::EACH; ++e) {
                const u32 its = number + w * First::EACH + e;
                first.take((ranks << (32 - First::WIDTH * (e + 1)) & TOP) | its, its);
            }
        }
    } else {
#pragma unroll
        for (int i = 0; i < ITEMS<T>; ++i)
            first.take(item<T>(v, i), number + i, asked);
    }
}

template <class T>
__device__ __forceinline__ void positions(const ShortRows &rows, void *out, const typename PositionRank<T>::Asked &asked)
{
    using Position = PositionOf<T>;
    constexpr u32 COUNT = ITEMS<T>;
    each_row_tallied<T, Position>(rows, out, asked, [&](Position &row, const RowTile<T> &tile, u64 index, u32 part, u32 s, u32 each) {
        FirstTaken<T> first;
#pragma unroll
        for (u32 q = 0; q < each; ++q)
            take_vector<T>(first, tile.v[s * each + q], q * COUNT, asked);
        // Lanes take vectors in turns, the first of which may begin before the row.
        const u32 vector = rows.slot() + (part * each + first.number() / COUNT << rows.shift);
        const u32 before = u32(u64(rows.row(RowTile<T>::row(rows, index, s))) % 16) / sizeof(typename Position::Bits);
        row.merge(Position(first.rank(), vector * COUNT + first.number() % COUNT - before));
    });
}
