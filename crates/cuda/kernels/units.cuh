// What a thread of a walk takes with one load: an element; an aligned word of short elements; or an aligned vector of 16 bytes, some of
// whose elements may lie outside of their run.

#pragma once

#include "layout.cuh"
#include "load.cuh"

// Units of V elements.
template <class T, int V>
struct Units {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    static constexpr int SIZE = sizeof(Bits);
    static_assert(V == 1 || V * SIZE == 4 || V * SIZE == 16, "a register, or a vector");
    static constexpr bool VECTOR = V * SIZE == 16 && V > 1;

    template <class A, class B, class C, bool IS_VECTOR, bool IS_ONE>
    struct Choice {
        using Type = B;
    };
    template <class A, class B, class C, bool IS_ONE>
    struct Choice<A, B, C, true, IS_ONE> {
        using Type = A;
    };
    template <class A, class B, class C>
    struct Choice<A, B, C, false, true> {
        using Type = C;
    };
    using Raw = typename Choice<uint4, u32, Bits, VECTOR, V == 1>::Type;

    static __device__ __forceinline__ Raw at(const char *at) { return *reinterpret_cast<const Raw *>(at); }

    // The i-th element; i is a constant once loops are unrolled.
    static __device__ __forceinline__ Bits item(const Raw &raw, int i)
    {
        if constexpr (VECTOR)
            return ::item<T>(raw, i);
        else if constexpr (V > 1)
            return Bits(raw >> (8 * SIZE * i));
        else
            return raw;
    }

    // A unit of one element V times.
    static __device__ __forceinline__ Raw filled(Bits bits)
    {
        if constexpr (V == 1) {
            return bits;
        } else if constexpr (SIZE == 8) {
            return {u32(bits), u32(u64(bits) >> 32), u32(bits), u32(u64(bits) >> 32)};
        } else {
            const u32 word = u32(bits) * (SIZE == 1 ? 0x01010101 : SIZE == 2 ? 0x00010001 : 1);
            if constexpr (VECTOR)
                return {word, word, word, word};
            else
                return word;
        }
    }

    // The bytes of a word below the b-th.
    static __device__ __forceinline__ u32 below(int b) { return b <= 0 ? 0 : b >= 4 ? ~0u : (1u << 8 * b) - 1; }

    // A vector whose first element is the first-th of a run: `fill` in the place of those that the run does not have.
    static __device__ __forceinline__ uint4 cut(const uint4 &v, int first, int run, const uint4 &fill)
    {
        // Bytes of the vector, of which the run has [from, to).
        const int from = max(-first, 0) * SIZE, to = min(run - first, V) * SIZE;
        const auto word = [&](u32 of, u32 other, int w) {
            const u32 mask = below(to - 4 * w) & ~below(from - 4 * w);
            return (of & mask) | (other & ~mask);
        };
        return {word(v.x, fill.x, 0), word(v.y, fill.y, 1), word(v.z, fill.z, 2), word(v.w, fill.w, 3)};
    }
};

// Vectors of runs of which each `gap`-th element is one, a power of two: `gap` elements have 8 bytes at most.
template <class T>
struct Gaps {
    static constexpr u32 SIZE = sizeof(typename Element<T>::Bits);
    u32 gap;
    u64 first; // the bytes of those elements, if the vector begins with one

    __device__ __forceinline__ Gaps(u32 gap) : gap(gap)
    {
        constexpr u64 ONE = ~0ull >> (64 - 8 * SIZE);
        first = ONE * (gap * SIZE == 8 ? 1 : gap * SIZE == 4 ? 0x100000001 : 0x0001000100010001);
    }

    // A vector that begins with the number-th element of the run, which may be negative: `fill` in the place of those between.
    __device__ __forceinline__ uint4 without(const uint4 &v, u32 number, const uint4 &fill) const
    {
        const u64 mask = first << 8 * SIZE * (-number & (gap - 1));
        const u32 even = u32(mask), odd = u32(mask >> 32);
        return {(v.x & even) | (fill.x & ~even), (v.y & odd) | (fill.y & ~odd), (v.z & even) | (fill.z & ~even), (v.w & odd) | (fill.w & ~odd)};
    }
};

// A vector at the end of a view, element by element: what lies beside the view is nobody's business.
template <class T>
__device__ __noinline__ uint4 vector_at_end(const char *at, const char *begin, const char *end)
{
    using Bits = typename Element<T>::Bits;
    u64 half[2] = {0, 0};
#pragma unroll 1
    for (u32 b = 0; b < 16; b += sizeof(Bits)) {
        if (at + b >= begin && at + b < end)
            half[b / 8] |= u64(*reinterpret_cast<const Bits *>(at + b)) << (b % 8 * 8);
    }
    return {u32(half[0]), u32(half[0] >> 32), u32(half[1]), u32(half[1] >> 32)};
}

// N elements, as functions take them that are not inlined.
template <class Bits, int N>
struct Elements {
    Bits bits[N];
};
