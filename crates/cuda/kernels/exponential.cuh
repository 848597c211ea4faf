// Exponentials in f64: operation by operation what crates/core/src/op/exponential.rs computes, where the bounds
// are proven.

#pragma once

#include "double_double.cuh"
#include "fold.cuh"

// The bits of 2^(j / 64) less j << 46: with n << 46 added, those of 2^(n / 64) for every n = j modulo 64.
constexpr int STEPS = 64;
__device__ const u64 POWERS[STEPS] = {
    0x3ff0000000000000, 0x3fefec9a3e778061, 0x3fefd9b0d3158574, 0x3fefc74518759bc8, 0x3fefb5586cf9890f, 0x3fefa3ec32d3d1a2, 0x3fef9301d0125b51, 0x3fef829aaea92de0,
    0x3fef72b83c7d517b, 0x3fef635beb6fcb75, 0x3fef54873168b9aa, 0x3fef463b88628cd6, 0x3fef387a6e756238, 0x3fef2b4565e27cdd, 0x3fef1e9df51fdee1, 0x3fef1285a6e4030b,
    0x3fef06fe0a31b715, 0x3feefc08b26416ff, 0x3feef1a7373aa9cb, 0x3feee7db34e59ff7, 0x3feedea64c123422, 0x3feed60a21f72e2a, 0x3feece086061892d, 0x3feec6a2b5c13cd0,
    0x3feebfdad5362a27, 0x3feeb9b2769d2ca7, 0x3feeb42b569d4f82, 0x3feeaf4736b527da, 0x3feeab07dd485429, 0x3feea76f15ad2148, 0x3feea47eb03a5585, 0x3feea23882552225,
    0x3feea09e667f3bcd, 0x3fee9fb23c651a2f, 0x3fee9f75e8ec5f74, 0x3fee9feb564267c9, 0x3feea11473eb0187, 0x3feea2f336cf4e62, 0x3feea589994cce13, 0x3feea8d99b4492ed,
    0x3feeace5422aa0db, 0x3feeb1ae99157736, 0x3feeb737b0cdc5e5, 0x3feebd829fde4e50, 0x3feec49182a3f090, 0x3feecc667b5de565, 0x3feed503b23e255d, 0x3feede6b5579fdbf,
    0x3feee89f995ad3ad, 0x3feef3a2b84f15fb, 0x3feeff76f2fb5e47, 0x3fef0c1e904bc1d2, 0x3fef199bdd85529c, 0x3fef27f12e57d14b, 0x3fef3720dcef9069, 0x3fef472d4a07897c,
    0x3fef5818dcfba487, 0x3fef69e603db3285, 0x3fef7c97337b9b5f, 0x3fef902ee78b3ff6, 0x3fefa4afa2a490da, 0x3fefba1bee615a27, 0x3fefd0765b6e4540, 0x3fefe7c1819e90d8,
};

// The powers in a block's shared memory, once for each pair of banks: whatever lanes look up, each half of a warp finds it at once. (A
// lane could as well keep two powers and be asked by shuffles, but the compiler keeps code from moving past those.)
class Powers {
    static constexpr int COPIES = 16;
    static constexpr u32 APART = COPIES * sizeof(u64);
    u32 mine; // where this thread's first one is

    static __device__ __forceinline__ u64 *room()
    {
        __shared__ u64 powers[STEPS * COPIES];
        return powers;
    }

public:
    // Before the first is looked up, by all threads of the block.
    static __device__ __forceinline__ void lay_out()
    {
        for (int i = threadIdx.x; i < STEPS * COPIES; i += blockDim.x)
            room()[i] = POWERS[i / COPIES];
        __syncthreads();
    }

    __device__ __forceinline__ Powers() : mine(u32(__cvta_generic_to_shared(room() + threadIdx.x % COPIES))) {}

    // 2^(n / 64).
    __device__ __forceinline__ f64 of(u32 n) const
    {
        u32 low, high;
        // One step less than what the compiler makes of the same expression.
        asm("{\n\t.reg .u32 at;\n\tand.b32 at, %2, %3;\n\tmad.lo.u32 at, at, %4, %5;\n\tld.shared.v2.u32 {%0, %1}, [at];\n\t}"
            : "=r"(low), "=r"(high)
            : "r"(n), "n"(STEPS - 1), "n"(APART), "r"(mine));
        return __hiloint2double(int(high + (n << 14)), int(low));
    }
};

// Two numbers of which the product is an exponential: core's `parts`.
struct Exponential {
    f64 power, rest;
};
__device__ __forceinline__ Exponential exponential(f64 x, const Powers &powers)
{
    const f64 shifted = fused(x, STEPS * LOG2_E, ROUNDER);
    const f64 n = sub(shifted, ROUNDER);
    const f64 r = fused(n, -LN2 / STEPS, x);
    // Of the series of e^r without its fifth power, for which the other odd ones make up.
    constexpr f64 FIRST = 0.9999999999977606, THIRD = 0.1666669721304664;
    f64 p = fused(r, 1.0 / 24.0, THIRD);
    p = fused(p, r, 0.5);
    p = fused(p, r, FIRST);
    p = fused(p, r, 1.0);
    return {powers.of(u32(bits_of(shifted))), p};
}
