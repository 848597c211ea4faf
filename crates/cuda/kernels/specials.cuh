// NaNs and infinities among f16, two in a word, counted without branches: one in 32 of random bits is one.

#pragma once

#include "element.cuh"

// All ones for a half whose uppermost bit is set, and zeros for the other.
__device__ __forceinline__ u32 spread_halves(u32 word)
{
    u32 mask;
    asm("prmt.b32 %0, %1, %1, 0xbb99;" : "=r"(mask) : "r"(word));
    return mask;
}

// Each counter is a sum of such masks: 2^16 - 1 times the count of lower halves plus 2^16 times that of upper ones, modulo 2^32,
// where 2^16 - 1 times -(2^16 + 1) is one. It takes up to 2^16 - 1 words.
struct Specials {
    static constexpr u32 BOTH = 0x00010001;
    // Brings infinity to the uppermost bit.
    static constexpr u32 TO_TOP = (0x8000 - Element<f16>::INFINITE) * BOTH;

    u32 all = 0;
    u32 nans = 0;
    u32 negative = 0;

    // The word with zeros for what is not finite.
    template <bool ABSOLUTE>
    __device__ __forceinline__ u32 finite(u32 word)
    {
        const u32 magnitudes = word & 0x7fff7fff;
        if (ABSOLUTE)
            word = magnitudes;
        const u32 special = magnitudes + TO_TOP, nan = special - BOTH;
        const u32 mask = spread_halves(special);
        all += mask;
        nans += spread_halves(nan);
        negative += spread_halves(word & special & ~nan);
        return word & ~mask;
    }

    static __device__ __forceinline__ u32 count(u32 sum)
    {
        const u32 halves = sum * 0xfffeffff;
        return (halves & 0xffff) + (halves >> 16);
    }
};
