// What an element is: its bits, its order, its value. Kernels read bits and never a T, so that any byte is a bool and no
// CUDA header is needed for 16-bit floats.

#pragma once

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i8 = signed char;
using i16 = short;
using i32 = int;
using i64 = long long;
using f32 = float;
using f64 = double;
struct f16;
struct bf16;

// Bits   the unsigned integer of the same size
// Key    the integer whose order is the elements' order: core's `Element::key`
// Sum    the superaccumulator of sums of elements, and Dot of sums of products of two
template <class T>
struct Element;

// A superaccumulator's size, as core's `Format` has it: the exponent of the lowest limb's last bit, and the number of limbs.
template <int LAST_BIT, int COUNT>
struct Limbs {
    static constexpr int LSB = LAST_BIT;
    static constexpr int LIMBS = COUNT;
};

template <class T, class B>
struct Integer {
    using Bits = B;
    using Key = T;
    using Sum = Limbs<0, 4>;
    using Dot = Limbs<0, 6>;
    static constexpr bool FLOAT = false;
    static __device__ __forceinline__ Key key(Bits bits) { return Key(bits); }
    static constexpr Key LEAST = T(-1) < T(0) ? T(B(1) << (8 * sizeof(T) - 1)) : T(0);
    static constexpr Key GREATEST = T(~LEAST);
};

template <> struct Element<i8> : Integer<i8, u8> {};
template <> struct Element<i16> : Integer<i16, u16> {};
template <> struct Element<i32> : Integer<i32, u32> {};
template <> struct Element<i64> : Integer<i64, u64> {};
template <> struct Element<u8> : Integer<u8, u8> {};
template <> struct Element<u16> : Integer<u16, u16> {};
template <> struct Element<u32> : Integer<u32, u32> {};
template <> struct Element<u64> : Integer<u64, u64> {};

template <> struct Element<bool> : Integer<u8, u8> {
    static __device__ __forceinline__ Key key(Bits bits) { return bits != 0; }
};

// A binary interchange format: FRACTION stored bits, a bias, and the exponent of its own last bit (UNIT).
template <class B, class K, int STORED, int LAST_BIT, class OF_ELEMENTS, class OF_PRODUCTS>
struct Float {
    using Bits = B;
    using Key = K;
    using Sum = OF_ELEMENTS;
    using Dot = OF_PRODUCTS;
    static constexpr bool FLOAT = true;
    static constexpr int WIDTH = 8 * sizeof(B);
    static constexpr int FRACTION = STORED;
    static constexpr int UNIT = LAST_BIT;
    static constexpr Bits SIGN = Bits(Bits(1) << (WIDTH - 1));
    static constexpr Bits INFINITE = Bits((Bits(SIGN - 1) >> STORED) << STORED);
    static constexpr Key LEAST = Key(SIGN);
    static constexpr Key GREATEST = Key(SIGN - 1);
    // The keys of the infinities: NaNs lie outside.
    static constexpr Key LEAST_NUMBER = Key(~INFINITE);
    static constexpr Key GREATEST_NUMBER = Key(INFINITE);
    static __device__ __forceinline__ Key key(Bits bits)
    {
        const Key k = Key(bits);
        return Key(k ^ Key(Bits(k >> (WIDTH - 1)) >> 1));
    }
    static __device__ __forceinline__ Bits magnitude(Bits bits) { return Bits(bits & Bits(SIGN - 1)); }
    static __device__ __forceinline__ bool is_nan(Bits bits) { return magnitude(bits) > INFINITE; }
    static __device__ __forceinline__ bool is_finite(Bits bits) { return magnitude(bits) < INFINITE; }
    // For finite elements: |x| is below 2 to the power of this.
    static __device__ __forceinline__ int top(Bits bits)
    {
        return int(magnitude(bits) >> FRACTION) + UNIT + FRACTION;
    }
};

template <> struct Element<f16> : Float<u16, i16, 10, -24, Limbs<-24, 2>, Limbs<-48, 4>> {
    static __device__ __forceinline__ f32 value(Bits bits)
    {
        f32 x;
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
        return x;
    }
};
template <> struct Element<bf16> : Float<u16, i16, 7, -133, Limbs<-149, 10>, Limbs<-298, 19>> {
    // bf16 is the upper half of f32.
    static __device__ __forceinline__ f32 value(Bits bits) { return __uint_as_float(u32(bits) << 16); }
};
template <> struct Element<f32> : Float<u32, i32, 23, -149, Limbs<-149, 10>, Limbs<-298, 19>> {
    static __device__ __forceinline__ f32 value(Bits bits) { return __uint_as_float(bits); }
};
template <> struct Element<f64> : Float<u64, i64, 52, -1074, Limbs<-1074, 67>, Limbs<-2148, 133>> {
    static __device__ __forceinline__ f64 value(Bits bits) { return __longlong_as_double(i64(bits)); }
};
