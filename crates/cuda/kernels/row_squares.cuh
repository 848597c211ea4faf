// Sums of squares and variances of short rows of floats, exact and rounded once.
//
// Rows become integers of their own scale. Elements that are too small for that are cut off, where the answer is sure in spite of that. Other rows
// go to windows that move, and what these lose, one by one to the warp's superaccumulators.

#pragma once

#include "float_squares.cuh"
#include "rows_apart.cuh"
#include "scaled_row.cuh"

// A number of crates/cuda/src/engine/short_rows.rs.
constexpr int SQUARE_BLOCKS = 2;

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

// The rows of a tile that lack an answer, which `lacking` says by sets. They are loaded once more, so that nothing stays in registers until
// then.
template <class T, int SETS>
__device__ __noinline__ void square_again(const ShortRows *shared, u64 index, u32 lacking, u64 n, u32 ask, RowMoments<T> *wide,
    typename Element<T>::Bits *out)
{
    using Bits = typename Element<T>::Bits;
    constexpr int EACH = VECTORS / SETS;
    const ShortRows &rows = *shared;
    bool flags[SETS];
    u32 left = 0;
    {
        RowTile<T> tile;
        tile.load(rows, index);
        ScaledRow<T> row[SETS];
#pragma unroll
        for (int s = 0; s < SETS; ++s) {
            row[s].template take<EACH, true>(tile.v + s * EACH, rows.lanes());
            flags[s] = (lacking >> s & 1) == 0;
        }
        each_answer<T>(rows, index, row, flags, [&](const ScaledRow<T> &mine, u64 r) {
            const u32 set = u32(r / rows.groups() - index * SETS);
            left |= u32(!mine.answer(ask, n, out[r])) << set;
        });
        for (u32 d = rows.lanes() / 2; d > 0; d /= 2)
            left |= __shfl_xor_sync(ALL_LANES, left, d);
    }
    if (!__any_sync(ALL_LANES, left != 0))
        return;
    const u32 lost = answer_apart<FloatSquares<T, true>>(rows, index, left, out, {ask, n});
#pragma unroll
    for (int s = 0; s < SETS; ++s)
        flags[s] = (lost >> s & 1) != 0;
    each_lacking<T>(rows, index, flags, [&](u64 r) { absorb_row<T>(reinterpret_cast<const Bits *>(rows.row(r)), n, ask, *wide, out + r); });
}

template <class T, int SETS>
__device__ __forceinline__ void square_tile(const ShortRows &rows, const RowTile<T> &tile, u64 index, u64 n, u32 ask, const ShortRows *shared,
    RowMoments<T> *wide, typename Element<T>::Bits *out)
{
    constexpr int EACH = VECTORS / SETS;
    ScaledRow<T> row[SETS];
    bool lacks[SETS];
#pragma unroll
    for (int s = 0; s < SETS; ++s) {
        row[s].template take<EACH>(tile.v + s * EACH, rows.lanes());
        lacks[s] = row[s].lacks() && RowTile<T>::row(rows, index, s) < rows.count;
    }
    each_answer<T>(rows, index, row, lacks, [&](const ScaledRow<T> &mine, u64 r) { mine.answer(ask, n, out[r]); });
    u32 lacking = 0;
#pragma unroll
    for (int s = 0; s < SETS; ++s)
        lacking |= u32(lacks[s]) << s;
    if (__any_sync(ALL_LANES, lacking != 0))
        square_again<T, SETS>(shared, index, lacking, n, ask, wide, out);
}

template <class T>
__device__ __forceinline__ void square_rows(const ShortRows &rows, u64 n, u32 ask, void *out)
{
    using Bits = typename Element<T>::Bits;
    __shared__ RowMoments<T> wides[ROW_THREADS / WARP];
    RowMoments<T> *const wide = &wides[threadIdx.x / WARP];
    __shared__ ShortRows shared;
    if (threadIdx.x == 0)
        shared = rows;
    __syncthreads();
    Bits *const numbers = static_cast<Bits *>(out);
    each_tile<T>(rows, [&](const RowTile<T> &tile, u64 index) {
        switch (rows.each) {
        case 1: return square_tile<T, 4>(rows, tile, index, n, ask, &shared, wide, numbers);
        case 2: return square_tile<T, 2>(rows, tile, index, n, ask, &shared, wide, numbers);
        default: return square_tile<T, 1>(rows, tile, index, n, ask, &shared, wide, numbers);
        }
    });
}
