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
        if (specials_of<T>(counters, omits).any())
            return write(out, place, NOT_A_NUMBER<Real<T>>);
    }
    const u64 free = freedom(ask, n);
    Numerator numerator;
    const auto sum = [&](int i) { return i64(payload[i]); };
    const auto square = [&](int i) { return i64(counters[4 + i]); };
    if (free == 0 || !subtract<Sum, Dot>(sum, square, n, numerator))
        return write(out, place, NOT_A_NUMBER<Real<T>>);
    const Truncated variance = over_product(numerator, Dot::LSB, n, free);
    write(out, place, (asks_root(ask) ? variance.sqrt() : variance).template round<Real<T>>());
}
