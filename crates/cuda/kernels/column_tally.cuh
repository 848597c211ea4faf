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
    __device__ __forceinline__ void close() {}

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

    // Folds what the groups of a block have into the first group's.
    __device__ __forceinline__ void fold_groups(const ColumnTable &table, const Strip<T> &strip)
    {
        leave();
        ::fold_groups<T>(table, strip, [&](u32 thread) {
            merge(thread);
            leave();
        });
    }
};

// Totals of short integers fit 32 bits: a thread has no more than 2^15 elements of a column.
template <class T>
struct ShortTotals {
    static constexpr int COLUMNS = ITEMS<T>;
    static constexpr u32 CHUNK = 1 << 16;

    const bool absolute;
    i32 sum[COLUMNS] = {};

    __device__ __forceinline__ ShortTotals(const typename TotalOf<T>::Asked &asked) : absolute(asked.absolute) {}

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
    __device__ __forceinline__ void close() {}
    __device__ __forceinline__ void hand_over(TotalOf<T> &total, int i) const { total.low = u64(i64(sum[i])); }
};

// Ranks of elements shorter than a word are compared at the top of one: of two words the smaller one has the smaller rank on top, or
// as small a one, whatever lies below.
template <class T>
struct ShortExtremes {
    using Extreme = ExtremeOf<T>;
    static constexpr int COLUMNS = ITEMS<T>;
    static constexpr u32 CHUNK = 1 << 16;
    static constexpr int WIDTH = Extreme::WIDTH;
    static constexpr int EACH = 32 / WIDTH;
    static constexpr u32 MOVE = u32(Extreme::nans()) << (32 - WIDTH);

    const typename Extreme::Asked &asked;
    u32 least[COLUMNS];

    __device__ __forceinline__ ShortExtremes(const typename Extreme::Asked &asked) : asked(asked)
    {
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i)
            least[i] = ~0u;
    }

    __device__ __forceinline__ u32 ranks(u32 word) const { return Extreme::ranks(word, asked); }

    __device__ __forceinline__ void take(const uint4 (&v)[BATCH])
    {
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k) {
            const u32 words[4] = {ranks(v[k].x), ranks(v[k].y), ranks(v[k].z), ranks(v[k].w)};
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i)
                least[i] = min(least[i], (words[i / EACH] << (32 - WIDTH - WIDTH * (i % EACH))) + MOVE);
        }
    }
    __device__ __forceinline__ void close() {}

    __device__ __forceinline__ void hand_over(Extreme &extreme, int i) const
    {
        extreme.rank = typename Extreme::Bits(least[i] >> (32 - WIDTH));
    }
};

// Counts of elements shorter than a word, side by side in words until they could be full.
template <class T>
struct ShortCounts {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    static constexpr int COLUMNS = ITEMS<T>;
    static constexpr int WIDTH = 8 * sizeof(Bits);
    static constexpr int EACH = 32 / WIDTH;
    static constexpr u32 CHUNK = WIDTH == 8 ? 128 : 1 << 15;
    static constexpr u32 EVERY = WIDTH == 8 ? 0x01010101 : 0x00010001;
    static constexpr u32 UPPER = EVERY << (WIDTH - 1);
    static constexpr u32 REST = UPPER - EVERY;

    // Adding this to a magnitude brings a carry to the upper bit of those that count.
    const u32 lacks;
    u32 words[4] = {};
    u32 counts[COLUMNS] = {};

    __device__ __forceinline__ ShortCounts(const typename CountOf<T>::Asked &asked) : lacks(REST - EVERY * limit(asked)) {}

    static __device__ __forceinline__ u32 limit(const typename CountOf<T>::Asked &asked)
    {
        if constexpr (Format::FLOAT)
            return asked.ask == NANS ? u32(Format::INFINITE) : 0;
        else
            return 0;
    }

    __device__ __forceinline__ u32 ones(u32 word) const
    {
        const u32 carried = (word & REST) + lacks;
        return (Format::FLOAT ? carried : carried | word) >> (WIDTH - 1) & EVERY;
    }

    __device__ __forceinline__ void take(const uint4 (&v)[BATCH])
    {
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k) {
            words[0] += ones(v[k].x);
            words[1] += ones(v[k].y);
            words[2] += ones(v[k].z);
            words[3] += ones(v[k].w);
        }
    }

    __device__ __forceinline__ void close()
    {
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i)
            counts[i] += words[i / EACH] >> (WIDTH * (i % EACH)) & u32(Bits(~Bits(0)));
#pragma unroll
        for (int w = 0; w < 4; ++w)
            words[w] = 0;
    }

    __device__ __forceinline__ void hand_over(CountOf<T> &count, int i) const { count.count = counts[i]; }
};

// Who takes a tally's elements where they are shorter than a word.
template <class Tally>
struct ShortTaker;
template <class T>
struct ShortTaker<TotalOf<T>> {
    using Taker = ShortTotals<T>;
};
template <class T>
struct ShortTaker<ExtremeOf<T>> {
    using Taker = ShortExtremes<T>;
};
template <class T>
struct ShortTaker<CountOf<T>> {
    using Taker = ShortCounts<T>;
};

// Folds what the blocks of a tile have into the last one's first group where no words take tallies one by one: each block leaves its
// own, and the last one puts zeros there. Returns whether this is the last one. All threads of the block call it.
template <class T, class Tally>
__device__ __forceinline__ bool fold_blocks(const ColumnTable &table, const Strip<T> &strip, TallyColumns<T, Tally> &columns)
{
    constexpr u32 COLUMNS = ITEMS<T>, AT_ONCE = 4;
    const u32 width = table.width * COLUMNS, groups = table.groups();
    u64 *const workspace = workspace_of_tile(table, width, u64(gridDim.x) * Tally::WORDS);
    const auto left = [&](u32 block, int i, int w) { return &workspace[1 + (u64(block) * Tally::WORDS + w) * width + strip.slot * COLUMNS + i]; };
    if (strip.group == 0) {
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
#pragma unroll
            for (int w = 0; w < Tally::WORDS; ++w)
                *left(blockIdx.x, i, w) = columns.column[i].word(w);
        }
    }
    __threadfence();
    if (!is_last_block(workspace))
        return false;
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i)
        columns.column[i] = Tally();
#pragma unroll 1
    for (u32 first = strip.group; strip.group < groups && first < gridDim.x; first += AT_ONCE * groups) {
        u64 words[AT_ONCE][COLUMNS][Tally::WORDS];
#pragma unroll
        for (u32 b = 0; b < AT_ONCE; ++b) {
            const u32 block = first + b * groups;
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i) {
#pragma unroll
                for (int w = 0; w < Tally::WORDS; ++w)
                    words[b][i][w] = block < gridDim.x ? __ldcg(left(block, i, w)) : Tally().word(w);
            }
        }
#pragma unroll
        for (u32 b = 0; b < AT_ONCE; ++b) {
            const u32 block = first + b * groups;
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i) {
                columns.column[i].merge(Tally::of_words(words[b][i]));
#pragma unroll
                for (int w = 0; w < Tally::WORDS; ++w)
                    if (block < gridDim.x)
                        *left(block, i, w) = 0;
            }
        }
    }
    columns.fold_groups(table, strip);
    return true;
}

// Folds what the threads of a table have of its columns, and writes the answers.
template <class T, class Tally>
__device__ __forceinline__ void write_columns(const ColumnTable &table, const Strip<T> &strip, TallyColumns<T, Tally> &columns, void *out)
{
    constexpr u32 COLUMNS = ITEMS<T>;
    const auto &asked = columns.asked;
    if (table.is_tall())
        columns.fold_groups(table, strip);
    bool whole = gridDim.x == 1;
    if constexpr (Tally::MET == 0)
        whole = whole || table.is_tall() && fold_blocks(table, strip, columns);
    if (!table.is_tall()) {
        char *const room = reinterpret_cast<char *>(column_shared) + threadIdx.x / 32 * warp_output_bytes(COLUMNS * table.answer);
        write_answers(out, strip.place, 1, strip.columns, table.answer, columns.column, room, asked);
        return;
    }
    if (whole) {
        if (strip.group == 0) {
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i)
                if (i < strip.columns)
                    columns.column[i].write(out, strip.place + i, asked);
        }
        return;
    }
    if constexpr (Tally::MET != 0) {
        const u32 width = table.width * COLUMNS;
        u64 *const workspace = workspace_of_tile(table, width, Tally::MET);
        u64 *const met = workspace + 1 + strip.slot * COLUMNS;
        if (strip.group == 0) {
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i)
                if (i < strip.columns)
                    columns.column[i].meet(met + i, width);
        }
        __threadfence();
        if (!is_last_block(workspace) || strip.group != 0)
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
}

template <class T, class Tally>
__device__ __forceinline__ void tally_columns(const ColumnTable &table, void *out, const typename Tally::Asked &asked)
{
    const Strip<T> strip(table);
    TallyColumns<T, Tally> columns(asked);
    if constexpr (sizeof(typename Element<T>::Bits) < 4) {
        typename ShortTaker<Tally>::Taker taker(asked);
        walk_down(table, strip, asked.fill(), taker);
#pragma unroll
        for (int i = 0; i < ITEMS<T>; ++i)
            taker.hand_over(columns.column[i], i);
    } else {
        walk_down(table, strip, asked.fill(), columns);
    }
    write_columns(table, strip, columns, out);
}
