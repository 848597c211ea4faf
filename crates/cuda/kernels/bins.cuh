// Exact sums of any finite floats at a fixed price: each thread adds every element to the one or two of its limbs that the element's
// exponent names.
//
// An element is brought to a limb by a float add, as in window.cuh: A = 1.5 * 2^(w + 52) has a last bit of 2^w, so that for
// |x| < 2^(w + 51) the sum t = A + x stays in A's binade and bits(t) - bits(A) is x in units of 2^w, rounded.
//
// Shorter floats, as f64: limb l takes the W exponent fields from W l on. With P bits of a significand, w = W l - 126 - P is not above
// their last bits, and |x| < 2^(w + P + W - 1): nothing is rounded.
//
// f64: bin b takes 48 fields, w = 48 b - 1026, |x| < 2^(w + 51). What rounding left, |r| <= 2^(w - 1), is a multiple of the last
// bit of field 48 b, 2^(48 b - 1075), the unit of limb b; the rounded part is twice as many units of limb b + 1. With c =
// 48 b - 1075, r is below 2^(c + 48): the second add is exact. Each is below 2^53 units, so that 2^10 elements fit 63 bits; then
// the thread moves its carries. Elements and anchors are scaled towards 1 by 2^128, exactly: no anchor leaves the format.
//
// narrow_bins.cuh does without f64 for bf16.

#pragma once

#include "thread_limbs.cuh"

// The anchor whose exponent field is b * STEP + field: one multiply-add, which the compiler would take apart into shifts.
template <int STEP>
__device__ __forceinline__ f64 anchor_of(u32 b, int field)
{
    u32 high;
    asm("mad.lo.u32 %0, %1, %2, %3;" : "=r"(high) : "r"(b), "n"(STEP << 20), "r"((field << 20) + (1 << 19)));
    return __hiloint2double(int(high), 0);
}

// How far t has moved from an anchor of the same binade, whose lower word is zero.
__device__ __forceinline__ i64 moved(f64 t, f64 anchor)
{
    return i64(u64(u32(__double2hiint(t) - __double2hiint(anchor))) << 32 | u32(__double2loint(t)));
}

// f16 needs none: the first window holds whatever is finite.
template <class T>
struct Bins {};

// Elements of P bits as f64, a limb for each WIDTH exponent fields.
template <int P, int WIDTH>
struct FieldBins : ThreadLimbs<i64, 255 / WIDTH + 1, WIDTH, -126 - P> {
    static_assert(P + WIDTH <= 52, "nothing is rounded");
    // An element is below 2^(P + WIDTH - 1) units of its limb.
    static constexpr u32 ROOM = 1 << (62 - P - WIDTH);

    // Adds an element that is finite.
    __device__ __forceinline__ void add(f32 x)
    {
        const u32 field = __float_as_uint(x) << 1 >> 24;
        // Exact: the factor is too large by less than 1 / 2^16, and fields are below 2^8.
        const u32 l = WIDTH % 16 == 0 ? field / WIDTH : field * (65536 / WIDTH + 1) >> 16;
        const f64 anchor = anchor_of<WIDTH>(l, -126 - P + 52 + 1023);
        this->limb(l) += moved(__dadd_rn(f64(x), anchor), anchor);
    }

    // Says that `count` elements are about to be added, by all lanes of a warp.
    template <class Sums>
    __device__ __forceinline__ void make_room(u32 count, Sums &)
    {
        this->added += count;
        if (this->added > ROOM) {
            this->carry();
            this->added = count + 1;
        }
    }
};

template <>
struct Bins<f32> : FieldBins<24, 16> {
    __device__ __forceinline__ void add(u32 bits) { FieldBins::add(Element<f32>::value(bits)); }
};

// The limbs of f64, which lanes may share.
template <int SHARING>
struct LongBins : ThreadLimbs<i64, 44, 48, -1075, 0, 0, SHARING> {
    static constexpr int STEP = 48;

    __device__ __forceinline__ void add(u64 bits)
    {
        const u32 high = u32(bits >> 32);
        const u32 b = (high & 0x7fffffff) / (u32(STEP) << 20);
        const int scale = (high & 0x40000000) != 0 ? -128 : 128;
        const f64 x = __dmul_rn(Element<f64>::value(bits), __hiloint2double((1023 + scale) << 20, 0));
        const f64 upper = anchor_of<STEP>(b, 49 + scale);
        const f64 lower = anchor_of<STEP>(b, scale);
        const f64 t = __dadd_rn(x, upper);
        const f64 u = __dadd_rn(__dsub_rn(x, __dsub_rn(t, upper)), lower);
        const i64 rest = moved(u, lower), rounded = 2 * moved(t, upper);
        this->in_turns([&] {
            this->limb(b) += rest;
            this->limb(b + 1) += rounded;
        });
    }

    // The last limb stays far from its end: 2^29 elements below 2^1024 are below 2^64 of its units.
    template <class Sums>
    __device__ __forceinline__ void make_room(u32 count, Sums &)
    {
        this->added += count * SHARING;
        if (this->added > 1 << 10) {
            this->carry();
            this->added = count * SHARING + 1;
        }
    }
};

template <>
struct Bins<f64> : LongBins<1> {};
