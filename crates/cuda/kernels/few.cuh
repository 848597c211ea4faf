// The numbers of outputs that have few floats, by a few operations each: accumulators for abreast.cuh, which say whether they are sure of
// their answer. Where they are not, those of any number of elements answer: sums whose terms are far apart, quotients and roots too near
// the middle between two numbers, and whatever is not finite.
//
// `General` is what answers then; FEW_ELEMENTS are the most that the bounds here allow, and that the engine asks for.

#pragma once

#include "float_total.cuh"
#include "square_total.cuh"
#include "strided_prods.cuh"

constexpr u64 FEW_ELEMENTS = 16;

// What few elements are told, and what they are to a walk.
template <class Accumulator>
struct FewOf {
    using General = Accumulator;
    using Item = typename General::Item;
    using Bits = typename General::Bits;
    using Asked = typename General::Asked;
    static constexpr bool NUMBERED = false, SETTLES = false;
    // Whether the general accumulators have a table in shared memory.
    static constexpr bool HAS_TABLE = false;
    // Whether the general ones take a thread's outputs side by side.
    static constexpr bool HAS_AGAIN = false;
    // Whether there is settles(gap, answer, asked), for answers of which nothing is sure yet.
    static constexpr bool SETTLES_LATER = false;
};

// Sums and means of the shorter types: plain f64 adds, which the range of the elements makes exact (range.cuh). There may be any number.
template <class T>
struct FewFloats : FewOf<FloatTotal<T>> {
    using Base = FewOf<FloatTotal<T>>;
    using typename Base::Asked, typename Base::Bits;
    using Format = Element<T>;
    // Nothing that f16 has is far apart.
    static constexpr bool SHIFTS = false, HAS_AGAIN = Spread<T, 0>::ASKED;

    f64 sum = 0.0;
    Spread<T, 0> spread;
    u32 missing = 0;

    template <int V, int N, class Number>
    __device__ __forceinline__ void take(const Bits (&bits)[N], Number, const Asked &asked)
    {
#pragma unroll
        for (int k = 0; k < N; ++k)
            sum = spread.added(sum, Format::value(asked.of(bits[k])));
    }

    __device__ __forceinline__ bool answer(Bits &answer, const Asked &asked) const
    {
        // NaNs and infinities make the sum one, and finite elements do not.
        if (!is_finite(sum)) {
            answer = Specials<T>{sum != sum, sum > 0.0, sum < 0.0}.bits();
            return true;
        }
        answer = narrow<T>(asked.ask == MEAN ? quotient(sum, asked.n) : sum);
        if (asked.n == 0)
            answer = asked.ask == MEAN ? NOT_A_NUMBER<T> : Bits(0);
        return spread.holds(asked.n);
    }
};
// Of f64, the general ones are as quick.
template <>
struct FewFloats<f64> : FloatTotal<f64> {
    using General = FloatTotal<f64>;
    static constexpr bool HAS_TABLE = false, HAS_AGAIN = false, SETTLES_LATER = false;
};

// Sums of squares, norms, variances and deviations of the shorter types, in plain f64.
//
// Squares are of what an element differs from the first one where SPREAD is asked for. With u = 2^-53, n <= 16 and differences d, of which
// one is 0: each is off by u of itself, S2 = sum d^2 by (n + 3) u S2, S1 = sum d by n u sum |d|, and (sum |d|)^2 <= n S2. So n S2 - S1^2 is
// off by less than (3 n^2 + 4 n) u S2 < 2^-43 S2; and as there are n - 1 differences that are not 0, S1^2 <= (n - 1) S2, it is S2 at least:
// nothing cancels. The rest are roundings of 2^-53.
template <class T, bool SPREAD>
struct FewSquares : FewOf<SquareTotal<T, SPREAD>> {
    using Base = FewOf<SquareTotal<T, SPREAD>>;
    using typename Base::Asked, typename Base::Bits;
    using Format = Element<T>;
    static constexpr bool SHIFTS = SPREAD, SETTLES_LATER = true;

    f64 squares = 0.0, sum = 0.0;
    Bits first = 0;

    __device__ __forceinline__ void begin(Bits bits) { first = bits; }

    template <int V, int N, class Number>
    __device__ __forceinline__ void take(const Bits (&bits)[N], Number, const Asked &)
    {
#pragma unroll
        for (int k = 0; k < N; ++k) {
            f64 x = f64(Format::value(bits[k]));
            if constexpr (SPREAD) {
                x = sub(x, f64(Format::value(first)));
                sum = add(sum, x);
            }
            squares = fused(x, x, squares);
        }
    }

    __device__ __forceinline__ bool answer(Bits &answer, const Asked &asked) const
    {
        const f64 n = f64(asked.n), free = f64(freedom(asked.ask, asked.n));
        f64 real = squares;
        if constexpr (SPREAD) {
            if (free == 0.0) {
                answer = NOT_A_NUMBER<T>;
                return true;
            }
            real = __ddiv_rn(sub(mul(n, squares), mul(sum, sum)), mul(n, free));
        }
        // Finite elements make nothing that is not: of those of infinities and NaNs a variance is NaN, as infinite sums cancel.
        if (!is_finite(real)) {
            answer = Specials<T>{real != real, true}.bits();
            return true;
        }
        if (asks_root(asked.ask))
            real = __dsqrt_rn(real);
        const f64 off = mul(real, of_bits(u64(1023 - 42) << 52));
        const Bits below = narrow<T>(sub(real, off));
        answer = narrow<T>(add(real, off));
        return below == answer;
    }

    // Whether answer(), which was not sure, can be made so: answers of few digits often lie in the middle between two numbers. `gap` is how
    // many binades there are between the largest and the smallest element that is not 0.
    //
    // With F stored bits, elements are multiples of a unit and below 2^(gap + F + 1) of it, differences below twice that. So n S2 and S1^2 are
    // below 2^(8 + 2 (gap + F + 2)) squares of it, and exact where that is 2^53 at most. Then the quotient and the root are exact where their
    // rests are 0. Of two elements, the deviation is half their difference, which is exact if it has 53 bits.
    __device__ __forceinline__ bool settles(u32 gap, Bits &answer, const Asked &asked) const
    {
        const f64 n = f64(asked.n);
        if (SPREAD && asks_root(asked.ask) && asked.n == 2 && asked.ask >> 8 == 0 && gap + Format::FRACTION + 2 <= 53) {
            answer = narrow<T>(fabs(mul(sum, 0.5)));
            return true;
        }
        if (8 + 2 * (gap + Format::FRACTION + 2) > 53)
            return false;
        const f64 over = SPREAD ? mul(n, f64(freedom(asked.ask, asked.n))) : 1.0;
        const f64 all = SPREAD ? sub(mul(n, squares), mul(sum, sum)) : squares;
        const f64 real = __ddiv_rn(all, over);
        const f64 root = asks_root(asked.ask) ? __dsqrt_rn(real) : real;
        answer = narrow<T>(root);
        return fused(real, over, -all) == 0.0 && (!asks_root(asked.ask) || fused(root, root, -real) == 0.0);
    }
};

// The same of f64, with what each operation rounds off in a second sum. It is off by less than 2^-95 of n S2 - S1^2 by the same argument
// with u = 2^-106.
//
// Squares leave the format where elements are large or small. So elements are taken times a power of two, without which the answer is left.
// It is chosen when the first elements come that differ from the first one, or from 0 where no SPREAD is asked for. Until then, all sums are
// 0, in any scale. It brings the largest of those that come together, and the first one, to 2^-300 or more, and below 2^-299. Exponents
// have ends: what is 2^723 or more is below 4 instead, and subnormals are multiples of 2^-351. One of them differs from the first one by
// 2^-353 at least: the largest, or if that is as large as the first one, any that differs. So S2 >= 2^-706, as is n S2 - S1^2, and
// `squares` tells whether anything differs. Elements lose 2^-1075 at most where they leave the format below, and products do as well:
// nothing beside 2^-95 of S2. Later ones may be larger by 700 binades. Beyond that, S2 leaves what rounded() is sure of.
//
// The deviation of two elements, with ddof 0, is half their difference, often in the middle between two numbers. `sum` has that difference
// rounded once, as the first element differs from itself by 0. If it is rounded, it is 2^-1021 at least without the power of two, so that
// its half is normal and not rounded again. An element that lost something is so far below the other one that this is the difference.
template <bool SPREAD>
struct FewSquares<f64, SPREAD> : FewOf<SquareTotal<f64, SPREAD>> {
    using Base = FewOf<SquareTotal<f64, SPREAD>>;
    using typename Base::Asked, typename Base::Bits;
    static constexpr bool SHIFTS = SPREAD;

    Double squares = {0.0, 0.0}, sum = {0.0, 0.0};
    Bits first = 0;
    // The upper half of the largest magnitude, doubled.
    u32 most = 0;
    // The biased exponent of the power of two.
    int scale = 1023;

    __device__ __forceinline__ void begin(Bits bits)
    {
        first = bits;
        most = u32(bits >> 32) << 1;
    }

    static __device__ __forceinline__ void add_to(Double &all, f64 x, f64 rest)
    {
        const Double next = two_sum(all.hi, x);
        all = {next.hi, add(all.lo, add(next.lo, rest))};
    }

    template <int V, int N, class Number>
    __device__ __forceinline__ void take(const Bits (&bits)[N], Number, const Asked &)
    {
#pragma unroll
        for (int k = 0; k < N; ++k)
            most = max(most, u32(bits[k] >> 32) << 1);
        // As long as nothing differs, all sums are 0, in any scale.
        if (squares.hi == 0.0)
            scale = max(2046 - 300 - int(most >> 21), 1);
        const f64 power = of_bits(u64(scale) << 52), origin = mul(of_bits(first), power);
#pragma unroll
        for (int k = 0; k < N; ++k) {
            Double x = {mul(of_bits(bits[k]), power), 0.0};
            if constexpr (SPREAD) {
                x = two_sum(x.hi, -origin);
                add_to(sum, x.hi, x.lo);
            }
            const f64 square = mul(x.hi, x.hi);
            add_to(squares, square, fused(add(x.hi, x.hi), x.lo, fused(x.hi, x.hi, -square)));
        }
    }

    __device__ __forceinline__ bool answer(Bits &answer, const Asked &asked) const
    {
        const u64 free = freedom(asked.ask, asked.n);
        answer = SPREAD && free == 0 ? NOT_A_NUMBER<f64> : 0;
        if (squares.hi == 0.0 || SPREAD && free == 0)
            return true;
        if (most >= u32(0x7ff) << 21) {
            answer = Specials<f64>{SPREAD || squares.hi != squares.hi, true}.bits();
            return true;
        }
        const bool is_root = asks_root(asked.ask), is_half = SPREAD && is_root && asked.n == 2 && free == 2;
        Double real = squares;
        if constexpr (SPREAD) {
            const f64 n = f64(asked.n);
            const f64 whole = mul(n, squares.hi), part = mul(sum.hi, sum.hi);
            const f64 whole_rest = add(fused(n, squares.hi, -whole), mul(n, squares.lo));
            const f64 part_rest = fused(add(sum.hi, sum.hi), sum.lo, fused(sum.hi, sum.hi, -part));
            const Double spread = two_sum(whole, -part);
            real = fast_two_sum(spread.hi, add(spread.lo, sub(whole_rest, part_rest)));
            real = over(real, mul(n, f64(free)));
        }
        if (is_root)
            real = root_of(real);
        if (is_half)
            real = {mul(fabs(sum.hi), 0.5), 0.0};
        const int moved = 1023 - scale;
        return rounded_at(real, is_root ? moved : 2 * moved, is_half, is_root, answer);
    }
};

// Products: of the shorter types in plain f64, of f64 with what is rounded off beside it.
//
// A product of floats is e to the power of a sum of rounded logarithms (float_prod.cuh): within 16 * 1.1 * 2^-75 < 2^-70 of the true one, of
// the shorter types within 16 * 0.6 * 2^-57 < 2^-53. What is here is off by less than 16 * 2^-105 and 16 * 2^-53. Where all numbers as near as
// that round to the same one, so does that power.
template <class T>
struct FewProducts : FewOf<StridedProd<T>> {
    using Base = FewOf<StridedProd<T>>;
    using typename Base::Asked, typename Base::Bits;
    using Format = Element<T>;
    static constexpr bool SHIFTS = false, HAS_TABLE = true, LONG = sizeof(Bits) == 8;

    Double product = {1.0, 0.0};
    // The smallest of the products so far: below the format they are not those that are meant.
    f64 least = 1.0;
    bool has_zero = false, has_nan = false;

    template <int V, int N, class Number>
    __device__ __forceinline__ void take(const Bits (&bits)[N], Number, const Asked &)
    {
#pragma unroll
        for (int k = 0; k < N; ++k) {
            const f64 x = f64(Format::value(bits[k]));
            const f64 next = mul(product.hi, x);
            if constexpr (LONG)
                product.lo = fused(product.lo, x, fused(product.hi, x, -next));
            product.hi = next;
            least = fmin(least, fabs(next));
            has_zero = has_zero || x == 0.0;
            has_nan = has_nan || x != x;
        }
    }

    // Whether no product of so many finite elements leaves the format of f64: those of f16 are below 2^16 and from 2^-24 on, those of the
    // others below 2^128 and from 2^-149 on.
    static __device__ __forceinline__ bool is_within(u64 n) { return !LONG && (Format::FRACTION == Element<f16>::FRACTION || n <= 7); }

    __device__ __forceinline__ bool answer(Bits &answer, const Asked &asked) const
    {
        answer = narrow<T>(product.hi);
        if (!is_finite(product.hi)) {
            answer = product.hi != product.hi ? NOT_A_NUMBER<T> : answer;
            return has_nan || is_within(asked.n);
        }
        if (has_zero)
            return true;
        if (least < of_bits(u64(1023 - 890) << 52))
            return false;
        if constexpr (LONG) {
            return rounded<68>(product, answer);
        } else {
            const f64 off = mul(product.hi, of_bits(u64(1023 - 45) << 52));
            answer = narrow<T>(add(product.hi, off));
            return answer == narrow<T>(sub(product.hi, off));
        }
    }
};
