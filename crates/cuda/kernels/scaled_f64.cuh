// The totals of a short row of f64 in units of its own scale, as row_squares.cuh has them of shorter floats.
//
// Elements have 82 bits, a 2^56 + b 2^28 + c. A row has at most 2^8 of them, so that the sums of all products of two parts fit 64 bits.
// n S2 and S1^2 are below 2^180: three words.

#pragma once

#include "rows.cuh"
#include "triple.cuh"

// Binades below the largest element that are looked after.
constexpr int REACH = 29;

struct ScaledF64 {
    static constexpr u64 INFINITE = Element<f64>::INFINITE;
    static constexpr int PART = 28;

    Triple squares;
    u64 low;
    i64 high;  // of the sum
    u64 most;  // magnitudes are at most this
    bool holds; // whether no element was too small

    // The exponent's field, which is 1 of subnormals.
    static __device__ __forceinline__ int field(u64 magnitude) { return max(int(magnitude >> 52), 1); }

    template <int EACH>
    __device__ __forceinline__ void take(const uint4 *v, u32 lanes)
    {
        most = 0;
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
#pragma unroll
            for (int i = 0; i < 2; ++i)
                most = max(most, Element<f64>::magnitude(item<f64>(v[k], i)));
        }
        for (u32 d = lanes / 2; d > 0; d /= 2)
            most = max(most, __shfl_xor_sync(ALL_LANES, most, d));

        const int lowest = field(most) - REACH;
        // Of products of parts: those that weigh 2^0, 2^28, ... 2^112, the mixed ones once.
        u64 sums[6] = {};
        i64 parts[3] = {};
        int least = 0;
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const u64 bits = item<f64>(v[k], i), magnitude = Element<f64>::magnitude(bits);
                const u64 fraction = magnitude & ((u64(1) << 52) - 1);
                const u64 significand = magnitude >> 52 != 0 ? fraction | u64(1) << 52 : fraction;
                const int up = field(magnitude) - lowest;
                least = min(least, significand != 0 ? up : 0);
                // What is made of elements that are too small is of no matter.
                const int shift = up & 31;
                const u64 lower = significand << shift;
                constexpr u32 MASK = (1u << PART) - 1;
                const u32 c = u32(lower) & MASK, b = u32(lower >> PART) & MASK;
                const u32 a = u32(significand >> (2 * PART - shift));
                const i64 sign = i64(bits) >> 63 | 1;
                sums[0] += u64(c) * c;
                sums[1] += u64(b) * c;
                sums[2] += u64(b) * b;
                sums[3] += u64(a) * c;
                sums[4] += u64(a) * b;
                sums[5] += u64(a) * a;
                parts[0] += i64(c) * sign;
                parts[1] += i64(b) * sign;
                parts[2] += i64(a) * sign;
            }
        }
        for (u32 d = lanes / 2; d > 0; d /= 2) {
#pragma unroll
            for (int w = 0; w < 6; ++w)
                sums[w] += __shfl_xor_sync(ALL_LANES, sums[w], d);
#pragma unroll
            for (int w = 0; w < 3; ++w)
                parts[w] += __shfl_xor_sync(ALL_LANES, parts[w], d);
            least = min(least, __shfl_xor_sync(ALL_LANES, least, d));
        }
        holds = least >= 0;
        squares = Triple();
        squares.add(sums[0], 0);
        squares.add(sums[1], PART + 1);
        squares.add(sums[2], 2 * PART);
        squares.add(sums[3], 2 * PART + 1);
        squares.add(sums[4], 3 * PART + 1);
        squares.add(sums[5], 4 * PART);
        low = u64(parts[0]);
        high = parts[0] >> 63;
#pragma unroll
        for (int w = 1; w < 3; ++w) {
            const u64 part = u64(parts[w]) << PART * w;
            low += part;
            high += (parts[w] >> (64 - PART * w)) + (low < part);
        }
    }

    // Whether the superaccumulators have to look at it.
    __device__ __forceinline__ bool lacks() const { return !holds && most < INFINITE; }

    __device__ __forceinline__ u64 answer(u32 ask, u64 n) const
    {
        if (most >= INFINITE)
            return asks_spread(ask) || most > INFINITE ? NOT_A_NUMBER<f64> : INFINITE;
        // The last place of the integers.
        return scaled_answer(squares, high, low, field(most) - REACH - 1075, ask, n);
    }
};
