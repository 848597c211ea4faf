// NaNs and infinities, counted without branches: among f16, two in a word, of whose random bits one in 32 is one, and among products.

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

// Products that are NaN or infinite. Infinities are few, or somebody's mistake: it is only noted that there are any.
struct SpecialProducts {
    u32 count = 0;
    bool infinite = false;

    static __device__ __forceinline__ u32 magnitude(f64 product) { return u32(__double2hiint(product)) & 0x7fffffff; }
    static __device__ __forceinline__ bool is_finite(f64 product) { return magnitude(product) < 0x7ff00000; }
    static __device__ __forceinline__ bool is_infinite(f64 product) { return magnitude(product) == 0x7ff00000; }

    // The product, or in its place something next to zero, which no anchor of a bin or window notices.
    __device__ __forceinline__ f64 finite(f64 product)
    {
        count += !is_finite(product);
        infinite |= is_infinite(product);
        return __hiloint2double(is_finite(product) ? __double2hiint(product) : 0, __double2loint(product));
    }

    // Ends a tile whose infinities have been noted: `one` takes those that `is_infinite` tells of the tile's elements.
    template <class T, class Place, class IsInfinite, class One>
    __device__ __forceinline__ void close(const Place &place, IsInfinite is_infinite, One one)
    {
        using Bits = typename Element<T>::Bits;
        if (!infinite)
            return;
        place.each([&](Bits x, Bits y) {
            if (is_infinite(x, y)) {
                one(x, y);
                --count;
            }
        });
    }

    // Ends a tile of so many elements whose bins know the number of NaNs if there are no infinities: else `one` takes what is not finite.
    template <class T, class Bins, class Place, class One>
    __device__ __forceinline__ void close_words(Bins &bins, u32 items, const Place &place, One one)
    {
        using Bits = typename Element<T>::Bits;
        const u32 nans = bins.nans(items);
        if (nans <= items) {
            count += nans;
            return;
        }
        place.each([&](Bits x, Bits y) {
            if (!Element<T>::is_finite(x))
                one(x, y);
        });
    }
};
