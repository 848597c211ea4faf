// The largest absolute value. NaNs have the largest magnitudes of all.

#pragma once

#include "tally.cuh"

template <class T>
struct MagnitudeOf {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    static constexpr bool SIGNED = !Format::FLOAT && typename Format::Key(-1) < typename Format::Key(0);
    static constexpr int WIDTH = 8 * sizeof(Bits);

    Bits largest = 0;

    struct Asked {
        static __device__ __forceinline__ u64 fill() { return 0; }
    };

    static __device__ __forceinline__ Bits magnitude(Bits bits)
    {
        if constexpr (Format::FLOAT)
            return Format::magnitude(bits);
        else if constexpr (SIGNED)
            return Format::key(bits) < 0 ? Bits(-bits) : bits;
        else
            return Format::key(bits);
    }

    // The magnitudes of a word of shorter elements in their places.
    static __device__ __forceinline__ u32 magnitudes(u32 word)
    {
        constexpr u32 EVERY = WIDTH == 8 ? 0x01010101 : 0x00010001;
        const u32 signs = word >> (WIDTH - 1 & 31) & EVERY;
        if constexpr (Format::FLOAT)
            return word & ~(EVERY * Format::SIGN);
        else if constexpr (SIGNED)
            // The complements of negative elements have their upper bit free: adding 1 carries into no neighbour.
            return (word ^ signs * Bits(~Bits(0))) + signs;
        else
            return normal<T>(word);
    }

    __device__ __forceinline__ void take(Bits bits, const Asked &) { largest = max(largest, magnitude(bits)); }
    __device__ __forceinline__ void merge(const MagnitudeOf &other) { largest = max(largest, other.largest); }

    __device__ __forceinline__ MagnitudeOf from_lane(u32 distance) const
    {
        MagnitudeOf other;
        other.largest = bits_from_lane(largest, distance);
        return other;
    }

    static constexpr int WORDS = 1;
    __device__ __forceinline__ u64 word(int) const { return largest; }
    static __device__ __forceinline__ MagnitudeOf of_words(const u64 *words)
    {
        MagnitudeOf magnitude;
        magnitude.largest = Bits(words[0]);
        return magnitude;
    }

    static constexpr int MET = 1;
    __device__ __forceinline__ void meet(u64 *words, u32) const { atomicMax(&words[0], u64(largest)); }
    static __device__ __forceinline__ void write_met(const u64 (&words)[MET], void *out, u64 place, const Asked &asked)
    {
        of_words(words).write(out, place, asked);
    }

    static constexpr u32 ANSWERS = Format::FLOAT ? sizeof(Bits) : 8;
    __device__ __forceinline__ void write(void *out, u64 place, const Asked &) const
    {
        if constexpr (Format::FLOAT)
            static_cast<Bits *>(out)[place] = largest > Format::INFINITE ? NOT_A_NUMBER<T> : largest;
        else
            static_cast<u64 *>(out)[place] = largest;
    }
};
