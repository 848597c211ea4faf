// How an exact total, an extreme or a count becomes the number that was asked for: what core's `finish` does under the default rules.

#pragma once

#include "round.cuh"

// crates/cuda/src/engine/answer.rs has the same numbers.
enum Ask : u32 {
    TOTAL,
    MEAN,
    LEAST,
    GREATEST,
    COUNT,
    NONZERO,
    NANS,
    ANY,
    ALL,
    ARG_MIN,
    ARG_MAX,
    RANGE,
    MAGNITUDE,
    AND,
    OR,
    XOR,
    NORM,
    VARIANCE,
    DEVIATION,
    ROOT,
};

// Where the superaccumulator of a sum begins, and its limbs.
template <class T>
struct SumFormat {
    static constexpr int LSB = Element<T>::Sum::LSB;
    static constexpr int LIMBS = Element<T>::Sum::LIMBS;
};

// The canonical NaN.
template <class T>
constexpr typename Element<T>::Bits NOT_A_NUMBER = Element<T>::INFINITE | typename Element<T>::Bits(1) << (Element<T>::FRACTION - 1);

// What NaNs and infinities among the terms make of a total of floats, if `any` of them is there.
template <class T>
struct Specials {
    using Bits = typename Element<T>::Bits;
    bool nan, positive, negative;

    __device__ __forceinline__ bool any() const { return nan || positive || negative; }
    __device__ __forceinline__ Bits bits() const
    {
        if (nan || (positive && negative))
            return NOT_A_NUMBER<T>;
        return Bits(Element<T>::INFINITE | (negative ? Element<T>::SIGN : Bits(0)));
    }
};

// The total of finite floats, or its quotient by the number of terms.
template <class T>
__device__ __forceinline__ typename Element<T>::Bits float_answer(const Truncated &total, u32 ask, u64 n)
{
    return (ask == MEAN ? total.divide(n) : total).template round<T>();
}
