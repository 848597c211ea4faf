// Numbers of about 106 bits as sums of two f64, and their exponentials: operation by operation what crates/core/src/op/double_double.rs
// computes, where the bounds are proven.

#pragma once

#include "rounded.cuh"

constexpr f64 LOG2_E = 1.44269504088896340735992468100189214;
constexpr f64 LN2 = 0.693147180559945309417232121458176568;
// ln 2 = HIGH + MID + LOW; HIGH + REST, shorter.
constexpr f64 LN2_HIGH = 0x1.62e42fefa38p-1;
constexpr f64 LN2_MID = 0x1.ef35793c76p-45;
constexpr f64 LN2_LOW = 0x1.cc01f97b57a08p-87;
constexpr f64 LN2_REST = 0x1.ef35793c7673p-45;
// Rounds to an integer, which is then in the low bits.
constexpr f64 ROUNDER = 6755399441055744.0;
constexpr f64 CUTOFF = -600.0;

// Whether an exponential is above 0: of what is not below CUTOFF. No argument is above -CUTOFF; one that is infinite or NaN counts
// as none at all.
__device__ __forceinline__ bool is_above_cutoff(f64 x)
{
    return (bits_of(x) & ~(u64(1) << 63)) <= 0x4082c00000000000;
}

struct Double {
    f64 hi;
    f64 lo;
};

__device__ __forceinline__ Double two_sum(f64 a, f64 b)
{
    const f64 hi = add(a, b);
    const f64 t = sub(hi, a);
    return {hi, add(sub(a, sub(hi, t)), sub(b, t))};
}

__device__ __forceinline__ Double fast_two_sum(f64 a, f64 b)
{
    const f64 hi = add(a, b);
    return {hi, sub(b, sub(hi, a))};
}

__device__ __forceinline__ Double plus(Double a, Double b)
{
    const Double s = two_sum(a.hi, b.hi);
    const Double t = two_sum(a.lo, b.lo);
    const Double v = fast_two_sum(s.hi, add(s.lo, t.hi));
    return fast_two_sum(v.hi, add(t.lo, v.lo));
}

__device__ __forceinline__ Double times(Double a, Double b)
{
    const f64 p = mul(a.hi, b.hi);
    const f64 e = fused(a.hi, b.hi, -p);
    const f64 cross = fused(a.hi, b.lo, mul(a.lo, b.hi));
    return fast_two_sum(p, add(e, cross));
}

// a * x + c, not normalised.
__device__ __forceinline__ Double step(Double a, Double x, Double c)
{
    const f64 p = mul(a.hi, x.hi);
    const f64 e = fused(a.hi, x.hi, -p);
    const f64 cross = fused(a.hi, x.lo, mul(a.lo, x.hi));
    const Double s = fast_two_sum(c.hi, p);
    return {s.hi, add(s.lo, add(e, add(cross, c.lo)))};
}

// e^x for x <= 600.
__device__ __forceinline__ Double exponential(Double x)
{
    constexpr Double C5 = {1.0 / 120.0, 1.1564823173178714e-19};
    constexpr Double C4 = {1.0 / 24.0, 2.3129646346357427e-18};
    constexpr Double C3 = {1.0 / 6.0, 9.25185853854297e-18};
    constexpr Double C2 = {0.5, 0.0};

    const f64 shifted = add(mul(x.hi, LOG2_E), ROUNDER);
    const f64 n = sub(shifted, ROUNDER);
    const Double head = two_sum(sub(x.hi, mul(n, LN2_HIGH)), -mul(n, LN2_MID));
    Double r = two_sum(head.hi, add(head.lo, sub(x.lo, mul(n, LN2_LOW))));
    r = {mul(r.hi, 1.0 / 64.0), mul(r.lo, 1.0 / 64.0)};

    f64 tail = fused(r.hi, 1.0 / 3628800.0, 1.0 / 362880.0);
    tail = fused(r.hi, tail, 1.0 / 40320.0);
    tail = fused(r.hi, tail, 1.0 / 5040.0);
    tail = fused(r.hi, tail, 1.0 / 720.0);
    Double p = fast_two_sum(C5.hi, mul(r.hi, tail));
    p.lo = add(p.lo, C5.lo);
    p = step(p, r, C4);
    p = step(p, r, C3);
    p = step(p, r, C2);
    Double y = step(step(p, r, {0.0, 0.0}), r, r);
#pragma unroll 1
    for (int i = 0; i < 6; ++i)
        y = step(y, y, {mul(2.0, y.hi), mul(2.0, y.lo)});
    Double e = fast_two_sum(1.0, y.hi);
    e = fast_two_sum(e.hi, add(e.lo, y.lo));
    const f64 scale = of_bits((bits_of(shifted) + 1023) << 52);
    const bool above = is_above_cutoff(x.hi);
    return {above ? mul(e.hi, scale) : 0.0, above ? mul(e.lo, scale) : 0.0};
}

// ln x for numbers from 2^-372 to 2^440, off by less than 2^-40: t is below 0.1716, so that what follows its 13th power in the series is
// below 2^-41, and of y, below 306, all that is rounded is below 2^-44.
__device__ __forceinline__ f64 rough_logarithm(f64 x)
{
    const u64 bits = bits_of(x);
    const f64 fraction = of_bits((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
    const f64 exponent = f64(int(bits >> 52) - 1023);
    const bool above = fraction > 1.41421356237309504880;
    const f64 m = above ? mul(fraction, 0.5) : fraction;
    const f64 k = above ? add(exponent, 1.0) : exponent;
    const f64 t = __ddiv_rn(sub(m, 1.0), add(m, 1.0));
    const f64 t2 = mul(t, t);
    constexpr f64 ARTANH[7] = {1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0};
    f64 series = 0.0;
#pragma unroll
    for (int i = 0; i < 7; ++i)
        series = add(mul(series, t2), ARTANH[i]);
    return add(mul(k, LN2_HIGH), add(mul(k, LN2_REST), mul(mul(2.0, t), series)));
}

// The same to the precision of two f64.
__device__ __forceinline__ Double logarithm(Double x)
{
    const f64 y = rough_logarithm(x.hi);
    const Double p = times(x, exponential(Double{-y, 0.0}));
    const Double z = two_sum(sub(p.hi, 1.0), p.lo);
    return plus(two_sum(z.hi, sub(z.lo, mul(mul(0.5, z.hi), z.hi))), {y, 0.0});
}

// A number whose rounding to types of at most 51 bits is that of x.
__device__ __forceinline__ f64 round_to_odd(Double x)
{
    const u64 bits = bits_of(x.hi);
    // Even and not zero, unless it is finite no more.
    const bool is_it = x.lo == 0.0 || (bits & 1) != 0 || (bits >> 52 & 0x7ff) == 0x7ff;
    const bool outward = (x.lo > 0.0) == (x.hi > 0.0);
    return is_it ? x.hi : of_bits(outward ? bits + 1 : bits - 1);
}
