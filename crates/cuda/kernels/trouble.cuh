// What is asked of a total of floats, and what may be wrong with it.

#pragma once

#include "answer.cuh"

enum Trouble : u32 {
    HAS_NAN = 1,
    HAS_POSITIVE = 2,
    HAS_NEGATIVE = 4,
    IS_LOST = 8,
    IS_CUT = 16,
};

template <class T>
__device__ __forceinline__ Specials<T> specials_of(u32 trouble)
{
    return {(trouble & HAS_NAN) != 0, (trouble & HAS_POSITIVE) != 0, (trouble & HAS_NEGATIVE) != 0};
}

template <class T>
struct TotalAsked {
    using Format = Element<T>;
    using Bits = typename Format::Bits;

    u32 ask;
    Bits mask; // all bits, or all but the sign
    u64 n;
    __device__ __forceinline__ TotalAsked(u32 ask, bool absolute, u64 n) : ask(ask), mask(absolute ? Bits(Format::SIGN - 1) : Bits(~Bits(0))), n(n) {}
    __device__ __forceinline__ Bits of(Bits bits) const { return bits & mask; }
    static __device__ __forceinline__ Bits fill() { return 0; }
};
