// NaNs and infinities of a lane, which are taken out of vectors and counted beside what is finite: there they become zeros, which add nothing.

#pragma once

#include "load.cuh"

struct SpecialCounts {
    u32 nans = 0;
    u32 positive = 0;
    u32 negative = 0;
};

// Of one array.
template <class T, bool WORDS = sizeof(typename Element<T>::Bits) == 2>
struct SpecialElements {
    using Format = Element<T>;
    using Bits = typename Format::Bits;

    u32 all = 0;
    u32 nans = 0;
    u32 negative = 0;

    static __device__ __forceinline__ bool are_in(const uint4 &v, const uint4 & = {})
    {
        bool some = false;
#pragma unroll
        for (int i = 0; i < ITEMS<T>; ++i)
            some |= !Format::is_finite(item<T>(v, i));
        return some;
    }

    __device__ __forceinline__ void take_out(uint4 &v, const uint4 & = {})
    {
        Bits items[ITEMS<T>];
#pragma unroll
        for (int i = 0; i < ITEMS<T>; ++i) {
            const Bits bits = item<T>(v, i), magnitude = Format::magnitude(bits);
            all += magnitude >= Format::INFINITE;
            nans += magnitude > Format::INFINITE;
            negative += bits == (Format::INFINITE | Format::SIGN);
            items[i] = magnitude < Format::INFINITE ? bits : Bits(0);
        }
        memcpy(&v, items, sizeof(v));
    }

    __device__ __forceinline__ SpecialCounts counts() const { return {nans, all - nans - negative, negative}; }
};

// All ones for a half whose uppermost bit is set, and zeros for the other.
__device__ __forceinline__ u32 spread_halves(u32 word)
{
    u32 mask;
    asm("prmt.b32 %0, %1, %1, 0xbb99;" : "=r"(mask) : "r"(word));
    return mask;
}

// Of elements of 16 bits, two in a word. Each counter is a sum of masks: 2^16 - 1 times the count of lower halves plus 2^16 times that of
// upper ones, modulo 2^32, where 2^16 - 1 times -(2^16 + 1) is one. It takes up to 2^16 - 1 words.
template <class T>
struct SpecialElements<T, true> {
    static constexpr u32 BOTH = 0x00010001;

    u32 all = 0;
    u32 nans = 0;
    u32 negative = 0;

    // The uppermost bit of a half is set if it is not finite.
    static __device__ __forceinline__ u32 special(u32 word) { return (word & 0x7fff7fff) + (0x8000 - Element<T>::INFINITE) * BOTH; }

    static __device__ __forceinline__ bool are_in(const uint4 &v, const uint4 & = {})
    {
        return ((special(v.x) | special(v.y) | special(v.z) | special(v.w)) & 0x8000 * BOTH) != 0;
    }

    __device__ __forceinline__ u32 finite(u32 word)
    {
        const u32 its = special(word), nan = its - BOTH;
        const u32 mask = spread_halves(its);
        all += mask;
        nans += spread_halves(nan);
        negative += spread_halves(word & its & ~nan);
        return word & ~mask;
    }
    __device__ __forceinline__ void take_out(uint4 &v, const uint4 & = {}) { v = make_uint4(finite(v.x), finite(v.y), finite(v.z), finite(v.w)); }

    static __device__ __forceinline__ u32 count(u32 sum)
    {
        const u32 halves = sum * 0xfffeffff;
        return (halves & 0xffff) + (halves >> 16);
    }
    __device__ __forceinline__ SpecialCounts counts() const
    {
        const u32 nan = count(nans), below = count(negative);
        return {nan, count(all) - nan - below, below};
    }
};

// Of the products of two arrays: where one is not finite, both factors are taken out. Zero times infinity counts as infinities of both
// signs, which make a NaN that no element is.
template <class T>
struct SpecialPairs : SpecialCounts {
    using Format = Element<T>;
    using Bits = typename Format::Bits;

    static __device__ __forceinline__ bool are_in(const uint4 &x, const uint4 &y)
    {
        return SpecialElements<T>::are_in(x) || SpecialElements<T>::are_in(y);
    }

    __device__ __forceinline__ void take_out(uint4 &x, uint4 &y)
    {
        Bits a[ITEMS<T>], b[ITEMS<T>];
#pragma unroll
        for (int i = 0; i < ITEMS<T>; ++i) {
            a[i] = item<T>(x, i);
            b[i] = item<T>(y, i);
            const Bits p = Format::magnitude(a[i]), q = Format::magnitude(b[i]);
            const Bits most = max(p, q);
            if (most >= Format::INFINITE) {
                const bool is_zero = min(p, q) == 0, is_below = ((a[i] ^ b[i]) & Format::SIGN) != 0;
                nans += most > Format::INFINITE;
                positive += most == Format::INFINITE && (is_zero || !is_below);
                negative += most == Format::INFINITE && (is_zero || is_below);
                a[i] = 0;
                b[i] = 0;
            }
        }
        memcpy(&x, a, sizeof(x));
        memcpy(&y, b, sizeof(y));
    }

    __device__ __forceinline__ SpecialCounts counts() const { return *this; }
};
