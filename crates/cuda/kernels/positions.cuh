// Where the smallest or the largest element is first, or the first NaN: ranks as extremes have them, but for one that all NaNs share and
// one that both zeros share, and positions beside them.
//
// Whoever has seen nothing below the last rank says 0. If others have, that loses; if nobody has, it is where the first of all is.
// Elements in the place of those that there are not have the last rank.

#pragma once

#include "load.cuh"
#include "tally.cuh"

template <class T>
struct PositionRank {
    using Extreme = ExtremeOf<T>;
    using Bits = typename Extreme::Bits;
    static constexpr Bits LAST = Bits(~Bits(0));
    // The last of the ranks of NaNs.
    static constexpr Bits OF_NAN = Bits(2 * Extreme::nans());

    struct Asked : Extreme::Asked {
        __device__ __forceinline__ Asked(u32 ask, bool omits = false, u32 *overflow = nullptr)
            : Extreme::Asked((ask & ~0xff) | ((ask & 0xff) == ARG_MAX ? GREATEST : LEAST), omits, overflow)
        {
        }
    };

    static __device__ __forceinline__ Bits of(Bits bits, const Asked &asked)
    {
        const Bits rank = Extreme::rank_of(bits, asked);
        if constexpr (Element<T>::FLOAT) {
            // Before those of NaNs were moved, the lower half of all ranks ended with a zero, and the upper one begins with the other:
            // one more for the lower half.
            const Bits moved = Bits(rank + (Bits(rank - asked.move()) < Extreme::UPPER));
            // Numbers do not have the last rank then.
            if (asked.omits)
                return Extreme::is_of_nan(rank, asked) ? LAST : moved;
            return moved < OF_NAN ? OF_NAN : moved;
        } else {
            return rank;
        }
    }
};

// The first element of the smallest rank that a thread takes: elements have numbers below 2^16 that ascend.
template <class T, bool SHORT = (sizeof(typename Element<T>::Bits) < 4)>
struct FirstTaken {
    using Rank = PositionRank<T>;
    using Bits = typename Rank::Bits;

    Bits least = Rank::LAST;
    u32 at = 0;

    __device__ __forceinline__ void take(Bits bits, u32 number, const typename Rank::Asked &asked)
    {
        const Bits rank = Rank::of(bits, asked);
        const bool first = rank < least;
        least = first ? rank : least;
        at = first ? number : at;
    }

    __device__ __forceinline__ Bits rank() const { return least; }
    __device__ __forceinline__ u32 number() const { return at; }
};

// Of elements shorter than a word, rank and number lie in one, so that a comparison settles both.
template <class T>
struct FirstTaken<T, true> {
    using Rank = PositionRank<T>;
    using Extreme = ExtremeOf<T>;
    using Bits = typename Rank::Bits;
    static constexpr int WIDTH = Extreme::WIDTH;
    static constexpr u32 EACH = 32 / WIDTH;
    static constexpr u32 MOVE = u32(Extreme::nans()) << 16;
    static constexpr u32 OF_NAN = u32(Rank::OF_NAN) << 16;

    u32 least = ~0u;

    // The ranks of a word, as they lie in it: of floats with the step that the zeros share, and without the one of NaNs.
    static __device__ __forceinline__ u32 ranks(u32 word, const typename Rank::Asked &asked)
    {
        const u32 ranks = Extreme::ranks(word, asked);
        if constexpr (Element<T>::FLOAT)
            return ranks + (~ranks >> 15 & Extreme::EVERY);
        else
            return ranks;
    }

    // Takes a rank on top of its number; between the two are zeros.
    __device__ __forceinline__ void take(u32 ranked, u32 number)
    {
        if constexpr (Element<T>::FLOAT)
            ranked = max(ranked + MOVE, OF_NAN + number);
        least = min(least, ranked);
    }

    __device__ __forceinline__ Bits rank() const { return Bits(least >> (32 - WIDTH)); }
    __device__ __forceinline__ u32 number() const { return least & 0xffff; }
};

// A rank and the first position that has it.
template <class T>
struct PositionOf {
    using Rank = PositionRank<T>;
    using Bits = typename Rank::Bits;
    using Asked = typename Rank::Asked;
    // Ranks of 64 bits leave no room for a position beside them.
    static constexpr bool LONG = sizeof(Bits) == 8;
    static constexpr int WIDTH = LONG ? 0 : 64 - 8 * int(sizeof(Bits));

    u64 rank = LONG ? ~0ull : ~0ull << WIDTH; // on top of the position, if that has room
    u64 at = 0;                               // if it has none

    __device__ __forceinline__ PositionOf() {}
    __device__ __forceinline__ PositionOf(Bits bits, u64 position)
    {
        if (bits == Rank::LAST)
            return;
        rank = LONG ? u64(bits) : u64(bits) << WIDTH | position;
        at = LONG ? position : 0;
    }

    // Of an element that is there: behind an empty one comes whatever has the last rank.
    static __device__ __forceinline__ PositionOf of_element(Bits bits, u64 position)
    {
        PositionOf element;
        element.rank = LONG ? u64(bits) : u64(bits) << WIDTH | position;
        element.at = LONG ? position : 0;
        return element;
    }

    __device__ __forceinline__ void merge(const PositionOf &other)
    {
        if constexpr (LONG) {
            const bool first = other.rank < rank || (other.rank == rank && other.at < at);
            at = first ? other.at : at;
        }
        rank = min(rank, other.rank);
    }

    __device__ __forceinline__ PositionOf from_lane(u32 distance) const
    {
        PositionOf other;
        other.rank = bits_from_lane(rank, distance);
        if constexpr (LONG)
            other.at = bits_from_lane(at, distance);
        return other;
    }

    static constexpr int WORDS = LONG ? 2 : 1;
    __device__ __forceinline__ u64 word(int w) const { return w == 0 ? rank : at; }
    static __device__ __forceinline__ PositionOf of_words(const u64 *words)
    {
        PositionOf position;
        position.rank = words[0];
        if constexpr (LONG)
            position.at = words[1];
        return position;
    }

    static constexpr int MET = LONG ? 0 : 1;
    __device__ __forceinline__ void meet(u64 *words, u32) const { atomicMax(&words[0], ~rank); }
    template <int N>
    static __device__ __forceinline__ void write_met(const u64 (&words)[N], void *out, u64 place, const Asked &asked)
    {
        const u64 rank = ~words[0];
        of_words(&rank).write(out, place, asked);
    }

    static constexpr u32 ANSWERS = 8;
    __device__ __forceinline__ void write(void *out, u64 place, const Asked &asked) const
    {
        if (asked.omits && (LONG ? Bits(rank) : Bits(rank >> WIDTH)) == Rank::LAST)
            atomicOr(asked.overflow, 1u);
        static_cast<u64 *>(out)[place] = LONG ? at : rank & ((1ull << WIDTH) - 1);
    }
};
