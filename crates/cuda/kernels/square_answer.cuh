// How the totals of squares, and of the elements beside them, become the answer of a sum of squares, a norm, a variance or a deviation.

#pragma once

#include "answer.cuh"
#include "fixed_point.cuh"
#include "narrow.cuh"
#include "variance.cuh"
#include "wide.cuh"

// {high, low} / divisor * 2^exponent, or its root, of a divisor below 2^62.
template <class T>
__device__ __noinline__ typename Element<T>::Bits exact_real(u64 high, u64 low, u64 divisor, int exponent, bool root)
{
    Truncated t;
    t.exponent = exponent;
    t.high = high;
    t.low = low;
    // The quotient keeps 66 bits and its root 33: shorter floats want 25 of them.
    t = t.divide(divisor);
    return (root ? t.sqrt() : t).template round<T>();
}

// The most elements of an answer by a few operations.
constexpr u64 MOST_SCALED = u64(1) << 31;

// What totals of squares and of elements may be off by, in their units.
struct Off {
    f64 squares = 0.0, sum = 0.0;

    // And n S2 - S1^2 by that, at most, which is rounded.
    __device__ __forceinline__ f64 spread(f64 magnitude, u64 n) const
    {
        return (f64(n) * squares + (2.0 * magnitude + sum) * sum) * (1.0 + 0x1p-50);
    }
};

// The answer of n shorter floats, at most MOST_SCALED of them, from totals that fit words: {high, low} of squares and `sum` of elements, in units
// of 2^(2 exponent) and 2^exponent. n S2 and S1^2 are below 2^127, the units from 2^-178 to 2^89. Returns whether it is sure, as it is of
// totals that are exact.
template <class T>
__device__ __forceinline__ bool scaled_answer(u64 high, u64 low, i64 sum, const Off &by, int exponent, u32 ask, u64 n, typename Element<T>::Bits &answer)
{
    u64 divisor = 1;
    f64 off = by.squares;
    if (asks_spread(ask)) {
        const u64 magnitude = u64(sum < 0 ? -sum : sum);
        const u64 minuend = low * n, subtrahend = magnitude * magnitude;
        high = high * n + __umul64hi(low, n) - __umul64hi(magnitude, magnitude) - (minuend < subtrahend);
        low = minuend - subtrahend;
        off = by.spread(f64(magnitude), n);
        divisor = n * freedom(ask, n);
        if (divisor == 0) {
            answer = NOT_A_NUMBER<T>;
            return true;
        }
    }
    // All numbers here are normal f64. What is less than 0 is so for what it is off by.
    const auto power = [](int e) { return __longlong_as_double(i64(1023 + e) << 52); };
    f64 real = __fma_rn(f64(high), power(64), f64(low));
    // Off by less than 2^-50 of itself, as each of six operations is by 2^-53 at most: seldom enough to matter.
    f64 part = power(-49);
    if (off != 0.0) {
        part += off / real;
        if (i64(high) < 0 || !(part < power(-24)))
            return false;
    }
    if (asks_spread(ask))
        real = __ddiv_rn(real, f64(divisor));
    real = asks_root(ask) ? __dsqrt_rn(real) * power(exponent) : real * power(2 * exponent);
    const auto below = narrow<T>(real - real * part), above = narrow<T>(real + real * part);
    answer = below;
    if (below != above && off == 0.0)
        answer = exact_real<T>(high, low, divisor, 2 * exponent, asks_root(ask));
    return below == above || off == 0.0;
}
template <class T>
__device__ __forceinline__ typename Element<T>::Bits scaled_answer(u64 high, u64 low, i64 sum, int exponent, u32 ask, u64 n)
{
    typename Element<T>::Bits answer;
    scaled_answer<T>(high, low, sum, {}, exponent, ask, n, answer);
    return answer;
}

// The same from superaccumulators whose limbs `sum` and `square` say, of any float and any n; that of squares has nothing but finite
// ones. SPREAD says that variances may be asked for.
template <class T, bool SPREAD = true, class SumLimb, class SquareLimb>
__device__ __forceinline__ typename Element<T>::Bits moments_answer(SumLimb sum, SquareLimb square, u32 ask, u64 n)
{
    using Sum = typename Element<T>::Sum;
    using Dot = typename Element<T>::Dot;
    if (SPREAD && asks_spread(ask)) {
        const u64 free = freedom(ask, n);
        if (free == 0)
            return NOT_A_NUMBER<T>;
        Numerator numerator;
        subtract<Sum, Dot>(sum, square, n, numerator);
        return exact_real<T>(numerator, Dot::LSB, n, free, asks_root(ask));
    }
    return exact_real<T>(Truncated::of_limbs(Dot::LIMBS, Dot::LSB, square), asks_root(ask));
}

// The same from fixed-point integers, in units of 2^unit and of its square.
template <class T, bool SPREAD, int SUM, int SQUARES>
__device__ __forceinline__ typename Element<T>::Bits moments_answer(const FixedPoint<SUM> &sum, const FixedPoint<SQUARES> &squares, int unit,
    u32 ask, u64 n)
{
    using OfSum = Limbs<0, FixedPoint<SUM>::DIGITS>;
    using OfSquares = Limbs<0, FixedPoint<SQUARES>::DIGITS>;
    u32 of_squares[OfSquares::LIMBS];
    squares.digits(of_squares);
    const auto square = [&](int i) { return i64(of_squares[i]); };
    if (SPREAD && asks_spread(ask)) {
        const u64 free = freedom(ask, n);
        if (free == 0)
            return NOT_A_NUMBER<T>;
        u32 of_sum[OfSum::LIMBS];
        sum.digits(of_sum);
        const auto limb = [&](int i) { return i + 1 < OfSum::LIMBS ? i64(of_sum[i]) : i64(i32(of_sum[i])); };
        // Those that are cut off (moving.cuh) may make less than 0, which no sums do.
        Numerator numerator;
        if (!subtract<OfSum, OfSquares>(limb, square, n, numerator))
            return NOT_A_NUMBER<T>;
        return exact_real<T>(numerator, 2 * unit, n, free, asks_root(ask));
    }
    return exact_real<T>(Truncated::of_limbs(OfSquares::LIMBS, 2 * unit, square), asks_root(ask));
}

// Both superaccumulators.
template <class T>
struct WideMoments {
    using Sum = Wide<typename Element<T>::Sum>;
    using Squares = Wide<typename Element<T>::Dot>;

    Sum sum;
    Squares squares;

    __device__ __forceinline__ void absorb(typename Element<T>::Bits bits)
    {
        ::absorb<T>(sum, bits);
        absorb_product<T>(squares, bits, bits);
    }
};
