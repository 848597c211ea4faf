// The smallest and the largest element that is not NaN and where they are first, the number of NaNs and where the first one is.
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "extremes.cuh"
#include "kernel.cuh"
#include "ticket.cuh"

constexpr u64 NOWHERE = ~0ull;

// The extremes cost what they cost without positions: a thread only remembers which of its tiles brought them, and looks into
// those in the end. Its tiles ascend, and so do its elements of each.
template <class T>
struct ArgExtrema {
    using Item = T;
    using Bits = typename Element<T>::Bits;

    Extremes<T> found;
    u32 nans = 0;
    // How many tiles it took, and the numbers, from 1 on, of those with the first smallest, the first largest and the first NaN.
    u32 tiles = 0;
    u32 least_in = 0;
    u32 greatest_in = 0;
    u32 nan_in = 0;

    // The array's ends come later, with their positions.
    __device__ __forceinline__ void one(Bits) {}

    template <bool FULL>
    __device__ __forceinline__ void tile(const uint4 (&v)[VECTORS], const uint4 *, u32 valid)
    {
        ++tiles;
        Extremes<T> here;
        const u32 wrong = here.template take<FULL>(v, valid);
        if (wrong > 0 && nans == 0)
            nan_in = tiles;
        nans += wrong;
        // Integers may all be the greatest, of which the first tile says nothing new; no number is a NaN's key.
        if (here.smallest < found.smallest || (!Element<T>::FLOAT && tiles == 1)) {
            found.smallest = here.smallest;
            least_in = tiles;
        }
        if (here.largest > found.largest || (!Element<T>::FLOAT && tiles == 1)) {
            found.largest = here.largest;
            greatest_in = tiles;
        }
    }
};

// NaNs and the first one's position; the smallest and the largest key, each with its first position.
template <class T>
struct Places {
    using Word = typename OrderOf<T>::Long;
    using Key = typename Element<T>::Key;
    static constexpr int WORDS = 6;
    u64 word[WORDS] = {0, NOWHERE, u64(Word(Element<T>::GREATEST)), NOWHERE, u64(Word(Element<T>::LEAST)), NOWHERE};

    __device__ __forceinline__ void lower(u64 key, u64 at)
    {
        if (Word(key) < Word(word[2]) || (key == word[2] && at < word[3])) {
            word[2] = key;
            word[3] = at;
        }
    }

    __device__ __forceinline__ void raise(u64 key, u64 at)
    {
        if (Word(key) > Word(word[4]) || (key == word[4] && at < word[5])) {
            word[4] = key;
            word[5] = at;
        }
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
    const uint4 *at = part.at + u64(number - 1) * part.step;
    const u32 valid = number <= part.tiles ? VECTORS : part.valid;
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
template <class Word>
__device__ __forceinline__ Word warp_min(Word word)
{
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        word = min(word, __shfl_xor_sync(ALL_LANES, word, distance));
    return word;
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
    walk(data, n, pass);
    const Part part = part_of<T>(data, n);
    const Bits *items = static_cast<const Bits *>(data);

    Places<T> places;
    places.word[0] = pass.nans;
    if constexpr (Format::FLOAT) {
        if (pass.nans > 0)
            places.word[1] = first_in_tile<T>(items, part, pass.nan_in, [](Bits bits) { return Element<T>::is_nan(bits); });
    }
    // Of a warp's threads only those search that have its extremes.
    const Word smallest = pass.found.smallest, largest = pass.found.largest;
    if (warp_min(smallest) == smallest && pass.least_in > 0) {
        const auto is = [&](Bits bits) { return Format::key(bits) == pass.found.smallest; };
        places.lower(u64(smallest), first_in_tile<T>(items, part, pass.least_in, is));
    }
    // Upside down, the largest is the smallest.
    if (warp_min(Word(~largest)) == Word(~largest) && pass.greatest_in > 0) {
        const auto is = [&](Bits bits) { return Format::key(bits) == pass.found.largest; };
        places.raise(u64(largest), first_in_tile<T>(items, part, pass.greatest_in, is));
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

EARLY_KERNEL(arg_extrema)(const void *data, const void *, u64 n, u64 start, u64 *scratch, u64 *out)
{
    arg_extrema<ELEMENT>(data, n, start, scratch, out);
}
