// Final rounding, once, to nearest even, with integer instructions: core's exact/round.rs, where the argument is in full, on a
// device.
//
// A real number is first cut off below its leading bits to (window + f) * 2^exponent with f in (0, 1) if it is inexact, else f = 0.
// An inexact window has at least 62 bits, enough for every format's significand and rounding bit.

#pragma once

#include "element.cuh"

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
        // Digits from the lowest up, with the carry to the next.
        i64 carry = 0;
#pragma unroll 1
        for (int i = 0; i < count; ++i)
            carry = (limb(i) + carry) >> 32;
        Truncated t;
        t.negative = carry < 0;
        // Of the magnitude: the highest digit so far that is not 0, the four below it, and whether anything is lower still.
        u32 digits[5] = {}, last[5] = {};
        bool lower = false, below = false;
        int top = 0;
        carry = 0;
        u32 borrow = 1;
#pragma unroll 1
        for (int i = 0; i <= count; ++i) {
            // The last carry is a digit of its own.
            i64 sum = carry;
            if (i < count)
                sum += limb(i);
            u32 digit = u32(sum);
            carry = sum >> 32;
            if (t.negative) {
                digit = ~digit + borrow;
                borrow &= digit == 0;
            }
            lower |= last[4] != 0;
            last[4] = last[3];
            last[3] = last[2];
            last[2] = last[1];
            last[1] = last[0];
            last[0] = digit;
            if (digit != 0) {
                top = i;
                below = lower;
#pragma unroll
                for (int d = 0; d < 5; ++d)
                    digits[d] = last[d];
            }
        }
        if (digits[0] == 0) {
            t.negative = false;
            return t;
        }
        const int shift = __clz(int(digits[0]));
        const u32 rest = digits[4] << shift;
        t.high = u64(__funnelshift_l(digits[1], digits[0], shift)) << 32 | __funnelshift_l(digits[2], digits[1], shift);
        t.low = u64(__funnelshift_l(digits[3], digits[2], shift)) << 32 | __funnelshift_l(digits[4], digits[3], shift);
        t.exponent = lsb + 32 * (top - 3) - shift;
        t.inexact = below || rest != 0;
        return t;
    }

    // The number divided by n, which is neither 0 nor 2^63 or more. A normalised window is at least 2^127, so that the quotient
    // keeps 64 bits.
    __device__ __forceinline__ Truncated divide(u64 n) const
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
