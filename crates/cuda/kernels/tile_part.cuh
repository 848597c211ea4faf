// What a thread has of a segment, for the walk of segment_tiles.cuh: a word or two that know whether they are sure.
//
//     Item, Bits, Asked             elements, and what is asked of all segments
//     Run                           what a thread notes of all elements of a tile that it takes, whosesoever they are
//     see(vector, run)              notes the elements of a vector; take(bits, asked) takes one
//     hold(run)                     whether any of what the threads of the warp have taken may be put together by `plus`; all of them ask
//     sure(run, asked, n, item)     if not: whether what this thread has taken is exact: the n elements item(0), ...
//     plus(other)                   puts together what is known to hold
//     merge(other)                  whether what both have together is exact
//     WORDS, word, of_words         as in tally.cuh
//     write(out, place, asked)      leaves the answer, unless it is not sure of it

#pragma once

#include "quick_sum.cuh"
#include "tally.cuh"

// The largest and the smallest of the warp's words.
__device__ __forceinline__ u32 warp_max(u32 word)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(ALL_LANES, word);
#else
#pragma unroll
    for (u32 d = 16; d > 0; d /= 2)
        word = max(word, __shfl_xor_sync(ALL_LANES, word, d));
    return word;
#endif
}
__device__ __forceinline__ u32 warp_min(u32 word) { return ~warp_max(~word); }

// Sums and means of floats shorter than f64: an f64 that nothing was rounded off.
//
// The elements of a tile add up plainly where their range makes that exact. Where it does not, those of a thread may, and what threads have is
// merged by additions that tell what they round off. Infinities and NaNs are left out of that range: they make a sum one of themselves,
// whatever the others are.
template <class T>
struct TileSum {
    using Item = T;
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Asked = typename FloatTotal<T>::Asked;
    // Those of a thread, and of a tile: TileShape.
    using Run = Spread<T, sizeof(Bits) == 4 ? 4 : 5>;
    using Tile = Spread<T, sizeof(Bits) == 4 ? 9 : 10>;

    f64 sum = 0.0;

    static __device__ __forceinline__ void see(const uint4 &vector, Run &run)
    {
        const u32 words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            if constexpr (sizeof(Bits) == 2)
                run.see_pair(words[w]);
            else
                run.see(__uint_as_float(words[w]));
        }
    }
    __device__ __forceinline__ void take(Bits bits, const Asked &asked) { sum = __dadd_rn(sum, f64(Format::value(asked.of(bits)))); }

    static __device__ __forceinline__ bool hold(Run &run)
    {
        if constexpr (!Run::ASKED)
            return true;
        if constexpr (sizeof(Bits) == 2)
            run.settle();
        Tile all;
        all.most = warp_max(run.most);
        all.least = warp_min(run.least);
        return all.holds();
    }

    template <class Item>
    static __device__ __forceinline__ bool sure(const Run &run, const Asked &asked, u32 n, Item item)
    {
        if (run.holds())
            return true;
        Run finite;
#pragma unroll 1
        for (u32 e = 0; e < n; ++e) {
            const Bits bits = item(e);
            if (Format::is_finite(bits))
                finite.see(Format::value(asked.of(bits)));
        }
        return finite.holds();
    }

    __device__ __forceinline__ void plus(const TileSum &other) { sum = __dadd_rn(sum, other.sum); }

    // Of what is not finite, what is rounded off is NaN.
    __device__ __forceinline__ bool merge(const TileSum &other)
    {
        const Double both = two_sum(sum, other.sum);
        sum = both.hi;
        return !(fabs(both.lo) > 0.0);
    }

    static constexpr int WORDS = 1;
    __device__ __forceinline__ u64 word(int) const { return bits_of(sum); }
    static __device__ __forceinline__ TileSum of_words(const u64 (&words)[WORDS])
    {
        TileSum all;
        all.sum = of_bits(words[0]);
        return all;
    }

    __device__ __forceinline__ bool write(void *out, u64 place, const Asked &asked) const
    {
        // Infinities and NaNs have made the sum one; a NaN becomes the canonical one.
        const Bits answer = narrow<T>(asked.ask == MEAN ? quotient(sum, asked.n) : sum);
        static_cast<Bits *>(out)[place] = sum == sum ? answer : NOT_A_NUMBER<T>;
        return true;
    }
};

// Those that note nothing of a tile.
struct NoRun {};

// Sums and means of f64: two words that are NaN once they are not exact.
template <>
struct TileSum<f64> : QuickSum<f64> {
    using Run = NoRun;

    __device__ __forceinline__ TileSum() {}
    __device__ __forceinline__ TileSum(const QuickSum<f64> &sum) : QuickSum<f64>(sum) {}

    static __device__ __forceinline__ void see(const uint4 &, Run &) {}
    __device__ __forceinline__ void take(u64 bits, const Asked &asked) { include(of_bits(asked.of(bits)), true); }
    template <class Item>
    static __device__ __forceinline__ bool sure(const Run &, const Asked &, u32, Item)
    {
        return true;
    }
    static __device__ __forceinline__ bool hold(const Run &) { return true; }
    __device__ __forceinline__ void plus(const TileSum &other) { QuickSum<f64>::merge(other); }
    __device__ __forceinline__ bool merge(const TileSum &other)
    {
        plus(other);
        return true;
    }
    static __device__ __forceinline__ TileSum of_words(const u64 (&words)[WORDS]) { return QuickSum<f64>::of_words(words); }
    __device__ __forceinline__ bool write(void *out, u64 place, const Asked &asked) const
    {
        u64 bits;
        const bool is_sure = answer(bits, asked);
        if (is_sure)
            static_cast<u64 *>(out)[place] = bits;
        return is_sure;
    }
};

// What is exact anyway.
template <class T, class Tally>
struct TileTally : Tally {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    using typename Tally::Asked;
    using Run = NoRun;

    __device__ __forceinline__ TileTally() {}
    __device__ __forceinline__ TileTally(const Tally &tally) : Tally(tally) {}

    static __device__ __forceinline__ void see(const uint4 &, Run &) {}
    __device__ __forceinline__ void take(Bits bits, const Asked &asked) { Tally::take(bits, asked); }
    template <class Item>
    static __device__ __forceinline__ bool sure(const Run &, const Asked &, u32, Item)
    {
        return true;
    }
    static __device__ __forceinline__ bool hold(const Run &) { return true; }
    __device__ __forceinline__ void plus(const TileTally &other) { Tally::merge(other); }
    __device__ __forceinline__ bool merge(const TileTally &other)
    {
        plus(other);
        return true;
    }
    __device__ __forceinline__ bool write(void *out, u64 place, const Asked &asked) const
    {
        Tally::write(out, place, asked);
        return true;
    }
};
