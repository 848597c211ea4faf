// Bytes at any address, read as the aligned vectors that have them. Memory is read once: what two neighbours share comes from the cache.

#pragma once

#include "element.cuh"

template <int BYTES>
struct PackOf;
template <>
struct PackOf<4> {
    using Type = u32;
};
template <>
struct PackOf<8> {
    using Type = uint2;
};
template <>
struct PackOf<16> {
    using Type = uint4;
};

// BYTES bytes at any address, from the two aligned vectors that have them.
template <class Pack>
__device__ __forceinline__ Pack across(const Pack &low, const Pack &high, u32 off)
{
    constexpr int WORDS = sizeof(Pack) / 4;
    u32 word[2 * WORDS];
    memcpy(word, &low, sizeof(Pack));
    memcpy(word + WORDS, &high, sizeof(Pack));
    // By whole words, then by bytes.
#pragma unroll
    for (int by = WORDS / 2; by > 0; by /= 2) {
        const bool moves = (off & 4 * by) != 0;
#pragma unroll
        for (int w = 0; w < 2 * WORDS - by; ++w)
            word[w] = moves ? word[w + by] : word[w];
    }
#pragma unroll
    for (int w = 0; w < WORDS; ++w)
        word[w] = __funnelshift_r(word[w], word[w + 1], 8 * (off % 4));
    Pack pack;
    memcpy(&pack, word, sizeof(pack));
    return pack;
}
