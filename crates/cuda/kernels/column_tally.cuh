// Tallies of columns.

#pragma once

#include "columns.cuh"
#include "integer_sum.cuh"
#include "tally.cuh"
#include "words.cuh"

// The i-th byte of a word added to a sum.
template <class T>
__device__ __forceinline__ i32 add_byte(u32 word, int i, i32 sum)
{
    if constexpr (T(-1) < T(0))
        asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(word), "r"(1 << 8 * i));
    else
        asm("dp4a.u32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(normal<T>(word)), "r"(1 << 8 * i));
    return sum;
}

template <class T, class Tally>
struct TallyColumns {
    using Bits = typename Element<T>::Bits;
    static constexpr int COLUMNS = ITEMS<T>;
    // A thread has fewer rows than a chunk: nothing is to be done in between.
    static constexpr u32 CHUNK = 1 << 16;
    const typename Tally::Asked &asked;
    Tally column[COLUMNS];

    __device__ __forceinline__ TallyColumns(const typename Tally::Asked &asked) : asked(asked) {}

    __device__ __forceinline__ void take(const uint4 (&v)[BATCH])
    {
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k) {
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i)
                column[i].take(item<T>(v[k], i), asked);
        }
    }
    __device__ __forceinline__ void close(u32, u32) {}

    static __device__ __forceinline__ u64 &slot(u32 thread, int i, int w)
    {
        return column_shared[(i * Tally::WORDS + w) * COLUMN_THREADS + thread];
    }

    // Leaves the tallies where other threads find them.
    __device__ __forceinline__ void leave() const
    {
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
#pragma unroll
            for (int w = 0; w < Tally::WORDS; ++w)
                slot(threadIdx.x, i, w) = column[i].word(w);
        }
    }

    __device__ __forceinline__ void merge(u32 thread)
    {
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            u64 words[Tally::WORDS];
#pragma unroll
            for (int w = 0; w < Tally::WORDS; ++w)
                words[w] = slot(thread, i, w);
            column[i].merge(Tally::of_words(words));
        }
    }
};

// Totals of short integers fit 32 bits: a thread has no more than 2^15 elements of a column.
template <class T>
struct ShortTotals {
    static constexpr int COLUMNS = ITEMS<T>;
    static constexpr u32 CHUNK = 1 << 16;

    const bool absolute;
    i32 sum[COLUMNS] = {};

    __device__ __forceinline__ ShortTotals(bool absolute) : absolute(absolute) {}

    __device__ __forceinline__ void take(const uint4 (&v)[BATCH])
    {
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k) {
            const u32 words[4] = {v[k].x, v[k].y, v[k].z, v[k].w};
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i) {
                if (TotalOf<T>::SIGNED && absolute)
                    sum[i] += abs(i32(T(item<T>(v[k], i))));
                else if constexpr (sizeof(T) == 1)
                    sum[i] = add_byte<T>(words[i / 4], i % 4, sum[i]);
                else
                    sum[i] += i32(T(item<T>(v[k], i)));
            }
        }
    }
    __device__ __forceinline__ void close(u32, u32) {}
};

template <class T, class Tally>
constexpr bool IS_SHORT_TOTAL = false;
template <class T>
constexpr bool IS_SHORT_TOTAL<T, TotalOf<T>> = sizeof(T) < 4;

template <class T, class Tally>
__device__ __forceinline__ void tally_columns(const ColumnTable &table, void *out, const typename Tally::Asked &asked)
{
    constexpr u32 COLUMNS = ITEMS<T>;
    const Strip<T> strip(table);
    TallyColumns<T, Tally> columns(asked);
    if constexpr (IS_SHORT_TOTAL<T, Tally>) {
        ShortTotals<T> totals(asked.absolute);
        walk_down(table, strip, 0, totals);
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i)
            columns.column[i].low = u64(i64(totals.sum[i]));
    } else {
        walk_down(table, strip, asked.fill(), columns);
    }
    if (table.is_tall()) {
        columns.leave();
        fold_groups<T>(table, strip, [&](u32 thread) {
            columns.merge(thread);
            columns.leave();
        });
    }
    if (!table.is_tall() || gridDim.x == 1) {
        if (strip.group == 0) {
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i)
                if (i < strip.columns)
                    columns.column[i].write(out, strip.place + i, asked);
        }
        return;
    }
    const u32 width = table.width * COLUMNS;
    u64 *const meeting = meeting_of_tile(table, width, Tally::MET);
    u64 *const met = meeting + 1 + strip.slot * COLUMNS;
    if (strip.group == 0) {
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i)
            if (i < strip.columns)
                columns.column[i].meet(met + i, width);
    }
    __threadfence();
    if (!is_last_block(meeting) || strip.group != 0)
        return;
#pragma unroll 1
    for (u32 i = 0; i < strip.columns; ++i) {
        u64 words[Tally::MET];
#pragma unroll
        for (int w = 0; w < Tally::MET; ++w)
            words[w] = atomicExch(&met[w * width + i], 0);
        Tally::write_met(words, out, strip.place + i, asked);
    }
}
