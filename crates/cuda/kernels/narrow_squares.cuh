// Bins of the squares of bf16, and of the elements beside them, without f64.
//
// As in narrow_bins.cuh, but for 16 exponent fields each: bin b takes the fields 16 b - 1 to 16 b + 14, its unit is 2^(16 b - 135),
// and |x| < 2^23 units. With |x| in place of x the anchor needs no room below: it is a power of two, the field 16 b + 4 after the
// scaling, and t = A + 2^-11 |x| stays in its binade. m = bits(t) - bits(A) is |x| in units, m^2 < 2^46 the square in units
// of 2^(32 b - 270), and 2^16 of these fit 63 bits. With the sign of x, m is the element: 2^8 of these fit 32 bits.

#pragma once

#include "thread_limbs.cuh"

template <int BEFORE = 0>
struct NarrowSquares : ThreadLimbs<i64, 16, 32, -270, 0, BEFORE> {
    static constexpr u32 ONE = 4 << 23;

    static __device__ __forceinline__ u32 magnitudes(u32 word) { return word & 0x7fff7fff; }
    static __device__ __forceinline__ u32 names(u32 magnitudes) { return magnitudes + 0x00800080; }

    // Adds the square of x, without its sign, whose bin is named by the upper half of `name`. Returns x in units of the bin.
    __device__ __forceinline__ u32 add_one(u32 x, u32 name)
    {
        const u32 anchor = (name & 0x78000000) | ONE;
        const u32 m = __float_as_uint(__fmaf_rn(__uint_as_float(x), 0x1p-11f, __uint_as_float(anchor))) - anchor;
        this->limb(name >> 27) += i64(u64(m) * m);
        return m;
    }

    // Adds the squares of two elements that are finite.
    __device__ __forceinline__ void add(u32 word)
    {
        const u32 both = magnitudes(word), name = names(both);
        add_one(both << 16, name << 16);
        add_one(both & 0xffff0000, name);
    }

    template <class Sums>
    __device__ __forceinline__ void make_room(u32 count, Sums &wide)
    {
        this->added += count;
        if (this->added > 1 << 16) {
            this->spill(wide);
            this->added = count;
        }
    }
};

struct NarrowElements : ThreadLimbs<i32, 16, 16, -135> {
    // Adds both elements of a word, and their squares to their bins.
    template <class Squares>
    __device__ __forceinline__ void add(u32 word, Squares &squares)
    {
        const u32 both = squares.magnitudes(word), name = squares.names(both);
        add_one(squares.add_one(both << 16, name << 16), word << 16, name << 16);
        add_one(squares.add_one(both & 0xffff0000, name), word, name);
    }

    __device__ __forceinline__ void add_one(u32 m, u32 signed_as, u32 name)
    {
        const i32 sign = i32(signed_as) >> 31;
        limb(name >> 27) += (i32(m) ^ sign) - sign;
    }

    template <class Sums>
    __device__ __forceinline__ void make_room(u32 count, Sums &wide)
    {
        added += count;
        if (added > 1 << 8) {
            spill(wide);
            added = count;
        }
    }
};
