// Sums of squares and variances of short rows of floats, exact and rounded once.
//
// Elements become integers in units of 2^-REACH of the last place of their row's largest one: every element that is not REACH binades
// below it has at most 53 bits then, or 82 of f64. Cut in two, as a 2^HALF + b, a row's sums of a^2, a b and b^2 fit 64 bits each, as it has
// at most 2^10 elements; f64 is in scaled_f64.cuh. Rows with smaller elements that are not zero go, one by one, to the warp's
// superaccumulators.
//
// n S2 and S1^2 are below 2^126: the variance's numerator fits two words.

#pragma once

#include "rows.cuh"
#include "scaled_f64.cuh"
#include "square_answer.cuh"

// A number of crates/cuda/src/engine/short_rows.rs.
constexpr int SQUARE_BLOCKS = 2;

constexpr int HALF = 27;

// Totals of a row.
template <class T>
struct ScaledRow {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    static constexpr u32 INFINITE = 0x7f800000;

    u64 high, low; // squares
    i64 sum;
    u32 most;   // magnitudes are at most this, as f32
    bool holds; // whether no element was too small

    static __device__ __forceinline__ u32 bits_of(const uint4 &v, int i) { return __float_as_uint(Format::value(item<T>(v, i))); }

    // The exponent's field, which is 1 of subnormals.
    static __device__ __forceinline__ int field(u32 magnitude) { return max(int(magnitude >> 23), 1); }

    // A row of which each lane has EACH vectors.
    template <int EACH>
    __device__ __forceinline__ void take(const uint4 *v, u32 lanes)
    {
        most = 0;
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i)
                most = max(most, bits_of(v[k], i) & 0x7fffffff);
        }
        for (u32 d = lanes / 2; d > 0; d /= 2)
            most = max(most, __shfl_xor_sync(ALL_LANES, most, d));

        const int lowest = field(most) - REACH;
        u64 squares[3] = {};
        i64 sums[2] = {};
        int least = 0;
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i) {
                const u32 bits = bits_of(v[k], i), magnitude = bits & 0x7fffffff;
                const u32 significand = (magnitude & 0x7fffff) | (magnitude >> 23 != 0 ? 0x800000 : 0);
                const int up = field(magnitude) - lowest;
                least = min(least, significand != 0 ? up : 0);
                // What is made of elements that are too small is of no matter.
                const u32 lower = significand << (up & 31), upper = __funnelshift_l(significand, 0, up);
                const u32 a = __funnelshift_l(lower, upper, 32 - HALF), b = lower & ((1u << HALF) - 1);
                const i32 sign = i32(bits) >> 31 | 1;
                squares[0] += u64(a) * a;
                squares[1] += u64(a) * b;
                squares[2] += u64(b) * b;
                sums[0] += i64(i32(a)) * sign;
                sums[1] += i64(i32(b)) * sign;
            }
        }
        for (u32 d = lanes / 2; d > 0; d /= 2) {
#pragma unroll
            for (int w = 0; w < 3; ++w)
                squares[w] += __shfl_xor_sync(ALL_LANES, squares[w], d);
#pragma unroll
            for (int w = 0; w < 2; ++w)
                sums[w] += __shfl_xor_sync(ALL_LANES, sums[w], d);
            least = min(least, __shfl_xor_sync(ALL_LANES, least, d));
        }
        holds = least >= 0;
        sum = sums[0] * (i64(1) << HALF) + sums[1];
        // The middle one counts twice.
        const u64 middle = squares[1] << (HALF + 1);
        low = squares[0] << 2 * HALF;
        high = (squares[0] >> (64 - 2 * HALF)) + (squares[1] >> (63 - HALF));
        low += middle;
        high += low < middle;
        low += squares[2];
        high += low < squares[2];
    }

    // Whether the superaccumulators have to look at it.
    __device__ __forceinline__ bool lacks() const { return !holds && most < INFINITE; }

    __device__ __forceinline__ Bits answer(u32 ask, u64 n) const
    {
        if (most >= INFINITE)
            return asks_spread(ask) || most > INFINITE ? NOT_A_NUMBER<T> : Format::INFINITE;
        // The last place of the integers.
        return scaled_answer<T>(high, low, sum, field(most) - REACH - 150, ask, n);
    }
};

template <class T>
struct TotalsOf {
    using Type = ScaledRow<T>;
};
template <>
struct TotalsOf<f64> {
    using Type = ScaledF64;
};

// What a warp has for rows that are given up.
template <class T>
struct RowMoments : WideMoments<T> {
    using Sum = typename Element<T>::Sum;
    using Dot = typename Element<T>::Dot;
    u64 limbs[Sum::LIMBS + Dot::LIMBS];

    template <class Sums>
    static __device__ __forceinline__ void clear(Sums &wide, u32 lane)
    {
        for (int i = lane; i < Sums::LIMBS; i += WARP) {
            wide.low[i] = 0;
            wide.high[i] = 0;
        }
        if (lane < 3)
            wide.specials[lane] = 0;
    }
};

// The answer of a row of finite elements, by all lanes of a warp.
template <class T>
__device__ __noinline__ void absorb_row(const typename Element<T>::Bits *items, u64 n, u32 ask, RowMoments<T> &wide,
    typename Element<T>::Bits *out)
{
    using Moments = RowMoments<T>;
    using Sum = typename Moments::Sum;
    using Dot = typename Moments::Dot;
    const u32 lane = threadIdx.x % WARP;
    Moments::clear(wide.sum, lane);
    Moments::clear(wide.squares, lane);
    __syncwarp();
#pragma unroll 1
    for (u64 i = lane; i < n; i += WARP)
        wide.absorb(items[i]);
    __syncwarp();
    for (int i = lane; i < Sum::LIMBS; i += WARP)
        wide.limbs[i] = wide.sum.entry(i, 0);
    for (int i = lane; i < Dot::LIMBS; i += WARP)
        wide.limbs[Sum::LIMBS + i] = wide.squares.entry(i, 0);
    __syncwarp();
    if (lane == 0) {
        const auto sum = [&](int i) { return i64(wide.limbs[i]); };
        const auto square = [&](int i) { return i64(wide.limbs[Sum::LIMBS + i]); };
        *out = moments_answer<T>(sum, square, ask, n);
    }
    __syncwarp();
}

template <class T, int SETS>
__device__ __forceinline__ void square_tile(const ShortRows &rows, const RowTile<T> &tile, u64 index, u64 n, u32 ask, RowMoments<T> &wide,
    typename Element<T>::Bits *out)
{
    using Bits = typename Element<T>::Bits;
    constexpr int EACH = VECTORS / SETS;
    using Totals = typename TotalsOf<T>::Type;
    Totals row[SETS];
    bool lacks[SETS];
#pragma unroll
    for (int s = 0; s < SETS; ++s) {
        row[s].template take<EACH>(tile.v + s * EACH, rows.lanes());
        lacks[s] = row[s].lacks() && RowTile<T>::row(rows, index, s) < rows.count;
    }
    each_answer<T>(rows, index, row, lacks, [&](const Totals &mine, u64 r) { out[r] = mine.answer(ask, n); });
    each_lacking<T>(rows, index, lacks, [&](u64 r) {
        absorb_row<T>(reinterpret_cast<const Bits *>(rows.row(r)), n, ask, wide, out + r);
    });
}

template <class T>
__device__ __forceinline__ void square_rows(const ShortRows &rows, u64 n, u32 ask, void *out)
{
    using Bits = typename Element<T>::Bits;
    __shared__ RowMoments<T> wides[ROW_THREADS / WARP];
    RowMoments<T> &wide = wides[threadIdx.x / WARP];
    Bits *const numbers = static_cast<Bits *>(out);
    each_tile<T>(rows, [&](const RowTile<T> &tile, u64 index) {
        switch (rows.each) {
        case 1: return square_tile<T, 4>(rows, tile, index, n, ask, wide, numbers);
        case 2: return square_tile<T, 2>(rows, tile, index, n, ask, wide, numbers);
        default: return square_tile<T, 1>(rows, tile, index, n, ask, wide, numbers);
        }
    });
}
