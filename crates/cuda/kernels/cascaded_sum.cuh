// A sum of f64 with what its adds round off, and what adding that rounds off: of terms that come in any order and are as far apart as they like.
//
// An add is off by its error exactly (Knuth 1969). So a total is `sum`, a rounded sum, and all errors; `error` is their rounded sum, and what
// that rounds off, term by term, is what `far` adds up: `size` has the magnitudes of these terms. Where `size` is 0, sum + error is the total.
// Elsewhere the total is sum + error + far, but for what `far` is off by. With u = 2^-53 and m < 2^42 such terms, far and size are plain sums in
// some order, off by less than m u (1 + m u) of the magnitudes and so by less than 2 m u of `size`.
//
// A term brings one of them where it is taken in. A merge brings three, and there are fewer merges than terms where both sides have any.
//
// Without FAR, `far` is not kept: the total is off by up to `size`, which is enough where no terms cancel and answers are short.

#pragma once

#include "double_double.cuh"

// What is known of a total: it is hi + rest.hi + rest.lo, off by less than `off`, which includes what rounding rest.lo once more costs.
struct KnownSum {
    f64 hi;
    Double rest;
    f64 off;
};

template <bool FAR>
struct CascadedSum {
    f64 sum = 0.0, error = 0.0, far = 0.0, size = 0.0;

    static constexpr int WORDS = FAR ? 4 : 3;
    // What is lost of a sum that leaves the format below is less than this for so many terms as there may be, times 2^-50.
    static constexpr f64 TINY = 0x1p-1000;

    __device__ __forceinline__ void include(f64 x)
    {
        const Double next = two_sum(sum, x);
        sum = next.hi;
        include_error(next.lo);
    }
    __device__ __forceinline__ void include_error(f64 x)
    {
        const Double left = two_sum(error, x);
        error = left.hi;
        if constexpr (FAR)
            far = add(far, left.lo);
        size = add(size, fabs(left.lo));
    }
    // Takes a product and what it rounds off, which must not leave the format.
    __device__ __forceinline__ void include_product(f64 a, f64 b)
    {
        const f64 product = mul(a, b);
        include(product);
        include_error(fused(a, b, -product));
    }

    __device__ __forceinline__ void merge(const CascadedSum &other)
    {
        const Double next = two_sum(sum, other.sum), both = two_sum(error, other.error), left = two_sum(both.hi, next.lo);
        sum = next.hi;
        error = left.hi;
        if constexpr (FAR)
            far = add(add(far, other.far), add(both.lo, left.lo));
        size = add(add(size, other.size), add(fabs(both.lo), fabs(left.lo)));
    }

    // Says that terms have lost less than 2^-1074 each, or that what is here has.
    __device__ __forceinline__ void lose() { size = add(size, TINY); }

    // Takes everything times a power of two below 1.
    __device__ __forceinline__ void scale(f64 power)
    {
        sum = mul(sum, power);
        error = mul(error, power);
        far = mul(far, power);
        size = mul(size, power);
    }

    __device__ __forceinline__ bool is_zero() const { return sum == 0.0 && error == 0.0 && size == 0.0; }
    // Whether sum + error may be less than the whole total.
    __device__ __forceinline__ bool is_cut() const { return size != 0.0; }

    // Of up to n terms. Any number that leaves the format below is of sums so small that they are exact. If all terms are multiples of a unit,
    // and size is at most 2^52 of it, no add of `far` and size was rounded: `exact` is that, or 0.
    __device__ __forceinline__ KnownSum known(u64 n, f64 exact = 0.0) const
    {
        const Double all = two_sum(sum, error);
        if constexpr (!FAR)
            return {all.hi, {all.lo, 0.0}, mul(size, 1.5)};
        const Double rest = two_sum(all.lo, far);
        // Each brings up to four terms of `far`.
        const f64 of_size = mul(f64(n), of_bits(u64(1023 - 50) << 52));
        const f64 off = size <= exact ? 0.0 : add(mul(size, of_size), mul(fabs(rest.lo), of_bits(u64(1023 - 51) << 52)));
        return {all.hi, rest, off};
    }

    __device__ __forceinline__ f64 word(int w) const { return w == 0 ? sum : w == 1 ? error : w == 2 ? size : far; }
    static __device__ __forceinline__ CascadedSum of_words(const u64 *words)
    {
        CascadedSum all;
        all.sum = of_bits(words[0]);
        all.error = of_bits(words[1]);
        all.size = of_bits(words[2]);
        if constexpr (FAR)
            all.far = of_bits(words[3]);
        return all;
    }

    // Adds a sum that is not cut to a superaccumulator, times 2^up.
    template <class Wide>
    __device__ __forceinline__ void deposit(Wide &wide, int up = 0) const
    {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const u64 bits = bits_of(i == 0 ? sum : error);
            const int exponent = int(bits >> 52) & 0x7ff;
            const u64 significand = (bits & ((u64(1) << 52) - 1)) | u64(exponent != 0) << 52;
            wide.deposit(bits >> 63 != 0, significand, max(exponent, 1) - 1075 + up);
        }
    }
};
