// Short rows of f64 as scaled_row.cuh cuts them.
//
// Elements have 82 bits, a 2^56 + b 2^28 + c. A row has at most 2^8 of them, so that the sums of all products of two parts fit 64 bits.
// n S2 and S1^2 are below 2^180: three words.

#pragma once

#include "load.cuh"
#include "triple.cuh"

struct ScaledF64 {
    using Whole = Element<f64>;
    static constexpr int PARTS = 3;
    static constexpr int PART = 28;

    Triple squares;
    u64 low;
    i64 high; // of the sum

    static __device__ __forceinline__ u64 bits_of(const uint4 &v, int i) { return item<f64>(v, i); }

    static __device__ __forceinline__ void cut(u64 significand, int up, u32 (&part)[PARTS])
    {
        const int shift = up & 31;
        const u64 lower = significand << shift;
        constexpr u32 MASK = (1u << PART) - 1;
        part[0] = u32(significand >> (2 * PART - shift));
        part[1] = u32(lower >> PART) & MASK;
        part[2] = u32(lower) & MASK;
    }

    __device__ __forceinline__ void join(const u64 (&products)[6], const i64 (&sums)[PARTS])
    {
        squares = Triple();
        // The mixed ones count twice.
        squares.add(products[5], 0);
        squares.add(products[4], PART + 1);
        squares.add(products[2], 2 * PART);
        squares.add(products[3], 2 * PART + 1);
        squares.add(products[1], 3 * PART + 1);
        squares.add(products[0], 4 * PART);
        low = u64(sums[2]);
        high = sums[2] >> 63;
#pragma unroll
        for (int w = 1; w < PARTS; ++w) {
            const i64 sum = sums[PARTS - 1 - w];
            const u64 part = u64(sum) << PART * w;
            low += part;
            high += (sum >> (64 - PART * w)) + (low < part);
        }
    }

    __device__ __forceinline__ bool answer(int unit, const Off &by, u32 ask, u64 n, u64 &out) const
    {
        return scaled_answer(squares, high, low, by, unit, ask, n, out);
    }
};
