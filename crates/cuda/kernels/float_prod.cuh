// Products of floats in the fixed tree: core's `Factors`, crates/core/src/op/prod.rs.
//
// Each lane multiplies, in f64, and each product rounds to 53 bits. Powers of two do not change what is rounded away, so that they
// may be split off when it suits, as long as nothing overflows or underflows on the way: f64 elements come as significands in
// [1, 2), of which 64 stay below 2^64; the shorter ones come whole, PERIOD of them before the product's own power is split off. A zero,
// an infinity or a NaN among those leaves none of the ordinary products, and only then elements are looked at one by one. Signs go
// along.

#pragma once

#include "answer.cuh"
#include "rounded.cuh"
#include "tree.cuh"

// A product: `factor` without its power of two, if that was split off, and the power.
struct Factored {
    f64 factor;
    i32 exponent;

    static __device__ __forceinline__ Factored times(Factored a, Factored b) { return {mul(a.factor, b.factor), a.exponent + b.exponent}; }

    static __device__ __forceinline__ u32 field(u64 bits) { return u32(bits >> 52) & 0x7ff; }

    // Whether these bits are zero, subnormal, infinite or NaN.
    static __device__ __forceinline__ bool is_special(u64 bits) { return field(bits) - 1 >= 0x7fe; }

    // The same number with the significand in [1, 2) or (-2, -1], if it is not special.
    __device__ __forceinline__ void split()
    {
        const u64 bits = bits_of(factor);
        exponent += i32(field(bits)) - 1023;
        factor = significand(bits);
    }

    static __device__ __forceinline__ f64 significand(u64 bits)
    {
        return of_bits((bits & ~(u64(0x7ff) << 52)) | u64(1023) << 52);
    }
};

template <class T>
struct FloatProd {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    static constexpr bool PAIRS = false;
    static constexpr int DEPTH = 8;
    static constexpr Bits IDENTITY = Bits((Element<T>::INFINITE >> 1) & Element<T>::INFINITE);
    // The sign; the significand, the exponent, zeros, infinities, NaNs.
    static constexpr int WORDS = 6;
    static constexpr bool WHOLE = sizeof(Bits) < 8;
    // The smallest elements, of f32 and bf16 2^-149, to this power are normal f64.
    static constexpr int PERIOD = sizeof(Bits) == 8 ? DEPTH : 4;
    static_assert(DEPTH % PERIOD == 0, "whole periods");

    static __device__ __forceinline__ Node<WORDS> combine(const Node<WORDS> &a, const Node<WORDS> &b)
    {
        // In [1, 4): rounding cannot reach 4.
        const f64 product = mul(of_bits(a.word[1]), of_bits(b.word[1]));
        const bool carry = product >= 2.0;
        return {
            a.word[0] ^ b.word[0],
            bits_of(carry ? mul(product, 0.5) : product),
            a.word[2] + b.word[2] + carry,
            a.word[3] + b.word[3],
            a.word[4] + b.word[4],
            a.word[5] + b.word[5],
        };
    }

    static __device__ __forceinline__ u64 wide(Bits bits) { return bits_of(Element<T>::value(bits)); }

    // The node of a product of numbers, whose power has been split off, and of what else there was.
    static __device__ __forceinline__ Node<WORDS> node(const Factored &all, u64 sign, u64 zeros, u64 infs, u64 nans)
    {
        return {sign, bits_of(all.factor) & ~(u64(1) << 63), u64(i64(all.exponent)), zeros, infs, nans};
    }

    // Multiplies a lane by an ordinary element; returns whether it is known to be none. Of those that come whole, the lane shows it.
    static __device__ __forceinline__ bool multiply(Factored &lane, Bits element)
    {
        const u64 bits = wide(element);
        if constexpr (WHOLE) {
            lane.factor = mul(lane.factor, of_bits(bits));
            return false;
        } else {
            lane.exponent += i32(Factored::field(bits)) - 1023;
            lane.factor = mul(lane.factor, Factored::significand(bits));
            return Factored::is_special(bits);
        }
    }

    // Multiplies a lane by the magnitude of an element that may be subnormal; zeros, infinities and NaNs multiply nothing.
    static __device__ __forceinline__ void multiply_apart(Factored &lane, u64 bits)
    {
        const u64 fraction = bits << 12 >> 12;
        if (Factored::field(bits) == 0x7ff || bits << 1 == 0)
            return;
        // A subnormal's leading bit moves up to where that of the others is understood to be.
        const int up = Factored::field(bits) == 0 ? __clzll(i64(fraction)) - 11 : 0;
        lane.exponent += i32(Factored::field(bits)) - 1023 - (up > 0 ? up - 1 : 0);
        lane.factor = mul(lane.factor, Factored::significand(fraction << up));
    }

    // The product of the lanes' products, whose powers have been split off.
    static __device__ __forceinline__ Factored fold(int group, Factored (&lane)[ITEMS<T>])
    {
        const auto swap = [](Factored x, int distance) {
            return Factored{__shfl_xor_sync(ALL_LANES, x.factor, distance), __shfl_xor_sync(ALL_LANES, x.exponent, distance)};
        };
        Factored all = fold_lanes(group, lane, Factored::times, swap);
        all.split();
        return all;
    }

    static __device__ __forceinline__ void clear(Factored (&lane)[ITEMS<T>])
    {
#pragma unroll
        for (int i = 0; i < ITEMS<T>; ++i)
            lane[i] = {1.0, 0};
    }

    template <class Rows>
    static __device__ __forceinline__ Node<WORDS> leaf(Rows &rows)
    {
        Factored lane[ITEMS<T>];
        clear(lane);
        bool special = false;
        const auto split = [&] {
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i) {
                special |= Factored::is_special(bits_of(lane[i].factor));
                lane[i].split();
            }
        };
        rows.template pass<false>([&](const uint4 &x, const uint4 &, int k) {
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i)
                special |= multiply(lane[i], item<T>(x, i));
            if (WHOLE && k % PERIOD == PERIOD - 1)
                split();
        });
        split();
        if (__any_sync(ALL_LANES, special))
            return leaf_with_specials(rows);
        const Factored all = fold(rows.group(), lane);
        return node(all, bits_of(all.factor) >> 63, 0, 0, 0);
    }

    // The same with elements taken apart: zeros, infinities and NaNs are counted and multiply nothing.
    template <class Rows>
    static __device__ __forceinline__ Node<WORDS> leaf_with_specials(Rows &rows)
    {
        Factored lane[ITEMS<T>];
        clear(lane);
        u32 zeros = 0, infs = 0, nans = 0, negatives = 0;
        rows.once_more([&](const uint4 &x, const uint4 &, int) {
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i) {
                const u64 bits = wide(item<T>(x, i));
                const bool infinite = Factored::field(bits) == 0x7ff, zero = bits << 1 == 0;
                if (infinite && bits << 12 != 0) {
                    ++nans;
                    continue;
                }
                negatives += u32(bits >> 63);
                zeros += zero;
                infs += infinite;
                multiply_apart(lane[i], bits);
            }
        });
#pragma unroll
        for (int i = 0; i < ITEMS<T>; ++i)
            lane[i].split();
        const Factored all = fold(rows.group(), lane);
        return node(all, group_sum(rows.group(), negatives) % 2, group_sum(rows.group(), zeros), group_sum(rows.group(), infs), group_sum(rows.group(), nans));
    }

    // The same as `value`: nothing in it takes long.
    static __device__ __forceinline__ bool quick_value(const Node<WORDS> &root, u32 ask, u64 n, Bits &bits)
    {
        bits = value(root, ask, n);
        return true;
    }

    // The product, rounded once; nothing else can be asked.
    static __device__ __forceinline__ Bits value(const Node<WORDS> &root, u32, u64)
    {
        const Bits sign = root.word[0] != 0 ? Element<T>::SIGN : Bits(0);
        const bool zero = root.word[3] != 0, infinite = root.word[4] != 0;
        if (root.word[5] != 0 || (zero && infinite))
            return NOT_A_NUMBER<T>;
        if (infinite)
            return Element<T>::INFINITE | sign;
        if (zero)
            return sign;
        // Powers far beyond all formats do not fit the exponent.
        constexpr i64 FAR = 1 << 20;
        Truncated t;
        t.negative = sign != 0;
        t.low = (root.word[1] & 0x000fffffffffffff) | 0x0010000000000000;
        t.exponent = int(min(max(i64(root.word[2]), -FAR), FAR)) - 52;
        return t.template round<T>();
    }
};
