// Where the smallest or the largest element of each column is first.

#pragma once

#include "column_tally.cuh"
#include "positions.cuh"

// The firsts of a thread's columns, by the rows that it takes: no more than 2^15.
template <class T>
struct FirstRows {
    using First = FirstTaken<T>;
    static constexpr int COLUMNS = ITEMS<T>;
    static constexpr u32 CHUNK = 1 << 16;

    const typename PositionRank<T>::Asked &asked;
    First column[COLUMNS];
    u32 row = 0;

    __device__ __forceinline__ FirstRows(const typename PositionRank<T>::Asked &asked) : asked(asked) {}

    __device__ __forceinline__ void take(const uint4 (&v)[BATCH])
    {
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k, ++row) {
            if constexpr (sizeof(typename First::Bits) < 4) {
                const u32 words[4] = {First::ranks(v[k].x, asked), First::ranks(v[k].y, asked), First::ranks(v[k].z, asked),
                    First::ranks(v[k].w, asked)};
#pragma unroll
                for (u32 i = 0; i < COLUMNS; ++i) {
                    // The lower half of the row, and the element's bytes on top.
                    const u32 e = i % First::EACH;
                    const u32 picks = First::WIDTH == 8 ? e << 12 | 0x654 : (2 * e + 1) << 12 | (2 * e) << 8 | 0x54;
                    column[i].take(__byte_perm(words[i / First::EACH], row, picks), row);
                }
            } else {
#pragma unroll
                for (int i = 0; i < COLUMNS; ++i)
                    column[i].take(item<T>(v[k], i), row, asked);
            }
        }
    }
    __device__ __forceinline__ void close() {}
};

template <class T>
__device__ __forceinline__ void positions(const ColumnTable &table, void *out, const typename PositionRank<T>::Asked &asked)
{
    using Position = PositionOf<T>;
    const Strip<T> strip(table);
    FirstRows<T> firsts(asked);
    walk_down(table, strip, asked.fill(), firsts);
    TallyColumns<T, Position> columns(asked);
#pragma unroll
    for (int i = 0; i < ITEMS<T>; ++i) {
        const FirstTaken<T> &first = firsts.column[i];
        columns.column[i] = Position(first.rank(), strip.first + u64(first.number()) * strip.step);
    }
    write_columns(table, strip, columns, out);
}
