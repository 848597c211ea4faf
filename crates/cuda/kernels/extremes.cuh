// The smallest and the largest key of a lane's vectors, NaNs' included.

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

// Keys shorter than a word are compared where they lie: of two words the larger one has the larger key on top, or as large a one,
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
        word = keys<T>(word);
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            smallest[e] = min(smallest[e], Word(word << (e * WIDTH)));
            largest[e] = max(largest[e], Word(word << (e * WIDTH)));
        }
    }

    static __device__ __forceinline__ Key top(Word word) { return Key(word >> (32 - WIDTH)); }
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

    template <bool FULL>
    __device__ __forceinline__ void take(const uint4 (&v)[VECTORS], u32 valid)
    {
        if constexpr (sizeof(Bits) < 4) {
            Stacked<T> words;
#pragma unroll
            for (int k = 0; k < VECTORS; ++k) {
                if (FULL || k < valid) {
                    words.take(v[k].x);
                    words.take(v[k].y);
                    words.take(v[k].z);
                    words.take(v[k].w);
                }
            }
#pragma unroll
            for (int e = 0; e < Stacked<T>::EACH; ++e)
                take(words.top(words.smallest[e]), words.top(words.largest[e]));
        } else {
            each<T, FULL>(v, valid, [&](Bits bits) {
                const Key key = Element<T>::key(bits);
                take(key, key);
            });
        }
    }

    // The same without NaNs, which it counts; once more from memory, as it is seldom done.
    __device__ __forceinline__ u32 take_numbers(const uint4 *at, u32 valid)
    {
        u32 nans = 0;
#pragma unroll 1
        for (u32 k = 0; k < valid; ++k) {
            const uint4 v = at[32 * k];
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i) {
                const Bits bits = item<T>(v, i);
                const Key key = Element<T>::key(bits);
                const bool nan = Element<T>::is_nan(bits);
                nans += nan;
                take(nan ? Element<T>::GREATEST : key, nan ? Element<T>::LEAST : key);
            }
        }
        return nans;
    }

    // Whether there are NaNs: their keys are the outermost.
    __device__ __forceinline__ bool any_nan() const
    {
        return smallest < Element<T>::LEAST_NUMBER || largest > Element<T>::GREATEST_NUMBER;
    }
};
