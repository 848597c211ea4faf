// The smallest and the largest element that is not NaN, by their keys, and the number of NaNs.

#pragma once

#include "extremes.cuh"
#include "ticket.cuh"

template <class T>
struct Extrema {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    using Key = typename Element<T>::Key;

    Extremes<T> found;
    u64 nans = 0;

    __device__ __forceinline__ void one(Bits bits)
    {
        if constexpr (Element<T>::FLOAT) {
            if (Element<T>::is_nan(bits)) {
                ++nans;
                return;
            }
        }
        const Key key = Element<T>::key(bits);
        found.take(key, key);
    }

    template <bool FULL>
    __device__ __forceinline__ void tile(const uint4 (&v)[VECTORS], u32, u32 valid)
    {
        nans += found.template take<FULL>(v, valid);
    }
};

// NaNs, the smallest and the largest key.
template <class T>
struct Range {
    using Word = typename OrderOf<T>::Long;
    static constexpr int WORDS = 3;
    u64 word[WORDS] = {0, u64(Word(Element<T>::GREATEST)), u64(Word(Element<T>::LEAST))};

    __device__ __forceinline__ void merge(const Range &other)
    {
        word[0] += other.word[0];
        word[1] = u64(min(Word(word[1]), Word(other.word[1])));
        word[2] = u64(max(Word(word[2]), Word(other.word[2])));
    }
};

template <class T>
__device__ __forceinline__ void extrema(const void *data, u64 n, u64 *scratch, u64 *out)
{
    Extrema<T> pass;
    walk(data, n, scratch, pass);
    Range<T> range;
    using Word = typename OrderOf<T>::Long;
    range.word[0] = pass.nans;
    range.word[1] = u64(Word(pass.found.smallest));
    range.word[2] = u64(Word(pass.found.largest));
    if (fold_grid(range, scratch)) {
        out[0] = n;
        for (int w = 0; w < 3; ++w)
            out[1 + w] = range.word[w];
    }
}
