// Bins of the squares of bf16, without f64.
//
// As in narrow_bins.cuh, but for 16 exponent fields each: bin b takes the fields 16 b - 1 to 16 b + 14, its unit is 2^(16 b - 135),
// and |x| < 2^23 units. With |x| in place of x the anchor needs no room below: it is a power of two, the field 16 b + 4 after the
// scaling, and t = A + 2^-11 |x| stays in its binade. m = bits(t) - bits(A) is |x| in units, m^2 < 2^46 the square in units
// of 2^(32 b - 270), and 2^16 of these fit 63 bits.
//
// NaNs and infinities come to bin 16, the spare limb. There m is 0x7fffffff - A or 0x7f800000 - A. The square of the former is 1 modulo 2^25:
// the lower bits tell the number of NaNs. That of the latter is 2^46 times an odd number, which few of them do not hide.

#pragma once

#include "thread_limbs.cuh"

struct NarrowSquares : ThreadLimbs<i64, 16, 32, -270, 1> {
    static constexpr u32 ONE = 4 << 23;

    // Adds the square of x, without its sign, whose bin is named by the upper half of `name`.
    __device__ __forceinline__ void add_one(u32 x, u32 name)
    {
        const u32 anchor = (name & 0x78000000) | ONE;
        const u32 m = __float_as_uint(__fmaf_rn(__uint_as_float(x), 0x1p-11f, __uint_as_float(anchor))) - anchor;
        limb(name >> 27) += i64(u64(m) * m);
    }

    // Adds the squares of any two elements.
    __device__ __forceinline__ void add(u32 word)
    {
        const u32 magnitudes = word & 0x7fff7fff, names = magnitudes + 0x00800080;
        add_one(magnitudes << 16, names << 16);
        add_one(magnitudes & 0xffff0000, names);
    }

    // How many NaNs a tile of `items` elements brought; more than that, if it brought infinities too.
    __device__ __forceinline__ u32 nans(u32 items)
    {
        const u64 sum = u64(limb(LIMBS));
        if (sum == 0)
            return 0;
        limb(LIMBS) = 0;
        constexpr u64 NAN_MOVES = 0x7fffffff - ONE;
        const u32 n = u32(sum) & 0x1ffffff;
        return n <= items && sum == n * (NAN_MOVES * NAN_MOVES) ? n : ~0u;
    }

    template <class Sums>
    __device__ __forceinline__ void make_room(u32 count, Sums &wide)
    {
        added += count;
        if (added > 1 << 16) {
            spill(wide);
            added = count;
        }
    }
};
