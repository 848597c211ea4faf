// How an exact total, an extreme or a count becomes the number that was asked for: what core's `finish` does under the default rules.

#pragma once

#include "nearest.cuh"
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
    NUMBERS,
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

// The quotient of a total by n, bit by bit.
template <class T>
__device__ __noinline__ typename Element<T>::Bits exact_quotient(const Truncated total, u64 n)
{
    return total.divide(n).template round<T>();
}

// The same by a few operations of f64 wherever these are sure.
template <class T>
__device__ __forceinline__ typename Element<T>::Bits float_quotient(const Truncated &total, u64 n)
{
    using Bits = typename Element<T>::Bits;
    const Truncated t = total.normalised();
    Bits answer = 0;
    bool sure = !t.inexact && n >> 53 == 0;
    if constexpr (sizeof(Bits) == 8) {
        // What a total near the lower end has of the last bit there is: quotients of such integers are often halves.
        const int down = Element<T>::UNIT - 64 - t.exponent;
        const u64 units = down >= 0 && down < 64 ? t.high >> down : 0, q = units / n, rest = units % n;
        if (units != 0 && units << down == t.high && t.low == 0 && q >> 53 == 0)
            answer = q + (rest > n - rest || (rest == n - rest && (q & 1) != 0));
        else
            sure = sure && nearest_quotient<T>(leading(t.high, t.low), t.exponent, n, 1, false, answer);
    } else {
        // Nothing here leaves what f64 has. What is cut off of the total, and the rounded quotient, make less than 2^-51 of that.
        const f64 x = mul(f64(t.high & ~u64(0x7ff)), of_bits(u64(1023 + 64 + t.exponent) << 52)), q = quotient(x, n);
        const f64 off = (t.high & 0x7ff) == 0 && t.low == 0 ? 0.0 : mul(q, of_bits(u64(1023 - 51) << 52));
        answer = narrow<T>(sub(q, off));
        sure = sure && answer == narrow<T>(add(q, off));
    }
    return !sure ? exact_quotient<T>(total, n) : t.negative ? Bits(answer | Element<T>::SIGN) : answer;
}

// The total of finite floats, or its quotient by the number of terms.
template <class T>
__device__ __forceinline__ typename Element<T>::Bits float_answer(const Truncated &total, u32 ask, u64 n)
{
    return ask == MEAN && !total.is_zero() ? float_quotient<T>(total, n) : total.template round<T>();
}
