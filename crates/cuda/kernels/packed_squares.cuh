// Totals of squares of neighbouring floats of 16 bits, and of these, exact, by chunks of elements whose plain sums are: an accumulator for
// strided_packs.cuh. Of f32, one output a thread is as quick, and quicker where elements are far apart.

#pragma once

#include "kept_packs.cuh"
#include "pack_notes.cuh"
#include "square_total.cuh"

// Plain sums of a chunk of up to 2^LOG_CHUNK elements of every output.
template <class T, bool SPREAD>
struct PlainPacks : PackNotes<T> {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    static constexpr u32 PACK = 8;
    static constexpr int LOG_CHUNK = 5;
    using Plain = PlainSquares<T, SPREAD, LOG_CHUNK>;

    Plain some[PACK];
    // What was seen of magnitudes, two by two.
    u32 most[4] = {}, least[4] = {~0u, ~0u, ~0u, ~0u};

    __device__ __forceinline__ void see(u32 w, u32 word)
    {
        const u32 magnitudes = word & ~PackNotes<T>::SIGNS;
#if __CUDA_ARCH__ >= 900
        u32 below;
        asm("max.u16x2 %0, %0, %1;" : "+r"(most[w]) : "r"(magnitudes));
        asm("add.u16x2 %0, %1, %2;" : "=r"(below) : "r"(magnitudes), "r"(0xffffffff));
        asm("min.u16x2 %0, %0, %1;" : "+r"(least[w]) : "r"(below));
#else
        const u32 low = magnitudes & 0xffff, high = magnitudes & 0xffff0000;
        most[w] = max(most[w] & 0xffff, low) | max(most[w] & 0xffff0000, high);
        least[w] = min(least[w] & 0xffff, low - 1 & 0xffff) | min(least[w] & 0xffff0000, high - 0x10000);
#endif
    }
    // Of the i-th output.
    __device__ __forceinline__ typename Plain::Seen seen(u32 i) const
    {
        const u32 down = 16 * (i % 2);
        return {Bits(most[i / 2] >> down), Bits(least[i / 2] >> down)};
    }

    template <int N, class Asked>
    __device__ __forceinline__ void add(const uint4 (&packs)[N], const Asked &)
    {
#pragma unroll
        for (int k = 0; k < N; ++k) {
            see(0, packs[k].x);
            see(1, packs[k].y);
            see(2, packs[k].z);
            see(3, packs[k].w);
        }
#pragma unroll
        for (u32 i = 0; i < PACK; ++i)
            some[i].make_room(seen(i).most);
#pragma unroll
        for (int k = 0; k < N; ++k) {
#pragma unroll
            for (u32 i = 0; i < PACK; ++i)
                some[i].add_one(f64(Format::value(item<T>(packs[k], i))));
        }
    }
    __device__ __forceinline__ const Plain &plain(u32 i) const { return some[i]; }
    __device__ __forceinline__ bool has_specials() const
    {
        bool has_specials = false;
#pragma unroll
        for (u32 i = 0; i < PACK; ++i)
            has_specials = has_specials || seen(i).most >= Format::INFINITE;
        return has_specials;
    }
    __device__ __forceinline__ bool is_exact() const
    {
        bool is_exact = true;
#pragma unroll
        for (u32 i = 0; i < PACK; ++i)
            is_exact = is_exact && seen(i).holds();
        return is_exact;
    }
};

// Totals of outputs whose elements are 16 bytes of a row.
template <class T, bool SPREAD>
struct PackedSquares : SquareTotal<T, SPREAD> {
    using Base = SquareTotal<T, SPREAD>;
    using Chunk = PlainPacks<T, SPREAD>;
    static constexpr u32 PACK = Chunk::PACK;
    // What is kept has 27 KiB then, so that a multiprocessor has room for six blocks.
    static constexpr u32 THREADS = 64;
    // Elements of an output that a thread has under way: 128 bytes of all.
    static constexpr int AT_ONCE = 8;
    using Kept = KeptPacks<Base, PACK, THREADS>;

    __device__ __forceinline__ PackedSquares() {}
    __device__ __forceinline__ PackedSquares(const Base &total) : Base(total) {}
};
