// Which float is nearest to a real number, by a few operations of f64, where these are sure of it.

#pragma once

#include "double_double.cuh"
#include "narrow.cuh"

// x / n, and the root of x, off by less than 2^-100 of itself more.
__device__ __forceinline__ Double over(Double x, f64 n, f64 rest = 0.0)
{
    const f64 q = __ddiv_rn(x.hi, n);
    return {q, __ddiv_rn(add(fused(-q, n, x.hi), sub(x.lo, mul(q, rest))), n)};
}
__device__ __forceinline__ Double root_of(Double x)
{
    const f64 s = __dsqrt_rn(x.hi);
    return {s, __ddiv_rn(add(fused(-s, s, x.hi), x.lo), add(s, s))};
}

// hi + lo, rounded once.
template <class T>
__device__ __forceinline__ typename Element<T>::Bits nearest(f64 hi, f64 lo)
{
    if constexpr (sizeof(typename Element<T>::Bits) == 8)
        return bits_of(add(hi, lo));
    else
        return narrow<T>(round_to_odd(two_sum(hi, lo)));
}

// x 2^exponent / (n + rest), or its root, of a positive x that is off by less than 2^-95 and `part` of itself. False where that may be on
// either side of the middle between two numbers.
template <class T>
__device__ __forceinline__ bool nearest_real(Double x, f64 n, f64 rest, int exponent, bool root, typename Element<T>::Bits &answer, f64 part = 0.0)
{
    constexpr bool LONG = sizeof(typename Element<T>::Bits) == 8;
    // No answer would be sure, or few of them.
    if (!(part < of_bits(u64(1023 - (LONG ? 54 : 30)) << 52)))
        return false;
    x = over(x, n, rest);
    if (root) {
        const f64 odd = (exponent & 1) != 0 ? 2.0 : 1.0;
        x = root_of({mul(x.hi, odd), mul(x.lo, odd)});
        exponent = (exponent - (exponent & 1)) / 2;
    }
    // The biased exponent. With 2048 the number is 2^1025 at least, whatever it is off by; with SMALLEST, it is below half of the last bit there is.
    constexpr int SMALLEST = LONG ? -54 : 1023 - 154;
    const int place = int(bits_of(x.hi) >> 52) + exponent;
    if (place <= SMALLEST || place >= 2048) {
        answer = place >= 2048 ? Element<T>::INFINITE : 0;
        return true;
    }
    // Either side of these, numbers are rounded in other ways.
    if (place == 1 || place == 2047)
        return false;
    // Low parts leave f64 near its lower end. Normal numbers are taken times 2^UP, others in units of the last bit there is.
    constexpr int UP = 256;
    const bool is_normal = place > 1;
    exponent += !LONG || place >= UP ? 0 : is_normal ? UP : 1074;
    // In two steps: neither the power nor the number leaves the format between them.
    const int half = exponent / 2;
    const f64 first = of_bits(u64(1023 + half) << 52), second = of_bits(u64(1023 + exponent - half) << 52);
    f64 hi = mul(mul(x.hi, first), second), lo = mul(mul(x.lo, first), second), off = mul(hi, add(of_bits(u64(1023 - 90) << 52), part));
    u64 origin = 0;
    if (LONG && place < UP) {
        origin = u64(UP) << 52;
        // From 2^52 to 2^53, f64 are the integers. The sum of what is rounded off of that and of the low part is off by less than 2^-50.
        if (!is_normal) {
            origin = u64(1023 + 52) << 52;
            const Double integer = two_sum(of_bits(origin), hi);
            hi = integer.hi;
            lo = add(lo, integer.lo);
            off = add(off, of_bits(u64(1023 - 50) << 52));
        }
    }
    answer = nearest<T>(hi, add(lo, off));
    const bool sure = answer == nearest<T>(hi, sub(lo, off));
    answer -= origin;
    return sure;
}

// {high, low}, of which the highest bit is 1, to 105 bits: 53 of them, and 75 that are rounded to as many.
__device__ __forceinline__ Double leading(u64 high, u64 low)
{
    constexpr f64 UNIT = 18446744073709551616.0;
    return fast_two_sum(mul(f64(high & ~u64(0x7ff)), UNIT), add(mul(f64(high & 0x7ff), UNIT), f64(low)));
}

// The same of an x over n m.
template <class T>
__device__ __forceinline__ bool nearest_quotient(Double x, int exponent, u64 n, u64 m, bool root, typename Element<T>::Bits &answer)
{
    if ((n | m) >> 53 != 0)
        return false;
    const f64 by = mul(f64(n), f64(m));
    return nearest_real<T>(x, by, fused(f64(n), f64(m), -by), exponent, root, answer);
}

__device__ __forceinline__ bool is_finite(f64 x) { return fabs(x) < of_bits(u64(0x7ff) << 52); }

// A real number that {hi, lo} is off by less than 2^-DIGITS of itself, rounded. False where it may be on either side of the middle between
// two numbers, or is near an end of the format, where low parts may have been lost.
template <int DIGITS = 90>
__device__ __forceinline__ bool rounded(Double real, u64 &bits)
{
    real = fast_two_sum(real.hi, real.lo);
    const f64 off = mul(fabs(real.hi), of_bits(u64(1023 - DIGITS) << 52));
    const f64 below = add(real.hi, sub(real.lo, off)), above = add(real.hi, add(real.lo, off));
    const u32 exponent = u32(bits_of(real.hi) >> 52) & 0x7ff;
    bits = bits_of(above);
    return below == above && exponent > 128 && exponent < 1023 + 960;
}

// real * 2^moved, rounded once, of a real that is positive or not finite: that product may leave the format. False as above. `is_exact` says
// that real is off by nothing, `is_root` that it is the root of D / m in units of 2^-1074, of integers D > 0 and 0 < m <= 256.
//
// Inside the format, the digits are those of real, and above it, there is infinity. Below the normal numbers, where the biased exponent
// `place` is 0 or less, the unit is 2^-1074. With -53 or less, the product is below half of that, and leaves 0. Others, in this unit, are
// added to 2^52, where the last bit is 1. That rounds the high part, to even in the middle. `rest` is what the product has besides, but for
// less than 2^-37. It says which integer is nearest, unless it is too near a half.
//
// A root below 2^16 units is not: rounding the high part is enough. Let t be k + 1/2. If the root is not t, their squares differ by
// |4 D - m (2 k + 1)^2| / (4 m) >= 2^-10, and they by 2^-28, so that the high part, off by less than 2^-36, is on the root's side of t. If the
// root is t, so is the high part.
__device__ __forceinline__ bool rounded_at(Double real, int moved, bool is_exact, bool is_root, u64 &bits)
{
    real = fast_two_sum(real.hi, real.lo);
    const bool is_sure = rounded(real, bits);
    const int exponent = int(bits_of(real.hi) >> 52) & 0x7ff, place = exponent + moved;
    if (place > 0 || exponent >= 1023 + 960) {
        bits = place < 0x7ff ? bits + (u64(i64(moved)) << 52) : u64(0x7ff) << 52;
        return is_sure;
    }
    bits = 0;
    if (place < -52)
        return true;
    constexpr f64 ONES = 4503599627370496.0, NEAR = 1.0 / 1073741824.0;
    const f64 unit = of_bits(u64(1023 + 1074 + moved) << 52), x = mul(real.hi, unit), integer = add(x, ONES);
    const f64 rest = add(sub(x, sub(integer, ONES)), mul(real.lo, unit));
    const f64 beyond = sub(fabs(rest), 0.5);
    // An integer that was rounded to even is the nearest one, or that on the side of the rest.
    bits = bits_of(integer) - bits_of(ONES) + (beyond > NEAR ? rest > 0.0 ? 1 : -1 : 0);
    return is_exact || (is_root && x < 65536.0) || fabs(beyond) > NEAR;
}
