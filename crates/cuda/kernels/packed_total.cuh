// Totals of neighbouring floats, exact, by chunks of elements whose plain sums are exact in f64: an accumulator for strided_packs.cuh.

#pragma once

#include "float_total.cuh"
#include "kept_packs.cuh"
#include "pack_notes.cuh"

// Plain f64 sums of a chunk of up to 2^LOG_CHUNK elements of every output, which are exact if these are near each other (range.cuh). The outputs'
// adds go side by side, as each waits for the one before it.
template <class T>
struct PlainSums : PackNotes<T> {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    static constexpr u32 PACK = 16 / sizeof(Bits), PAIR = PackNotes<T>::PAIR;
    static constexpr int LOG_CHUNK = sizeof(Bits) == 2 ? 7 : 5;

    f64 sum[PACK] = {};
    Spread<T, LOG_CHUNK> spread[4];

    template <int N, class Asked>
    __device__ __forceinline__ void add(const uint4 (&packs)[N], const Asked &asked)
    {
#pragma unroll
        for (int k = 0; k < N; ++k) {
            const u32 words[4] = {packs[k].x, packs[k].y, packs[k].z, packs[k].w};
#pragma unroll
            for (u32 w = 0; w < 4; ++w) {
                if constexpr (PAIR == 2) {
                    spread[w].see_pair(words[w]);
                    const u32 pair = words[w] & (u32(asked.mask) << 16 | asked.mask);
                    sum[2 * w] = ::add(sum[2 * w], f64(Format::value(Bits(pair))));
                    sum[2 * w + 1] = ::add(sum[2 * w + 1], f64(Format::value(Bits(pair >> 16))));
                } else {
                    sum[w] = spread[w].added(sum[w], Format::value(asked.of(words[w])));
                }
            }
        }
    }
    __device__ __forceinline__ f64 plain(u32 i) const { return sum[i]; }
    __device__ __forceinline__ bool has_specials() const
    {
        bool has_specials = false;
#pragma unroll
        for (u32 i = 0; i < PACK; ++i)
            has_specials = has_specials || !is_finite(sum[i]);
        return has_specials;
    }
    __device__ __forceinline__ bool is_exact() const
    {
        bool is_exact = true;
#pragma unroll
        for (u32 i = 0; i < PACK; ++i)
            is_exact = is_exact && is_finite(sum[i]) && (PAIR == 2 ? spread[i / PAIR].pair_holds() : spread[i / PAIR].holds());
        return is_exact;
    }
};

// Totals of outputs whose elements are 16 bytes of a row.
template <class T>
struct PackedTotal : FloatTotal<T> {
    using Base = FloatTotal<T>;
    using Chunk = PlainSums<T>;
    static constexpr u32 PACK = Chunk::PACK;
    // What is kept has 37 KiB then, of the 48 KiB of shared memory that a block may declare.
    static constexpr u32 THREADS = 1024 / PACK;
    // Elements of an output that a thread has under way: 128 bytes of all.
    static constexpr int AT_ONCE = 8;
    using Kept = KeptPacks<Base, PACK, THREADS>;

    __device__ __forceinline__ PackedTotal() {}
    __device__ __forceinline__ PackedTotal(const Base &total) : Base(total) {}
};
