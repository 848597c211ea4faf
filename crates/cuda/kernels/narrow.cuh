// From an exact f64 to a float that is no longer, rounded once.
//
// A number rounded to odd (cut off, with the last bit set if anything was lost) to two bits more than the format's, and as many more
// as its range is wider, rounds to the format as the number itself does: a tie stays a tie only if nothing was lost, and the last
// bit keeps the others off it (Boldo and Melquiond 2008). f64 has 53 bits for f32's 24, f32 24 for 11 and 8, and its subnormals
// reach 16 bits below bf16's.

#pragma once

#include "element.cuh"

// x rounded to odd.
__device__ __forceinline__ f32 odd_f32(f64 x)
{
    const f32 cut = __double2float_rz(x);
    return f64(cut) == x ? cut : __uint_as_float(__float_as_uint(cut) | 1);
}

// x / n, for a sum x of up to 53 bits, which narrows to where the true quotient would. Let t be halfway between two neighbours of a
// shorter format, and u the unit that x is less than 2^53 of. If x / n is not t it differs by at least u / n, or by a unit of n t,
// which is coarse as t has few bits. And u / n > 2^-53 |x / n|, so that a rounded quotient cannot get from beside t onto t.
__device__ __forceinline__ f64 quotient(f64 x, u64 n)
{
    return __ddiv_rn(x, f64(n));
}

template <class T>
__device__ __forceinline__ typename Element<T>::Bits narrow(f64 x);
template <>
__device__ __forceinline__ u64 narrow<f64>(f64 x)
{
    return u64(__double_as_longlong(x));
}
template <>
__device__ __forceinline__ u32 narrow<f32>(f64 x)
{
    return __float_as_uint(__double2float_rn(x));
}
template <>
__device__ __forceinline__ u16 narrow<f16>(f64 x)
{
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(odd_f32(x)));
    return bits;
}
template <>
__device__ __forceinline__ u16 narrow<bf16>(f64 x)
{
    // To nearest even on the upper half; a carry goes into the exponent, and from the largest into infinity.
    const u32 bits = __float_as_uint(odd_f32(x));
    return u16((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
