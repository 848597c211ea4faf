// Makes numbers of the payloads of sums of squares: those, or their roots.

#pragma once

#include "finish.cuh"
#include "variance.cuh"

template <class T>
__device__ __forceinline__ void finish(const u64 *payload, u32 ask, u32 manner, void *out, i64 place, u32 *overflow)
{
    using Dot = typename Element<T>::Dot;
    if constexpr (Element<T>::FLOAT) {
        const Specials<T> specials = specials_of<T>(payload + Dot::LIMBS, (manner & OMITS_NAN) != 0);
        if (specials.any())
            return write(out, place, specials.bits());
    } else if (ask == TOTAL) {
        u64 total;
        if (!integer_total<T, Dot::LIMBS>(payload, total))
            atomicOr(overflow, 1u);
        return write(out, place, total);
    }
    const Truncated total = total_of<Dot>(payload);
    write(out, place, exact_real<Real<T>>(total, ask == NORM));
}
