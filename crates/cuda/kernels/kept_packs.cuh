// What threads have of packs, in shared memory: only the ends of chunks ask for it, and loads that are under way for the registers.

#pragma once

#include "rounded.cuh"
#include "units.cuh"

// Of an accumulator of one output, of PACK of them for each thread: its sums, and what its last word has.
template <class One, u32 PACK, u32 THREADS>
struct KeptPacks {
    static constexpr u32 SUMS = One::SUMS;
    using Item = typename One::Item;
    f64 sums[PACK][SUMS][THREADS];
    u32 missing[PACK][THREADS];
    alignas(4) u8 trouble[THREADS][PACK];

    __device__ __forceinline__ One of(u32 i, u32 thread) const
    {
        u64 words[One::WORDS];
#pragma unroll
        for (u32 w = 0; w < SUMS; ++w)
            words[w] = bits_of(sums[i][w][thread]);
        words[SUMS] = u64(missing[i][thread]) << 32 | trouble[thread][i];
        return One::of_words(words);
    }
    __device__ __forceinline__ void set_sums(u32 i, u32 thread, const One &total)
    {
#pragma unroll
        for (u32 w = 0; w < SUMS; ++w)
            sums[i][w][thread] = of_bits(total.word(w));
    }
    // Others may set what the thread has of other outputs.
    __device__ __forceinline__ void set(u32 i, u32 thread, const One &total)
    {
        set_sums(i, thread, total);
        missing[i][thread] = total.missing;
        trouble[thread][i] = u8(total.trouble);
    }
    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (u32 i = 0; i < PACK; ++i)
            set(i, threadIdx.x, One());
    }

    template <class Chunk>
    __device__ __forceinline__ void include(const Chunk &chunk)
    {
#pragma unroll
        for (u32 i = 0; i < PACK; ++i) {
            One total = of(i, threadIdx.x);
            total.include(chunk.plain(i));
            set_sums(i, threadIdx.x, total);
        }
        if (!chunk.has_notes())
            return;
#pragma unroll
        for (u32 i = 0; i < PACK; ++i) {
            missing[i][threadIdx.x] += chunk.missing(i);
            trouble[threadIdx.x][i] |= chunk.trouble(i);
        }
    }

    // Takes some elements of every output that are far apart.
    template <int N, class Asked>
    __device__ __forceinline__ void include_apart(const uint4 (&packs)[N], const Asked &asked)
    {
        // So many side by side as there are registers for.
        constexpr u32 SOME = SUMS > 4 ? 2 : 4;
#pragma unroll
        for (u32 from = 0; from < PACK; from += SOME) {
            One some[SOME];
#pragma unroll
            for (u32 i = 0; i < SOME; ++i)
                some[i] = of(from + i, threadIdx.x);
#pragma unroll
            for (int k = 0; k < N; ++k) {
#pragma unroll
                for (u32 i = 0; i < SOME; ++i)
                    some[i].include(f64(Element<Item>::value(asked.of(item<Item>(packs[k], from + i)))));
            }
#pragma unroll
            for (u32 i = 0; i < SOME; ++i)
                set_sums(from + i, threadIdx.x, some[i]);
        }
    }
};
