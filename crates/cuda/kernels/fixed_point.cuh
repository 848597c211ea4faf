// A sum in a fixed-point integer that a thread keeps in registers: LEVELS words that are 48 bits apart, so that each has room for many
// terms before a carry must move. It goes upwards when larger terms come.

#pragma once

#include "element.cuh"

template <int LEVELS>
struct FixedPoint {
    static constexpr int STEP = 48;
    // Digits of 32 bits of the whole, and one for the sign.
    static constexpr int DIGITS = (STEP * (LEVELS - 1) + 64 + 31) / 32 + 1;
    // Magnitudes below which two words add without an overflow.
    static constexpr i64 ROOM = i64(1) << 61;

    i64 total[LEVELS] = {}; // the highest first

    __device__ __forceinline__ bool is_zero() const
    {
        i64 some = 0;
#pragma unroll
        for (int l = 0; l < LEVELS; ++l)
            some |= total[l];
        return some == 0;
    }

    __device__ __forceinline__ bool is_negative() const
    {
        i64 carry = 0;
#pragma unroll
        for (int l = LEVELS - 1; l > 0; --l)
            carry = (total[l] + carry) >> STEP;
        return total[0] + carry < 0;
    }

    __device__ __forceinline__ bool is_full() const
    {
        bool full = false;
#pragma unroll
        for (int l = 0; l < LEVELS; ++l)
            full = full || total[l] >= ROOM || total[l] <= -ROOM;
        return full;
    }

    __device__ __forceinline__ void add(const FixedPoint &other)
    {
#pragma unroll
        for (int l = 0; l < LEVELS; ++l)
            total[l] += other.total[l];
    }

    // The whole in two's complement, in units of the lowest level.
    __device__ __forceinline__ void digits(u32 (&digit)[DIGITS]) const
    {
        i64 limb[DIGITS] = {};
#pragma unroll
        for (int l = 0; l < LEVELS; ++l) {
            const int bit = STEP * (LEVELS - 1 - l);
            limb[bit / 32] += i64(u64(u32(total[l])) << bit % 32);
            limb[bit / 32 + 1] += i64(u64(total[l] >> 32) << bit % 32);
        }
        i64 carry = 0;
#pragma unroll
        for (int i = 0; i < DIGITS; ++i) {
            carry += limb[i];
            digit[i] = u32(carry);
            carry >>= 32;
        }
    }

    // Makes the unit 2^up times as large, and moves the carries. Returns whether no bit was lost.
    __device__ __forceinline__ bool raise(int up)
    {
        u32 digit[DIGITS];
        digits(digit);
        u32 lost = 0;
#pragma unroll 1
        for (; up >= 32; up -= 32) {
            lost |= digit[0];
#pragma unroll
            for (int i = 0; i < DIGITS - 1; ++i)
                digit[i] = digit[i + 1];
            digit[DIGITS - 1] = u32(i32(digit[DIGITS - 1]) >> 31);
        }
        lost |= digit[0] & ((1u << up) - 1);
#pragma unroll
        for (int i = 0; i < DIGITS - 1; ++i)
            digit[i] = __funnelshift_r(digit[i], digit[i + 1], up);
        digit[DIGITS - 1] = u32(i32(digit[DIGITS - 1]) >> up);
#pragma unroll
        for (int l = 0; l < LEVELS; ++l) {
            const int bit = STEP * (LEVELS - 1 - l), i = bit / 32;
            u64 word = u64(digit[i + 1]) << 32 | digit[i];
            if (bit % 32 != 0)
                word = word >> 16 | u64(digit[i + 2]) << 48;
            total[l] = i64(l == 0 ? word : word & ((u64(1) << STEP) - 1));
        }
        return lost == 0;
    }
};
