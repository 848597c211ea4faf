// The numbers of outputs that have few floats, by a few operations each: accumulators for abreast.cuh, which say whether they are sure of
// their answer. Where they are not, those of any number of elements answer: sums whose terms are far apart, quotients and roots too near
// the middle between two numbers, and whatever is not finite.
//
// `General` is what answers then; FEW_ELEMENTS are the most that the bounds here allow, and that the engine asks for.

#pragma once

#include "double_double.cuh"
#include "float_squares.cuh"
#include "float_total.cuh"
#include "strided_prods.cuh"

constexpr u64 FEW_ELEMENTS = 16;

__device__ __forceinline__ bool is_finite(f64 x) { return fabs(x) < of_bits(u64(0x7ff) << 52); }

// A real number that {hi, lo} is off by less than 2^-DIGITS of itself, rounded. False where it may be on either side of the middle between
// two numbers, or is near an end of the format, where low parts may have been lost.
template <int DIGITS = 90>
__device__ __forceinline__ bool rounded(Double real, u64 &bits)
{
    real = fast_two_sum(real.hi, real.lo);
    const f64 off = mul(fabs(real.hi), of_bits(u64(1023 - DIGITS) << 52));
    const f64 below = add(real.hi, sub(real.lo, off)), above = add(real.hi, add(real.lo, off));
    const u32 exponent = u32(bits_of(real.hi) >> 52) & 0x7ff;
    bits = bits_of(above);
    return below == above && exponent > 128 && exponent < 1023 + 960;
}

// The same of x / n, off by less than 2^-100 of itself more.
__device__ __forceinline__ Double over(Double x, f64 n)
{
    const f64 q = __ddiv_rn(x.hi, n);
    return {q, __ddiv_rn(add(fused(-q, n, x.hi), x.lo), n)};
}
__device__ __forceinline__ Double root_of(Double x)
{
    const f64 s = __dsqrt_rn(x.hi);
    return {s, __ddiv_rn(add(fused(-s, s, x.hi), x.lo), add(s, s))};
}

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
    // Whether there is settles(gap, answer, asked), for answers of which nothing is sure yet.
    static constexpr bool SETTLES_LATER = false;
};

// Sums and means of the shorter types: plain f64 adds, which the range of the elements makes exact (range.cuh).
template <class T>
struct FewFloats : FewOf<FloatTotal<T>> {
    using Base = FewOf<FloatTotal<T>>;
    using typename Base::Asked, typename Base::Bits;
    using Format = Element<T>;
    static constexpr bool SHIFTS = false;

    f64 sum = 0.0;
    Spread<T, 4> spread;

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
        return spread.holds();
    }
};

// The same of f64: a rounded sum, and the sum of what was rounded off, which is exact or tells that it is not.
template <>
struct FewFloats<f64> : FewOf<FloatTotal<f64>> {
    static constexpr bool SHIFTS = false;

    f64 sum = 0.0, error = 0.0;
    bool is_exact = true;

    template <int V, int N, class Number>
    __device__ __forceinline__ void take(const Bits (&bits)[N], Number, const Asked &asked)
    {
#pragma unroll
        for (int k = 0; k < N; ++k) {
            const Double next = two_sum(sum, of_bits(asked.of(bits[k])));
            const Double left = two_sum(error, next.lo);
            sum = next.hi;
            error = left.hi;
            is_exact = is_exact && left.lo == 0.0;
        }
    }

    __device__ __forceinline__ bool answer(Bits &answer, const Asked &asked) const
    {
        // The exact sum, of which `hi` is the rounded one.
        const Double all = two_sum(sum, error);
        answer = bits_of(all.hi);
        if (!is_exact || !is_finite(all.hi))
            return false;
        if (asked.ask != MEAN || all.hi == 0.0)
            return true;
        const f64 n = f64(asked.n);
        const f64 q = __ddiv_rn(all.hi, n);
        const Double left = two_sum(fused(-q, n, all.hi), all.lo);
        const f64 rest = __ddiv_rn(left.hi, n);
        const u32 exponent = u32(bits_of(q) >> 52) & 0x7ff;
        if (left.lo == 0.0 && fused(-rest, n, left.hi) == 0.0 && exponent > 128) {
            // The quotient is q + rest, also where that is the middle between two numbers.
            answer = bits_of(add(q, rest));
            return true;
        }
        return rounded({q, rest}, answer);
    }
};

// Sums of squares, norms, variances and deviations of the shorter types, in plain f64.
//
// Squares are of what an element differs from the first one where SPREAD is asked for. With u = 2^-53, n <= 16 and differences d, of which
// one is 0: each is off by u of itself, S2 = sum d^2 by (n + 3) u S2, S1 = sum d by n u sum |d|, and (sum |d|)^2 <= n S2. So n S2 - S1^2 is
// off by less than (3 n^2 + 4 n) u S2 < 2^-43 S2; and as there are n - 1 differences that are not 0, S1^2 <= (n - 1) S2, it is S2 at least:
// nothing cancels. The rest are roundings of 2^-53.
template <class T, bool SPREAD>
struct FewSquares : FewOf<FloatSquares<T, SPREAD>> {
    using Base = FewOf<FloatSquares<T, SPREAD>>;
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
        if (asks_root(asked.ask))
            real = __dsqrt_rn(real);
        const f64 off = mul(real, of_bits(u64(1023 - 42) << 52));
        const Bits below = narrow<T>(sub(real, off));
        answer = narrow<T>(add(real, off));
        return below == answer && is_finite(real);
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
template <bool SPREAD>
struct FewSquares<f64, SPREAD> : FewOf<FloatSquares<f64, SPREAD>> {
    using Base = FewOf<FloatSquares<f64, SPREAD>>;
    using typename Base::Asked, typename Base::Bits;
    static constexpr bool SHIFTS = SPREAD;

    Double squares = {0.0, 0.0}, sum = {0.0, 0.0};
    Bits first = 0, differ = 0;

    __device__ __forceinline__ void begin(Bits bits) { first = bits; }

    static __device__ __forceinline__ void add_to(Double &all, f64 x, f64 rest)
    {
        const Double next = two_sum(all.hi, x);
        all = {next.hi, add(all.lo, add(next.lo, rest))};
    }

    template <int V, int N, class Number>
    __device__ __forceinline__ void take(const Bits (&bits)[N], Number, const Asked &)
    {
#pragma unroll
        for (int k = 0; k < N; ++k) {
            Double x = {of_bits(bits[k]), 0.0};
            if constexpr (SPREAD) {
                x = two_sum(x.hi, -of_bits(first));
                add_to(sum, x.hi, x.lo);
            }
            // Whether anything is not 0: its square may be.
            differ |= bits_of(x.hi) << 1;
            const f64 square = mul(x.hi, x.hi);
            add_to(squares, square, fused(add(x.hi, x.hi), x.lo, fused(x.hi, x.hi, -square)));
        }
    }

    __device__ __forceinline__ bool answer(Bits &answer, const Asked &asked) const
    {
        const u64 free = freedom(asked.ask, asked.n);
        answer = SPREAD && free == 0 ? NOT_A_NUMBER<f64> : 0;
        if (differ == 0 || SPREAD && free == 0)
            return true;
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
        // Squares below the format would be off by more.
        const u32 exponent = u32(bits_of(real.hi) >> 52) & 0x7ff;
        if (asks_root(asked.ask))
            real = root_of(real);
        return rounded(real, answer) && exponent > 128;
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
    bool has_zero = false;

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
        }
    }

    __device__ __forceinline__ bool answer(Bits &answer, const Asked &) const
    {
        answer = narrow<T>(product.hi);
        if (has_zero || !is_finite(product.hi))
            return has_zero && is_finite(product.hi);
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
