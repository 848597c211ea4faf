// Sums and means of columns of floats that are shorter than f64, exact and rounded once.
//
// Each column of a strip has a lane's sum of a chunk of rows (range.cuh), which goes into a window of the thread when the chunk ends.

#pragma once

#include "column_windows.cuh"
#include "float_total.cuh"
#include "narrow.cuh"
#include "range.cuh"

// Binades that a thread's window has above the first chunk.
constexpr int COLUMN_ROOM = 10;

// The columns of shorter types share one window: it has room for many more binades than they need, and of f32 for all that there are.
template <class T>
struct ColumnSums {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    using Wides = Superaccumulator<T>;
    using Whole = WholeSum<T>;
    using Apart = FloatTotal<T>;
    using Lane = LaneSum<T>;
    // A thread's integers of eight columns in all levels would leave a multiprocessor one block.
    static constexpr bool IS_WHOLE = sizeof(Bits) == 4;
    template <bool WHOLE, class U>
    struct LevelsOf {
        using Type = typename LaneSum<U>::Window;
    };
    template <class U>
    struct LevelsOf<true, U> {
        using Type = typename WholeSum<U>::Levels;
    };
    using Levels = typename LevelsOf<IS_WHOLE, T>::Type;
    static constexpr u32 LEVELS = IS_WHOLE ? WholeSum<T>::LEVELS : Lane::LEVELS;
    static constexpr bool STAGES = sizeof(Bits) == 2 && LEVELS > 1;
    static constexpr u32 PLACES = 1;
    static constexpr u32 WORDS = Wides::WORDS;

    static __device__ __forceinline__ int initial() { return IS_WHOLE ? Levels::LOWEST : Levels::below(START); }
    static __device__ __forceinline__ int place_above(int top) { return Levels::below(top + Lane::K + COLUMN_ROOM); }
    static __device__ __forceinline__ void deposit(Wides &wide, u32 l, i64 total, int place)
    {
        wide.deposit(total < 0, total < 0 ? -u64(total) : u64(total), place - Levels::STEP * int(l));
    }
    static __device__ __forceinline__ typename Apart::Asked asked(u32 ask, u64 n) { return {ask, false, n}; }
    static __device__ __forceinline__ void absorb(Wides &wide, const ColumnPart<T> &part)
    {
        // A few integers of the whole part, in the place of an atomic add or two for each element.
        Whole whole;
        part.each([&](const Bits (&some)[BATCH]) { whole.take(some); });
#pragma unroll
        for (int l = 0; l < Whole::LEVELS; ++l) {
            if (const i64 total = whole.window.total[l])
                deposit(wide, l, total, Whole::Levels::LOWEST);
        }
    }
    static __device__ __forceinline__ u64 entry(const Wides &wide, int i, u64 n) { return wide.entry(i, n); }
    template <class Word>
    static __device__ __forceinline__ Bits answer(Word word, u32 ask, u64 n)
    {
        return words_answer<T>(word, ask, n);
    }
};

template <class T>
struct SumColumns {
    using Form = ColumnSums<T>;
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Own = Committed<Form>;
    using Lane = typename Form::Lane;
    using Window = typename Lane::Window;
    using Levels = typename Form::Levels;
    static constexpr u32 COLUMNS = Own::COLUMNS;
    static constexpr u32 CHUNK = 1 << Lane::K;
    static constexpr u32 AT_ONCE = COLUMNS;
    static_assert(!Form::STAGES || CHUNK <= MOST_STAGED, "rows of a chunk");

    const ColumnTable *const shared_table;
    const Bits mask;
    const bool alone; // whether the one chunk that there is stays as it is

    Lane lane[COLUMNS];
    bool fresh = true; // whether the window has no place yet
    u32 spilled = 0; // as `spill` says
    // Columns that have NaNs, positive and negative infinities: a byte of bits for each.
    u32 special = 0;

    __device__ __forceinline__ SumColumns(const ColumnTable *shared_table, bool single, Bits mask)
        : shared_table(shared_table), mask(mask), alone(single)
    {
    }

    __device__ __forceinline__ Own own() const { return {threadIdx.x}; }

    __device__ __forceinline__ void take(const uint4 (&v)[BATCH])
    {
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k) {
#pragma unroll
            for (u32 i = 0; i < COLUMNS; ++i) {
                lane[i].add(Bits(item<T>(v[k], i) & mask), Window(0));
            }
        }
    }

    // The first chunk that is not all zeros says where the window of shorter types is.
    __device__ __forceinline__ void find_place()
    {
        u32 most = 0;
#pragma unroll
        for (u32 i = 0; i < COLUMNS; ++i)
            most = lane[i].spread.most < 0xff000000 ? max(most, lane[i].spread.most) : most;
        if (most != 0) {
            own().place(0) = Form::place_above(int(most >> 24) - 126);
            fresh = false;
        }
    }

    // Columns with something that is not finite: what else they have does not count.
    __device__ __forceinline__ u32 marked() const { return (special | special >> 8 | special >> 16) & 0xff; }
    // NaNs and infinities make such a sum one, and finite elements do not.
    __device__ __forceinline__ void mark(u32 i)
    {
        const f64 sum = lane[i].sum;
        special |= 1u << (i + (sum != sum ? 0 : sum > 0.0 ? 8 : 16));
    }
    __device__ __forceinline__ Specials<T> specials(u32 i) const
    {
        return {(special >> i & 1) != 0, (special >> i & 0x100) != 0, (special >> i & 0x10000) != 0};
    }

    // Commits a column's chunk if the window holds it.
    __device__ __forceinline__ bool take_chunk(u32 i)
    {
        if constexpr (Form::IS_WHOLE) {
            if (is_special(lane[i].sum) || !lane[i].spread.holds())
                return false;
            Levels levels(Levels::LOWEST);
            auto drift = levels.open();
            levels.add(drift, lane[i].sum);
            levels.commit(drift);
            own().commit(i, levels.total);
            return true;
        } else {
            Levels levels(own().place(i));
            if (!lane[i].close(levels))
                return false;
            levels.commit(lane[i].drift);
            own().commit(i, levels.total);
            return true;
        }
    }

    __device__ __forceinline__ void close(u32 done, u32 rows)
    {
        if (alone)
            return;
        if constexpr (!Form::IS_WHOLE) {
            if (Lane::RANGED && fresh)
                find_place();
        }
        u32 failed = 0;
#pragma unroll
        for (u32 i = 0; i < COLUMNS; ++i) {
            if (take_chunk(i))
                continue;
            failed |= 1u << i;
            if (is_special(lane[i].sum))
                mark(i);
        }
        failed &= ~marked();
        if (failed != 0)
            spilled |= spill<Form>(shared_table, failed, done, rows, mask);
#pragma unroll
        for (u32 i = 0; i < COLUMNS; ++i)
            lane[i] = Lane(Window(0));
    }

    __device__ __forceinline__ void hand_over(typename Form::Wides *wides)
    {
        using Wides = typename Form::Wides;
        if (special == 0)
            return;
#pragma unroll 1
        for (u32 i = 0; i < COLUMNS; ++i) {
            const Specials<T> its = specials(i);
            if (its.nan)
                wides[i].count(Wides::NOT_A_NUMBER);
            if (its.positive)
                wides[i].count(Wides::POSITIVE);
            if (its.negative)
                wides[i].count(Wides::NEGATIVE);
        }
        spilled |= marked();
    }
    static __device__ __forceinline__ bool is_ready(u64) { return true; }

    static __device__ __forceinline__ bool is_special(f64 sum) { return !(fabs(sum) < __longlong_as_double(0x7ff0000000000000)); }

    // Whether the chunk that stays as it is has not a column's sum.
    __device__ __forceinline__ bool lacks(u32 i) const
    {
        return alone && Lane::RANGED && !lane[i].spread.holds() && !is_special(lane[i].sum);
    }

    // The answer of a column that has not spilled.
    __device__ __forceinline__ Bits answer(u32 i, u32 ask, u64 n) const
    {
        if (alone) {
            const f64 sum = lane[i].sum;
            if (is_special(sum))
                return Specials<T>{sum != sum, sum > 0.0, sum < 0.0}.bits();
            return narrow<T>(ask == MEAN ? quotient(sum, n) : sum);
        }
        if ((marked() >> i & 1) != 0)
            return specials(i).bits();
        FixedPoint<Own::LEVELS> all;
#pragma unroll
        for (u32 l = 0; l < Own::LEVELS; ++l)
            all.total[l] = own().total(i, l);
        if constexpr (Form::IS_WHOLE)
            return float_answer<T>(of_fixed_point(all, Levels::LAST), ask, n);
        else
            return float_answer<T>(of_levels<Levels>(all.total, own().place(i), Own::LEVELS), ask, n);
    }
};

template <class T>
constexpr u32 UNALIGNED_ROWS<SumColumns<T>> = sizeof(typename Element<T>::Bits) < 4 ? BATCH / 2 : BATCH;

template <class T>
__device__ __forceinline__ void sum_columns(const ColumnTable &table, u32 ask, bool absolute, void *out)
{
    using Bits = typename Element<T>::Bits;
    reduce_columns<SumColumns<T>>(table, ask, Bits(absolute ? ~Element<T>::SIGN : ~Bits(0)), out);
}
