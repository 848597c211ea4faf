// What elements of packs are that are not finite.

#pragma once

#include "element.cuh"
#include "trouble.cuh"

// Of packs of 16 bytes, of up to 2^8 - 1 rows.
template <class T>
struct PackNotes {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    // Those of 16 bits are seen two by two.
    static constexpr u32 PAIR = sizeof(Bits) == 2 ? 2 : 1;
    // Of each element of a word: how many NaNs are missing, and in the upper bits what else was not finite.
    u32 notes[4] = {};
    static_assert(HAS_NAN == 1 && HAS_POSITIVE == 2 && HAS_NEGATIVE == 4, "three bits and a byte of a note");

    // The upper bits of a word's elements, and what is added to magnitudes so that these have it set from infinity on.
    static constexpr int WIDTH = 8 * sizeof(Bits);
    static constexpr u32 EVERY = PAIR == 2 ? 0x00010001 : 1, SIGNS = EVERY << (WIDTH - 1), BEYOND = SIGNS - EVERY * Format::INFINITE;

    static __device__ __forceinline__ u32 beyond(u32 word) { return (word & ~SIGNS) + BEYOND & SIGNS; }

    // Puts 0 in the place of what is not finite, and notes what that was.
    template <int N, class Asked>
    __device__ __forceinline__ void filter(uint4 (&packs)[N], bool omits, const Asked &asked)
    {
        u32 some = 0;
#pragma unroll
        for (int k = 0; k < N; ++k)
            some |= beyond(packs[k].x) | beyond(packs[k].y) | beyond(packs[k].z) | beyond(packs[k].w);
        if (some == 0)
            return;
        const u32 omitted = omits ? SIGNS : 0, signs = EVERY * asked.mask;
#pragma unroll
        for (int k = 0; k < N; ++k) {
            u32 words[4] = {packs[k].x, packs[k].y, packs[k].z, packs[k].w};
#pragma unroll
            for (u32 w = 0; w < 4; ++w) {
                const u32 word = words[w], odd = beyond(word), nan = (word & ~SIGNS) + (BEYOND - EVERY) & SIGNS;
                const u32 infinite = odd & ~nan, negative = infinite & word & signs;
                notes[w] += (nan & omitted) >> (WIDTH - 1);
                notes[w] |= (nan & ~omitted) >> 2 | (infinite & ~negative) >> 1 | negative;
                words[w] = word & ~(odd - (odd >> (WIDTH - 1)) | odd);
            }
            packs[k] = make_uint4(words[0], words[1], words[2], words[3]);
        }
    }
    __device__ __forceinline__ bool has_notes() const { return (notes[0] | notes[1] | notes[2] | notes[3]) != 0; }
    // Of the i-th output.
    __device__ __forceinline__ u32 note(u32 i) const { return notes[i / PAIR] >> WIDTH * (i % PAIR); }
    __device__ __forceinline__ u32 missing(u32 i) const { return note(i) & 0xff; }
    __device__ __forceinline__ u8 trouble(u32 i) const { return note(i) >> (WIDTH - 3) & (HAS_NAN | HAS_POSITIVE | HAS_NEGATIVE); }
};
