// How far apart floats are that are shorter than f64: whether plain f64 adds of them are exact. range.cuh has the argument.

#pragma once

#include "element.cuh"

// Of elements that grow by GROWTH bits when they add up.
template <class T, int GROWTH>
struct Spread {
    using Format = Element<T>;
    // f64 holds the sum of as many f16 as anybody adds at once, whatever they are.
    static constexpr bool ASKED = Format::Sum::LIMBS > 2;
    static constexpr u32 LARGEST = u32(53 - (Format::FRACTION + 1) - GROWTH) << 24;

    u32 most = 0, least = ~0u;
    // The same of elements of 16 bits, side by side.
    u32 pair_most = 0, pair_least = ~0u;

    __device__ __forceinline__ void see(f32 x)
    {
        if constexpr (ASKED) {
            const u32 doubled = __float_as_uint(x) << 1;
            most = max(most, doubled);
            least = min(least, doubled - 1);
        }
    }

    // Sees two elements of 16 bits, side by side where the device can: they count once `settle` is called.
    __device__ __forceinline__ void see_pair(u32 word)
    {
        if constexpr (ASKED) {
#if __CUDA_ARCH__ >= 900
            const u32 magnitudes = word & 0x7fff7fff;
            u32 below;
            asm("max.u16x2 %0, %0, %1;" : "+r"(pair_most) : "r"(magnitudes));
            asm("add.u16x2 %0, %1, %2;" : "=r"(below) : "r"(magnitudes), "r"(0xffffffff));
            asm("min.u16x2 %0, %0, %1;" : "+r"(pair_least) : "r"(below));
#else
            see(Format::value(u16(word)));
            see(Format::value(u16(word >> 16)));
#endif
        }
    }

    // 2 * bits as f32 are 2^17 times a bf16's magnitude.
    __device__ __forceinline__ void settle()
    {
        most = max(most, max(pair_most & 0xffff, pair_most >> 16) << 17);
        least = min(least, min(pair_least & 0xffff, pair_least >> 16) << 17 | 0x1ffff);
    }

    // The same of what was seen of two columns side by side, of each by itself where the device can.
    __device__ __forceinline__ bool pair_holds() const
    {
#if __CUDA_ARCH__ >= 900
        const u32 first = pair_most - pair_least & 0xffff, second = (pair_most >> 16) - (pair_least >> 16) & 0xffff;
        return !ASKED || max(first, second) <= LARGEST >> 17;
#else
        return holds();
#endif
    }

    // The sum with one more element, which is seen.
    __device__ __forceinline__ f64 added(f64 sum, f32 x)
    {
        see(x);
        return __dadd_rn(sum, f64(x));
    }

    // Whether all sums of what was seen are exact. No spread of infinities, NaNs and numbers is.
    __device__ __forceinline__ bool holds() const { return !ASKED || most - least <= LARGEST; }
    // The same of n elements, at most 2^16, where GROWTH is 0.
    __device__ __forceinline__ bool holds(u64 n) const
    {
        const int growth = 32 - __clz(int(u32(n)));
        return !ASKED || most - least <= LARGEST - (u32(growth) << 24);
    }
};
