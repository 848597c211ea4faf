// Final rounding, once, to nearest even, with integer instructions: core's exact/round.rs, where the argument is in full, on a
// device.
//
// A real number is first cut off below its leading bits to (window + f) * 2^exponent with f in (0, 1) if it is inexact, else f = 0.
// An inexact window has at least 62 bits, enough for every format's significand and rounding bit.

#pragma once

#include "digits.cuh"

struct Truncated {
    bool negative = false;
    bool inexact = false;
    int exponent = 0;
    u64 high = 0, low = 0; // the window

    __device__ __forceinline__ bool is_zero() const { return (high | low) == 0; }

    // Bits free above the window.
    __device__ __forceinline__ int free() const { return high != 0 ? __clzll(i64(high)) : 64 + __clzll(i64(low)); }

    // {high, low} in two's complement times 2^exponent.
    static __device__ __forceinline__ Truncated of_integer(i64 high, u64 low, int exponent)
    {
        Truncated t;
        t.negative = high < 0;
        t.exponent = exponent;
        t.low = t.negative ? -low : low;
        t.high = t.negative ? ~u64(high) + (low == 0) : u64(high);
        return t;
    }

    // The sum of limbs that weigh 2^(32 i + lsb); their carries may have to be moved yet. `limb` says what the i-th is, and is asked
    // twice.
    template <class Limb>
    static __device__ __forceinline__ Truncated of_limbs(int count, int lsb, Limb limb)
    {
        Digits digits = Digits::of_limbs(count, limb);
        Leading<5> leading;
#pragma unroll 1
        for (int i = 0; i <= count; ++i)
            leading.push(digits.next(i < count ? limb(i) : 0), i);
        Truncated t;
        if (leading.is_zero())
            return t;
        const int shift = leading.normalise();
        t.negative = digits.negative;
        t.high = leading.word(0);
        t.low = leading.word(1);
        t.exponent = lsb + 32 * (leading.top - 3) - shift;
        t.inexact = leading.below || leading.digits[4] != 0;
        return t;
    }

    // The same number with the window's highest bit set, if it is exact or has it set already; an inexact one is left as it is.
    __device__ __forceinline__ Truncated normalised() const
    {
        Truncated t = *this;
        if (!inexact && !is_zero()) {
            int shift = free();
            t.exponent -= shift;
            if (shift >= 64) {
                t.high = t.low;
                t.low = 0;
                shift -= 64;
            }
            if (shift != 0) {
                t.high = t.high << shift | t.low >> (64 - shift);
                t.low <<= shift;
            }
        }
        return t;
    }

    // The number divided by n, which is neither 0 nor 2^63 or more. A normalised window is at least 2^127, so that the quotient
    // keeps 64 bits.
    __device__ __forceinline__ Truncated divide(u64 n) const
    {
        Truncated t = normalised();
        u64 rest;
        if (n >> 32 == 0) {
            // Digit by digit: the remainder is below 2^32.
            rest = t.high % n;
            t.high /= n;
            const u64 upper = rest << 32 | t.low >> 32;
            const u64 lower = upper % n << 32 | (t.low & 0xffffffff);
            t.low = upper / n << 32 | lower / n;
            rest = lower % n;
        } else {
            rest = t.high % n;
            t.high /= n;
            // Bit by bit: twice a remainder fits 64 bits.
#pragma unroll 1
            for (int i = 0; i < 64; ++i) {
                rest = rest << 1 | t.low >> 63;
                t.low <<= 1;
                if (rest >= n) {
                    rest -= n;
                    t.low |= 1;
                }
            }
        }
        t.inexact |= rest != 0;
        return t;
    }

    // The square root of the magnitude. A normalised window, less one bit where the exponent is odd, is at least 2^126, so that the
    // root keeps 64 bits.
    __device__ __forceinline__ Truncated sqrt() const
    {
        Truncated t = normalised();
        t.negative = false;
        const int odd = t.exponent & 1;
        t.exponent = (t.exponent + odd) / 2;
        if (odd) {
            t.inexact |= t.low & 1;
            t.low = t.low >> 1 | t.high << 63;
            t.high >>= 1;
        }
        // Two bits of the radicand make one of the root. The rest is at most twice the root, so that four times as much and three fit
        // 67 bits.
        u64 root = 0, rest = 0, above = 0;
#pragma unroll 1
        for (int i = 0; i < 64; ++i) {
            above = above << 2 | rest >> 62;
            rest = rest << 2 | t.high >> 62;
            t.high = t.high << 2 | t.low >> 62;
            t.low <<= 2;
            // (2 root + 1)^2 - (2 root)^2 = 4 root + 1.
            const u64 more = root << 2 | 1, upper = root >> 62;
            root <<= 1;
            if (above > upper || (above == upper && rest >= more)) {
                above -= upper + (rest < more);
                rest -= more;
                root |= 1;
            }
        }
        t.high = 0;
        t.low = root;
        t.inexact |= (above | rest) != 0;
        return t;
    }

    // The bits of the nearest number of type T; infinity only from MAX + ulp / 2 on.
    template <class T>
    __device__ __forceinline__ typename Element<T>::Bits round() const
    {
        using Format = Element<T>;
        using Bits = typename Format::Bits;
        const Bits sign = negative ? Format::SIGN : Bits(0);
        if (is_zero())
            return sign;
        const int last = exponent + 127 - free() - Format::FRACTION;
        const int place = last < Format::UNIT ? Format::UNIT : last;
        const int shift = place - exponent;
        u64 q = 0;
        if (shift <= 0) {
            // An inexact window has more bits than the significand.
            q = low << -shift;
        } else if (shift <= 128) {
            // What is cut off, with its highest bit in bit 63 of `half`; `more` is whether there is more than that bit.
            u64 cut, more;
            if (shift < 64) {
                q = high << (64 - shift) | low >> shift;
                cut = low << (64 - shift);
                more = 0;
            } else if (shift == 64) {
                q = high;
                cut = low;
                more = 0;
            } else if (shift < 128) {
                q = high >> (shift - 64);
                cut = high << (128 - shift) | low >> (shift - 64);
                more = low << (128 - shift);
            } else {
                cut = high;
                more = low;
            }
            const bool half = cut >> 63;
            const bool rest = cut << 1 != 0 || more != 0 || inexact;
            q += half && (rest || (q & 1));
        }
        // Any exponent field from 2^11 on is infinity in every format. A carry out of rounding is one into the exponent.
        const u64 field = place - Format::UNIT < 2048 ? place - Format::UNIT : 2048;
        const u64 magnitude = q + (field << Format::FRACTION);
        return Bits(sign | (magnitude < Format::INFINITE ? Bits(magnitude) : Format::INFINITE));
    }
};
