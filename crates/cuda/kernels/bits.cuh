// Bitwise and, or, exclusive or of integers; of truth values, the logical ones.

#pragma once

#include "load.cuh"
#include "ticket.cuh"
#include "words.cuh"

// And, or, exclusive or.
struct Folds {
    static constexpr int WORDS = 3;
    u64 word[WORDS] = {~0ull, 0, 0};

    __device__ __forceinline__ void take(u64 bits) { merge({{bits, bits, bits}}); }
    __device__ __forceinline__ void merge(const Folds &other)
    {
        word[0] &= other.word[0];
        word[1] |= other.word[1];
        word[2] ^= other.word[2];
    }
};

// The elements of 64 bits of the array, side by side.
template <class T>
struct Bitwise {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    static constexpr int WIDTH = 8 * sizeof(Bits);

    Folds lanes;

    __device__ __forceinline__ void one(Bits bits)
    {
        const u64 x = normal<T>(u32(bits));
        const u64 wide = WIDTH == 64 ? u64(bits) : x;
        // The places that no element is in stay as they are.
        const u64 others = WIDTH == 64 ? 0 : ~0ull << (WIDTH & 63);
        lanes.merge({{wide | others, wide, wide}});
    }

    template <bool FULL>
    __device__ __forceinline__ void tile(const uint4 (&v)[VECTORS], u32, u32 valid)
    {
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            if (FULL || k < valid) {
                lanes.take(u64(normal<T>(v[k].y)) << 32 | normal<T>(v[k].x));
                lanes.take(u64(normal<T>(v[k].w)) << 32 | normal<T>(v[k].z));
            }
        }
    }

    // The elements' folds, in the lowest bits.
    __device__ __forceinline__ Folds folds() const
    {
        Folds all = lanes;
#pragma unroll
        for (int width = 32; width >= WIDTH; width /= 2)
            all.merge({{all.word[0] >> width, all.word[1] >> width, all.word[2] >> width}});
        return all;
    }
};

template <class T>
__device__ __forceinline__ void bits(const void *data, u64 n, u64 *scratch, u64 *out)
{
    constexpr bool TRUTH = T(2) == T(1);
    constexpr u64 MASK = TRUTH ? 1 : ~0ull >> (64 - Bitwise<T>::WIDTH);
    Bitwise<T> pass;
    walk(data, n, scratch, pass);
    Folds all = pass.folds();
    if (fold_grid(all, scratch)) {
        for (int w = 0; w < 3; ++w)
            out[w] = all.word[w] & MASK;
    }
}
