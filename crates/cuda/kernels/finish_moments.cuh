// Makes numbers of the payloads of moments: variances, or standard deviations.

#pragma once

#include "finish.cuh"
#include "variance.cuh"

template <class T>
__device__ __forceinline__ void finish(const u64 *payload, u32 ask, bool omits, void *out, i64 place, u32 *)
{
    using Sum = typename Element<T>::Sum;
    using Dot = typename Element<T>::Dot;
    // The sum and its counters, then the sum of squares.
    const u64 *counters = payload + Sum::LIMBS;
    const u64 n = Element<T>::FLOAT ? count_of(counters, omits) : counters[0];
    if constexpr (Element<T>::FLOAT) {
        if (n == 0 || specials_of<T>(counters, omits).any())
            return write(out, place, NOT_A_NUMBER<Real<T>>);
    }
    Numerator numerator;
    const auto sum = [&](int i) { return i64(payload[i]); };
    const auto square = [&](int i) { return i64(counters[4 + i]); };
    if (!subtract<Sum, Dot>(sum, square, n, numerator))
        return write(out, place, NOT_A_NUMBER<Real<T>>);
    const Truncated variance = over_square(numerator, Dot::LSB, n);
    write(out, place, (ask == DEVIATION ? variance.sqrt() : variance).template round<Real<T>>());
}
