// How the totals of a window and a superaccumulator become the answer of a sum of floats.

#pragma once

#include "answer.cuh"
#include "window.cuh"

template <class T>
using Superaccumulator = Wide<typename Element<T>::Sum>;

// What a window's committed totals make: the upper level's unit is 2^first.
template <class Levels>
__device__ __forceinline__ Truncated of_levels(const i64 *total, int first, int levels)
{
    if (levels == 1)
        return Truncated::of_integer(total[0] < 0 ? -1 : 0, u64(total[0]), first);
    const u64 upper = u64(total[0]) << Levels::STEP, lower = upper + u64(total[1]);
    const i64 high = (total[0] >> (64 - Levels::STEP)) + (total[1] >> 63) + (lower < upper);
    return Truncated::of_integer(high, lower, first - Levels::STEP);
}

// The answer of n elements of which `limb` says the limbs, and `specials` the NaNs and infinities.
template <class T, class Limb>
__device__ __forceinline__ typename Element<T>::Bits limbs_answer(Limb limb, const Specials<T> &specials, u32 ask, u64 n)
{
    if (specials.any())
        return specials.bits();
    return float_answer<T>(Truncated::of_limbs(SumFormat<T>::LIMBS, SumFormat<T>::LSB, limb), ask, n);
}

template <class T>
__device__ __forceinline__ typename Element<T>::Bits wide_answer(const Superaccumulator<T> &wide, u32 ask, u64 n)
{
    const Specials<T> specials = {wide.specials[0] != 0, wide.specials[1] != 0, wide.specials[2] != 0};
    return limbs_answer<T>([&](int i) { return i64(wide.entry(i, 0)); }, specials, ask, n);
}
