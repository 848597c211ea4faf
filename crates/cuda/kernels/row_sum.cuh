// Sums and means of short rows of floats that are shorter than f64, exact and rounded once.
//
// Each row goes down a ladder of rungs until one is sure of its sum:
//
//     plain f64 adds, if the row's range certifies that none of them rounds (range.cuh)
//     the sum of rounding errors beside the sum, and a bound of what both lack (float_total.cuh)
//     the warp's superaccumulator, row by row

#pragma once

#include "float_total.cuh"
#include "narrow.cuh"
#include "rows_apart.cuh"

// What is asked of the rows.
template <class T>
struct Question {
    using Bits = typename Element<T>::Bits;
    u32 ask;
    u64 n;      // elements of a row
    Bits mask;  // all bits, or all but the sign
    u32 spread; // the widest range of elements that is certified
    Bits *out;

    __device__ __forceinline__ TotalAsked<T> asked() const { return {ask, mask != Bits(~Bits(0)), n}; }
};

// Elements added up in f64: log2(n) bits more than an element has fit 53 if their range is no wider than
// `spread`.
template <class T>
struct PlainRow {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    static constexpr bool RANGED = SumFormat<T>::LIMBS > 2;

    f64 sum = 0.0;
    u32 most = 0;
    u32 least = ~0u;

    __device__ __forceinline__ void add(const uint4 &v, Bits mask)
    {
#pragma unroll
        for (int i = 0; i < ITEMS<T>; ++i) {
            const f32 x = Format::value(Bits(item<T>(v, i) & mask));
            if constexpr (RANGED) {
                const u32 doubled = __float_as_uint(x) << 1;
                most = max(most, doubled);
                least = min(least, doubled - 1);
            }
            sum = __dadd_rn(sum, f64(x));
        }
    }

    __device__ __forceinline__ void fold(u32 lanes)
    {
        for (u32 d = lanes / 2; d > 0; d /= 2) {
            sum = __dadd_rn(sum, __shfl_xor_sync(ALL_LANES, sum, d));
            if constexpr (RANGED) {
                most = max(most, __shfl_xor_sync(ALL_LANES, most, d));
                least = min(least, __shfl_xor_sync(ALL_LANES, least, d));
            }
        }
    }

    // NaNs and infinities make the sum one, and finite elements do not.
    __device__ __forceinline__ bool is_special() const { return !(fabs(sum) < __longlong_as_double(0x7ff0000000000000)); }
    __device__ __forceinline__ bool is_sure(u32 spread) const { return !RANGED || most - least <= spread || is_special(); }

    __device__ __forceinline__ Bits answer(const Question<T> &question) const
    {
        if (is_special())
            return Specials<T>{sum != sum, sum > 0.0, sum < 0.0}.bits();
        return narrow<T>(question.ask == MEAN ? quotient(sum, question.n) : sum);
    }
};

// The answer of a row, by all lanes of a warp in its superaccumulator.
template <class T>
__device__ __noinline__ void absorb_row(const typename Element<T>::Bits *items, u64 n, typename Element<T>::Bits mask, u32 ask,
    Superaccumulator<T> &wide, typename Element<T>::Bits *out)
{
    const u32 lane = threadIdx.x % WARP;
    for (int i = lane; i < Superaccumulator<T>::LIMBS; i += WARP) {
        wide.low[i] = 0;
        wide.high[i] = 0;
    }
    if (lane < 3)
        wide.specials[lane] = 0;
    __syncwarp();
#pragma unroll 1
    for (u64 i = lane; i < n; i += WARP)
        absorb<T>(wide, items[i] & mask);
    __syncwarp();
    if (lane == 0)
        *out = wide_answer<T>(wide, ask, n);
    __syncwarp();
}

// The rows of a tile that lack an answer, one by one.
template <class T, int SETS>
__device__ __forceinline__ void absorb_lacking(const ShortRows &rows, u64 index, bool (&lacks)[SETS], const Question<T> &question,
    Superaccumulator<T> &wide)
{
    using Bits = typename Element<T>::Bits;
    each_lacking<T>(rows, index, lacks, [&](u64 r) {
        absorb_row<T>(reinterpret_cast<const Bits *>(rows.row(r)), question.n, question.mask, question.ask, wide, question.out + r);
    });
}

// What is seldom called finds the rows and the question here: arguments would hold registers.
template <class T>
struct SharedQuestion {
    ShortRows rows;
    Question<T> question;
};

// The rows of a tile that lack an answer, which `lacking` says by sets. They are loaded once more, so that nothing stays in registers until
// then.
template <class T, int SETS>
__device__ __noinline__ void sum_again(const SharedQuestion<T> *shared, u64 index, u32 lacking, Superaccumulator<T> *wide)
{
    const ShortRows &rows = shared->rows;
    const Question<T> &question = shared->question;
    lacking = answer_apart<FloatTotal<T>>(rows, index, lacking, question.out, question.asked());
    bool flags[SETS];
#pragma unroll
    for (int s = 0; s < SETS; ++s)
        flags[s] = (lacking >> s & 1) != 0;
    absorb_lacking(rows, index, flags, question, *wide);
}

template <class T, int SETS>
__device__ __forceinline__ void sum_tile(const ShortRows &rows, const RowTile<T> &tile, u64 index, const Question<T> &question,
    const SharedQuestion<T> *shared, Superaccumulator<T> *wide)
{
    constexpr int EACH = VECTORS / SETS;
    PlainRow<T> row[SETS];
    // Whether this lane's rows lack an answer.
    bool lacks[SETS];
#pragma unroll
    for (int s = 0; s < SETS; ++s) {
#pragma unroll
        for (int k = 0; k < EACH; ++k)
            row[s].add(tile.v[s * EACH + k], question.mask);
        row[s].fold(rows.lanes());
        lacks[s] = !row[s].is_sure(question.spread);
    }
    each_answer<T>(rows, index, row, lacks, [&](const PlainRow<T> &mine, u64 r) { question.out[r] = mine.answer(question); });
    if constexpr (PlainRow<T>::RANGED) {
        u32 lacking = 0;
#pragma unroll
        for (int s = 0; s < SETS; ++s)
            lacking |= u32(lacks[s]) << s;
        if (__any_sync(ALL_LANES, lacking != 0))
            sum_again<T, SETS>(shared, index, lacking, wide);
    }
}

template <class T>
__device__ __forceinline__ void sum_rows(const ShortRows &rows, u64 n, u32 ask, u32 absolute, u32 spread, void *out)
{
    using Bits = typename Element<T>::Bits;
    __shared__ Superaccumulator<T> wides[ROW_THREADS / WARP];
    Superaccumulator<T> *const wide = &wides[threadIdx.x / WARP];
    const Bits mask = Bits(absolute ? ~Element<T>::SIGN : ~Bits(0));
    const Question<T> question = {ask, n, mask, spread, static_cast<Bits *>(out)};
    __shared__ SharedQuestion<T> shared;
    if (threadIdx.x == 0)
        shared = {rows, question};
    __syncthreads();
    each_tile<T>(rows, [&](const RowTile<T> &tile, u64 index) {
        switch (rows.each) {
        case 1: return sum_tile<T, 4>(rows, tile, index, question, &shared, wide);
        case 2: return sum_tile<T, 2>(rows, tile, index, question, &shared, wide);
        default: return sum_tile<T, 1>(rows, tile, index, question, &shared, wide);
        }
    });
}
