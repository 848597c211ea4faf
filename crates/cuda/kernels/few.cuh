// The numbers of outputs that have few floats, by a few operations each: accumulators for abreast.cuh, which say whether they are sure of
// their answer. Where they are not, those of any number of elements answer: sums whose terms are far apart, quotients and roots too near
// the middle between two numbers, and whatever is not finite.
//
// `General` is what answers then; FEW_ELEMENTS are the most that the bounds here allow, and that the engine asks for.

#pragma once

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

// real * 2^moved, rounded once, of a real that is positive or not finite: that product may leave the format. False as above. `is_exact` says
// that real is off by nothing, `is_root` that it is the root of D / m in units of 2^-1074, of integers D > 0 and 0 < m <= 256.
//
// Inside the format, the digits are those of real, and above it, there is infinity. Below the normal numbers, where the biased exponent
// `place` is 0 or less, the unit is 2^-1074. With -53 or less, the product is below half of that, and leaves 0. Others, in this unit, are
// added to 2^52, where the last bit is 1. That rounds the high part, to even in the middle. `rest` is what the product has besides, but for
// less than 2^-37. It says which integer is nearest, unless it is too near a half.
//
// A root below 2^16 units is not: rounding the high part is enough. Let t be k + 1/2. If the root is not t, their squares differ by
// |4 D - m (2 k + 1)^2| / (4 m) >= 2^-10, and they by 2^-28, so that the high part, off by less than 2^-36, is on the root's side of t. If the
// root is t, so is the high part.
__device__ __forceinline__ bool rounded_at(Double real, int moved, bool is_exact, bool is_root, u64 &bits)
{
    real = fast_two_sum(real.hi, real.lo);
    const bool is_sure = rounded(real, bits);
    const int exponent = int(bits_of(real.hi) >> 52) & 0x7ff, place = exponent + moved;
    if (place > 0 || exponent >= 1023 + 960) {
        bits = place < 0x7ff ? bits + (u64(i64(moved)) << 52) : u64(0x7ff) << 52;
        return is_sure;
    }
    bits = 0;
    if (place < -52)
        return true;
    constexpr f64 ONES = 4503599627370496.0, NEAR = 1.0 / 1073741824.0;
    const f64 unit = of_bits(u64(1023 + 1074 + moved) << 52), x = mul(real.hi, unit), integer = add(x, ONES);
    const f64 rest = add(sub(x, sub(integer, ONES)), mul(real.lo, unit));
    const f64 beyond = sub(fabs(rest), 0.5);
    // An integer that was rounded to even is the nearest one, or that on the side of the rest.
    bits = bits_of(integer) - bits_of(ONES) + (beyond > NEAR ? rest > 0.0 ? 1 : -1 : 0);
    return is_exact || (is_root && x < 65536.0) || fabs(beyond) > NEAR;
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
    // Whether there are accumulators, Again, for outputs of which these are not sure.
    static constexpr bool HAS_AGAIN = false;
    // Whether there is settles(gap, answer, asked), for answers of which nothing is sure yet.
    static constexpr bool SETTLES_LATER = false;
};

// Sums and means of floats that may be far apart: a rounded sum, the sum of what was rounded off of it, and one of what was rounded off of
// that. `far` is off by less than 2^-48 of `size`, which has the magnitudes of its terms: both are plain sums of n <= 16. If `size` is 0, the
// other two are exact.
template <class T>
struct FarFloats : FewOf<FloatTotal<T>> {
    using Base = FewOf<FloatTotal<T>>;
    using typename Base::Asked, typename Base::Bits;
    using Format = Element<T>;
    static constexpr bool SHIFTS = false, LONG = sizeof(Bits) == 8;

    f64 sum = 0.0, error = 0.0, far = 0.0, size = 0.0;
    // Of f64, the upper half of the largest magnitude, doubled: of infinities, this.
    static constexpr u32 INFINITE = u32(0x7ff) << 21;
    u32 most = 0;
    u32 missing = 0; // NaNs that are as if they were not there
    // Small sums are taken times 2^SMALL.
    static constexpr int SMALL = 512;

    template <int V, int N, class Number>
    __device__ __forceinline__ void take(const Bits (&bits)[N], Number, const Asked &asked)
    {
#pragma unroll
        for (int k = 0; k < N; ++k) {
            if constexpr (LONG)
                most = max(most, u32(bits[k] >> 32) << 1);
            const Double next = two_sum(sum, f64(Format::value(asked.of(bits[k]))));
            const Double left = two_sum(error, next.lo);
            sum = next.hi;
            error = left.hi;
            far = add(far, left.lo);
            size = add(size, fabs(left.lo));
        }
    }

    // The sum is all.hi + low, off by less than `off`: what `far` is off by, and twice what rounding `low` and its neighbours costs. Any of
    // these that leaves the format below is of sums so small that they are exact. Rounding does not change the order of numbers.
    __device__ __forceinline__ bool answer(Bits &answer, const Asked &asked) const
    {
        if (asked.n == 0) {
            answer = asked.ask == MEAN ? NOT_A_NUMBER<T> : Bits(0);
            return true;
        }
        if constexpr (LONG) {
            // A NaN, as its upper half says. Beside infinities of one sign, the sum is infinite, unless finite elements have brought it to the
            // other one: then it is NaN.
            if (most > INFINITE || most == INFINITE && sum == sum) {
                answer = most > INFINITE ? NOT_A_NUMBER<T> : bits_of(sum);
                return true;
            }
        } else if (!is_finite(sum)) {
            // NaNs and infinities make the sum one, and finite elements do not.
            answer = Specials<T>{sum != sum, sum > 0.0, sum < 0.0}.bits();
            return true;
        }
        const Double all = two_sum(sum, error);
        const f64 low = add(all.lo, far);
        const f64 off = size == 0.0 ? 0.0 : add(mul(size, of_bits(u64(1023 - 48) << 52)), mul(fabs(low), of_bits(u64(1023 - 51) << 52)));
        const f64 real = add(all.hi, low);
        // What is not finite here is NaN there.
        if (!is_finite(real) || !is_finite(off))
            return false;
        if (asked.ask == MEAN && real != 0.0)
            return mean(answer, {all.hi, low}, off, asked);
        answer = nearest<T>(all.hi, add(low, off));
        return answer == nearest<T>(all.hi, sub(low, off));
    }

    __device__ __forceinline__ bool mean(Bits &answer, Double all, f64 off, const Asked &asked) const
    {
        // A quotient of sums that cancelled is left to others.
        if (!(off <= mul(fabs(all.hi), of_bits(u64(1023 - 98) << 52))))
            return false;
        if (off != 0.0)
            all = fast_two_sum(all.hi, all.lo);
        if constexpr (!LONG) {
            if (off == 0.0 && all.lo == 0.0) {
                answer = narrow<T>(quotient(all.hi, asked.n));
                return true;
            }
        }
        // Far from the lower end of what f64 has: the rests below stay in it.
        const bool is_small = LONG && fabs(all.hi) < of_bits(u64(1023 - 800) << 52);
        const f64 up = is_small ? of_bits(u64(1023 + SMALL) << 52) : 1.0;
        all = {mul(all.hi, up), mul(all.lo, up)};
        // The quotient by a reciprocal is off by less than two units, so that what is left of it is exact; that of the rest is rounded once where
        // it is no quotient of numbers (Markstein 1990).
        const f64 n = f64(asked.n), part = __drcp_rn(n);
        const f64 q = mul(all.hi, part);
        const Double left = two_sum(fused(-q, n, all.hi), all.lo);
        const f64 about = mul(left.hi, part), rest = fused(fused(-about, n, left.hi), part, about);
        if constexpr (LONG) {
            // The quotient is q + rest then, also where that is the middle between two numbers.
            const bool is_exact = off == 0.0 && left.lo == 0.0 && fused(-rest, n, left.hi) == 0.0;
            if (is_small) {
                const bool is_sure = rounded_at({fabs(q), q < 0.0 ? -rest : rest}, -SMALL, is_exact, false, answer);
                answer |= q < 0.0 ? Format::SIGN : 0;
                return is_sure;
            }
            const bool is_sure = rounded({q, rest}, answer);
            answer = is_exact ? bits_of(add(q, rest)) : answer;
            return is_sure || is_exact;
        } else {
            const f64 beside = mul(fabs(q), of_bits(u64(1023 - 90) << 52));
            answer = nearest<T>(q, add(rest, beside));
            return answer == nearest<T>(q, sub(rest, beside));
        }
    }
};

// The same of the shorter types where they are near each other: plain f64 adds, which the range of the elements makes exact (range.cuh).
template <class T>
struct FewFloats : FewOf<FloatTotal<T>> {
    using Base = FewOf<FloatTotal<T>>;
    using typename Base::Asked, typename Base::Bits;
    using Format = Element<T>;
    using Again = FarFloats<T>;
    // Nothing that f16 has is far apart.
    static constexpr bool SHIFTS = false, HAS_AGAIN = Spread<T, 4>::ASKED;

    f64 sum = 0.0;
    Spread<T, 4> spread;
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
        return spread.holds();
    }
};
// The same of f64: a rounded sum, and the sum of what was rounded off, which is exact or tells that it is not.
template <>
struct FewFloats<f64> : FewOf<FloatTotal<f64>> {
    using Again = FarFloats<f64>;
    static constexpr bool SHIFTS = false, HAS_AGAIN = true;

    f64 sum = 0.0, error = 0.0;
    bool is_exact = true;
    u32 most = 0, missing = 0;

    template <int V, int N, class Number>
    __device__ __forceinline__ void take(const Bits (&bits)[N], Number, const Asked &asked)
    {
#pragma unroll
        for (int k = 0; k < N; ++k) {
            most = max(most, u32(bits[k] >> 32) << 1);
            const Double next = two_sum(sum, of_bits(asked.of(bits[k])));
            const Double left = two_sum(error, next.lo);
            sum = next.hi;
            error = left.hi;
            is_exact = is_exact && left.lo == 0.0;
        }
    }

    // An exact sum is one of those that are far apart of which nothing is left, and one with NaNs or infinities needs no more.
    __device__ __forceinline__ bool answer(Bits &answer, const Asked &asked) const
    {
        Again all;
        all.sum = sum;
        all.error = error;
        all.most = most;
        return (is_exact || most >= Again::INFINITE) && all.answer(answer, asked);
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
struct FewSquares<f64, SPREAD> : FewOf<FloatSquares<f64, SPREAD>> {
    using Base = FewOf<FloatSquares<f64, SPREAD>>;
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
