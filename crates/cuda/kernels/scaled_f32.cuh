// Short rows of floats up to f32 as scaled_row.cuh cuts them.
//
// Elements have at most 53 bits, a 2^HALF + b. A row has at most 2^10 of them, so that the sums of a^2, a b and b^2 fit 64 bits each.
// n S2 and S1^2 are below 2^126: the variance's numerator fits two words.

#pragma once

#include "load.cuh"
#include "square_answer.cuh"

template <class T>
struct ScaledF32 {
    using Whole = Element<f32>;
    static constexpr int PARTS = 2;
    static constexpr int HALF = 27;

    u64 high, low; // squares
    i64 sum;

    static __device__ __forceinline__ u32 bits_of(const uint4 &v, int i) { return __float_as_uint(Element<T>::value(item<T>(v, i))); }

    static __device__ __forceinline__ void cut(u32 significand, int up, u32 (&part)[PARTS])
    {
        const u32 lower = significand << (up & 31), upper = __funnelshift_l(significand, 0, up);
        part[0] = __funnelshift_l(lower, upper, 32 - HALF);
        part[1] = lower & ((1u << HALF) - 1);
    }

    __device__ __forceinline__ void join(const u64 (&products)[3], const i64 (&sums)[PARTS])
    {
        sum = sums[0] * (i64(1) << HALF) + sums[1];
        // The middle one counts twice.
        const u64 middle = products[1] << (HALF + 1);
        low = products[0] << 2 * HALF;
        high = (products[0] >> (64 - 2 * HALF)) + (products[1] >> (63 - HALF));
        low += middle;
        high += low < middle;
        low += products[2];
        high += low < products[2];
    }

    __device__ __forceinline__ bool answer(int unit, const Off &by, u32 ask, u64 n, typename Element<T>::Bits &out) const
    {
        return scaled_answer<T>(high, low, sum, by, unit, ask, n, out);
    }
};
