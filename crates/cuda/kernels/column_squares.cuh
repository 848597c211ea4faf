// Sums of squares and variances of columns of floats, exact and rounded once.
//
// A thread has a window for each column, or, of shorter types than words, one that all its columns share. It has at most 2^15 rows, 2^11
// chunks: its totals, each at most 2^51.6 a chunk, stay below 2^63.

#pragma once

#include "column_windows.cuh"
#include "float_squares.cuh"
#include "square_lanes.cuh"

// The most rows whose totals fit the words of an answer.
constexpr u64 SCALED_ROWS = 1 << 15;

template <class T, bool SPREAD>
struct ColumnSquares {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    using Wides = WideMoments<T>;
    using Apart = FloatSquares<T, SPREAD>;
    using Lane = SquareLane<T, SPREAD>;
    using Sum = typename Wides::Sum;
    using Squares = typename Wides::Squares;
    static constexpr u32 LEVELS = Lane::LEVELS;
    // A window of bf16 has room for most scales side by side.
    static constexpr u32 PLACES = sizeof(Bits) >= 4 ? ITEMS<T> : 1;
    static constexpr u32 WORDS = Sum::WORDS + Squares::WORDS;

    static __device__ __forceinline__ int initial() { return place_above(START - Lane::ROOM); }
    static __device__ __forceinline__ int place_above(int top) { return Lane::place_above(top); }
    static __device__ __forceinline__ void deposit(Wides &wides, u32 l, i64 total, int place)
    {
        const bool negative = total < 0;
        const u64 magnitude = negative ? -u64(total) : u64(total);
        if (l < Lane::SQUARES)
            wides.squares.deposit(negative, magnitude, Lane::unit(l, place));
        else
            wides.sum.deposit(negative, magnitude, Lane::unit(l, place));
    }
    static __device__ __forceinline__ typename Apart::Asked asked(u32 ask, u64 n) { return {ask, n}; }
    static __device__ __forceinline__ void absorb(Wides &wides, const ColumnPart<T> &part)
    {
        absorb_alone(part, [&](Bits bits) { wides.absorb(bits); });
    }
    static __device__ __forceinline__ u64 entry(const Wides &wides, int i, u64 n)
    {
        return i < Sum::WORDS ? wides.sum.entry(i, n) : wides.squares.entry(i - Sum::WORDS, n);
    }
    template <class Word>
    static __device__ __forceinline__ Bits answer(Word word, u32 ask, u64 n)
    {
        // Squares are finite where elements are.
        const auto special = [&](int which) { return word(Sum::WORDS + Squares::LIMBS + 1 + which) != 0; };
        const bool nan = special(Squares::NOT_A_NUMBER), infinite = special(Squares::POSITIVE);
        if (nan || infinite)
            return special_answer(nan);
        return moments_answer<T>([&](int i) { return i64(word(i)); }, [&](int i) { return i64(word(Sum::WORDS + i)); }, ask, n);
    }
    // What is asked of a column's totals.
    static __device__ __forceinline__ Bits answer(const i64 *total, int place, u32 ask, u64 n)
    {
        if constexpr (sizeof(Bits) == 8) {
            // In units of the last level of squares, and of their root for elements, which are multiples of that. Totals may be negative: they
            // are moved first.
            constexpr u64 MOVE = u64(1) << 63;
            Triple squares, moved;
#pragma unroll
            for (int l = 0; l < Lane::SQUARES; ++l) {
                const int up = Lane::unit(l, 0) - Lane::unit(Lane::SQUARES - 1, 0);
                squares.add(u64(total[l]) + MOVE, up);
                moved.add(MOVE, up);
            }
            squares.subtract(moved);
            const i64 sums[2] = {SPREAD ? total[LEVELS - 2] : 0, SPREAD ? total[LEVELS - 1] >> 21 : 0};
            const Joined<27> sum(sums);
            return scaled_answer(squares, sum.high, sum.low, place / 2 - 50, ask, n);
        } else {
            const Joined<48> squares(total);
            return scaled_answer<T>(u64(squares.high), squares.low, SPREAD ? total[LEVELS - 1] : 0, place / 2 - 24, ask, n);
        }
    }
    static __device__ __forceinline__ Bits special_answer(bool nan) { return SPREAD || nan ? NOT_A_NUMBER<T> : Element<T>::INFINITE; }

    struct Chunk {
        int place;
        i64 total[LEVELS];

        __device__ __forceinline__ bool fits(const ColumnPart<T> &part)
        {
            place = place_above(part.top());
            Lane lane;
            lane.open(place);
            part.each([&](const Bits (&some)[BATCH]) {
#pragma unroll
                for (u32 k = 0; k < BATCH; ++k)
                    lane.add(some[k]);
            });
            lane.totals(place, total);
            return lane.holds(place);
        }
    };
};

template <class T, bool SPREAD>
struct SquareColumns {
    using Form = ColumnSquares<T, SPREAD>;
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Own = Committed<Form>;
    using Lane = typename Form::Lane;
    static constexpr u32 COLUMNS = Own::COLUMNS;
    static constexpr u32 CHUNK = SQUARE_CHUNK;
    static constexpr u32 AT_ONCE = 2;

    const ColumnTable *const shared_table;

    Lane lane[COLUMNS];
    bool fresh = Lane::RANGED; // whether windows have no place yet
    u32 spilled = 0;           // as `spill` says
    u32 nans = 0, infinities = 0; // columns that have some; of variances both are NaN

    __device__ __forceinline__ SquareColumns(const ColumnTable *shared_table, bool, Bits) : shared_table(shared_table)
    {
        if constexpr (!Lane::RANGED)
            open();
    }

    __device__ __forceinline__ Own own() const { return {threadIdx.x}; }
    __device__ __forceinline__ int place(u32 i) const { return Lane::RANGED ? own().place(i) : Form::initial(); }

    __device__ __forceinline__ void open()
    {
#pragma unroll
        for (u32 i = 0; i < COLUMNS; ++i)
            lane[i].open(place(i));
    }

    // Windows that hold the first batch. What is infinite is no matter where columns have their own.
    __device__ __forceinline__ void find_places(const uint4 (&v)[BATCH])
    {
        constexpr u32 SHARED = COLUMNS / Own::PLACES;
#pragma unroll
        for (u32 p = 0; p < Own::PLACES; ++p) {
            Bits most = 0;
#pragma unroll
            for (u32 k = 0; k < BATCH; ++k) {
#pragma unroll
                for (u32 i = 0; i < SHARED; ++i) {
                    const Bits magnitude = Format::magnitude(item<T>(v[k], p + i));
                    most = SHARED == 1 || magnitude < Format::INFINITE ? max(most, magnitude) : most;
                }
            }
            if (most != 0)
                own().place(p) = Form::place_above(Format::top(most));
        }
        fresh = false;
    }

    __device__ __forceinline__ void take(const uint4 (&v)[BATCH])
    {
        if constexpr (Lane::RANGED) {
            if (fresh) {
                find_places(v);
                open();
            }
        }
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k) {
#pragma unroll
            for (u32 i = 0; i < COLUMNS; ++i)
                lane[i].add(item<T>(v[k], i));
        }
    }

    // Columns that windows did not hold. Those with infinities and NaNs have their answers.
    __device__ __forceinline__ void fail(u32 failed, u32 done, u32 rows)
    {
#pragma unroll
        for (u32 i = 0; i < COLUMNS; ++i) {
            if (lane[i].is_special())
                (SPREAD || lane[i].is_nan() ? nans : infinities) |= 1u << i;
        }
        failed &= ~(nans | infinities);
        if (failed != 0)
            spilled |= spill<Form>(shared_table, failed, done, rows, Bits(~Bits(0)));
        if (!shared_table->is_tall())
            spilled &= ~(nans | infinities);
    }

    __device__ __forceinline__ void close(u32 done, u32 rows)
    {
        u32 failed = 0;
#pragma unroll
        for (u32 i = 0; i < COLUMNS; ++i) {
            if (!lane[i].holds(place(i))) {
                failed |= 1u << i;
            } else {
                i64 total[Own::LEVELS];
                lane[i].totals(place(i), total);
                own().commit(i, total);
            }
        }
        if (failed != 0)
            fail(failed, done, rows);
        open();
    }

    __device__ __forceinline__ void hand_over(typename Form::Wides *wides)
    {
        using Squares = typename Form::Squares;
#pragma unroll 1
        for (u32 i = 0; i < COLUMNS; ++i) {
            if (nans >> i & 1)
                wides[i].squares.count(Squares::NOT_A_NUMBER);
            if (infinities >> i & 1)
                wides[i].squares.count(Squares::POSITIVE);
        }
        spilled |= nans | infinities;
    }

    static __device__ __forceinline__ bool lacks(u32) { return false; }
    static __device__ __forceinline__ bool is_ready(u64 rows) { return rows <= SCALED_ROWS; }

    // The answer of a column that has not spilled.
    __device__ __forceinline__ Bits answer(u32 i, u32 ask, u64 n) const
    {
        if ((nans | infinities) >> i & 1)
            return Form::special_answer((nans >> i & 1) != 0);
        i64 total[Own::LEVELS];
#pragma unroll
        for (u32 l = 0; l < Own::LEVELS; ++l)
            total[l] = own().total(i, l);
        return Form::answer(total, place(i), ask, n);
    }
};

template <class T, bool SPREAD>
constexpr u32 UNALIGNED_ROWS<SquareColumns<T, SPREAD>> = sizeof(typename Element<T>::Bits) < 4 ? BATCH / 4 : BATCH / 2;

template <class T, bool SPREAD>
__device__ __forceinline__ void square_columns(const ColumnTable &table, u32 ask, void *out)
{
    reduce_columns<SquareColumns<T, SPREAD>>(table, ask, typename Element<T>::Bits(~0), out);
}
