// Sign and magnitude of a fixed-point integer of which the limbs' carries may have to be moved yet: its digits, from the lowest up.

#pragma once

#include "element.cuh"

struct Digits {
    bool negative = false;

    // Of limbs of which `limb` says the i-th: the sign is that of the last carry.
    template <class Limb>
    static __device__ __forceinline__ Digits of_limbs(int count, Limb limb)
    {
        i64 carry = 0;
#pragma unroll 1
        for (int i = 0; i < count; ++i)
            carry = (limb(i) + carry) >> 32;
        Digits digits;
        digits.negative = carry < 0;
        return digits;
    }

    // The digit of the next limb. The last carry is a digit of its own, behind which limbs are 0.
    __device__ __forceinline__ u32 next(i64 limb)
    {
        const i64 sum = limb + carry;
        u32 digit = u32(sum);
        carry = sum >> 32;
        if (negative) {
            // The complement, plus one.
            digit = ~digit + one;
            one &= digit == 0;
        }
        return digit;
    }

private:
    i64 carry = 0;
    u32 one = 1;
};

// The leading digits of a magnitude: the highest that is not 0, in front, and the N - 1 below it.
template <int N>
struct Leading {
    u32 digits[N] = {};
    // The place of the highest, and whether anything below these is not 0.
    int top = 0;
    bool below = false;

    __device__ __forceinline__ bool is_zero() const { return digits[0] == 0; }

    // Takes the digit of the next place, i.
    __device__ __forceinline__ void push(u32 digit, int i)
    {
        lower |= last[N - 1] != 0;
#pragma unroll
        for (int d = N - 1; d > 0; --d)
            last[d] = last[d - 1];
        last[0] = digit;
        if (digit != 0) {
            top = i;
            below = lower;
#pragma unroll
            for (int d = 0; d < N; ++d)
                digits[d] = last[d];
        }
    }

    // Moves the highest bit up to the highest place, and says by how many places.
    __device__ __forceinline__ int normalise()
    {
        const int shift = __clz(int(digits[0]));
#pragma unroll
        for (int d = 0; d < N - 1; ++d)
            digits[d] = __funnelshift_l(digits[d + 1], digits[d], shift);
        digits[N - 1] <<= shift;
        return shift;
    }

    // The i-th two digits.
    __device__ __forceinline__ u64 word(int i) const { return u64(digits[2 * i]) << 32 | digits[2 * i + 1]; }

private:
    u32 last[N] = {};
    bool lower = false;
};
