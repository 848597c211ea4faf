// Exact sums of products of integers, one by one.

#pragma once

#include "element.cuh"

// A sum of products of integers, in as many words as 2^64 of them need.
template <class T>
struct ProductWords {
    using Bits = typename Element<T>::Bits;
    static constexpr bool SIGNED = T(-1) < T(0);
    // Words of 64 bits: one for products of up to 32 bits, two for those of 64, three for those of 128. The top one has the sign.
    static constexpr int WORDS = sizeof(T) < 4 ? 1 : sizeof(T) == 4 ? 2 : 3;

    u64 word[WORDS] = {};

    // Adds a product: its lower 64 bits and those above, which repeat the sign of a shorter one.
    __device__ __forceinline__ void add(u64 low, u64 above)
    {
        const u64 terms[3] = {low, above, SIGNED ? u64(i64(above) >> 63) : 0};
        u64 carry = 0;
#pragma unroll
        for (int w = 0; w < WORDS; ++w) {
            const u64 sum = word[w] + terms[w];
            const u64 next = sum + carry;
            carry = (sum < terms[w]) + (next < carry);
            word[w] = next;
        }
    }

    __device__ __forceinline__ void one(Bits x, Bits y)
    {
        using Key = typename Element<T>::Key;
        const Key a = Element<T>::key(x), b = Element<T>::key(y);
        if constexpr (SIGNED && sizeof(T) == 8)
            add(u64(a) * u64(b), u64(__mul64hi(a, b)));
        else if constexpr (sizeof(T) == 8)
            add(a * b, __umul64hi(a, b));
        else if constexpr (SIGNED)
            add(u64(i64(a) * i64(b)), u64(i64(a) * i64(b) >> 63));
        else
            add(u64(a) * u64(b), 0);
    }
};
