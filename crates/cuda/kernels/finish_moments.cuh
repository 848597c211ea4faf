// Makes numbers of the payloads of moments: variances, or standard deviations.

#pragma once

#include "finish.cuh"
#include "variance.cuh"

// The variance, or the deviation, from the leading words of S1 and S2, which have their highest bits set if they are not 0. Returns whether it
// is sure.
//
// Both are off by less than 2^-104 of themselves, n S2 by less than 2^-102, S1^2 by less than 2^-101, and as that is no more than n S2, the
// numerator by less than 2^-100 n S2. Where it is 2^-5 n S2 at least, that is less than 2^-95 of it.
template <class T>
__device__ __noinline__ bool quick_variance(const Truncated sum, const Truncated squares, u64 n, u64 m, bool root, typename Element<T>::Bits &answer)
{
    const bool is_zero = sum.is_zero();
    // The units of S1^2 in those of S2, which are above them by far: S1^2 is no more than n S2 in any payload of elements.
    const int up = 2 * sum.exponent - squares.exponent;
    if (squares.is_zero() || squares.negative || !is_zero && up > 0)
        return false;
    const Double whole = times(leading(squares.high, squares.low), {f64(n), 0.0});
    // What is far below is less than a 2^-700th.
    const f64 unit = !is_zero && up > -1000 ? of_bits(u64(1023 + up) << 52) : 0.0;
    const Double some = leading(sum.high, sum.low), part = times(some, some);
    const Double numerator = plus(whole, {-mul(part.hi, unit), -mul(part.lo, unit)});
    return numerator.hi >= mul(whole.hi, 1.0 / 32.0) && nearest_quotient<T>(numerator, squares.exponent, n, m, root, answer);
}

template <class T>
__device__ __forceinline__ void finish(const u64 *payload, u32 ask, u32 manner, void *out, i64 place, u32 *)
{
    const bool omits = (manner & OMITS_NAN) != 0;
    const auto none = [&] { write_special(out, place, Specials<Real<T>>{true}, manner); };
    using Sum = typename Element<T>::Sum;
    using Dot = typename Element<T>::Dot;
    // The sum and its counters, then the sum of squares.
    const u64 *counters = payload + Sum::LIMBS;
    const u64 n = Element<T>::FLOAT ? count_of(counters, omits) : counters[0];
    if constexpr (Element<T>::FLOAT) {
        if (specials_of<T>(counters, omits).any())
            return none();
    }
    const u64 free = freedom(ask, n);
    const bool in_f64 = sizeof(typename Element<T>::Bits) < 8 && (manner & IN_F64) != 0;
    // Where the terms do not cancel, leading words are enough.
    if constexpr (Element<T>::FLOAT) {
        const Truncated s1 = total_of<Sum>(payload), s2 = total_of<Dot>(counters + 4);
        u64 bits;
        if (free != 0 && in_f64 && quick_variance<f64>(s1, s2, n, free, asks_root(ask), bits))
            return write(out, place, bits);
        typename Element<T>::Bits answer;
        if (free != 0 && !in_f64 && quick_variance<T>(s1, s2, n, free, asks_root(ask), answer))
            return write(out, place, answer);
    }
    Numerator numerator;
    // From the first limbs on that are not 0: behind the last of them comes their carry.
    int first = 0, sums = Sum::LIMBS, squares = Dot::LIMBS;
    if constexpr (Dot::LIMBS >= MANY_LIMBS) {
        const Nonzero of_sum(sums, [&](int i) { return payload[i]; }), of_squares(squares, [&](int i) { return counters[4 + i]; });
        first = min(of_sum.first, of_squares.first / 2);
        sums = max(of_sum.last + 1 - first, 0);
        squares = max(of_squares.last + 1 - 2 * first, 0);
    }
    const auto sum = [&](int i) { return i64(payload[first + i]); };
    const auto square = [&](int i) { return i64(counters[4 + 2 * first + i]); };
    if (free == 0 || !subtract<Sum, Dot>(sum, square, n, numerator, sums, squares))
        return none();
    const int unit = Dot::LSB + 64 * first;
    if (in_f64)
        write(out, place, exact_real<f64>(numerator, unit, n, free, asks_root(ask)));
    else
        write(out, place, exact_real<Real<T>>(numerator, unit, n, free, asks_root(ask)));
}
