// The smallest and the largest element that is not NaN and where they are first, the number of NaNs and where the first one is.

#pragma once

#include "extremes.cuh"
#include "ticket.cuh"

constexpr u64 NOWHERE = ~0ull;

// What says whether elements of these keys are equal, and which is less: keys do, but -0 comes right below +0, which it equals.
template <class T, class Key>
__device__ __forceinline__ Key numeric(Key key)
{
    if constexpr (Element<T>::FLOAT)
        return Key(key - (key >> (8 * sizeof(Key) - 1)));
    else
        return key;
}

// The extremes cost what they cost without positions: a thread only remembers which of its tiles brought them, and looks into
// those in the end. Its tiles ascend, and so do its elements of each.
template <class T>
struct ArgExtrema {
    using Item = T;
    using Bits = typename Element<T>::Bits;

    Extremes<T> found;
    u32 nans = 0;
    // The numbers, from 1 on, of the tiles with the first smallest, the first largest and the first NaN.
    u32 least_in = 0;
    u32 greatest_in = 0;
    u32 nan_in = 0;

    // The array's ends come later, with their positions.
    __device__ __forceinline__ void one(Bits) {}

    template <bool FULL>
    __device__ __forceinline__ void tile(const uint4 (&v)[VECTORS], u32 number, u32 valid)
    {
        Extremes<T> here;
        const u32 wrong = here.template take<FULL>(v, valid);
        if (wrong > 0 && nans == 0)
            nan_in = number + 1;
        nans += wrong;
        // Integers may all be the greatest, of which the first tile says nothing new; no number is a NaN's key.
        if (numeric<T>(here.smallest) < numeric<T>(found.smallest) || (!Element<T>::FLOAT && least_in == 0))
            least_in = number + 1;
        if (numeric<T>(here.largest) > numeric<T>(found.largest) || (!Element<T>::FLOAT && greatest_in == 0))
            greatest_in = number + 1;
        found.take(here.smallest, here.largest);
    }
};

// NaNs and the first one's position; the smallest and the largest key, each with the first position of what equals it.
template <class T>
struct Places {
    using Word = typename OrderOf<T>::Long;
    using Key = typename Element<T>::Key;
    static constexpr int WORDS = 6;
    u64 word[WORDS] = {0, NOWHERE, u64(Word(Element<T>::GREATEST)), NOWHERE, u64(Word(Element<T>::LEAST)), NOWHERE};

    __device__ __forceinline__ void lower(u64 key, u64 at)
    {
        const Word mine = numeric<T>(Word(word[2])), other = numeric<T>(Word(key));
        word[3] = other < mine ? at : other == mine ? min(word[3], at) : word[3];
        word[2] = u64(min(Word(word[2]), Word(key)));
    }

    __device__ __forceinline__ void raise(u64 key, u64 at)
    {
        const Word mine = numeric<T>(Word(word[4])), other = numeric<T>(Word(key));
        word[5] = other > mine ? at : other == mine ? min(word[5], at) : word[5];
        word[4] = u64(max(Word(word[4]), Word(key)));
    }

    __device__ __forceinline__ void merge(const Places &other)
    {
        word[0] += other.word[0];
        word[1] = min(word[1], other.word[1]);
        lower(other.word[2], other.word[3]);
        raise(other.word[4], other.word[5]);
    }

    __device__ __forceinline__ void one(typename Element<T>::Bits bits, u64 at)
    {
        if constexpr (Element<T>::FLOAT) {
            if (Element<T>::is_nan(bits)) {
                word[0] += 1;
                word[1] = min(word[1], at);
                return;
            }
        }
        const u64 key = u64(Word(Element<T>::key(bits)));
        lower(key, at);
        raise(key, at);
    }
};

// The index of the first of this thread's elements of its tile of that number for which `is` holds, in an array at items.
template <class T, class Is>
__device__ __forceinline__ u64 first_in_tile(const typename Element<T>::Bits *items, const Part &part, u32 number, Is is)
{
    using Bits = typename Element<T>::Bits;
    const uint4 *at = part.tile(number - 1);
    const u32 valid = part.rest && number > part.last() ? part.valid : VECTORS;
    uint4 v[VECTORS];
    load(v, at, valid);
    u64 found = NOWHERE;
#pragma unroll
    for (int k = VECTORS - 1; k >= 0; --k) {
        if (k < valid) {
            int last = ITEMS<T>;
#pragma unroll
            for (int i = ITEMS<T> - 1; i >= 0; --i)
                last = is(item<T>(v[k], i)) ? i : last;
            if (last < ITEMS<T>)
                found = reinterpret_cast<const Bits *>(at + 32 * k) - items + last;
        }
    }
    return found;
}

// The smallest word of the warp's lanes.
#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ u32 warp_min(u32 word) { return __reduce_min_sync(ALL_LANES, word); }
__device__ __forceinline__ i32 warp_min(i32 word) { return __reduce_min_sync(ALL_LANES, word); }
#endif
template <class Word>
__device__ __forceinline__ Word warp_min(Word word)
{
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        word = min(word, __shfl_xor_sync(ALL_LANES, word, distance));
    return word;
}

// Keys of up to 32 bits, and others, in a word that keeps their order.
template <class T, bool LONG = sizeof(typename Element<T>::Bits) == 8>
struct RankOf {
    using Word = typename OrderOf<T>::Short;
};
template <class T>
struct RankOf<T, true> {
    using Word = typename OrderOf<T>::Long;
};

// What a thread looks for: a key, and the number, from 1 on, of the tile where it came first; 0 if it did not.
template <class Word>
struct Sought {
    Word key;
    u32 in;
};

// The smallest key, and the first tile that has it; a key that came nowhere is no smaller than others.
template <class Word>
__device__ __forceinline__ Sought<Word> first_of_warp(const Sought<Word> &mine)
{
    const Word key = warp_min(mine.key);
    // Nowhere comes last.
    return {key, warp_min(mine.key == key ? mine.in - 1 : ~0u) + 1};
}

// Of what all threads seek, whether this thread's is first: the lanes of one warp whose tiles, the same one, have the smallest key
// of the block. Others need not search. A warp's vectors of a tile are ahead of the next warp's.
template <class Word, int N>
__device__ __forceinline__ void keep_first_of_block(const Sought<Word> (&mine)[N], bool (&is_first)[N])
{
    __shared__ Sought<Word> of_warp[N][32];
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < N; ++i) {
        const Sought<Word> first = first_of_warp(mine[i]);
        if (lane == 0)
            of_warp[i][warp] = first;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; ++i) {
        const Sought<Word> its = of_warp[i][lane < blockDim.x / 32 ? lane : 0];
        const Sought<Word> first = first_of_warp(its);
        const u32 who = __ffs(__ballot_sync(ALL_LANES, its.key == first.key && its.in == first.in)) - 1;
        is_first[i] = who == warp && first.in > 0 && mine[i].key == first.key && mine[i].in == first.in;
    }
}

// Leaves the payload of core's state in `out`: elements, NaNs, smallest and largest key, the positions of the first NaN, of the
// smallest and of the largest, and the positions seen: one range, or none of no elements.
template <class T>
__device__ __forceinline__ void arg_extrema(const void *data, u64 n, u64 start, u64 *scratch, u64 *out)
{
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Word = typename OrderOf<T>::Long;
    ArgExtrema<T> pass;
    walk(data, n, scratch, pass);
    const Part part = part_of<T, true>(data, n);
    const Bits *items = static_cast<const Bits *>(data);

    Places<T> places;
    places.word[0] = pass.nans;
    // Upside down, the largest is the smallest.
    using Rank = typename RankOf<T>::Word;
    const auto least = numeric<T>(pass.found.smallest), greatest = numeric<T>(pass.found.largest);
    const Sought<Rank> sought[3] = {{least, pass.least_in}, {Rank(~Rank(greatest)), pass.greatest_in}, {0, pass.nan_in}};
    bool is_first[3];
    keep_first_of_block(sought, is_first);
    // Whoever is not first may have the other zero.
    places.lower(u64(Word(pass.found.smallest)),
        is_first[0] ? first_in_tile<T>(items, part, pass.least_in, [&](Bits bits) { return numeric<T>(Format::key(bits)) == least; }) : NOWHERE);
    places.raise(u64(Word(pass.found.largest)),
        is_first[1] ? first_in_tile<T>(items, part, pass.greatest_in, [&](Bits bits) { return numeric<T>(Format::key(bits)) == greatest; }) : NOWHERE);
    if constexpr (Format::FLOAT) {
        if (is_first[2])
            places.word[1] = first_in_tile<T>(items, part, pass.nan_in, [](Bits bits) { return Element<T>::is_nan(bits); });
    }

    // What lies outside whole vectors, as in `peel`.
    const Ends cut = ends<T>(data, n);
    if (blockIdx.x == 0 && threadIdx.x < cut.head)
        places.one(items[threadIdx.x], threadIdx.x);
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x < cut.tail)
        places.one(items[n - cut.tail + threadIdx.x], n - cut.tail + threadIdx.x);

    if (fold_grid(places, scratch)) {
        const auto position = [&](u64 at) { return at == NOWHERE ? NOWHERE : start + at; };
        const u64 *word = places.word;
        const u64 payload[10] = {n, word[0], word[2], word[4], position(word[1]), position(word[3]), position(word[5]), n != 0, start, start + n};
        for (int w = 0; w < (n != 0 ? 10 : 8); ++w)
            out[w] = payload[w];
    }
}
