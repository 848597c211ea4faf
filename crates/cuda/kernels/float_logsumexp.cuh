// Sums of exponentials of floats: core's `FloatLogSumExp`, crates/core/src/op/logsumexp.rs, which says why the order does not matter.
//
// An element lies in a cell, whose middle, the anchor, is a multiple of 32. A thread adds terms e^(x - anchor) as integers, in words
// that are 51 bits apart, for the topmost cells. A batch of elements of one cell, which is the usual one, is added up at once; others
// are taken cell by cell.

#pragma once

#include "answer.cuh"
#include "double_double.cuh"
#include "exponential.cuh"
#include "narrow.cuh"

// From one anchor to the next, and e to the power of as much less.
constexpr f32 CELL = 32.0f;
constexpr Double INV_E_CELL = {0x1.c8464f7616468p-47, 0x1.e299a01244879p-103};

// Bits from one word of a term to the next, and what rounds to multiples of 2^-27, 2^-78 and 2^-129, the units of words.
constexpr int WORD_BITS = 51;
constexpr f64 FIRST_ROUNDER = 0x1.8p25, SECOND_ROUNDER = 0x1.8p-26, THIRD_ROUNDER = 0x1.8p-77;

// The bits of a rounder: of as many ones the same again.
constexpr u64 FIRST_OFFSET = u64(1023 + 25) << 52 | u64(1) << 51;
constexpr u64 SECOND_OFFSET = u64(1023 - 26) << 52 | u64(1) << 51;
constexpr u64 THIRD_OFFSET = u64(1023 - 77) << 52 | u64(1) << 51;

// Terms in one f64 and in two: core's `OneF64` and `TwoF64`. They are added as the bits of floats next to rounders, `offset` too much
// for each.
struct OneF64 {
    static constexpr int TERM = 2, CELLS = 3, LIMBS = 3, UNIT = -78;
    static __device__ __forceinline__ void prepare() { Powers::lay_out(); }
    static __device__ __forceinline__ u64 offset(int w) { return w == 0 ? FIRST_OFFSET : SECOND_OFFSET; }
    Powers powers;
    __device__ __forceinline__ void add(u64 (&sum)[TERM], f64 d) const
    {
        const Exponential e = exponential(d, powers);
        const f64 first = fused(e.power, e.rest, FIRST_ROUNDER);
        const f64 rest = fused(e.power, e.rest, -sub(first, FIRST_ROUNDER));
        sum[0] += bits_of(first);
        sum[1] += bits_of(::add(rest, SECOND_ROUNDER));
    }
};
struct TwoF64 {
    static constexpr int TERM = 3, CELLS = 4, LIMBS = 4, UNIT = -129;
    static __device__ __forceinline__ void prepare() {}
    static __device__ __forceinline__ u64 offset(int w) { return w == 0 ? FIRST_OFFSET : w == 1 ? 2 * SECOND_OFFSET : THIRD_OFFSET; }
    __device__ __forceinline__ void add(u64 (&sum)[TERM], f64 d) const
    {
        const Double e = exponential(Double{d, 0.0});
        const f64 first = ::add(e.hi, FIRST_ROUNDER);
        const f64 high = ::add(sub(e.hi, sub(first, FIRST_ROUNDER)), SECOND_ROUNDER);
        const f64 low = ::add(e.lo, SECOND_ROUNDER);
        const f64 third = ::add(sub(e.lo, sub(low, SECOND_ROUNDER)), THIRD_ROUNDER);
        sum[0] += bits_of(first);
        sum[1] += bits_of(high) + bits_of(low);
        sum[2] += bits_of(third);
    }
};
template <class T> struct TermsOf { using Type = OneF64; };
template <> struct TermsOf<f64> { using Type = TwoF64; };

__device__ __forceinline__ f32 nearest_integer(f32 x) { return rintf(x); }
__device__ __forceinline__ f64 nearest_integer(f64 x) { return rint(x); }
__device__ __forceinline__ f32 magnitude_of(f32 x) { return fabsf(x); }
__device__ __forceinline__ f64 magnitude_of(f64 x) { return fabs(x); }

template <class T>
struct FloatLogSumExp {
    using Bits = typename Element<T>::Bits;
    using Value = decltype(Element<T>::value(0));
    using Terms = typename TermsOf<T>::Type;
    static constexpr int TERM = Terms::TERM, CELLS = Terms::CELLS, LIMBS = Terms::LIMBS;
    // Minus infinity, an element that is in no cell.
    static constexpr Bits IDENTITY = Element<T>::SIGN | Element<T>::INFINITE;
    static constexpr u64 NONE = 0xfff0000000000000;
    // Batches of up to 16 elements, of which each moves a word by less than 2^50.4, that words below 2^51 have room for.
    static constexpr u32 BATCHES = 256;

    Value top = Element<T>::value(IDENTITY); // the largest anchor
    // The cell that elements are thought to be in, and how far it is below the top; none at first.
    Value current = Element<T>::value(NOT_A_NUMBER<T>);
    int down = CELLS;
    u32 batches = 0;
    u64 nans = 0, infinities = 0;
    i64 cell[CELLS][TERM + 1] = {}; // of each the highest word first

    // By all threads of the block, before the first element.
    static __device__ __forceinline__ void prepare() { Terms::prepare(); }

    // No sum is rounded here: what is exact is x / 32, the integer's product with 32 and, within a cell, the difference.
    static __device__ __forceinline__ Value anchor_of(Value x) { return nearest_integer(x * Value(1.0f / CELL)) * Value(CELL) + Value(0.0f); }
    static __device__ __forceinline__ Value off(Value x, Value anchor) { return x - anchor; }
    // CELLS, if it is as much or more.
    static __device__ __forceinline__ int below(Value high, Value low)
    {
        const Value cells = (high - low) * Value(1.0f / CELL);
        return cells < Value(CELLS) ? int(cells) : CELLS;
    }

    // Makes an anchor the largest, if it is larger.
    __device__ __forceinline__ void raise(Value anchor)
    {
        if (!(anchor > top))
            return;
        const int up = below(anchor, top);
#pragma unroll 1
        for (int i = 0; i < up; ++i) {
#pragma unroll
            for (int c = CELLS - 1; c >= 0; --c) {
#pragma unroll
                for (int w = 0; w <= TERM; ++w)
                    cell[c][w] = c > 0 ? cell[c > 0 ? c - 1 : 0][w] : 0;
            }
        }
        top = anchor;
        down = min(down + up, CELLS);
    }

    // Moves carries, so that all words but the highest ones are from 0 to 2^51.
    __device__ __forceinline__ void tidy()
    {
        batches = 0;
#pragma unroll
        for (int c = 0; c < CELLS; ++c) {
#pragma unroll
            for (int w = TERM; w > 0; --w) {
                const i64 carry = cell[c][w] >> WORD_BITS;
                cell[c][w] &= (i64(1) << WORD_BITS) - 1;
                cell[c][w - 1] += carry;
            }
        }
    }

    // Adds the sum of n terms to the current cell, if it is kept.
    __device__ __forceinline__ void commit(const u64 (&sum)[TERM], u32 n)
    {
#pragma unroll
        for (int c = 0; c < CELLS; ++c) {
            if (c == down) {
#pragma unroll
                for (int w = 0; w < TERM; ++w)
                    cell[c][w + 1] += i64(sum[w] - n * Terms::offset(w));
            }
        }
        if (++batches == BATCHES)
            tidy();
    }

    // Takes a batch cell by cell, from the highest downwards.
    template <int U>
    __device__ __forceinline__ void settle(const Value (&x)[U])
    {
        const Value infinity = Element<T>::value(Element<T>::INFINITE);
        u32 left = 0;
#pragma unroll
        for (int k = 0; k < U; ++k) {
            left |= u32(magnitude_of(x[k]) < infinity) << k;
            infinities += x[k] == infinity;
            nans += x[k] != x[k];
        }
        const Terms terms;
        Value usual = current;
        u32 most = 0;
#pragma unroll 1
        while (left != 0) {
            Value high = -infinity;
#pragma unroll
            for (int k = 0; k < U; ++k) {
                const Value anchor = anchor_of(x[k]);
                high = (left >> k & 1) != 0 && anchor > high ? anchor : high;
            }
            raise(high);
            current = high;
            down = below(top, high);
            usual = most == 0 ? high : usual;
            // Nor is any of the others that are left in a cell that is kept.
            if (down == CELLS)
                break;
            u64 sum[TERM] = {};
            u32 n = 0;
#pragma unroll
            for (int k = 0; k < U; ++k) {
                if ((left >> k & 1) != 0 && anchor_of(x[k]) == high) {
                    terms.add(sum, f64(off(x[k], high)));
                    left &= ~(1u << k);
                    ++n;
                }
            }
            commit(sum, n);
            usual = n > most ? high : usual;
            most = max(most, n);
        }
        // What was usual in this batch will be in the next.
        current = usual;
        down = below(top, usual);
    }

    template <int U>
    __device__ __forceinline__ void take(const Value (&x)[U])
    {
        static_assert(U <= 16, "terms that words have room for");
        bool near = true;
#pragma unroll
        for (int k = 0; k < U; ++k)
            near = near && magnitude_of(off(x[k], current)) < Value(CELL / 2);
        if (!near) {
            settle(x);
            return;
        }
        const Terms terms;
        u64 sum[TERM] = {};
#pragma unroll
        for (int k = 0; k < U; ++k)
            terms.add(sum, f64(off(x[k], current)));
        commit(sum, U);
    }

    __device__ __forceinline__ void merge(const FloatLogSumExp &with)
    {
        FloatLogSumExp other = with;
        tidy();
        other.tidy();
        raise(other.top);
        other.raise(top);
#pragma unroll
        for (int c = 0; c < CELLS; ++c) {
#pragma unroll
            for (int w = 0; w <= TERM; ++w)
                cell[c][w] += other.cell[c][w];
        }
        nans += other.nans;
        infinities += other.infinities;
    }

    // The largest anchor, the words of the cells, NaNs, positive infinities.
    static constexpr int WORDS = 3 + CELLS * (TERM + 1);
    __device__ __forceinline__ u64 word(int w) const
    {
        const int i = w > 0 && w < WORDS - 2 ? w - 1 : 0;
        return w == 0 ? bits_of(f64(top)) : w == WORDS - 2 ? nans : w == WORDS - 1 ? infinities : u64(cell[i / (TERM + 1)][i % (TERM + 1)]);
    }
    static __device__ __forceinline__ FloatLogSumExp of_words(const u64 (&words)[WORDS])
    {
        FloatLogSumExp all;
        all.top = Value(of_bits(words[0]));
#pragma unroll
        for (int i = 0; i < CELLS * (TERM + 1); ++i)
            all.cell[i / (TERM + 1)][i % (TERM + 1)] = i64(words[1 + i]);
        all.nans = words[WORDS - 2];
        all.infinities = words[WORDS - 1];
        return all;
    }

    // The limbs of a cell, behind `tidy`: as the sum is not negative, its words have no bit in common.
    __device__ __forceinline__ void limbs(int c, u64 (&limb)[LIMBS]) const
    {
#pragma unroll
        for (int l = 0; l < LIMBS; ++l)
            limb[l] = 0;
#pragma unroll
        for (int i = 0; i <= TERM; ++i) {
            const u64 word = u64(cell[c][TERM - i]);
            const int bit = WORD_BITS * i;
            limb[bit / 64] |= word << bit % 64;
            if (bit % 64 != 0 && bit / 64 + 1 < LIMBS)
                limb[bit / 64 + 1 < LIMBS ? bit / 64 + 1 : 0] |= word >> (64 - bit % 64) % 64;
        }
    }

    // The sum of e^(x - top), behind `tidy`.
    __device__ __forceinline__ Double total() const
    {
        Double sum = {0.0, 0.0};
#pragma unroll
        for (int c = CELLS - 1; c >= 0; --c) {
            u64 limb[LIMBS];
            limbs(c, limb);
            Double mine = {0.0, 0.0};
#pragma unroll
            for (int l = 0; l < LIMBS; ++l) {
                const Double part = two_sum(mul(f64(u32(limb[l] >> 32)), 4294967296.0), f64(u32(limb[l])));
                const f64 unit = of_bits(u64(1023 + 64 * l + Terms::UNIT) << 52);
                mine = plus(mine, {mul(part.hi, unit), mul(part.lo, unit)});
            }
            sum = plus(times(sum, INV_E_CELL), mine);
        }
        return sum;
    }

    // The logarithm of the sum, rounded once.
    __device__ __forceinline__ Bits value()
    {
        if (nans != 0)
            return NOT_A_NUMBER<T>;
        if (infinities != 0)
            return Element<T>::INFINITE;
        if (bits_of(f64(top)) == NONE)
            return IDENTITY;
        tidy();
        const Double sum = total();
        if constexpr (sizeof(Bits) < 8) {
            // A rough logarithm often tells the number. It is off by less than 2^-40, the sum with it rounds by 2^-53 of itself: if both ends of
            // what it may be round to one number, so does all between them, and zero is not among that.
            const f64 rough = add(f64(top), rough_logarithm(sum.hi));
            const f64 about = fused(fabs(rough), 0x1p-50, 0x1p-40);
            const Bits low = narrow<T>(sub(rough, about));
            if (low == narrow<T>(add(rough, about)))
                return low;
        }
        const Double answer = plus({f64(top), 0.0}, logarithm(sum));
        // No -0 and no trace of one.
        if (answer.hi == 0.0)
            return 0;
        if constexpr (sizeof(Bits) == 8)
            return bits_of(answer.hi);
        else
            return narrow<T>(round_to_odd(answer));
    }
};
