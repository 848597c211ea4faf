// Plain sums of terms in the fixed tree: core's `Plain`, crates/core/src/op/fast.rs.
//
// A leaf adds all terms, and an infinity or a NaN among them cannot add up to something finite: only a sum that is not finite needs
// a closer look, where elements that are not finite are counted and add nothing. Lanes start at +0 and so are never -0.

#pragma once

#include "answer.cuh"
#include "narrow.cuh"
#include "rounded.cuh"
#include "tree.cuh"

// What an element contributes.
enum Term { ITSELF, ABS, SQUARE, PRODUCT };

__device__ __forceinline__ f32 magnitude(f32 x) { return fabsf(x); }
__device__ __forceinline__ f64 magnitude(f64 x) { return fabs(x); }
__device__ __forceinline__ bool is_finite(f32 x) { return fabsf(x) < __uint_as_float(0x7f800000); }
__device__ __forceinline__ bool is_finite(f64 x) { return fabs(x) < of_bits(0x7ff0000000000000); }

// AHEAD rows are on their way while one is worked on.
template <class T, Term TERM, int AHEAD = TERM == PRODUCT ? 8 : 16>
struct Fast {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    using Sum = decltype(Element<T>::value(0));
    static constexpr bool PAIRS = TERM == PRODUCT;
    static constexpr int DEPTH = AHEAD;
    static constexpr Bits IDENTITY = 0;
    // The sum as an f64, NaN terms, infinite terms above zero and below.
    static constexpr int WORDS = 4;

    static __device__ __forceinline__ Sum term(Sum x, Sum y)
    {
        return TERM == ITSELF ? x : TERM == ABS ? magnitude(x) : TERM == SQUARE ? mul(x, x) : mul(x, y);
    }

    // Which NaN an overflow left behind is of no matter.
    static __device__ __forceinline__ u64 word(Sum sum) { return sum != sum ? 0x7ff8000000000000 : bits_of(sum); }
    static __device__ __forceinline__ Sum sum(u64 word) { return Sum(of_bits(word)); }

    static __device__ __forceinline__ Node<WORDS> combine(const Node<WORDS> &a, const Node<WORDS> &b)
    {
        return {word(add(sum(a.word[0]), sum(b.word[0]))), a.word[1] + b.word[1], a.word[2] + b.word[2], a.word[3] + b.word[3]};
    }

    // Adds what `of` makes of each pair of elements, by lane, and folds the lanes.
    template <bool AGAIN, class Rows, class Of>
    static __device__ __forceinline__ Sum sum_of(Rows &rows, Of of)
    {
        Sum lane[ITEMS<T>] = {};
        const auto take = [&](const uint4 &x, const uint4 &y, int) {
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i)
                lane[i] = add(lane[i], of(Element<T>::value(item<T>(x, i)), Element<T>::value(item<T>(y, i))));
        };
        if constexpr (AGAIN)
            rows.once_more(take);
        else
            rows.template pass<false>(take);
        const auto swap = [](Sum x, int distance) { return __shfl_xor_sync(ALL_LANES, x, distance); };
        return fold_lanes(rows.group(), lane, [](Sum a, Sum b) { return add(a, b); }, swap);
    }

    template <class Rows>
    static __device__ __forceinline__ Node<WORDS> leaf(Rows &rows)
    {
        Sum total = sum_of<false>(rows, [](Sum x, Sum y) { return term(x, y); });
        u64 nans = 0, above = 0, below = 0;
        if (__any_sync(ALL_LANES, !is_finite(total))) {
            u32 nan = 0, up = 0, down = 0;
            total = sum_of<true>(rows, [&](Sum x, Sum y) {
                const Sum z = term(x, y);
                if (is_finite(x) && (!PAIRS || is_finite(y)))
                    return z;
                nan += z != z;
                up += z > 0;
                down += z < 0;
                return Sum(0);
            });
            nans = group_sum(rows.group(), nan);
            above = group_sum(rows.group(), up);
            below = group_sum(rows.group(), down);
        }
        return {word(total), nans, above, below};
    }

    // Whether the number is the sum, and that.
    static __device__ __forceinline__ bool quick_value(const Node<WORDS> &root, u32 ask, u64 n, Bits &bits)
    {
        bits = value(root, TOTAL, n);
        return ask == TOTAL;
    }

    // The sum, the mean of n elements or the root of the sum: each a rounded f64, and then rounded to the format.
    static __device__ __forceinline__ Bits value(const Node<WORDS> &root, u32 ask, u64 n)
    {
        const Specials<T> specials = {root.word[1] != 0, root.word[2] != 0, root.word[3] != 0};
        // Nothing makes anything else of them: no square is below zero.
        if (specials.any())
            return specials.bits();
        const f64 total = of_bits(root.word[0]);
        const f64 number = ask == MEAN ? __ddiv_rn(total, f64(n)) : ask == NORM ? __dsqrt_rn(total) : total;
        return number != number ? NOT_A_NUMBER<T> : narrow<T>(number);
    }
};

// For rows of a table, which may be short: what is on its way of rows that are not there is a waste.
template <class T, Term TERM>
using RowFast = Fast<T, TERM, 8>;
