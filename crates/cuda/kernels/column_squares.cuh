// Sums of squares and variances of columns of floats, exact and rounded once.
//
// Squares of shorter floats are exact in f64. A chunk of a column adds them to two levels of an anchored window (window.cuh), where a fused
// multiply-add makes the term and takes it in at once, and the elements themselves to a plain f64. Squares have no sign: level 0 never comes
// back to a binade that it has left, and so is looked at in the end. There it also tells infinities and NaNs, which need no other proof.
//
// With units 2^k(0) and 2^k(1) of the levels, k(0) - k(1) = 48 and k(1) even, let u = 2^(k(1) / 2) and P be an element's significant bits:
//
//  - An element that is not below 2^(P - 1) u, or of a format whose last bit is u or more, is a multiple of u, and its square one of u^2.
//    Then level 1 takes what level 0 hands down, at most 2^(k(0) - 1) each and 2^4 of them, without a loss. The smallest element but
//    zero is found by twice its bits minus one, as a zero wraps and drops out. f16 has one window for all its values.
//  - The squares of a chunk are below 2^(k(0) + 51) + 2^(k(0) + 3), so that 2^4 elements add up to less than
//    sqrt(2^4 2^(k(0) + 51.1)) = 2^51.6 u, by Cauchy and Schwarz, as do any of them: their plain sum is exact.
//  - A thread has at most 2^15 rows, 2^11 chunks. Its totals of levels, each at most 2^51 a chunk, and of elements stay below 2^63.

#pragma once

#include "column_windows.cuh"
#include "square_answer.cuh"

// The most rows whose totals fit the words of an answer.
constexpr u64 SCALED_ROWS = 1 << 15;

// A column's squares in a chunk, and its elements.
template <class T, bool SPREAD>
struct SquareLane {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Levels = Window<typename Format::Dot, 2, 4, true>;
    static constexpr bool RANGED = Format::Dot::LSB != -48;
    // Binades above the elements that say where a window is. It reaches 24 binades down from there, of bf16 40.
    static constexpr int ROOM = sizeof(Bits) == 4 ? 4 : 8;

    f64 at[2];
    f64 sum;
    u32 least;

    // Sixteen squares are below 2^(k(0) + 50). Threads should have the same units where their elements are much alike.
    static __device__ __forceinline__ int place_above(int top)
    {
        constexpr int ALIKE = ROOM / 2;
        return RANGED ? max(2 * ((top + ALIKE - 1 & -ALIKE) + ROOM) - 46, Levels::LOWEST) : Levels::LOWEST;
    }

    // k(1) / 2.
    static __device__ __forceinline__ int unit(int place) { return (place - Levels::STEP) / 2; }

    __device__ __forceinline__ void open(int place)
    {
#pragma unroll
        for (int l = 0; l < 2; ++l)
            at[l] = __hiloint2double(Levels(place).anchor(l), 0);
        sum = 0.0;
        least = ~0u;
    }

    __device__ __forceinline__ void add(Bits bits)
    {
        const f32 x = Format::value(bits);
        if constexpr (RANGED)
            least = min(least, (__float_as_uint(x) << 1) - 1);
        const f64 wide = x, t = __fma_rn(wide, wide, at[0]);
        at[1] = __dadd_rn(at[1], __fma_rn(wide, wide, __dsub_rn(at[0], t)));
        at[0] = t;
        if constexpr (SPREAD)
            sum = __dadd_rn(sum, wide);
    }

    __device__ __forceinline__ bool holds(int place) const
    {
        bool exact = true;
        if constexpr (RANGED) {
            const int lowest = unit(place);
            exact = lowest <= Format::UNIT || least >= u32((lowest + Format::FRACTION + 127) << 24) - 1;
        }
        return exact && u32(__double2hiint(at[0]) ^ Levels(place).anchor(0)) >> 20 == 0;
    }

    __device__ __forceinline__ bool is_special() const { return u32(__double2hiint(at[0])) << 1 >= 0xffe00000; }
    __device__ __forceinline__ bool is_nan() const { return at[0] != at[0]; }

    // Of each level, and of elements in units of u, once they are known to hold.
    __device__ __forceinline__ void totals(int place, i64 *total) const
    {
#pragma unroll
        for (int l = 0; l < 2; ++l)
            total[l] = __double_as_longlong(at[l]) - i64(u64(u32(Levels(place).anchor(l))) << 32);
        if constexpr (SPREAD)
            total[2] = __double2ll_rz(__dmul_rn(sum, __hiloint2double((1023 - unit(place)) << 20, 0)));
    }
};

template <class T, bool SPREAD>
struct ColumnSquares {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    using Wides = WideMoments<T>;
    using Lane = SquareLane<T, SPREAD>;
    using Levels = typename Lane::Levels;
    using Sum = typename Wides::Sum;
    using Squares = typename Wides::Squares;
    static constexpr u32 LEVELS = SPREAD ? 3 : 2;
    // Columns of bf16 share a window, which has room for most scales side by side.
    static constexpr u32 PLACES = sizeof(Bits) == 4 ? ITEMS<T> : 1;
    static constexpr u32 WORDS = Sum::WORDS + Squares::WORDS;

    static __device__ __forceinline__ int initial() { return place_above(START - Lane::ROOM); }
    static __device__ __forceinline__ int place_above(int top) { return Lane::place_above(top); }
    static __device__ __forceinline__ void deposit(Wides &wides, u32 l, i64 total, int place)
    {
        const bool negative = total < 0;
        const u64 magnitude = negative ? -u64(total) : u64(total);
        if (l == 2)
            wides.sum.deposit(negative, magnitude, Lane::unit(place));
        else
            wides.squares.deposit(negative, magnitude, place - Levels::STEP * int(l));
    }
    static __device__ __forceinline__ void absorb(Wides &wides, Bits bits) { wides.absorb(bits); }
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
    static __device__ __forceinline__ Bits special_answer(bool nan) { return SPREAD || nan ? NOT_A_NUMBER<T> : Element<T>::INFINITE; }

    struct Chunk {
        int place;
        i64 total[LEVELS];

        __device__ __forceinline__ bool fits(const ColumnPart<T> &part)
        {
            place = place_above(part.top());
            Lane lane;
            lane.open(place);
            part.each([&](Bits bits) { lane.add(bits); });
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
    using Levels = typename Form::Levels;
    static constexpr u32 COLUMNS = Own::COLUMNS;
    static constexpr u32 CHUNK = Levels::ADDS;
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
        const Joined<Levels> squares(total);
        return scaled_answer<T>(u64(squares.high), squares.low, SPREAD ? total[Own::LEVELS - 1] : 0, Lane::unit(place(i)), ask, n);
    }
};

template <class T, bool SPREAD>
__device__ __forceinline__ void square_columns(const ColumnTable &table, u32 ask, void *out)
{
    reduce_columns<SquareColumns<T, SPREAD>>(table, ask, typename Element<T>::Bits(~0), out);
}
