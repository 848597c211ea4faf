// The smallest and the largest key of a lane's vectors, and how many NaNs they have, without a branch: random bits have NaNs in every
// warp's tile.
//
// The keys of NaNs are the outermost at both ends. What is to be smallest is moved down by as many keys as there are NaNs at the
// lower end, which wrap to the top, behind all numbers; what is to be largest is moved up by those at the upper end. The extremes of
// f64 alone have the branch.

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

// How far keys are moved, and where the numbers then end.
template <class T, bool FLOAT = Element<T>::FLOAT>
struct Moved {
    using Key = typename Element<T>::Key;
    static constexpr Key DOWN = 0, UP = 0;
};
template <class T>
struct Moved<T, true> {
    using Key = typename Element<T>::Key;
    static constexpr Key DOWN = Key(Element<T>::LEAST_NUMBER - Element<T>::LEAST);
    static constexpr Key UP = Key(Element<T>::GREATEST - Element<T>::GREATEST_NUMBER);
    static constexpr Key LAST = Key(Element<T>::GREATEST_NUMBER - DOWN);
    static constexpr Key FIRST = Key(Element<T>::LEAST_NUMBER + UP);
};

// Keys shorter than a word are compared where they lie: of two words the larger one has the larger key on top, or as large a one,
// whatever lies below. Shifts bring the others to the top.
template <class T>
struct Stacked {
    using Key = typename Element<T>::Key;
    using Word = typename OrderOf<T>::Short;
    static constexpr int WIDTH = 8 * sizeof(Key);
    static constexpr int EACH = 32 / WIDTH;
    static constexpr Word LEAST = Word(u32(Element<T>::LEAST) << (32 - WIDTH));
    static constexpr u32 DOWN = u32(Moved<T>::DOWN) << (32 - WIDTH);
    static constexpr u32 UP = u32(Moved<T>::UP) << (32 - WIDTH);

    Word smallest[EACH];
    Word largest[EACH];
    // NaNs by their place in the word.
    u32 nans = 0;

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
        if constexpr (Element<T>::FLOAT) {
            // Adding what infinities lack to 2^15 brings a carry to the upper bit of what is above them.
            constexpr u32 LACK = 0x8000 - Element<T>::INFINITE - 1;
            nans += ((word & 0x7fff7fff) + LACK * 0x00010001) >> 15 & 0x00010001;
        }
        word = keys<T>(word);
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            const u32 key = word << (e * WIDTH);
            smallest[e] = min(smallest[e], Word(key - DOWN));
            largest[e] = max(largest[e], Word(key + UP));
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

    // Takes keys that have been moved.
    __device__ __forceinline__ void take_moved(Key low, Key high)
    {
        if constexpr (Element<T>::FLOAT) {
            using By = Moved<T>;
            // Without a number they are a NaN's or nothing's.
            take(low <= By::LAST ? Key(low + By::DOWN) : Element<T>::GREATEST, high >= By::FIRST ? Key(high - By::UP) : Element<T>::LEAST);
        } else {
            take(low, high);
        }
    }

    // Returns how many NaNs there were. Words in pairs take several instructions to be moved, and NaNs are rare among random bits
    // of f64: with TWICE they are looked for once more where there are some, for which a caller needs registers to spare.
    template <bool FULL, bool TWICE = false>
    __device__ __forceinline__ u32 take(const uint4 (&v)[VECTORS], u32 valid)
    {
        u32 nans = 0;
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
                take_moved(words.top(words.smallest[e]), words.top(words.largest[e]));
            nans = (words.nans & 0xffff) + (words.nans >> 16);
        } else if constexpr (Element<T>::FLOAT && TWICE) {
            Key low = Element<T>::GREATEST, high = Element<T>::LEAST;
            each<T, FULL>(v, valid, [&](Bits bits) {
                const Key key = Element<T>::key(bits);
                low = min(low, key);
                high = max(high, key);
            });
            // Nothing at all has neither.
            if (low < Element<T>::LEAST_NUMBER || high > Element<T>::GREATEST_NUMBER) {
                low = Element<T>::GREATEST;
                high = Element<T>::LEAST;
                each<T, FULL>(v, valid, [&](Bits bits) {
                    const Key key = Element<T>::key(bits);
                    const bool nan = Element<T>::is_nan(bits);
                    nans += nan;
                    low = min(low, nan ? Element<T>::GREATEST : key);
                    high = max(high, nan ? Element<T>::LEAST : key);
                });
            }
            take(low, high);
        } else {
            Key low = Element<T>::GREATEST, high = Element<T>::LEAST;
            each<T, FULL>(v, valid, [&](Bits bits) {
                const Key key = Element<T>::key(bits);
                low = min(low, Key(Bits(key) - Bits(Moved<T>::DOWN)));
                high = max(high, Key(Bits(key) + Bits(Moved<T>::UP)));
                if constexpr (Element<T>::FLOAT)
                    nans += Element<T>::is_nan(bits);
            });
            take_moved(low, high);
        }
        return nans;
    }
};
