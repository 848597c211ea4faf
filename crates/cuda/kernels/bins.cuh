// Exact sums of any finite floats at a fixed price: each thread has limbs of its own in dynamic shared memory, one column of
// [limb][thread], and adds every element to the one or two limbs that its exponent names.
//
// An element is brought to a limb by a float add, as in window.cuh: A = 1.5 * 2^(w + 52) has a last bit of 2^w, so that for
// |x| < 2^(w + 51) the sum t = A + x stays in A's binade and bits(t) - bits(A) is x in units of 2^w, rounded.
//
// Shorter floats, as f64: limb l takes the 16 exponent fields 16 l to 16 l + 15, w = 16 l - 150 is not above their last bits, and
// |x| < 2^(w + 40): nothing is rounded. Sums of 2^22 elements fit 63 bits.
//
// f64: bin b takes 48 fields, w = 48 b - 1026, |x| < 2^(w + 51). What rounding left, |r| <= 2^(w - 1), is a multiple of the last
// bit of field 48 b, 2^(48 b - 1075), the unit of limb b; the rounded part is twice as many units of limb b + 1. With c =
// 48 b - 1075, r is below 2^(c + 48): the second add is exact. Each is below 2^53 units, so that 2^10 elements fit 63 bits; then
// the thread moves its carries. Elements and anchors are scaled towards 1 by 2^128, exactly: no anchor leaves the format.

#pragma once

#include "wide.cuh"

extern __shared__ u64 dynamic_shared[];

__device__ __forceinline__ u32 dynamic_shared_size()
{
    u32 size;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(size));
    return size;
}

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

template <class T>
struct Bins {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    static constexpr bool LONG = sizeof(Bits) == 8;
    static constexpr int LIMBS = LONG ? 44 : 16;
    // The exponents of the limbs' units.
    static constexpr int STEP = LONG ? 48 : 16;
    static constexpr int LOWEST = LONG ? -1075 : -150;
    // Elements of a column after which carries must be moved.
    static constexpr u32 ROOM = LONG ? 1 << 10 : 1 << 22;

    char *column;
    u32 added = 0;
    bool open = false;

    __device__ __forceinline__ Bins() : column(reinterpret_cast<char *>(dynamic_shared + threadIdx.x)) {}

    // Whether the launch gave the block shared memory for this.
    static __device__ __forceinline__ bool there() { return dynamic_shared_size() >= 8 * LIMBS * blockDim.x; }

    __device__ __forceinline__ i64 &limb(u32 l) const { return *reinterpret_cast<i64 *>(column + l * (8 * blockDim.x)); }

    __device__ __forceinline__ void clear()
    {
        for (u32 l = 0; l < LIMBS; ++l)
            limb(l) = 0;
        open = true;
    }

    // Adds an element that is finite.
    __device__ __forceinline__ void add(Bits bits)
    {
        if constexpr (LONG) {
            const u32 high = u32(bits >> 32);
            const u32 b = (high & 0x7fffffff) / (u32(STEP) << 20);
            const int scale = (high & 0x40000000) != 0 ? -128 : 128;
            const f64 x = __dmul_rn(Format::value(bits), __hiloint2double((1023 + scale) << 20, 0));
            const f64 upper = anchor_of<STEP>(b, 49 + scale);
            const f64 lower = anchor_of<STEP>(b, scale);
            const f64 t = __dadd_rn(x, upper);
            const f64 u = __dadd_rn(__dsub_rn(x, __dsub_rn(t, upper)), lower);
            limb(b) += moved(u, lower);
            limb(b + 1) += 2 * moved(t, upper);
        } else {
            const f32 x = Format::value(bits);
            const u32 l = __float_as_uint(x) << 1 >> 28;
            const f64 anchor = anchor_of<STEP>(l, LOWEST + 52 + 1023);
            limb(l) += moved(__dadd_rn(f64(x), anchor), anchor);
        }
    }

    // Says that `count` elements are about to be added.
    __device__ __forceinline__ void make_room(u32 count)
    {
        added += count;
        if (added > ROOM) {
            carry();
            added = count + 1;
        }
    }

    // Brings all limbs but the last one into [0, 2^STEP). The last one stays far from its end: 2^29 elements below 2^1024 are
    // below 2^64 of its units.
    __device__ __forceinline__ void carry()
    {
        i64 over = 0;
#pragma unroll 1
        for (u32 l = 0; l < LIMBS - 1; ++l) {
            const i64 sum = limb(l) + over;
            over = sum >> STEP;
            limb(l) = sum - (over << STEP);
        }
        limb(LIMBS - 1) += over;
    }

    // Moves what the block's threads have to its superaccumulator. All of them call it.
    __device__ __forceinline__ void flush(Wide<typename Format::Sum> &wide)
    {
        if (!__syncthreads_or(open))
            return;
        if (!open)
            clear();
        __syncthreads();
        const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        for (u32 l = warp; l < LIMBS; l += blockDim.x / 32) {
            // Halves add over the columns without overflow.
            Totals<2> halves;
            for (u32 c = lane; c < blockDim.x; c += 32) {
                const i64 one = reinterpret_cast<i64 *>(dynamic_shared)[l * blockDim.x + c];
                halves.word[0] += u64(one) & 0xffffffff;
                halves.word[1] += u64(one >> 32);
            }
            halves = fold_warp(halves);
            if (lane < 2) {
                const i64 half = i64(halves.word[lane == 0 ? 0 : 1]);
                wide.deposit(half < 0, half < 0 ? -u64(half) : u64(half), LOWEST + STEP * int(l) + 32 * int(lane));
            }
        }
    }
};
