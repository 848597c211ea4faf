// What is exact without further thought, element by element: totals of integers, extremes, counts.
//
// A tally takes elements, merges with others, and writes the number that was asked for. Elements of its `fill` change nothing. WORDS
// words hold it. Tallies of several blocks meet in MET words of global memory, which are zero before the first comes, `distance` apart;
// there, 2^31 of them have room. Where MET is 0, no words take them in one by one. ANSWERS has a bit for each size of answer, in bytes.

#pragma once

#include "answer.cuh"
#include "fold.cuh"
#include "load.cuh"
#include "words.cuh"

// Another lane's bits.
template <class Bits>
__device__ __forceinline__ Bits bits_from_lane(Bits bits, u32 distance)
{
    if constexpr (sizeof(Bits) == 8)
        return __shfl_xor_sync(ALL_LANES, bits, distance);
    else
        return Bits(__shfl_xor_sync(ALL_LANES, u32(bits), distance));
}

// The total of integers, in 128 bits where elements have 64.
template <class T>
struct TotalOf {
    using Bits = typename Element<T>::Bits;
    static constexpr bool SIGNED = T(-1) < T(0);
    static constexpr bool LONG = sizeof(T) == 8;

    u64 low = 0;
    i64 high = 0;

    struct Asked {
        u32 ask;
        bool absolute;
        u64 n;
        u32 *overflow;
        static __device__ __forceinline__ u64 fill() { return 0; }
    };

    __device__ __forceinline__ void take(Bits bits, const Asked &asked)
    {
        const T x = T(Element<T>::key(bits));
        const bool negate = SIGNED && asked.absolute && x < T(0);
        if constexpr (LONG) {
            const u64 term = negate ? -u64(x) : u64(x);
            low += term;
            high += (low < term) + (SIGNED && !negate && x < T(0) ? -1 : 0);
        } else {
            low += u64(negate ? -i64(x) : i64(x));
        }
    }

    __device__ __forceinline__ void merge(const TotalOf &other)
    {
        low += other.low;
        if constexpr (LONG)
            high += other.high + (low < other.low);
    }

    __device__ __forceinline__ TotalOf from_lane(u32 distance) const
    {
        TotalOf other;
        other.low = __shfl_xor_sync(ALL_LANES, low, distance);
        if constexpr (LONG)
            other.high = __shfl_xor_sync(ALL_LANES, high, distance);
        return other;
    }

    static constexpr int WORDS = LONG ? 2 : 1;
    __device__ __forceinline__ u64 word(int w) const { return w == 0 ? low : u64(high); }
    static __device__ __forceinline__ TotalOf of_words(const u64 *words)
    {
        TotalOf total;
        total.low = words[0];
        if constexpr (LONG)
            total.high = i64(words[1]);
        return total;
    }

    // Words that weigh 1, 2^32 and 2^64.
    static constexpr int MET = LONG ? 3 : 2;
    __device__ __forceinline__ void meet(u64 *words, u32 distance) const
    {
        atomicAdd(&words[0], low & 0xffffffff);
        atomicAdd(&words[distance], LONG ? low >> 32 : u64(i64(low) >> 32));
        if constexpr (LONG)
            atomicAdd(&words[2 * distance], u64(high));
    }
    static __device__ __forceinline__ void write_met(const u64 (&words)[MET], void *out, u64 place, const Asked &asked)
    {
        TotalOf total;
        total.low = words[0] + (words[1] << 32);
        if constexpr (LONG)
            total.high = i64(words[2] + (words[1] >> 32) + (total.low < words[0]));
        total.write(out, place, asked);
    }

    static constexpr u32 ANSWERS = 8;
    __device__ __forceinline__ void write(void *out, u64 place, const Asked &asked) const
    {
        const i64 sign = SIGNED && i64(low) < 0 ? -1 : 0;
        const i64 upper = LONG ? high : sign;
        if (asked.ask == MEAN) {
            static_cast<u64 *>(out)[place] = Truncated::of_integer(upper, low, 0).divide(asked.n).template round<f64>();
            return;
        }
        if (LONG && upper != sign)
            atomicOr(asked.overflow, 1u);
        static_cast<u64 *>(out)[place] = low;
    }
};

// The smallest or the largest element, or the largest magnitude, by ranks: unsigned integers of which the smallest wins, NaNs first of all,
// or last where they are omitted. Kernels for integers without a sign serve those with one: the host says which they are behind the first
// byte of what is asked.
template <class T>
struct ExtremeOf {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    static constexpr int WIDTH = 8 * sizeof(Bits);
    static constexpr Bits UPPER = Bits(Bits(1) << (WIDTH - 1));

    // Repeats an element in the places of a word.
    static constexpr u32 EVERY = WIDTH == 8 ? 0x01010101 : WIDTH == 16 ? 0x00010001 : 1;

    Bits rank = Bits(~Bits(0));

    struct Asked {
        u32 ask;
        Bits flip;      // what elements differ from ranks by: all bits if the largest is asked for, but the sign of integers
        Bits signs = 0; // for magnitudes, the bit of floats that is left out, or 1 if integers have signs
        bool omits;
        u32 *overflow; // set where nothing is left of an output
        __device__ __forceinline__ Asked(u32 asked, bool omits = false, u32 *overflow = nullptr)
            : ask(asked & 0xff), flip(ask == LEAST ? Bits(0) : Bits(~Bits(0))), omits(omits), overflow(overflow)
        {
            const bool is_signed = asked >> 8 != 0;
            if (ask == MAGNITUDE)
                signs = Format::FLOAT ? UPPER : Bits(is_signed);
            else if (is_signed)
                flip ^= UPPER;
        }
        // How far ranks are moved, so that the NaNs of both signs are at one end.
        __device__ __forceinline__ Bits move() const { return omits ? Bits(-nans()) : nans(); }
        // Elements that change nothing: of the last rank, and of magnitudes those of 0.
        __device__ __forceinline__ u64 fill() const
        {
            u64 bits = ask == MAGNITUDE ? Bits(0) : unranked(Bits(~Bits(0)), *this);
#pragma unroll
            for (int width = WIDTH; width < 64; width *= 2)
                bits |= bits << width;
            return bits;
        }
    };

    // How many NaNs there are of each sign.
    static __device__ constexpr Bits nans()
    {
        if constexpr (Format::FLOAT)
            return Bits(Bits(UPPER - 1) - Format::INFINITE);
        else
            return 0;
    }

    static __device__ __forceinline__ Bits rank_of(Bits bits, const Asked &asked)
    {
        if constexpr (Format::FLOAT) {
            // As unsigned integers, the NaNs of either sign lie at the two ends. Moved by as many as lie at the upper one, these come
            // first, then the others, then the numbers; moved the other way, numbers come first.
            bits &= Bits(~asked.signs);
            const Bits signs = Bits(typename Format::Key(bits) >> (WIDTH - 1));
            return Bits(Bits(bits ^ Bits(signs | UPPER) ^ asked.flip) + asked.move());
        } else if constexpr (T(2) == T(1)) {
            return Bits((bits != 0 ? Bits(~Bits(0)) : Bits(0)) ^ asked.flip);
        } else {
            if (asked.signs != 0 && (bits & UPPER) != 0)
                bits = Bits(-bits);
            return Bits(bits ^ asked.flip);
        }
    }

    // The ranks of a word of shorter elements in their places, but for the step that moves those of NaNs to the lower end.
    static __device__ __forceinline__ u32 ranks(u32 word, const Asked &asked)
    {
        const u32 flip = EVERY * asked.flip, signs = EVERY * asked.signs;
        if constexpr (Format::FLOAT) {
            word &= ~signs;
            return word ^ ((word >> 15 & EVERY) * 0xffff | EVERY * UPPER) ^ flip;
        } else if constexpr (T(2) == T(1)) {
            return normal<T>(word) * 0xff ^ flip;
        } else {
            // The complements of negative elements have their upper bit free: adding 1 carries into no neighbour.
            const u32 negative = word >> (WIDTH - 1 & 31) & signs;
            return (word ^ negative * Bits(~Bits(0))) + negative ^ flip;
        }
    }

    // Whether a rank is a NaN's.
    static __device__ __forceinline__ bool is_of_nan(Bits rank, const Asked &asked)
    {
        return Format::FLOAT && Bits(rank - asked.move() + nans()) < Bits(2 * nans());
    }

    static __device__ __forceinline__ Bits bits_of(Bits rank, const Asked &asked)
    {
        if constexpr (Format::FLOAT) {
            if (is_of_nan(rank, asked)) {
                // The largest magnitude of nothing is 0.
                if (asked.omits && asked.ask == MAGNITUDE)
                    return 0;
                if (asked.omits)
                    atomicOr(asked.overflow, 1u);
                return NOT_A_NUMBER<T>;
            }
        }
        return unranked(rank, asked);
    }

    // Of which element it is the rank.
    static __device__ __forceinline__ Bits unranked(Bits rank, const Asked &asked)
    {
        if constexpr (Format::FLOAT) {
            const Bits ordered = Bits(Bits(rank - asked.move()) ^ asked.flip);
            return Bits((ordered & UPPER) != 0 ? ordered ^ UPPER : ~ordered);
        } else if constexpr (T(2) == T(1)) {
            return Bits(Bits(rank ^ asked.flip) & 1);
        } else {
            return Bits(rank ^ asked.flip);
        }
    }

    __device__ __forceinline__ void take(Bits bits, const Asked &asked)
    {
        const Bits other = rank_of(bits, asked);
        rank = other < rank ? other : rank;
    }

    // Takes a vector of elements shorter than a word: of two words the one with the smaller rank on top is smaller, or has as small a one,
    // whatever lies below.
    __device__ __forceinline__ void take(const uint4 &v, const Asked &asked)
    {
        u32 least = u32(rank) << (32 - WIDTH);
        const u32 words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            const u32 its = ranks(words[w], asked);
#pragma unroll
            for (int up = 32 - WIDTH; up >= 0; up -= WIDTH)
                least = min(least, (its << up) + (Format::FLOAT ? u32(asked.move()) << (32 - WIDTH) : 0));
        }
        rank = Bits(least >> (32 - WIDTH));
    }

    __device__ __forceinline__ void merge(const ExtremeOf &other) { rank = other.rank < rank ? other.rank : rank; }

    __device__ __forceinline__ ExtremeOf from_lane(u32 distance) const
    {
        ExtremeOf other;
        other.rank = bits_from_lane(rank, distance);
        return other;
    }

    static constexpr int WORDS = 1;
    __device__ __forceinline__ u64 word(int) const { return rank; }
    static __device__ __forceinline__ ExtremeOf of_words(const u64 *words)
    {
        ExtremeOf extreme;
        extreme.rank = Bits(words[0]);
        return extreme;
    }

    static constexpr int MET = 1;
    __device__ __forceinline__ void meet(u64 *words, u32) const { atomicMax(&words[0], u64(Bits(~rank))); }
    static __device__ __forceinline__ void write_met(const u64 (&words)[MET], void *out, u64 place, const Asked &asked)
    {
        write(Bits(~words[0]), out, place, asked);
    }

    // Magnitudes of integers have 64 bits.
    static constexpr u32 ANSWERS = sizeof(Bits) | (Format::FLOAT ? 0 : 8);
    static __device__ __forceinline__ void write(Bits rank, void *out, u64 place, const Asked &asked)
    {
        const Bits bits = bits_of(rank, asked);
        if (!Format::FLOAT && asked.ask == MAGNITUDE)
            static_cast<u64 *>(out)[place] = bits;
        else
            static_cast<Bits *>(out)[place] = bits;
    }
    __device__ __forceinline__ void write(void *out, u64 place, const Asked &asked) const { write(rank, out, place, asked); }
};

// Takes the elements of a vector.
template <class T, class Tally>
__device__ __forceinline__ void take_vector(Tally &tally, const uint4 &v, const typename Tally::Asked &asked)
{
#pragma unroll
    for (int i = 0; i < ITEMS<T>; ++i)
        tally.take(item<T>(v, i), asked);
}
template <class T>
__device__ __forceinline__ void take_vector(ExtremeOf<T> &extreme, const uint4 &v, const typename ExtremeOf<T>::Asked &asked)
{
    if constexpr (ExtremeOf<T>::WIDTH < 32) {
        extreme.take(v, asked);
    } else {
#pragma unroll
        for (int i = 0; i < ITEMS<T>; ++i)
            extreme.take(item<T>(v, i), asked);
    }
}

// How many elements are not zero, or NaN, or not NaN.
template <class T>
struct CountOf {
    using Format = Element<T>;
    using Bits = typename Format::Bits;

    u32 count = 0;

    struct Asked {
        u32 ask;
        u64 n;
        static __device__ __forceinline__ u64 fill() { return 0; }
    };

    __device__ __forceinline__ void take(Bits bits, const Asked &asked)
    {
        if constexpr (Format::FLOAT) {
            const Bits magnitude = Format::magnitude(bits);
            count += magnitude > (asked.ask == NANS || asked.ask == NUMBERS ? Format::INFINITE : Bits(0));
        } else {
            count += bits != 0;
        }
    }

    __device__ __forceinline__ void merge(const CountOf &other) { count += other.count; }

    __device__ __forceinline__ CountOf from_lane(u32 distance) const
    {
        CountOf other;
        other.count = __shfl_xor_sync(ALL_LANES, count, distance);
        return other;
    }

    static constexpr int WORDS = 1;
    __device__ __forceinline__ u64 word(int) const { return count; }
    static __device__ __forceinline__ CountOf of_words(const u64 *words)
    {
        CountOf counts;
        counts.count = u32(words[0]);
        return counts;
    }

    static constexpr int MET = 1;
    __device__ __forceinline__ void meet(u64 *words, u32) const { atomicAdd(&words[0], u64(count)); }
    static __device__ __forceinline__ void write_met(const u64 (&words)[MET], void *out, u64 place, const Asked &asked)
    {
        write(out, place, words[0], asked);
    }

    static __device__ __forceinline__ void write(void *out, u64 place, u64 count, const Asked &asked)
    {
        switch (asked.ask) {
        case COUNT: static_cast<u64 *>(out)[place] = asked.n; return;
        case NANS: static_cast<u64 *>(out)[place] = Format::FLOAT ? count : 0; return;
        case NUMBERS: static_cast<u64 *>(out)[place] = Format::FLOAT ? asked.n - count : asked.n; return;
        case ANY: static_cast<u8 *>(out)[place] = count != 0; return;
        case ALL: static_cast<u8 *>(out)[place] = count == asked.n; return;
        default: static_cast<u64 *>(out)[place] = count;
        }
    }
    // Truth values have a byte.
    static constexpr u32 ANSWERS = 8 | 1;
    __device__ __forceinline__ void write(void *out, u64 place, const Asked &asked) const { write(out, place, count, asked); }
};
