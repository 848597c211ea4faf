// Exact products of integers: core's `IntProd`, crates/core/src/op/prod.rs.
//
// Zeros are noted and count as 1, signs as well; what is left are magnitudes, whose product modulo 2^128 is kept, and whether it
// reached 2^128: no factor shrinks it. Of elements shorter than a word, eight bytes' worth make one factor below 2^64.

#pragma once

#include "load.cuh"
#include "ticket.cuh"

// The magnitude of a product: modulo 2^128, or modulo 2^64 once it is over.
struct Magnitude {
    u64 low = 1;
    u64 high = 0;
    bool over = false;

    __device__ __forceinline__ void multiply(u64 factor)
    {
        if (!over) {
            const u64 carry = __umul64hi(low, factor);
            over = __umul64hi(high, factor) != 0;
            high = high * factor + carry;
            over |= high < carry;
        }
        low *= factor;
    }
};

template <class T>
struct IntegerProd {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    static constexpr bool SIGNED = T(-1) < T(0);
    static constexpr int WIDTH = 8 * sizeof(Bits);
    // One in each element of a word; what lies above and below in each.
    static constexpr u32 EVERY = WIDTH == 8 ? 0x01010101 : WIDTH == 16 ? 0x00010001 : 1;
    static constexpr u32 UPPER = EVERY << (WIDTH - 1 & 31);
    static constexpr u32 REST = UPPER - EVERY;

    Magnitude magnitude;
    // The sign bits, an odd number of which is a negative product.
    u32 signs = 0;
    // Not 0 if there is a zero.
    u32 zeros = 0;

    // Notes the elements' zeros and signs and leaves their magnitudes, 1 for zeros.
    __device__ __forceinline__ u32 magnitudes(u32 word)
    {
        const u32 any = ((word & REST) + REST) | word;
        const u32 lacking = ~any & UPPER;
        zeros |= lacking;
        word |= lacking >> (WIDTH - 1 & 31);
        if constexpr (SIGNED) {
            const u32 negative = word & UPPER;
            signs ^= negative;
            const u32 one = negative >> (WIDTH - 1 & 31);
            // No carry leaves an element: a magnitude is at most 2^(WIDTH - 1).
            const u32 ones = WIDTH < 32 ? (one << (WIDTH & 31)) - one : -one;
            word = (word ^ ones) + one;
        }
        return word;
    }

    // The same of an element of 64 bits.
    __device__ __forceinline__ u64 magnitude_of(u64 bits)
    {
        zeros |= bits == 0;
        const bool negative = SIGNED && i64(bits) < 0;
        signs ^= negative;
        return bits == 0 ? 1 : negative ? -bits : bits;
    }

    static __device__ __forceinline__ u32 product(u32 word)
    {
        if constexpr (WIDTH == 8)
            return ((word & 0xff) * (word >> 8 & 0xff)) * ((word >> 16 & 0xff) * (word >> 24));
        else
            return WIDTH == 16 ? (word & 0xffff) * (word >> 16) : word;
    }

    __device__ __forceinline__ void pair(u32 x, u32 y)
    {
        if constexpr (WIDTH == 64) {
            magnitude.multiply(magnitude_of(u64(y) << 32 | x));
        } else {
            x = magnitudes(x);
            y = magnitudes(y);
            // Whatever comes, this stays 0: only zeros and signs are still of interest.
            if (!(magnitude.over && magnitude.low == 0))
                magnitude.multiply(u64(product(x)) * product(y));
        }
    }

    __device__ __forceinline__ void one(Bits bits)
    {
        constexpr u32 OTHERS = WIDTH < 32 ? EVERY & ~u32(1) : 0;
        if constexpr (WIDTH == 64)
            pair(u32(bits), u32(bits >> 32));
        else
            pair(u32(bits) | OTHERS, EVERY);
    }

    template <bool FULL>
    __device__ __forceinline__ void tile(const uint4 (&v)[VECTORS], u32, u32 valid)
    {
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            if (FULL || k < valid) {
                pair(v[k].x, v[k].y);
                pair(v[k].z, v[k].w);
            }
        }
    }
};

// The magnitude, low and high; and whether it is over, whether the sign is negative, whether there is a zero, one bit each.
struct Product {
    static constexpr int WORDS = 3;
    static constexpr u64 OVER = 1, NEGATIVE = 2, ZERO = 4;
    u64 word[WORDS] = {1, 0, 0};

    __device__ __forceinline__ void merge(const Product &other)
    {
        const u64 low = word[0], high = word[1];
        // Neither factor is 0: two upper halves are too much.
        const bool twice = high != 0 && other.word[1] != 0;
        const u64 cross = high != 0 ? high : other.word[1], factor = high != 0 ? other.word[0] : low;
        const u64 carry = __umul64hi(low, other.word[0]);
        word[0] = low * other.word[0];
        word[1] = cross * factor + carry;
        const bool over = twice || __umul64hi(cross, factor) != 0 || word[1] < carry;
        const u64 flags = word[2], others = other.word[2];
        word[2] = ((flags ^ others) & NEGATIVE) | ((flags | others) & (OVER | ZERO)) | (over ? OVER : 0);
    }
};

// Leaves the payload of core's state in `out`, padded to words: two bytes of flags, the magnitude in 16, and the product modulo 2^64.
__device__ __forceinline__ void leave_product(const Product &product, u64 *out)
{
    const u64 flags = product.word[2];
    const bool over = (flags & Product::OVER) != 0, negative = (flags & Product::NEGATIVE) != 0, zero = (flags & Product::ZERO) != 0;
    const u64 low = over ? 0 : product.word[0], high = over ? 0 : product.word[1];
    const u64 wrapped = zero ? 0 : negative ? -product.word[0] : product.word[0];
    out[0] = u64(negative) | u64(zero) << 1 | u64(over) << 8 | low << 16;
    out[1] = low >> 48 | high << 16;
    out[2] = high >> 48 | wrapped << 16;
    out[3] = wrapped >> 48;
}

template <class T>
__device__ __forceinline__ void integer_prod(const void *data, u64 n, u64 *scratch, u64 *out)
{
    IntegerProd<T> pass;
    walk(data, n, scratch, pass);
    Product product;
    product.word[0] = pass.magnitude.low;
    product.word[1] = pass.magnitude.high;
    product.word[2] = (pass.magnitude.over ? Product::OVER : 0) | (__popc(pass.signs) % 2 != 0 ? Product::NEGATIVE : 0) |
                      (pass.zeros != 0 ? Product::ZERO : 0);
    if (fold_grid(product, scratch))
        leave_product(product, out);
}
