// How the totals of a window and a superaccumulator become the answer of a sum of floats.

#pragma once

#include "answer.cuh"
#include "window.cuh"

template <class T>
using Superaccumulator = Wide<typename Element<T>::Sum>;

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
