// Exact sums of any finite products at a fixed price, as in bins.cuh.
//
// Of shorter floats a product is exact in f64, at least 2^-298 if it is not zero, and below 2^256. Zeros are taken as if they had the
// lowest field: they add nothing anywhere.
//
// f32: products of 48 significant bits. Bin b takes 48 exponent fields from 720 + 48 b on. The anchor whose last bit is the unit of limb
// b + 1, 2^(48 b - 302), takes |p| < 2^47 of its units; what rounding left is at most half of one and a multiple of the last bit of
// the bin's lowest field, 2^(48 b - 350), the unit of limb b: the second add is exact. 2^15 elements fit 63 bits, and 2^29 of
// them the last limb, where each is below 2^30.
//
// bf16: products of 16 significant bits. Bin b takes 32 fields from 736 + 32 b on, and |p| is below 2^47 times the last bit of the lowest
// of them, 2^(32 b - 302). The last limb is for carries.
//
// f64: significands 1 <= |a|, |b| < 2 are multiplied, and the sum E of both exponent fields names the bin b = E / 52: with s = E - 52 b
// the product is a 2^s b 2^(52 b - 2046). p = a * 2^s b, rounded, is below 2^53 and a multiple of 2^-52, so that i = p to the nearest integer
// and p - i, at most 1/2, have no more bits than their limbs' units: 1 for limb b + 2, 2^-52 for limb b + 1. The error e = a * 2^s b - p
// is at most 1/2 too, and a multiple of 2^-104, the unit of limb b: 1.5 + e rounds it to limb b + 1, and what that leaves, at most 2^-53,
// goes to limb b by the anchor 1.5 * 2^-52. A sum at the end of an anchor's binade still has bits that count. 2^8 products
// of each of four lanes fit 63 bits, and 2^29 of them the last limb, where each is below 2^38. Factors that are subnormal, infinite
// or NaN are not taken.

#pragma once

#include "bins.cuh"

template <class T, int BEFORE = 0>
struct ProductBins {};

// Of fields from FIRST on. What 2^15 elements move a limb by fits 62 bits.
template <int LIMBS, int STEP, int LOWEST, int FIRST, int BEFORE>
struct ProductLimbs : ThreadLimbs<i64, LIMBS, STEP, LOWEST, 0, BEFORE> {
    // The exponent field of a product, and what lies below it.
    static __device__ __forceinline__ u32 field_of(f64 product)
    {
        return max(u32(__double2hiint(product)) & 0x7fffffff, u32(FIRST) << 20);
    }

    template <class Sums>
    __device__ __forceinline__ void make_room(u32 count, Sums &)
    {
        this->added += count;
        if (this->added > 1 << 15) {
            this->carry();
            this->added = count + 1;
        }
    }
};

template <int BEFORE>
struct ProductBins<f32, BEFORE> : ProductLimbs<13, 48, -350, 720, BEFORE> {
    __device__ __forceinline__ void add(f64 product)
    {
        // Division by 48, of up to 2047.
        const u32 b = (this->field_of(product) >> 20) * 1366 - 720 * 1366 >> 16;
        const f64 upper = anchor_of<48>(b, 720 + 53), lower = anchor_of<48>(b, 720 + 5);
        const f64 t = __dadd_rn(product, upper);
        const f64 u = __dadd_rn(__dsub_rn(product, __dsub_rn(t, upper)), lower);
        // Both are read before either is written, so that they do not wait for each other.
        i64 &low = this->limb(b), &high = this->limb(b + 1);
        const i64 low_sum = low + moved(u, lower), high_sum = high + moved(t, upper);
        low = low_sum;
        high = high_sum;
    }
};

template <int BEFORE>
struct ProductBins<bf16, BEFORE> : ProductLimbs<18, 32, -302, 736, BEFORE> {
    __device__ __forceinline__ void add(f64 product)
    {
        const u32 field = this->field_of(product);
        const f64 anchor = __hiloint2double(int((field & 0x7e000000) + ((37 << 20) + (1 << 19))), 0);
        this->limb((field >> 25) - 23) += moved(__dadd_rn(product, anchor), anchor);
    }
};

template <int BEFORE>
struct ProductBins<f64, BEFORE> : ThreadLimbs<i64, 81, 52, -2150, 0, BEFORE, 4> {
    static __device__ __forceinline__ u32 field_of(u64 x) { return u32(x >> 52) & 0x7ff; }

    static __device__ __forceinline__ f64 with_field(u64 x, u32 field)
    {
        return __longlong_as_double(i64((x & 0x800fffffffffffff) | u64(field) << 52));
    }

    static __device__ __forceinline__ bool is_normal(u32 field) { return field - 1 < 0x7fe; }
    static __device__ __forceinline__ bool takes(u64 x, u64 y) { return is_normal(field_of(x)) && is_normal(field_of(y)); }

    // Takes a product if both factors are normal numbers, and else nothing. All lanes of a warp call it. Returns whether it is taken.
    __device__ __forceinline__ bool add(u64 x, u64 y)
    {
        const u32 one = field_of(x), other = field_of(y);
        const bool normal = is_normal(one) && is_normal(other);
        // Division by 52, of up to 4094.
        const u32 sum = one + other, b = sum * 20165 >> 20;
        const f64 left = normal ? with_field(x, 1023) : 0.0, right = with_field(y, 1023 + sum - 52 * b);
        const f64 product = __dmul_rn(left, right), error = __fma_rn(left, right, -product);
        const f64 whole = rint(product), half = 1.5, low_half = 0x1.8p-52;
        const f64 part = __dadd_rn(half, __dsub_rn(product, whole));
        const f64 upper = __dadd_rn(half, error);
        const f64 lower = __dadd_rn(low_half, __dsub_rn(error, __dsub_rn(upper, half)));
        const i64 high = __double2ll_rn(whole), middle = moved(part, half) + moved(upper, half), low = moved(lower, low_half);
        this->in_turns([&] {
            i64 &l = this->limb(b), &m = this->limb(b + 1), &h = this->limb(b + 2);
            const i64 sums[3] = {l + low, m + middle, h + high};
            l = sums[0];
            m = sums[1];
            h = sums[2];
        });
        return normal;
    }

    template <class Sums>
    __device__ __forceinline__ void make_room(u32 count, Sums &)
    {
        this->added += count;
        if (this->added > 1 << 8) {
            this->carry();
            this->added = count + 1;
        }
    }
};
