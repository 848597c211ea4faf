// Totals of squares of integers in three words, and what is asked of them.

#pragma once

#include "nearest.cuh"
#include "square_answer.cuh"

// Three words, the lowest first.
struct Triple {
    u64 word[3] = {};

    // Adds x * 2^shift; constants say where it goes.
    __device__ __forceinline__ void add(u64 x, int shift)
    {
        const int first = shift / 64, up = shift % 64;
        u64 carry = 0;
#pragma unroll
        for (int w = 0; w < 3; ++w) {
            u64 part = w == first ? x << up : w == first + 1 && up != 0 ? x >> (64 - up & 63) : 0;
            part += carry;
            carry = part < carry;
            word[w] += part;
            carry += word[w] < part;
        }
    }

    __device__ __forceinline__ void subtract(const Triple &other)
    {
        u64 borrow = 0;
#pragma unroll
        for (int w = 0; w < 3; ++w) {
            const u64 before = word[w], difference = before - other.word[w];
            word[w] = difference - borrow;
            borrow = (before < other.word[w]) + (difference < borrow);
        }
    }

    // The product of {high, low} and n.
    static __device__ __forceinline__ Triple times(const Triple &x, u64 n)
    {
        Triple product;
        u64 carry = 0;
#pragma unroll
        for (int w = 0; w < 3; ++w) {
            const u64 low = x.word[w] * n;
            product.word[w] = low + carry;
            carry = __umul64hi(x.word[w], n) + (product.word[w] < low);
        }
        return product;
    }

    // The same number to 100 bits: 32 at a time, from the top, are added without a loss but for what the lower part has too much.
    __device__ __forceinline__ Double real() const
    {
        Double sum = {0.0, 0.0};
        f64 unit = of_bits(u64(1023 + 160) << 52);
#pragma unroll
        for (int i = 5; i >= 0; --i) {
            const f64 part = mul(f64(u32(word[i / 2] >> 32 * (i % 2))), unit);
            const Double next = two_sum(sum.hi, part);
            sum = fast_two_sum(next.hi, ::add(sum.lo, next.lo));
            unit = mul(unit, of_bits(u64(1023 - 32) << 52));
        }
        return sum;
    }
};

// total / divisor, or its root.
__device__ __noinline__ u64 exact_real(Triple total, u64 divisor, bool root)
{
    Numerator numerator;
#pragma unroll 1
    for (int i = 0; i < 6; ++i)
        numerator.push(u32(total.word[i / 2] >> 32 * (i % 2)), i);
    return exact_real<f64>(numerator, 0, divisor, 1, root);
}

// The same by a few operations wherever these are sure; `real` is the total to 100 bits.
__device__ __forceinline__ u64 real_answer(const Triple &total, const Double &real, u64 divisor, bool root)
{
    u64 answer = 0;
    const bool sure = real.hi == 0.0 || nearest_real<f64>(real, f64(divisor), 0.0, 0, root, answer);
    return sure ? answer : exact_real(total, divisor, root);
}

// The answer of up to 2^26 integers, so that f64 holds the divisor, from totals of their squares and of themselves, {high, low}: n S2 and S1^2 are
// below 2^180.
__device__ __forceinline__ u64 scaled_answer(Triple total, i64 high, u64 low, u32 ask, u64 n)
{
    u64 divisor = 1;
    if (asks_spread(ask)) {
        const bool negative = high < 0;
        const u64 l = negative ? -low : low, h = negative ? ~u64(high) + (low == 0) : u64(high);
        Triple square;
        square.word[0] = l * l;
        square.word[1] = __umul64hi(l, l);
        square.add(l * h, 65);
        square.word[2] += (__umul64hi(l, h) << 1) + h * h;
        total = Triple::times(total, n);
        total.subtract(square);
        divisor = n * freedom(ask, n);
        if (divisor == 0)
            return NOT_A_NUMBER<f64>;
    }
    return real_answer(total, total.real(), divisor, asks_root(ask));
}
