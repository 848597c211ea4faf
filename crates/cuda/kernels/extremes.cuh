// The smallest and the largest key of a lane's vectors, and how many NaNs they have, without a branch: random bits have NaNs in every
// warp's tile.

#pragma once

#include "load.cuh"
#include "words.cuh"

// Integers of 32 and 64 bits that keep the order of keys.
template <bool SIGNED>
struct Ordered {
    using Short = i32;
    using Long = i64;
};
template <>
struct Ordered<false> {
    using Short = u32;
    using Long = u64;
};
template <class T>
using OrderOf = Ordered<(typename Element<T>::Key(-1) < typename Element<T>::Key(0))>;

// The lesser and the greater of two numbers. The device orders them as keys are ordered, -0 below +0, and a NaN loses against a
// number.
__device__ __forceinline__ f32 lesser(f32 a, f32 b)
{
    asm("min.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
    return a;
}
__device__ __forceinline__ f32 greater(f32 a, f32 b)
{
    asm("max.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
    return a;
}
__device__ __forceinline__ f64 lesser(f64 a, f64 b)
{
    asm("min.f64 %0, %0, %1;" : "+d"(a) : "d"(b));
    return a;
}
__device__ __forceinline__ f64 greater(f64 a, f64 b)
{
    asm("max.f64 %0, %0, %1;" : "+d"(a) : "d"(b));
    return a;
}

// Floats by their values.
template <class T>
struct Values {
    using Bits = typename Element<T>::Bits;
    using Value = decltype(Element<T>::value(0));

    // NaN until there is a number.
    Value least = Value(__longlong_as_double(-1));
    Value greatest = least;
    u32 nans = 0;

    __device__ __forceinline__ void take(const uint4 &v)
    {
#pragma unroll
        for (int i = 0; i < ITEMS<T>; ++i) {
            const Value x = Element<T>::value(item<T>(v, i));
            least = lesser(least, x);
            greatest = greater(greatest, x);
            nans += x != x;
        }
    }

    static __device__ __forceinline__ Bits bits(f64 x) { return Bits(__double_as_longlong(x)); }
    // Exact, since a value is an element's.
    static __device__ __forceinline__ Bits bits(f32 x)
    {
        if constexpr (sizeof(Bits) == 4) {
            return __float_as_uint(x);
        } else if constexpr (Element<T>::FRACTION == Element<bf16>::FRACTION) {
            return Bits(__float_as_uint(x) >> 16);
        } else {
            Bits bits;
            asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
            return bits;
        }
    }

    __device__ __forceinline__ Bits lowest() const { return bits(least); }
    __device__ __forceinline__ Bits highest() const { return bits(greatest); }
    __device__ __forceinline__ u32 count() const { return nans; }
};

#if __CUDA_ARCH__ >= 900
// Those of 16 bits two at a time.
__device__ __forceinline__ u32 lesser(f16 *, u32 a, u32 b)
{
    asm("min.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    return a;
}
__device__ __forceinline__ u32 greater(f16 *, u32 a, u32 b)
{
    asm("max.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    return a;
}
__device__ __forceinline__ u32 lesser(bf16 *, u32 a, u32 b)
{
    asm("min.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    return a;
}
__device__ __forceinline__ u32 greater(bf16 *, u32 a, u32 b)
{
    asm("max.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    return a;
}

template <class T>
struct Pairs {
    static constexpr T *TYPE = nullptr;
    u32 least = ~0u;
    u32 greatest = ~0u;
    u32 nans = 0; // by their place in the word

    __device__ __forceinline__ void take(u32 word)
    {
        least = lesser(TYPE, least, word);
        greatest = greater(TYPE, greatest, word);
        // Adding what infinities lack to 2^15 brings a carry to the upper bit of what is above them.
        constexpr u32 LACK = 0x8000 - Element<T>::INFINITE - 1;
        nans += ((word & 0x7fff7fff) + LACK * 0x00010001) >> 15 & 0x00010001;
    }
    __device__ __forceinline__ void take(const uint4 &v)
    {
        take(v.x);
        take(v.y);
        take(v.z);
        take(v.w);
    }

    __device__ __forceinline__ u16 lowest() const { return u16(lesser(TYPE, least, least >> 16)); }
    __device__ __forceinline__ u16 highest() const { return u16(greater(TYPE, greatest, greatest >> 16)); }
    __device__ __forceinline__ u32 count() const { return (nans & 0xffff) + (nans >> 16); }
};
template <> struct Values<f16> : Pairs<f16> {};
template <> struct Values<bf16> : Pairs<bf16> {};
#endif

// Integers shorter than a word are compared where they lie: of two words the larger one has the larger key on top, or as large a one,
// whatever lies below. Shifts bring the others to the top.
template <class T>
struct Stacked {
    using Key = typename Element<T>::Key;
    using Word = typename OrderOf<T>::Short;
    static constexpr int WIDTH = 8 * sizeof(Key);
    static constexpr int EACH = 32 / WIDTH;
    static constexpr Word LEAST = Word(u32(Element<T>::LEAST) << (32 - WIDTH));

    Word smallest[EACH];
    Word largest[EACH];

    __device__ __forceinline__ Stacked()
    {
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            smallest[e] = ~LEAST;
            largest[e] = LEAST;
        }
    }

    __device__ __forceinline__ void take(u32 word)
    {
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            const Word key = Word(word << (e * WIDTH));
            smallest[e] = min(smallest[e], key);
            largest[e] = max(largest[e], key);
        }
    }

    __device__ __forceinline__ Key lowest() const
    {
        Word all = smallest[0];
#pragma unroll
        for (int e = 1; e < EACH; ++e)
            all = min(all, smallest[e]);
        return Key(all >> (32 - WIDTH));
    }
    __device__ __forceinline__ Key highest() const
    {
        Word all = largest[0];
#pragma unroll
        for (int e = 1; e < EACH; ++e)
            all = max(all, largest[e]);
        return Key(all >> (32 - WIDTH));
    }
};

// Truth values are told by what all of their bytes are, and any.
template <>
struct Stacked<bool> {
    u32 all = ~0u;
    u32 any = 0;
    __device__ __forceinline__ void take(u32 word)
    {
        const u32 truth = any_byte(word);
        all &= truth | 0x7f7f7f7f;
        any |= truth;
    }
    __device__ __forceinline__ u8 lowest() const { return all == ~0u; }
    __device__ __forceinline__ u8 highest() const { return any != 0; }
};

template <class T>
struct Extremes {
    using Bits = typename Element<T>::Bits;
    using Key = typename Element<T>::Key;

    Key smallest = Element<T>::GREATEST;
    Key largest = Element<T>::LEAST;

    __device__ __forceinline__ void take(Key low, Key high)
    {
        smallest = min(smallest, low);
        largest = max(largest, high);
    }

    // Returns how many NaNs there were.
    template <bool FULL>
    __device__ __forceinline__ u32 take(const uint4 (&v)[VECTORS], u32 valid)
    {
        if constexpr (Element<T>::FLOAT) {
            Values<T> values;
#pragma unroll
            for (int k = 0; k < VECTORS; ++k) {
                if (FULL || k < valid)
                    values.take(v[k]);
            }
            const Bits low = values.lowest(), high = values.highest();
            if (!Element<T>::is_nan(low))
                take(Element<T>::key(low), Element<T>::key(high));
            return values.count();
        } else if constexpr (sizeof(Bits) < 4) {
            if (FULL || valid > 0) {
                Stacked<T> words;
                each_word<FULL>(v, valid, [&](u32 word) { words.take(word); });
                take(words.lowest(), words.highest());
            }
        } else {
            each<T, FULL>(v, valid, [&](Bits bits) { take(Element<T>::key(bits), Element<T>::key(bits)); });
        }
        return 0;
    }
};
