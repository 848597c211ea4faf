// Elements shorter than a word, side by side in it.

#pragma once

#include "element.cuh"

// The upper bit of every byte that is not 0.
__device__ __forceinline__ u32 any_byte(u32 word) { return (((word & 0x7f7f7f7f) + 0x7f7f7f7f) | word) & 0x80808080; }

// Bytes of truth values become 0 or 1; all other elements are what their bits say.
template <class T>
__device__ __forceinline__ u32 normal(u32 word)
{
    if constexpr (sizeof(T) == 1 && T(2) == T(1))
        return any_byte(word) >> 7;
    else
        return word;
}

// The keys of the elements, in their places.
template <class T>
__device__ __forceinline__ u32 keys(u32 word)
{
    if constexpr (Element<T>::FLOAT) {
        static_assert(sizeof(typename Element<T>::Bits) == 2, "two elements in a word");
        return word ^ (word >> 15 & 0x00010001) * 0x7fff;
    } else {
        return normal<T>(word);
    }
}
