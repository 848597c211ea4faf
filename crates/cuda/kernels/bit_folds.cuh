// Bitwise or and exclusive or; and, which is the or of the complements.

#pragma once

#include "tally.cuh"

template <class T, bool EXCLUSIVE>
struct BitFoldOf {
    using Bits = typename Element<T>::Bits;

    Bits bits = 0;

    struct Asked {
        Bits flip; // all bits, if elements are complemented
        __device__ __forceinline__ Asked(u32 ask) : flip(ask == AND ? Bits(~Bits(0)) : Bits(0)) {}
        __device__ __forceinline__ u64 fill() const { return flip != 0 ? ~0ull : 0; }
    };

    __device__ __forceinline__ void fold(Bits other) { bits = EXCLUSIVE ? bits ^ other : bits | other; }

    __device__ __forceinline__ void take(Bits other, const Asked &asked) { fold(Bits(Element<T>::key(other) ^ asked.flip)); }
    __device__ __forceinline__ void merge(const BitFoldOf &other) { fold(other.bits); }

    __device__ __forceinline__ BitFoldOf from_lane(u32 distance) const
    {
        BitFoldOf other;
        other.bits = bits_from_lane(bits, distance);
        return other;
    }

    static constexpr int WORDS = 1;
    __device__ __forceinline__ u64 word(int) const { return bits; }
    static __device__ __forceinline__ BitFoldOf of_words(const u64 *words)
    {
        BitFoldOf folded;
        folded.bits = Bits(words[0]);
        return folded;
    }

    static constexpr int MET = 1;
    __device__ __forceinline__ void meet(u64 *words, u32) const
    {
        if constexpr (EXCLUSIVE)
            atomicXor(&words[0], u64(bits));
        else
            atomicOr(&words[0], u64(bits));
    }
    static __device__ __forceinline__ void write_met(const u64 (&words)[MET], void *out, u64 place, const Asked &asked)
    {
        of_words(words).write(out, place, asked);
    }

    static constexpr u32 ANSWERS = sizeof(Bits);
    __device__ __forceinline__ void write(void *out, u64 place, const Asked &asked) const
    {
        static_cast<Bits *>(out)[place] = Bits(bits ^ asked.flip);
    }
};
