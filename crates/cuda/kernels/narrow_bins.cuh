// Bins of bf16: limbs of 32 bits for 8 exponent fields each, and plain f32 to bring elements there.
//
// Bin b takes the fields 8 b - 1 to 8 b + 6 and has the unit 2^(8 b - 135), which is not above the last bit of any of them, and
// |x| < 2^15 units. With the element scaled by 2^-11 the anchor A, whose last bit is the unit, has the exponent field 8 b + 4: within
// the format for every bin. One fused multiply-add gives t = A + 2^-11 x without rounding, and bits(t) - bits(A) is x in units.
// Sums of 2^16 elements fit a limb.
//
// A word of two elements plus one in the fields of both names the bins by its bits: the three lowest of a field never reach the
// bin, and A's field is the bin's bits with 4 in their place.

#pragma once

#include "bins.cuh"

template <>
struct Bins<bf16> : ThreadLimbs<i32, 32, 8, -135> {
    static constexpr u32 ONE_HALF_MORE = 4 << 23 | 1 << 22;

    // Adds one element, x, whose bin is named by the upper half of `name`.
    __device__ __forceinline__ void add_one(u32 x, u32 name)
    {
        const u32 anchor = (name & 0x7c000000) | ONE_HALF_MORE;
        const f32 t = __fmaf_rn(__uint_as_float(x), 0x1p-11f, __uint_as_float(anchor));
        limb(name >> 26) += i32(__float_as_uint(t) - anchor);
    }

    // Adds two elements that are finite.
    template <bool ABSOLUTE>
    __device__ __forceinline__ void add(u32 word)
    {
        const u32 magnitudes = word & 0x7fff7fff, names = magnitudes + 0x00800080;
        if (ABSOLUTE)
            word = magnitudes;
        add_one(word << 16, names << 16);
        add_one(word & 0xffff0000, names);
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
