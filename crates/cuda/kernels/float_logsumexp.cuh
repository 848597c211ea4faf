// Sums of exponentials of floats in the fixed tree: core's `Exponentials`, crates/core/src/op/logsumexp.rs.
//
// Where sums are in one f64, a leaf is read once: as if its largest element were not beyond REACH, so that exponents count from 0. If it
// is, or an element is NaN, the leaf is read again, as the next ones are until they need it no more: for the largest element, and for
// the exponentials of all differences from it. Infinities and NaNs count as nothing in both; only if there are any, they are counted.

#pragma once

#include "answer.cuh"
#include "double_double.cuh"
#include "exponential.cuh"
#include "narrow.cuh"
#include "tree.cuh"

// What sums of exponentials of elements are kept in, and how far they are from the largest: core's `ExpSum`.
struct OneF64 {
    using Sum = f64;
    static constexpr f64 REACH = 256.0;
    // e^(x - reference), added to sums.
    struct Terms {
        const f64 reference;
        Powers powers;
        __device__ __forceinline__ f64 add(f64 sum, f64 x) const
        {
            const f64 difference = sub(x, reference);
            // Infinities and NaN are as good as far below.
            return plus_exponential(sum, fabs(difference) < -FLOOR ? difference : FLOOR, powers);
        }
    };
    static __device__ __forceinline__ void prepare() { Powers::lay_out(); }
    static __device__ __forceinline__ f64 of_difference(f64 x, f64 largest) { return exponential(sub(x, largest)); }
    static __device__ __forceinline__ f64 plus(f64 a, f64 b) { return ::add(a, b); }
    static __device__ __forceinline__ f64 times(f64 a, f64 b) { return mul(a, b); }
    static __device__ __forceinline__ f64 swap(f64 x, int distance) { return __shfl_xor_sync(ALL_LANES, x, distance); }
    static __device__ __forceinline__ Double whole(f64 x) { return {x, 0.0}; }
    static __device__ __forceinline__ f64 part(Double x) { return x.hi; }
};
struct TwoF64 {
    using Sum = Double;
    static constexpr f64 REACH = 0.0;
    struct Terms {
        const f64 reference;
        __device__ __forceinline__ Double add(Double sum, f64 x) const { return ::plus(sum, of_difference(x, reference)); }
    };
    static __device__ __forceinline__ void prepare() {}
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
    static constexpr int DEPTH = sizeof(Bits) == 4 ? 8 : 4;
    static constexpr Bits IDENTITY = Element<T>::SIGN | Element<T>::INFINITE;
    // The reference, the two parts of the sum, NaNs, positive infinities.
    static constexpr int WORDS = 5;
    // Minus infinity: the largest of no elements.
    static constexpr u64 NONE = 0xfff0000000000000;

    // By all threads of the block, before the first leaf.
    static __device__ __forceinline__ void prepare() { Exp::prepare(); }

    static __device__ __forceinline__ Value infinity() { return Element<T>::value(Element<T>::INFINITE); }

    static __device__ __forceinline__ Node<WORDS> node(f64 reference, Sum sum, u64 nans, u64 infinities)
    {
        const Double whole = Exp::whole(sum);
        return {bits_of(reference), bits_of(whole.hi), bits_of(whole.lo), nans, infinities};
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

    static __device__ __forceinline__ bool reaches(f64 largest) { return fabs(largest) <= Exp::REACH; }
    static __device__ __forceinline__ bool is_none(f64 largest) { return largest == of_bits(NONE); }

    // The largest of all that the leaf's threads have.
    static __device__ __forceinline__ f64 largest_of(int group, Value most)
    {
#pragma unroll
        for (int distance = group / 2; distance > 0; distance /= 2) {
            const Value other = __shfl_xor_sync(ALL_LANES, most, distance);
            most = other > most ? other : most;
        }
        return most;
    }

    // The node of a leaf with exponents that count from 0, and whether that is right for all leaves of the warp.
    template <class Rows>
    static __device__ __forceinline__ bool leaf_from_zero(Rows &rows, Node<WORDS> &out)
    {
        const Powers powers;
        Value most = -infinity();
        f64 lane[ITEMS<T>] = {};
        rows.template pass<false>([&](const uint4 &v, const uint4 &, int) {
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i) {
                const Value x = Element<T>::value(item<T>(v, i));
                most = fmaxf(most, x);
                lane[i] = plus_exponential(lane[i], at_least_floor(x), powers);
            }
        });
        const f64 largest = largest_of(rows.group(), most);
        const f64 sum = fold_lanes(rows.group(), lane, Exp::plus, Exp::swap);
        // NaNs, which `most` does not show, are in the sum.
        out = node(is_none(largest) ? largest : 0.0, sum, 0, 0);
        return __all_sync(ALL_LANES, (is_none(largest) || reaches(largest)) && sum == sum);
    }

    // The node of a leaf of any elements, of which the first rows are on their way or not.
    template <bool COMING, class Rows>
    static __device__ __forceinline__ Node<WORDS> leaf_from_largest(Rows &rows)
    {
        Value most = -infinity();
        bool odd = false;
        const auto look = [&](const uint4 &v, const uint4 &, int) {
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i) {
                const Value x = Element<T>::value(item<T>(v, i));
                const bool ordinary = x < infinity();
                most = ordinary && x > most ? x : most;
                odd |= !ordinary;
            }
        };
        if constexpr (COMING)
            rows.template pass<true>(look);
        else
            rows.once_more(look);
        const f64 largest = largest_of(rows.group(), most), reference = reaches(largest) ? 0.0 : largest;

        const typename Exp::Terms terms = {reference};
        Sum lane[ITEMS<T>] = {};
        const auto take = [&](const uint4 &v, const uint4 &, int) {
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i)
                lane[i] = terms.add(lane[i], f64(Element<T>::value(item<T>(v, i))));
        };
        if constexpr (COMING)
            rows.template pass<false>(take);
        else
            rows.once_more(take);
        const Sum sum = fold_lanes(rows.group(), lane, Exp::plus, Exp::swap);

        u64 nans = 0, infinities = 0;
        const bool some_odd = __any_sync(ALL_LANES, odd);
        if (some_odd) {
            u32 nan = 0, infinite = 0;
            rows.once_more([&](const uint4 &v, const uint4 &, int) {
#pragma unroll
                for (int i = 0; i < ITEMS<T>; ++i) {
                    const Bits bits = item<T>(v, i);
                    nan += Element<T>::is_nan(bits);
                    infinite += bits == Element<T>::INFINITE;
                }
            });
            nans = group_sum(rows.group(), nan);
            infinities = group_sum(rows.group(), infinite);
        }
        rows.twice = some_odd || !__all_sync(ALL_LANES, is_none(largest) || reaches(largest));
        return node(reference, sum, nans, infinities);
    }

    template <class Rows>
    static __device__ __forceinline__ Node<WORDS> leaf(Rows &rows)
    {
        if constexpr (Exp::REACH > 0.0) {
            if (!rows.twice) {
                Node<WORDS> node;
                return leaf_from_zero(rows, node) ? node : leaf_from_largest<false>(rows);
            }
        }
        return leaf_from_largest<true>(rows);
    }

    // Whether a rough logarithm tells the number; then it is the one of `value`, whose long one is off by less than 2^-90 of itself. The rough
    // one is off by less than 2^-40, the sums with it each round by 2^-53 of themselves: if both ends of what it may be round to one
    // number, all between them does, and zero is not among that.
    static __device__ __forceinline__ bool quick_value(const Node<WORDS> &root, u32, u64, Bits &bits)
    {
        bits = 0;
        if constexpr (sizeof(Bits) < 8) {
            const f64 reference = of_bits(root.word[0]);
            if ((root.word[3] | root.word[4]) != 0 || is_none(reference))
                return false;
            const f64 rough = add(reference, rough_logarithm(of_bits(root.word[1])));
            const f64 off = fused(fabs(rough), 0x1p-50, 0x1p-40);
            bits = narrow<T>(sub(rough, off));
            return bits == narrow<T>(add(rough, off));
        }
        return false;
    }

    // The logarithm of the sum, rounded once; nothing else can be asked.
    static __device__ __forceinline__ Bits value(const Node<WORDS> &root, u32 ask, u64 n)
    {
        Bits quick;
        if (quick_value(root, ask, n, quick))
            return quick;
        if (root.word[3] != 0)
            return NOT_A_NUMBER<T>;
        if (root.word[4] != 0)
            return Element<T>::INFINITE;
        const f64 reference = of_bits(root.word[0]);
        if (is_none(reference))
            return IDENTITY;
        const Double answer = plus({reference, 0.0}, logarithm({of_bits(root.word[1]), of_bits(root.word[2])}));
        // No -0 and no trace of one.
        if (answer.hi == 0.0)
            return 0;
        if constexpr (sizeof(Bits) == 8)
            return bits_of(answer.hi);
        else
            return narrow<T>(round_to_odd(answer));
    }
};
