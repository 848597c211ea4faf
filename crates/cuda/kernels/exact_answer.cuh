// How the totals of a window and a superaccumulator become the answer of a sum of floats.

#pragma once

#include "answer.cuh"
#include "fixed_point.cuh"
#include "window.cuh"

template <class T>
using Superaccumulator = Wide<typename Element<T>::Sum>;

// The integer that two levels' committed totals make, in units of the lower one, 2^-STEP of the upper one's.
template <int STEP>
struct Joined {
    i64 high;
    u64 low;

    __device__ __forceinline__ Joined(const i64 *total)
    {
        const u64 upper = u64(total[0]) << STEP;
        low = upper + u64(total[1]);
        high = (total[0] >> (64 - STEP)) + (total[1] >> 63) + (low < upper);
    }
};

// What a window's committed totals make: the upper level's unit is 2^first.
template <class Levels>
__device__ __forceinline__ Truncated of_levels(const i64 *total, int first, int levels)
{
    if (levels == 1)
        return Truncated::of_integer(total[0] < 0 ? -1 : 0, u64(total[0]), first);
    const Joined<Levels::STEP> joined(total);
    return Truncated::of_integer(joined.high, joined.low, first - Levels::STEP);
}

// The same of any number of levels, the lowest of which has the unit 2^unit.
template <int LEVELS>
__device__ __forceinline__ Truncated of_fixed_point(const FixedPoint<LEVELS> &all, int unit)
{
    // Most totals are in two levels, next to each other.
    u32 used = 0;
#pragma unroll
    for (int l = 0; l < LEVELS; ++l)
        used |= u32(all.total[l] != 0) << l;
    const int first = used == 0 ? 0 : min(__ffs(int(used)) - 1, LEVELS - 2);
    if (used >> first <= 3) {
        i64 two[2] = {};
#pragma unroll
        for (int l = 0; l < LEVELS; ++l) {
            two[0] = l == first ? all.total[l] : two[0];
            two[1] = l == first + 1 ? all.total[l] : two[1];
        }
        const Joined<FixedPoint<LEVELS>::STEP> joined(two);
        return Truncated::of_integer(joined.high, joined.low, unit + FixedPoint<LEVELS>::STEP * (LEVELS - 2 - first));
    }
    constexpr int DIGITS = FixedPoint<LEVELS>::DIGITS;
    u32 digit[DIGITS];
    all.digits(digit);
    return Truncated::of_limbs(DIGITS, unit, [&](int i) { return i + 1 < DIGITS ? i64(digit[i]) : i64(i32(digit[i])); });
}

// The answer of n elements of which `word` says the superaccumulator's vector form.
template <class T, class Word>
__device__ __forceinline__ typename Element<T>::Bits words_answer(Word word, u32 ask, u64 n)
{
    constexpr int LIMBS = SumFormat<T>::LIMBS;
    const Specials<T> specials = {word(LIMBS + 1) != 0, word(LIMBS + 2) != 0, word(LIMBS + 3) != 0};
    if (specials.any())
        return specials.bits();
    return float_answer<T>(Truncated::of_limbs(LIMBS, SumFormat<T>::LSB, [&](int i) { return i64(word(i)); }), ask, n);
}

template <class T>
__device__ __forceinline__ typename Element<T>::Bits wide_answer(const Superaccumulator<T> &wide, u32 ask, u64 n)
{
    return words_answer<T>([&](int i) { return wide.entry(i, 0); }, ask, n);
}
