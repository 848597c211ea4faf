// e to the power of an integer in fixed point: limb by limb what crates/core/src/op/antilogarithm.rs computes.

#pragma once

#include "power_table.cuh"
#include "round.cuh"

// An integer of 128 bits, in two's complement.
struct Fixed {
    u64 low = 0, high = 0;
    // Adds value 2^SHIFT.
    template <int SHIFT>
    __device__ __forceinline__ void add(i64 value)
    {
        const u64 part = u64(value) << SHIFT;
        low += part;
        high += u64(value >> (SHIFT == 0 ? 63 : 64 - SHIFT)) + (low < part);
    }
    __device__ __forceinline__ void add(Fixed value)
    {
        low += value.low;
        high += value.high + (low < value.low);
    }
};

// The upper half of a product.
__device__ __forceinline__ Fixed product_high(Fixed a, Fixed b)
{
    const u64 first = a.high * b.low, second = a.low * b.high;
    u64 middle = __umul64hi(a.low, b.low);
    middle += first;
    u64 carries = middle < first;
    middle += second;
    carries += middle < second;
    Fixed high = {a.high * b.high, __umul64hi(a.high, b.high)};
    high.add(Fixed{__umul64hi(a.high, b.low), 0});
    high.add(Fixed{__umul64hi(a.low, b.high), 0});
    high.add(Fixed{carries, 0});
    return high;
}

// e^x for x in units of 2^-80, of fewer than 2^40 elements: a magnitude times 2^exponent.
__device__ __noinline__ Fixed power(Fixed x, i64 &exponent)
{
    // The integer nearest to x / ln 2, from its upper word in units of 2^-16.
    const i64 top = i64(x.high);
    Fixed scaled = {u64(top) * INVERSE_LN_2, u64(__mul64hi(top, i64(INVERSE_LN_2)))};
    scaled.add(Fixed{u64(1) << 62, 0});
    const i64 k = i64(scaled.high << 1 | scaled.low >> 63);
    // x - k ln 2 in units of 2^-120, modulo 2^128.
    Fixed rest = {x.low << 40, x.high << 40 | x.low >> 24};
    const Fixed whole = {u64(k) * LN_2_LOW, __umul64hi(u64(k), LN_2_LOW) + u64(k) * LN_2_HIGH - (k < 0 ? LN_2_LOW : 0)};
    rest.high -= whole.high + (rest.low < whole.low);
    rest.low -= whole.low;
    const i64 j = i64(rest.high) >> 50;
    rest.high &= (u64(1) << 50) - 1;
    // In units of 2^-128, below 1/64.
    const Fixed t = {rest.low << 8, rest.high << 8 | rest.low >> 56};
    u64 far = 0;
#pragma unroll 1
    for (int i = FAR_TERMS - 1; i >= 0; --i)
        far = FAR[i] + __umul64hi(t.high, far);
    Fixed sum = {far << 56, far >> 8};
#pragma unroll 1
    for (int i = NEAR_TERMS - 1; i >= 0; --i) {
        sum = product_high(t, sum);
        sum.add(Fixed{NEAR[i][0], NEAR[i][1]});
    }
    const int entry = min(max(int(j) + 32, 0), 63);
    exponent = k - 124;
    return product_high(Fixed{POWERS_OF_E[entry][0], POWERS_OF_E[entry][1]}, sum);
}
