// Bins of bf16: limbs of 32 bits for 8 exponent fields each, and plain f32 to bring elements there.
//
// Bin b takes the fields 8 b - 1 to 8 b + 6 and has the unit 2^(8 b - 135), which is not above the last bit of any of them, and
// |x| < 2^15 units. With the element scaled by 2^-11 the anchor A, whose last bit is the unit, has the exponent field 8 b + 4: within
// the format for every bin. One fused multiply-add gives t = A + 2^-11 x without rounding, and bits(t) - bits(A) is x in units.
// Sums of 2^16 elements fit a limb.
//
// A word of two elements plus one in the fields of both names the bins by its bits: the three lowest of a field never reach the
// bin, and A's field is the bin's bits with 4 in their place. NaNs and infinities come to bin 32, a spare limb. There t is PTX's
// canonical NaN, 0x7fffffff, or an infinity, so that n NaNs and nothing else move the limb by n * (0x7fffffff - A) modulo 2^32:
// the lower 22 bits tell n, up to as many elements as a lane has in a tile. With i infinities of either sign, i no more than that,
// the upper 10 bits differ from this by 512 p - 11 i, p those above zero, which 1024 does not divide.

#pragma once

#include "bins.cuh"

template <>
struct Bins<bf16> : ThreadLimbs<i32, 32, 8, -135, 1> {
    static constexpr u32 ONE_HALF_MORE = 4 << 23 | 1 << 22;

    // Adds one element, x, whose bin is named by the upper half of `name`.
    __device__ __forceinline__ void add_one(u32 x, u32 name)
    {
        const u32 anchor = (name & 0x7c000000) | ONE_HALF_MORE;
        const f32 t = __fmaf_rn(__uint_as_float(x), 0x1p-11f, __uint_as_float(anchor));
        limb(name >> 26) += i32(__float_as_uint(t) - anchor);
    }

    // Adds any two elements.
    template <bool ABSOLUTE>
    __device__ __forceinline__ void add(u32 word)
    {
        const u32 magnitudes = word & 0x7fff7fff, names = magnitudes + 0x00800080;
        if (ABSOLUTE)
            word = magnitudes;
        add_one(word << 16, names << 16);
        add_one(word & 0xffff0000, names);
    }

    // How many NaNs a tile of `items` elements brought; more than that, if it brought infinities too.
    __device__ __forceinline__ u32 nans(u32 items)
    {
        const u32 moved = u32(limb(LIMBS));
        if (moved == 0)
            return 0;
        limb(LIMBS) = 0;
        const u32 n = -moved & 0x3fffff;
        return n <= items && moved == n * (0x7fffffff - ONE_HALF_MORE) ? n : ~0u;
    }

    template <class Sums>
    __device__ __forceinline__ void make_room(u32 count, Sums &wide)
    {
        added += count;
        if (added > 1 << 15) {
            spill(wide);
            added = count;
        }
    }
};
