// How the totals of squares, and of the elements beside them, become the answer of a sum of squares, a norm, a variance or a deviation.

#pragma once

#include "answer.cuh"
#include "variance.cuh"
#include "wide.cuh"

// The answer from superaccumulators whose limbs `sum` and `square` say, of any float and any n; that of squares has nothing but finite
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
