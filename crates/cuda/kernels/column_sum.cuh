// Sums and means of columns of floats, exact and rounded once.
//
// Each column of a strip has a lane's sum of a chunk of rows (range.cuh), which goes into a window of the thread when the chunk ends.

#pragma once

#include "column_windows.cuh"
#include "narrow.cuh"
#include "range.cuh"

// Binades that a thread's window has above the first chunk.
constexpr int COLUMN_ROOM = 10;

// The columns of shorter types share one window: it has room for many more binades than they need.
template <class T>
struct ColumnSums {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    using Wides = Superaccumulator<T>;
    using Lane = LaneSum<T>;
    using Levels = typename Lane::Window;
    static constexpr bool LONG = sizeof(Bits) == 8;
    static constexpr u32 LEVELS = Lane::LEVELS;
    static constexpr u32 PLACES = LONG ? ITEMS<T> : 1;
    static constexpr u32 WORDS = Wides::WORDS;

    static __device__ __forceinline__ int initial() { return Levels::below(START); }
    static __device__ __forceinline__ int place_above(int top) { return Levels::below(top + Lane::K + COLUMN_ROOM); }
    static __device__ __forceinline__ void deposit(Wides &wide, u32 l, i64 total, int place)
    {
        wide.deposit(total < 0, total < 0 ? -u64(total) : u64(total), place - Levels::STEP * int(l));
    }
    template <bool TOGETHER>
    static __device__ __forceinline__ void absorb(Wides &wide, const ColumnPart<T> &part)
    {
        absorb_part<T, false, TOGETHER>(wide, part, [&](Bits bits) { ::absorb<T>(wide, bits); });
    }
    static __device__ __forceinline__ bool is_nan(Wides &wide) { return wide.has(Wides::NOT_A_NUMBER); }
    static __device__ __forceinline__ u64 entry(const Wides &wide, int i, u64 n) { return wide.entry(i, n); }
    template <class Word>
    static __device__ __forceinline__ Bits answer(Word word, u32 ask, u64 n)
    {
        return words_answer<T>(word, ask, n);
    }

    struct Chunk {
        int place;
        i64 total[LEVELS];

        __device__ __forceinline__ bool fits(const ColumnPart<T> &part)
        {
            Levels levels(place_above(part.top()));
            auto drift = levels.open();
            part.each([&](const Bits (&some)[BATCH]) {
#pragma unroll
                for (u32 k = 0; k < BATCH; ++k)
                    levels.add(drift, Element<T>::value(some[k]));
            });
            levels.commit(drift);
            place = levels.first;
#pragma unroll
            for (u32 l = 0; l < LEVELS; ++l)
                total[l] = levels.total[l];
            return levels.holds(drift);
        }
    };
};

template <class T>
struct SumColumns {
    using Form = ColumnSums<T>;
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Own = Committed<Form>;
    using Lane = typename Form::Lane;
    using Levels = typename Lane::Window;
    static constexpr bool LONG = Form::LONG;
    static constexpr u32 COLUMNS = Own::COLUMNS;
    static constexpr u32 CHUNK = LONG ? Levels::ADDS : 1 << Lane::K;
    static constexpr u32 AT_ONCE = COLUMNS;

    const ColumnTable *const shared_table;
    const Bits mask;
    const bool alone; // whether the one chunk that there is stays as it is

    Lane lane[COLUMNS];
    int place[Own::PLACES]; // of f64's windows, as they were committed last
    bool fresh = true;      // whether the window has no place yet
    u32 spilled = 0;        // as `spill` says
    // Of the shorter types, columns that have NaNs, positive and negative infinities: a byte of bits for each.
    u32 special = 0;

    __device__ __forceinline__ SumColumns(const ColumnTable *shared_table, bool single, Bits mask)
        : shared_table(shared_table), mask(mask), alone(!LONG && single)
    {
    }

    __device__ __forceinline__ Own own() const { return {threadIdx.x}; }

    // Opens f64's lanes for the first time, in windows that hold the first batch.
    __device__ __forceinline__ void open(const uint4 (&v)[BATCH])
    {
#pragma unroll
        for (u32 i = 0; i < COLUMNS; ++i) {
            int top = Format::UNIT;
#pragma unroll
            for (u32 k = 0; k < BATCH; ++k) {
                const Bits bits = item<T>(v[k], i);
                top = Format::is_finite(bits) ? max(top, Format::top(bits)) : top;
            }
            place[i] = Form::place_above(top);
            own().place(i) = place[i];
            lane[i] = Lane(Levels(place[i]));
        }
        fresh = false;
    }

    __device__ __forceinline__ void take(const uint4 (&v)[BATCH])
    {
        if constexpr (LONG) {
            if (fresh)
                open(v);
        }
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k) {
#pragma unroll
            for (u32 i = 0; i < COLUMNS; ++i)
                lane[i].add(Bits(item<T>(v[k], i) & mask), Levels(LONG ? place[i % Own::PLACES] : 0));
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
    __device__ __forceinline__ void mark(u32 i)
    {
        const f64 sum = lane[i].sum;
        special |= 1u << (i + (sum != sum ? 0 : sum > 0.0 ? 8 : 16));
    }
    __device__ __forceinline__ Specials<T> specials(u32 i) const
    {
        return {(special >> i & 1) != 0, (special >> i & 0x100) != 0, (special >> i & 0x10000) != 0};
    }

    __device__ __forceinline__ void close(u32 done, u32 rows)
    {
        if (alone)
            return;
        if constexpr (!LONG) {
            if (Lane::RANGED && fresh)
                find_place();
        }
        u32 failed = 0;
#pragma unroll
        for (u32 i = 0; i < COLUMNS; ++i) {
            Levels levels(own().place(i));
            if (lane[i].close(levels)) {
                levels.commit(lane[i].drift);
                own().commit(i, levels.total);
            } else {
                failed |= 1u << i;
                if constexpr (!LONG) {
                    if (is_special(lane[i].sum))
                        mark(i);
                }
            }
        }
        failed &= ~marked();
        if (failed != 0)
            spilled |= spill<Form>(shared_table, failed, done, rows, mask);
#pragma unroll
        for (u32 i = 0; i < COLUMNS; ++i) {
            if constexpr (LONG)
                place[i] = own().place(i);
            lane[i] = Lane(Levels(LONG ? place[i % Own::PLACES] : 0));
        }
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

    // NaNs and infinities make a plain sum one, and finite elements do not.
    static __device__ __forceinline__ bool is_special(f64 sum) { return !(fabs(sum) < __longlong_as_double(0x7ff0000000000000)); }

    // Whether the chunk that stays as it is has not a column's sum.
    __device__ __forceinline__ bool lacks(u32 i) const
    {
        if constexpr (!LONG)
            return alone && Lane::RANGED && !lane[i].spread.holds() && !is_special(lane[i].sum);
        else
            return false;
    }

    // The answer of a column that has not spilled.
    __device__ __forceinline__ Bits answer(u32 i, u32 ask, u64 n) const
    {
        if constexpr (!LONG) {
            if (alone) {
                const f64 sum = lane[i].sum;
                if (is_special(sum))
                    return Specials<T>{sum != sum, sum > 0.0, sum < 0.0}.bits();
                return narrow<T>(ask == MEAN ? quotient(sum, n) : sum);
            }
        }
        if ((marked() >> i & 1) != 0)
            return specials(i).bits();
        i64 total[Own::LEVELS];
#pragma unroll
        for (u32 l = 0; l < Own::LEVELS; ++l)
            total[l] = own().total(i, l);
        return float_answer<T>(of_levels<Levels>(total, own().place(i), Own::LEVELS), ask, n);
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
