// Bitwise and, or or exclusive or of each column.

#pragma once

#include "bit_folds.cuh"
#include "column_tally.cuh"

// Elements shorter than a word fold side by side in it.
template <class T, bool EXCLUSIVE>
struct ShortBitFolds {
    using Fold = BitFoldOf<T, EXCLUSIVE>;
    using Bits = typename Fold::Bits;
    static constexpr u32 CHUNK = 1 << 16;
    static constexpr int WIDTH = 8 * sizeof(Bits);
    static constexpr int EACH = 32 / WIDTH;

    const u32 flip;
    BitFoldOf<u32, EXCLUSIVE> words[4];

    __device__ __forceinline__ ShortBitFolds(const typename Fold::Asked &asked) : flip(asked.flip != 0 ? ~0u : 0) {}

    __device__ __forceinline__ void take(const uint4 (&v)[BATCH])
    {
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k) {
            words[0].fold(normal<T>(v[k].x) ^ flip);
            words[1].fold(normal<T>(v[k].y) ^ flip);
            words[2].fold(normal<T>(v[k].z) ^ flip);
            words[3].fold(normal<T>(v[k].w) ^ flip);
        }
    }
    __device__ __forceinline__ void close() {}

    __device__ __forceinline__ void hand_over(Fold &fold, int i) const { fold.bits = Bits(words[i / EACH].bits >> (WIDTH * (i % EACH))); }
};

template <class T, bool EXCLUSIVE>
struct ShortTaker<BitFoldOf<T, EXCLUSIVE>> {
    using Taker = ShortBitFolds<T, EXCLUSIVE>;
};
