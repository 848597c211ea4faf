// What an element adds to the total of its group: digits of up to 32 bits, each to one of the group's words.
//
// A word has 64 bits and takes digits of either sign. Words of shorter floats weigh 2^(8 w) units: a significand of up to 24 bits moved up
// by up to 7 is a digit of up to 31, so that 2^31 rows, of up to 2^62 together, have room in a word and leave room for its carry. Those of
// f64 weigh 2^(32 w): 53 bits moved up by up to 31 are three digits of 32, of which 2^31 - 1 make less than 2^63 - 2^31.

#pragma once

#include "tally.cuh"

// WORDS        of a group
// SPAN         words that an element may change: from lowest(bits) on
// each         calls `add` with the word and the digit of each change, and with its sign
// write        the answer of n rows, of words that `word` says once or twice
template <class T, bool FLOAT = Element<T>::FLOAT>
struct GroupTerms;

template <class T>
struct GroupTerms<T, true> {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Answer = Bits;
    static constexpr bool LONG = sizeof(Bits) == 8;
    static constexpr int STEP = LONG ? 32 : 8, SPAN = LONG ? 3 : 1;
    // The place of the last bit of the largest element.
    static constexpr int LAST = int(Format::INFINITE >> Format::FRACTION) - 2;
    static constexpr int WORDS = LAST / STEP + SPAN;
    static_assert(Format::FRACTION + 1 + 7 <= 31 || LONG, "digits of 31 bits");

    static __device__ __forceinline__ bool is_finite(Bits bits) { return Format::is_finite(bits); }
    static __device__ __forceinline__ bool is_zero(Bits bits) { return Format::magnitude(bits) == 0; }

    // The place of the last bit, in units.
    static __device__ __forceinline__ int last(Bits bits) { return max(int(Format::magnitude(bits) >> Format::FRACTION) - 1, 0); }
    static __device__ __forceinline__ int lowest(Bits bits) { return last(bits) / STEP; }

    template <class Add>
    static __device__ __forceinline__ void each(Bits bits, bool absolute, bool, Add add)
    {
        const bool negative = !absolute && (bits & Format::SIGN) != 0;
        const Bits magnitude = Format::magnitude(bits);
        const bool normal = magnitude >> Format::FRACTION != 0;
        const Bits significand = Bits(magnitude & Bits((Bits(1) << Format::FRACTION) - 1)) | Bits(Bits(normal) << Format::FRACTION);
        const int place = last(bits), first = place / STEP, shift = place % STEP;
        if constexpr (LONG) {
            const u64 lower = u64(significand) << shift;
            add(first, u32(lower), negative);
            add(first + 1, u32(lower >> 32), negative);
            // In two steps, as a shift by 64 has no meaning.
            add(first + 2, u32(u64(significand) >> 32 >> (32 - shift)), negative);
        } else {
            add(first, u32(significand) << shift, negative);
        }
    }

    template <class Word>
    static __device__ __forceinline__ void write(Word word, void *out, u32 group, u32 ask, bool, bool, u64 n, u32 *)
    {
        Bits answer;
        if constexpr (LONG) {
            answer = float_answer<T>(Truncated::of_limbs(WORDS, Format::UNIT, [&](int i) { return i64(word(i)); }), ask, n);
        } else {
            // Digits of 32 bits, each of four words, and the carry.
            constexpr int DIGITS = (WORDS + 3) / 4;
            u32 digit[DIGITS] = {};
            i64 carry = 0;
#pragma unroll 4
            for (int w = 0; w < 4 * DIGITS; ++w) {
                carry += w < WORDS ? i64(word(w)) : 0;
                digit[w / 4] |= u32(carry & 0xff) << 8 * (w % 4);
                carry >>= 8;
            }
            answer = float_answer<T>(Truncated::of_limbs(DIGITS + 1, Format::UNIT, [&](int i) { return i < DIGITS ? i64(digit[i]) : carry; }), ask, n);
        }
        static_cast<Bits *>(out)[group] = answer;
    }
};

// Integers: words that weigh 1 and, of those of 64 bits, 2^32. Those with a sign come as words without one.
template <class T>
struct SignedOf;
template <> struct SignedOf<u8> { using Type = i8; };
template <> struct SignedOf<u16> { using Type = i16; };
template <> struct SignedOf<u32> { using Type = i32; };
template <> struct SignedOf<u64> { using Type = i64; };

template <class T>
struct GroupTerms<T, false> {
    using Bits = typename Element<T>::Bits;
    using Answer = u64;
    static constexpr bool LONG = sizeof(Bits) == 8;
    static constexpr int WORDS = LONG ? 2 : 1, SPAN = WORDS;

    static __device__ __forceinline__ bool is_finite(Bits) { return true; }
    static __device__ __forceinline__ bool is_zero(Bits bits) { return bits == 0; }
    static __device__ __forceinline__ int lowest(Bits) { return 0; }

    // The magnitude of the least has the sign bit, and is no negative number.
    template <class Add>
    static __device__ __forceinline__ void each(Bits bits, bool absolute, bool is_signed, Add add)
    {
        const bool negative = is_signed && bits >> (8 * sizeof(Bits) - 1) != 0;
        const Bits magnitude = negative ? Bits(-bits) : Bits(Element<T>::key(bits));
        add(0, u32(magnitude), negative && !absolute);
        if constexpr (LONG)
            add(1, u32(magnitude >> 32), negative && !absolute);
    }

    template <class Total, class Word>
    static __device__ __forceinline__ void write_total(Word word, void *out, u32 group, u32 ask, bool absolute, u64 n, u32 *overflow)
    {
        Total total;
        total.low = word(0);
        if constexpr (LONG) {
            const u64 upper = word(1);
            const i64 sign = i64(total.low) >> 63;
            total.low += upper << 32;
            total.high = (i64(upper) >> 32) + sign + (total.low < word(0));
        }
        const typename Total::Asked asked = {ask, absolute, n, overflow};
        total.write(out, group, asked);
    }

    template <class Word>
    static __device__ __forceinline__ void write(Word word, void *out, u32 group, u32 ask, bool absolute, bool is_signed, u64 n, u32 *overflow)
    {
        if (is_signed)
            write_total<TotalOf<typename SignedOf<T>::Type>>(word, out, group, ask, absolute, n, overflow);
        else
            write_total<TotalOf<T>>(word, out, group, ask, absolute, n, overflow);
    }
};
