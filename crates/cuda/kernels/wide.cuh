// A superaccumulator in shared memory, which takes any element and cannot fail: where every exact float sum of a block ends.
//
// A limb is the 64-bit integer {high, low}, kept as two words because shared memory adds 32 bits natively and 64 bits in a loop.
// A digit is added to the low word; when that wraps, one thread sees it and moves the high word by one. An
// element moves a given high word by one at most, and a block gets fewer than 2^31 of them.

#pragma once

#include "fold.cuh"

template <class T>
struct Wide {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    static constexpr int LIMBS = Format::LIMBS;
    // The counters behind the limbs of core's vector form: count, NaNs, positive and negative infinities.
    static constexpr int WORDS = LIMBS + 4;

    u32 low[LIMBS];
    u32 high[LIMBS];
    u32 specials[3];

    __device__ __forceinline__ void clear()
    {
        for (int i = threadIdx.x; i < LIMBS; i += blockDim.x) {
            low[i] = 0;
            high[i] = 0;
        }
        if (threadIdx.x < 3)
            specials[threadIdx.x] = 0;
    }

    // Adds (-1)^negative * magnitude * 2^exponent, a multiple of the format's last bit.
    __device__ __forceinline__ void deposit(bool negative, u64 magnitude, int exponent)
    {
        int offset = exponent - Format::LSB;
        if (offset < 0) {
            // The bits that go are zeros.
            magnitude = offset > -64 ? magnitude >> -offset : 0;
            offset = 0;
        }
        const int shift = offset % 32;
        u64 below = magnitude << shift;
        u64 rest = below >> 32 | (shift ? magnitude >> (64 - shift) : 0) << 32;
        u32 digit = u32(below);
        // No sum of elements reaches beyond the last limb: the bound only keeps memory safe.
        for (int i = offset / 32; i < LIMBS && (digit | rest) != 0; ++i) {
            if (digit != 0)
                add_digit(i, digit, negative);
            digit = u32(rest);
            rest >>= 32;
        }
    }

    __device__ __forceinline__ void add_digit(int i, u32 digit, bool negative)
    {
        if (negative) {
            if (atomicSub(&low[i], digit) < digit)
                atomicSub(&high[i], 1u);
        } else {
            if (atomicAdd(&low[i], digit) > ~digit)
                atomicAdd(&high[i], 1u);
        }
    }

    // Takes an element, taken apart by integer instructions.
    __device__ __forceinline__ void absorb(Bits bits)
    {
        const bool negative = (bits & Format::SIGN) != 0;
        const Bits magnitude = Format::magnitude(bits);
        if (magnitude >= Format::INFINITE) {
            atomicAdd(&specials[magnitude > Format::INFINITE ? 0 : negative ? 2 : 1], 1u);
            return;
        }
        const int field = int(magnitude >> Format::FRACTION);
        const u64 fraction = magnitude & ((Bits(1) << Format::FRACTION) - 1);
        if (field == 0)
            deposit(negative, fraction, Format::UNIT);
        else
            deposit(negative, fraction | u64(1) << Format::FRACTION, Format::UNIT + field - 1);
    }

    // Entry i of the vector form, except the count. The upper halves of the limbs have moved up by one limb, so that the entries
    // of 2^29 blocks add without overflow.
    __device__ __forceinline__ i64 entry(int i) const
    {
        if (i > LIMBS)
            return specials[i - LIMBS - 1];
        i64 limb = i64(low[i]);
        if (i > 0)
            limb += i64(i32(high[i - 1]));
        if (i == LIMBS - 1)
            limb += i64(u64(high[i]) << 32);
        return limb;
    }
};
