// The variance of an exact sum and an exact sum of squares: core's exact/variance.rs, on a device.
//
// It is (n S2 - S1^2) / (n (n - ddof)). In every format the unit of S2 is the square of S1's, so that the numerator is an integer in units of
// S2, and nothing is lost where its terms cancel. Its leading digits are enough: cutting the others off is a floor, which the floor
// of the quotient does not see.

#pragma once

#include "answer.cuh"
#include "nearest.cuh"

// So many digits have 257 bits or more, of which a quotient by 126 bits needs 127 + 126.
using Numerator = Leading<9>;

// What is asked has the delta degrees of freedom behind its first byte: `Answer::asked` in crates/cuda/src/engine/answer.rs.
__device__ __forceinline__ bool asks_spread(u32 ask) { return (ask & 0xff) == VARIANCE || (ask & 0xff) == DEVIATION; }
__device__ __forceinline__ bool asks_root(u32 ask) { return (ask & 0xff) == NORM || (ask & 0xff) == DEVIATION; }

// n - ddof, or 0 where there is no variance.
__device__ __forceinline__ u64 freedom(u32 ask, u64 n) { return n > ask >> 8 ? n - (ask >> 8) : 0; }

// n S2 - S1^2, and whether it is not negative, as it is of real numbers. `sum` and `square` say the i-th limbs of S1 and S2, of so many, which
// may have carries to move; that of S1 is asked twice, and that of S2 as well if need be.
//
// Of long sums, products are made for the leading places of the square alone, from place f on. What is left out of S1^2 is a number r from 0
// to below 2^39 B^f, where B = 2^32: no place has more products than |S1| has digits, C <= 2^7, and those of all places c < f make less
// than the sum of C (B - 1)^2 B^c, which is below C (B - 1) B^f. So the difference that is found, d, is n S2 - S1^2 + r. Let the highest of
// its digits that is not 0 be in place t >= f + 10, and let its digits from place t - 9 down make a number of 2^39 B^f or more. That is
// more than r: taking r off leaves the nine digits from t down as they are and something below them that is not 0, which is all that
// anybody asks. Place f + 1 says so if its digit is 2^7 or more, and each place from f + 2 to t - 9 if its digit is not 0; what is less
// than that is not pushed. Where nothing says so, because the terms cancel or the digits are zeros, all products are made. A negative d
// has a negative d - r.
template <class Sum, class Dot, class SumLimb, class SquareLimb>
__device__ __forceinline__ bool subtract(SumLimb sum, SquareLimb square, u64 n, Numerator &numerator,
    int sums = Sum::LIMBS, int squares = Dot::LIMBS)
{
    static_assert(Dot::LSB == 2 * Sum::LSB, "the same units");
    // A digit more than limbs; twice as many of a square, two more of a product with 64 bits.
    const int count = max(2 * (sums + 1), squares + 1 + 2);
    // Places of the square that are enough, and the part of a digit that says nothing of what is left out.
    constexpr int ENOUGH = 12;
    constexpr u32 GUARD = 1 << 7;
    static_assert(Sum::LIMBS + 1 <= int(GUARD), "products of a place");

    // |S1|: digits that are not 0 lie from the first to the last.
    Digits of_sum = Digits::of_limbs(sums, sum);
    u32 digits[Sum::LIMBS + 1];
    int first = Sum::LIMBS + 1, last = -1;
#pragma unroll 1
    for (int i = 0; i <= sums; ++i) {
        digits[i] = of_sum.next(i < sums ? sum(i) : 0);
        if (digits[i] != 0) {
            first = min(first, i);
            last = i;
        }
    }

    const int from = 2 * last - ENOUGH;
    bool all = Sum::LIMBS < 2 * ENOUGH || from <= 2 * first;
#pragma unroll 1
    while (true) {
        numerator = Numerator();
        Digits of_squares; // which are not negative
        u32 before = 0;
        // Of S2 times the lower half of n and, a place higher, the upper half: what is carried to the next place.
        u64 low = 0, high = 0;
        // The same of S1^2, and how often that left 64 bits.
        u64 column = 0, above = 0;
        u32 borrow = 0;
#pragma unroll 1
        for (int i = 0; i < count; ++i) {
            const u32 digit = of_squares.next(i < squares ? square(i) : 0);
            // Neither leaves 64 bits: (2^32 - 1)^2 + 2 (2^32 - 1) = 2^64 - 1.
            low += u64(digit) * u32(n);
            high += u64(before) * u32(n >> 32) + u32(low);
            before = digit;
            if (all || i >= from) {
#pragma unroll 1
                for (int k = max(first, i - last); k <= min(last, i - first); ++k) {
                    const u64 product = u64(digits[k]) * digits[i - k];
                    column += product;
                    above += column < product;
                }
                const i64 difference = i64(u32(high)) - u32(column) - borrow;
                if (all || i > from)
                    numerator.push(u32(difference) & (all || i > from + 1 ? ~0u : -GUARD), i);
                borrow = difference < 0;
                // Far fewer products than 2^32 are in a column.
                column = column >> 32 | above << 32;
                above = 0;
            }
            low >>= 32;
            high >>= 32;
        }
        if (all || borrow != 0 || (numerator.top >= from + 10 && numerator.below))
            return borrow == 0;
        all = true;
    }
}

// The numerator in units of 2^unit, which is normalised, over n m, both from 1 to 2^63 - 1, with 127 or 128 bits.
__device__ __forceinline__ Truncated over_product(const Numerator &numerator, int unit, u64 n, u64 m)
{
    Truncated t;
    const u64 upper = __umul64hi(n, m), lower = n * m;
    // The leading 128 + s bits over a divisor of s + 1 bits lie in (2^126, 2^128). The first s of them are below the divisor: a rest
    // to begin with. Those after them give the quotient.
    int shift = upper != 0 ? 127 - __clzll(i64(upper)) : 63 - __clzll(i64(lower));
    t.exponent = unit + 32 * (numerator.top - 7) + 128 - shift;
    u64 words[6] = {0, 0, numerator.word(0), numerator.word(1), numerator.word(2), numerator.word(3)};
    if (shift >= 64) {
#pragma unroll
        for (int i = 0; i < 5; ++i)
            words[i] = words[i + 1];
        words[5] = 0;
        shift -= 64;
    }
    if (shift != 0) {
#pragma unroll
        for (int i = 0; i < 5; ++i)
            words[i] = words[i] << shift | words[i + 1] >> (64 - shift);
        words[5] <<= shift;
    }
    u64 above = words[0], rest = words[1];
    t.high = words[2];
    t.low = words[3];
    if (upper == 0 && lower >> 32 == 0) {
        // Digit by digit: the rest is below the divisor, and that is below 2^32.
#pragma unroll 1
        for (int i = 0; i < 4; ++i) {
            const u64 part = rest << 32 | t.high >> 32;
            t.high = t.high << 32 | t.low >> 32;
            t.low = t.low << 32 | part / lower;
            rest = part % lower;
        }
    } else {
#pragma unroll 1
        for (int i = 0; i < 128; ++i) {
            // Twice a rest and one is below 2^127.
            above = above << 1 | rest >> 63;
            rest = rest << 1 | t.high >> 63;
            t.high = t.high << 1 | t.low >> 63;
            t.low <<= 1;
            const u64 difference = above - upper - (rest < lower);
            if (i64(difference) >= 0) {
                above = difference;
                rest -= lower;
                t.low |= 1;
            }
        }
    }
    t.inexact = (above | rest | words[4] | words[5]) != 0 || numerator.digits[8] != 0 || numerator.below;
    return t;
}

// The numerator in units of 2^lsb over n m, or its root, rounded once.
template <class T>
__device__ __noinline__ typename Element<T>::Bits exact_real(Numerator numerator, int lsb, u64 n, u64 m, bool root)
{
    if (numerator.is_zero())
        return 0;
    const int unit = lsb - numerator.normalise();
    typename Element<T>::Bits answer;
    if (nearest_quotient<T>(leading(numerator.word(0), numerator.word(1)), unit + 32 * (numerator.top - 3), n, m, root, answer))
        return answer;
    const Truncated t = over_product(numerator, unit, n, m);
    return (root ? t.sqrt() : t).template round<T>();
}

// A total, or its root, rounded once.
template <class T>
__device__ __forceinline__ typename Element<T>::Bits exact_real(const Truncated &total, bool root)
{
    typename Element<T>::Bits answer;
    if (root && i64(total.high) < 0 && nearest_quotient<T>(leading(total.high, total.low), total.exponent, 1, 1, true, answer))
        return answer;
    return (root ? total.sqrt() : total).template round<T>();
}
