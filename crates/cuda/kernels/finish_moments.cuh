// Makes numbers of the payloads of moments: variances, or standard deviations.

#pragma once

#include "finish.cuh"
#include "variance.cuh"

template <class T>
__device__ __forceinline__ void finish(const u64 *payload, u32 ask, u32 manner, u64, void *out, i64 place, u32 *)
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
    if (sizeof(typename Element<T>::Bits) < 8 && (manner & IN_F64) != 0)
        write(out, place, exact_real<f64>(numerator, unit, n, free, asks_root(ask)));
    else
        write(out, place, exact_real<Real<T>>(numerator, unit, n, free, asks_root(ask)));
}
