// Exponentials in f64, of terms and of nodes: operation by operation what crates/core/src/op/exponential.rs computes, where the bounds
// are proven.

#pragma once

#include "double_double.cuh"
#include "fold.cuh"

// e^x for x <= 0.
__device__ __forceinline__ f64 exponential(f64 x)
{
    const f64 shifted = add(mul(x, LOG2_E), ROUNDER);
    const f64 n = sub(shifted, ROUNDER);
    // n * LN2_HIGH has at most 52 bits: nothing is rounded before it is subtracted.
    const f64 r = sub(fused(-n, LN2_HIGH, x), mul(n, LN2_REST));
    constexpr f64 TAYLOR[12] = {
        1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0,
        1.0 / 5040.0,       1.0 / 720.0,       1.0 / 120.0,      1.0 / 24.0,      1.0 / 6.0,      0.5,
    };
    f64 q = TAYLOR[0];
#pragma unroll
    for (int i = 1; i < 12; ++i)
        q = add(mul(q, r), TAYLOR[i]);
    const f64 e = add(1.0, add(r, mul(mul(r, r), q)));
    // e lies between 2^-1 and 2 and n is not below -866: the power of two goes straight into the exponent.
    const u64 scaled = bits_of(e) + (bits_of(shifted) << 52);
    return is_above_cutoff(x) ? of_bits(scaled) : 0.0;
}

// The bits of 2^(j / 32) less j << 47: with n << 47 added, those of 2^(n / 32) for every n = j modulo 32.
__device__ const u64 POWERS[32] = {
    0x3ff0000000000000, 0x3fefd9b0d3158574, 0x3fefb5586cf9890f, 0x3fef9301d0125b51, 0x3fef72b83c7d517b, 0x3fef54873168b9aa, 0x3fef387a6e756238, 0x3fef1e9df51fdee1,
    0x3fef06fe0a31b715, 0x3feef1a7373aa9cb, 0x3feedea64c123422, 0x3feece086061892d, 0x3feebfdad5362a27, 0x3feeb42b569d4f82, 0x3feeab07dd485429, 0x3feea47eb03a5585,
    0x3feea09e667f3bcd, 0x3fee9f75e8ec5f74, 0x3feea11473eb0187, 0x3feea589994cce13, 0x3feeace5422aa0db, 0x3feeb737b0cdc5e5, 0x3feec49182a3f090, 0x3feed503b23e255d,
    0x3feee89f995ad3ad, 0x3feeff76f2fb5e47, 0x3fef199bdd85529c, 0x3fef3720dcef9069, 0x3fef5818dcfba487, 0x3fef7c97337b9b5f, 0x3fefa4afa2a490da, 0x3fefd0765b6e4540,
};

// The powers in a block's shared memory, once for each pair of banks: whatever lanes look up, each half of a warp finds it at once. (A
// lane could as well keep one power and be asked by a shuffle, but the compiler keeps code from moving past those.)
struct Powers {
    static constexpr int STEPS = 32;
    static constexpr int COPIES = 16;
    const u64 *mine;

    static __device__ __forceinline__ u64 *room()
    {
        __shared__ u64 powers[STEPS * COPIES];
        return powers;
    }

    // Before the first is looked up, by all threads of the block.
    static __device__ __forceinline__ void lay_out()
    {
        for (int i = threadIdx.x; i < STEPS * COPIES; i += blockDim.x)
            room()[i] = POWERS[i / COPIES];
        __syncthreads();
    }

    __device__ __forceinline__ Powers() : mine(room() + threadIdx.x % COPIES) {}

    // 2^(n / 32).
    __device__ __forceinline__ f64 of(u32 n) const
    {
        const u64 power = mine[n % STEPS * COPIES];
        return __hiloint2double(int(u32(power >> 32) + (n << 15)), int(u32(power)));
    }
};

// sum + e^x, or sum where x is below CUTOFF.
__device__ __forceinline__ f64 plus_exponential(f64 sum, f64 x, bool below, const Powers &powers)
{
    const f64 shifted = fused(x, 32.0 * LOG2_E, ROUNDER);
    const f64 n = sub(shifted, ROUNDER);
    const f64 r = fused(n, -LN2 / 32.0, x);
    f64 p = fused(r, 1.0 / 120.0, 1.0 / 24.0);
    p = fused(p, r, 1.0 / 6.0);
    p = fused(p, r, 0.5);
    p = fused(p, r, 1.0);
    p = fused(p, r, 1.0);
    const f64 power = powers.of(u32(bits_of(shifted)));
    // A predicate, where the compiler would take a branch around all of the above, and one element after the other.
    asm("{\n\t.reg .pred skip;\n\tsetp.ne.s32 skip, %3, 0;\n\t@!skip fma.rn.f64 %0, %1, %2, %0;\n\t}" : "+d"(sum) : "d"(power), "d"(p), "r"(int(below)));
    return sum;
}
