// Sums of exponentials of floats in the fixed tree: core's `Exponentials`, crates/core/src/op/logsumexp.rs.
//
// A leaf is read twice: for its largest element, and for the exponentials of all differences from it. Infinities and NaNs among its
// elements count as nothing in both; only if there are any, they are counted.

#pragma once

#include "double_double.cuh"
#include "tree.cuh"

// What sums of exponentials of elements are kept in, and how far they are from the largest: core's `ExpSum`.
struct OneF64 {
    using Sum = f64;
    static __device__ __forceinline__ f64 of_difference(f64 x, f64 largest) { return exponential(sub(x, largest)); }
    static __device__ __forceinline__ f64 plus(f64 a, f64 b) { return add(a, b); }
    static __device__ __forceinline__ f64 times(f64 a, f64 b) { return mul(a, b); }
    static __device__ __forceinline__ f64 swap(f64 x, int distance) { return __shfl_xor_sync(ALL_LANES, x, distance); }
    static __device__ __forceinline__ Double whole(f64 x) { return {x, 0.0}; }
    static __device__ __forceinline__ f64 part(Double x) { return x.hi; }
};
struct TwoF64 {
    using Sum = Double;
    static __device__ __forceinline__ Double of_difference(f64 x, f64 largest) { return exponential(two_sum(x, -largest)); }
    static __device__ __forceinline__ Double plus(Double a, Double b) { return ::plus(a, b); }
    static __device__ __forceinline__ Double times(Double a, Double b) { return ::times(a, b); }
    static __device__ __forceinline__ Double swap(Double x, int distance)
    {
        return {__shfl_xor_sync(ALL_LANES, x.hi, distance), __shfl_xor_sync(ALL_LANES, x.lo, distance)};
    }
    static __device__ __forceinline__ Double whole(Double x) { return x; }
    static __device__ __forceinline__ Double part(Double x) { return x; }
};
template <class T> struct Exponential : OneF64 {};
template <> struct Exponential<f64> : TwoF64 {};

template <class T>
struct FloatLogSumExp {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    using Value = decltype(Element<T>::value(0));
    using Exp = Exponential<T>;
    using Sum = typename Exp::Sum;
    static constexpr bool PAIRS = false;
    static constexpr int DEPTH = 4;
    static constexpr Bits IDENTITY = Element<T>::SIGN | Element<T>::INFINITE;
    // The largest element, the two parts of the sum, NaNs, positive infinities.
    static constexpr int WORDS = 5;
    static constexpr int GROUP = LANES / ITEMS<T>;
    // Minus infinity: the largest of no elements.
    static constexpr u64 NONE = 0xfff0000000000000;

    static __device__ __forceinline__ Value infinity() { return Element<T>::value(Element<T>::INFINITE); }

    static __device__ __forceinline__ Node<WORDS> node(f64 largest, Sum sum, u64 nans, u64 infinities)
    {
        const Double whole = Exp::whole(sum);
        // Which zero is the largest is of no matter.
        return {largest == 0.0 ? 0 : bits_of(largest), bits_of(whole.hi), bits_of(whole.lo), nans, infinities};
    }

    static __device__ __forceinline__ Node<WORDS> combine(const Node<WORDS> &a, const Node<WORDS> &b)
    {
        const bool less = of_bits(a.word[0]) < of_bits(b.word[0]);
        const auto above = [&](int w) { return of_bits(less ? b.word[w] : a.word[w]); };
        const auto below = [&](int w) { return of_bits(less ? a.word[w] : b.word[w]); };
        Sum sum = Exp::part({above(1), above(2)});
        if (below(0) > of_bits(NONE)) {
            const Sum rest = Exp::part({below(1), below(2)});
            sum = Exp::plus(sum, Exp::times(rest, Exp::of_difference(below(0), above(0))));
        }
        return node(above(0), sum, a.word[3] + b.word[3], a.word[4] + b.word[4]);
    }

    static __device__ __forceinline__ Node<WORDS> leaf(Rows<FloatLogSumExp> &rows)
    {
        Value most = -infinity();
        bool odd = false;
        rows.template pass<true>([&](const uint4 &v, const uint4 &, int) {
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i) {
                const Value x = Element<T>::value(item<T>(v, i));
                const bool ordinary = x < infinity();
                most = ordinary && x > most ? x : most;
                odd |= !ordinary;
            }
        });
#pragma unroll
        for (int distance = GROUP / 2; distance > 0; distance /= 2) {
            const Value other = __shfl_xor_sync(ALL_LANES, most, distance);
            most = other > most ? other : most;
        }
        const f64 largest = most;

        Sum lane[ITEMS<T>] = {};
        rows.template pass<false>([&](const uint4 &v, const uint4 &, int) {
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i)
                lane[i] = Exp::plus(lane[i], Exp::of_difference(f64(Element<T>::value(item<T>(v, i))), largest));
        });
        const Sum sum = fold_lanes<GROUP>(lane, Exp::plus, Exp::swap);

        u64 nans = 0, infinities = 0;
        if (__any_sync(ALL_LANES, odd)) {
            u32 nan = 0, infinite = 0;
            rows.once_more([&](const uint4 &v, const uint4 &, int) {
#pragma unroll
                for (int i = 0; i < ITEMS<T>; ++i) {
                    const Bits bits = item<T>(v, i);
                    nan += Element<T>::is_nan(bits);
                    infinite += bits == Element<T>::INFINITE;
                }
            });
            nans = group_sum<GROUP>(nan);
            infinities = group_sum<GROUP>(infinite);
        }
        return node(largest, sum, nans, infinities);
    }
};
