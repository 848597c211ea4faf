// Sums and means of short rows of floats, exact and rounded once.
//
// Each row goes down a ladder of rungs until one is sure of its sum:
//
//     plain f64 adds, if the row's range certifies that none of them rounds (range.cuh); of f64, a window made for the row's largest element
//     a window for whatever is finite (whole_window.cuh); of f64, which has no such window, two f64 and a bound of what these lack
//     of f64 an integer that moves (moving.cuh), and the warp's superaccumulator, row by row

#pragma once

#include "float_total.cuh"
#include "narrow.cuh"
#include "rows_apart.cuh"
#include "whole_window.cuh"

// What is asked of the rows.
template <class T>
struct Question {
    using Bits = typename Element<T>::Bits;
    u32 ask;
    u64 n;      // elements of a row
    Bits mask;  // all bits, or all but the sign
    u32 spread; // the widest range of elements that is certified
    Bits *out;
};

// Elements of the shorter types, added up in f64: log2(n) bits more than an element has fit 53 if their range is no wider than
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

// The same in a window.
template <class T, int LEVELS>
struct WindowRow {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    // Fewer do not hold all that is finite.
    static constexpr bool IS_WHOLE = sizeof(Bits) < 8;
    using Levels = Window<typename Format::Sum, LEVELS, 4, IS_WHOLE>;

    FixedPoint<LEVELS> all;
    int first; // the upper level's unit is 2 to the power of this
    bool holds;
    f64 special = 0.0; // the sum of what is not finite, where that is looked for

    // A lane's part of a row whose elements are below 2^top. Each vector has an anchor of its own.
    template <int EACH>
    __device__ __forceinline__ void add(const uint4 *v, Bits mask, int top)
    {
        Levels window(IS_WHOLE ? Levels::LOWEST : Levels::below(top));
        first = window.first;
        holds = true;
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            auto drift = window.open();
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i)
                window.add(drift, f64(Format::value(Bits(item<T>(v[k], i) & mask))));
            holds = holds && (IS_WHOLE || Levels::holds(drift));
            window.commit(drift);
        }
#pragma unroll
        for (int l = 0; l < LEVELS; ++l)
            all.total[l] = window.total[l];
    }

    __device__ __forceinline__ void fold(u32 lanes)
    {
        for (u32 d = lanes / 2; d > 0; d /= 2) {
#pragma unroll
            for (int l = 0; l < LEVELS; ++l)
                all.total[l] += __shfl_xor_sync(ALL_LANES, all.total[l], d);
            if constexpr (!IS_WHOLE)
                holds = __shfl_xor_sync(ALL_LANES, int(holds), d) != 0 && holds;
        }
    }

    // Looks for what is not finite in the row. Its sum is NaN or infinite, as is that of all elements.
    template <int EACH>
    __device__ __forceinline__ void look(const uint4 *v, Bits mask, u32 lanes)
    {
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i) {
                const Bits bits = item<T>(v[k], i) & mask;
                special = __dadd_rn(special, Format::is_finite(bits) ? 0.0 : f64(Format::value(bits)));
            }
        }
        for (u32 d = lanes / 2; d > 0; d /= 2)
            special = __dadd_rn(special, __shfl_xor_sync(ALL_LANES, special, d));
    }

    __device__ __forceinline__ Bits answer(const Question<T> &question) const
    {
        if (!IS_WHOLE && !(special == 0.0))
            return Specials<T>{special != special, special > 0.0, special < 0.0}.bits();
        if constexpr (LEVELS == 2)
            return float_answer<T>(of_levels<Levels>(all.total, first, 2), question.ask, question.n);
        else
            return float_answer<T>(of_fixed_point(all, first - Levels::STEP * (LEVELS - 1)), question.ask, question.n);
    }
};

// A power of two that the elements of a row of f64 are below, of which each lane has EACH vectors; SPECIAL_TOP if they are not finite.
constexpr int SPECIAL_TOP = 1025;
template <int EACH>
__device__ __forceinline__ int top_of_row(const uint4 *v, u32 lanes)
{
    u32 most = 0;
#pragma unroll
    for (int k = 0; k < EACH; ++k)
        most = max(most, max(v[k].y << 1, v[k].w << 1));
    for (u32 d = lanes / 2; d > 0; d /= 2)
        most = max(most, __shfl_xor_sync(ALL_LANES, most, d));
    return int(most >> 21) - 1022;
}

// The same of f64 that are far apart: a rounded sum, and the rounded sum of its rounding errors.
//
// An add is off by its error exactly (Knuth 1969). So the row's sum is `sum` and all errors, of which `error` is the rounded sum: with at most
// 2^10 of them it is off by less than 2^-43 times their magnitudes, and `magnitudes`, a rounded sum of as many, is too small by as little
// of itself. 2^-42 is twice what both come to.
struct ErrorRow {
    f64 sum = 0.0;
    f64 error = 0.0;
    f64 magnitudes = 0.0;

    __device__ __forceinline__ void take(f64 term, f64 others, f64 their_magnitudes)
    {
        const Double both = two_sum(sum, term);
        sum = both.hi;
        error = add(add(error, others), both.lo);
        magnitudes = add(add(magnitudes, their_magnitudes), fabs(both.lo));
    }

    template <int EACH>
    __device__ __forceinline__ void add_vectors(const uint4 *v, u64 mask)
    {
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
#pragma unroll
            for (int i = 0; i < ITEMS<f64>; ++i)
                take(Element<f64>::value(item<f64>(v[k], i) & mask), 0.0, 0.0);
        }
    }

    __device__ __forceinline__ void fold(u32 lanes)
    {
        for (u32 d = lanes / 2; d > 0; d /= 2)
            take(__shfl_xor_sync(ALL_LANES, sum, d), __shfl_xor_sync(ALL_LANES, error, d), __shfl_xor_sync(ALL_LANES, magnitudes, d));
    }

    // False if the answer is not sure; of a NaN or an infinity it is not.
    __device__ __forceinline__ bool answer(const Question<f64> &question, u64 &bits) const
    {
        const Double all = two_sum(sum, error);
        const f64 sign = all.hi < 0.0 ? -1.0 : 1.0;
        const f64 part = __ddiv_rn(mul(magnitudes, 0x1p-42), fabs(all.hi));
        const f64 n = question.ask == MEAN ? f64(question.n) : 1.0;
        const bool sure = nearest_real<f64>({mul(all.hi, sign), mul(all.lo, sign)}, n, 0.0, 0, false, bits, part);
        bits |= all.hi < 0.0 ? Element<f64>::SIGN : 0;
        return sure;
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

template <class T>
struct Write {
    const Question<T> &question;
    template <class Row>
    __device__ __forceinline__ void operator()(const Row &row, u64 r) const
    {
        question.out[r] = row.answer(question);
    }
};

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

// Answers rows by sums and their errors. Returns those whose answers are not sure.
template <int SETS>
__device__ __forceinline__ u32 answer_by_errors(const ShortRows &rows, u64 index, u32 lacking, const Question<f64> &question)
{
    constexpr int EACH = VECTORS / SETS;
    RowTile<f64> tile;
    tile.load(rows, index);
    u32 left = 0;
#pragma unroll
    for (int s = 0; s < SETS; ++s) {
        ErrorRow row;
        row.add_vectors<EACH>(tile.v + s * EACH, question.mask);
        row.fold(rows.lanes());
        u64 bits = 0;
        const bool sure = row.answer(question, bits);
        const u64 r = RowTile<f64>::row(rows, index, s);
        if ((lacking >> s & 1) == 0)
            continue;
        left |= u32(!sure) << s;
        if (sure && rows.slot() == 0 && r < rows.count)
            question.out[r] = bits;
    }
    return left;
}

// The rows of a tile whose first sums are not sure, which `lacking` says by sets. They are loaded once more, so that nothing stays in
// registers until then.
template <class T, int SETS>
__device__ __noinline__ void sum_again(const SharedQuestion<T> *shared, u64 index, u32 lacking, Superaccumulator<T> *wide)
{
    constexpr int EACH = VECTORS / SETS;
    constexpr bool LONG = sizeof(typename Element<T>::Bits) == 8;
    const ShortRows &rows = shared->rows;
    const Question<T> &question = shared->question;
    bool flags[SETS];
    if constexpr (LONG) {
        lacking = answer_by_errors<SETS>(rows, index, lacking, question);
        if (!__any_sync(ALL_LANES, lacking != 0))
            return;
        const typename FloatTotal<T>::Asked asked(question.ask, question.mask != ~typename Element<T>::Bits(0), question.n);
        const u32 lost = answer_apart<FloatTotal<T>>(rows, index, lacking, question.out, asked);
#pragma unroll
        for (int s = 0; s < SETS; ++s)
            flags[s] = (lost >> s & 1) != 0;
        absorb_lacking(rows, index, flags, question, *wide);
    } else {
        RowTile<T> tile;
        tile.load(rows, index);
        WindowRow<T, WholeSum<T>::LEVELS> window[SETS];
#pragma unroll
        for (int s = 0; s < SETS; ++s) {
            window[s].template add<EACH>(tile.v + s * EACH, question.mask, 0);
            window[s].fold(rows.lanes());
            flags[s] = (lacking >> s & 1) == 0;
        }
        each_answer<T>(rows, index, window, flags, Write<T>{question});
    }
}

template <class T, int SETS>
__device__ __forceinline__ void sum_tile(const ShortRows &rows, const RowTile<T> &tile, u64 index, const Question<T> &question,
    const SharedQuestion<T> *shared, Superaccumulator<T> *wide)
{
    constexpr int EACH = VECTORS / SETS;
    const Write<T> write = {question};
    // Whether this lane's rows lack an answer.
    bool lacks[SETS];
    if constexpr (sizeof(typename Element<T>::Bits) == 8) {
        WindowRow<T, 2> window[SETS];
        bool special[SETS];
#pragma unroll
        for (int s = 0; s < SETS; ++s) {
            const uint4 *const its = tile.v + s * EACH;
            const int top = top_of_row<EACH>(its, rows.lanes());
            window[s].template add<EACH>(its, question.mask, top);
            window[s].fold(rows.lanes());
            special[s] = top == SPECIAL_TOP;
            lacks[s] = !window[s].holds && !special[s];
        }
        if (__any_sync(ALL_LANES, any(special))) {
#pragma unroll
            for (int s = 0; s < SETS; ++s)
                window[s].template look<EACH>(tile.v + s * EACH, question.mask, rows.lanes());
        }
        each_answer<T>(rows, index, window, lacks, write);
    } else {
        PlainRow<T> row[SETS];
#pragma unroll
        for (int s = 0; s < SETS; ++s) {
#pragma unroll
            for (int k = 0; k < EACH; ++k)
                row[s].add(tile.v[s * EACH + k], question.mask);
            row[s].fold(rows.lanes());
            lacks[s] = !row[s].is_sure(question.spread);
        }
        each_answer<T>(rows, index, row, lacks, write);
        if constexpr (!PlainRow<T>::RANGED)
            return;
    }
    u32 lacking = 0;
#pragma unroll
    for (int s = 0; s < SETS; ++s)
        lacking |= u32(lacks[s]) << s;
    if (__any_sync(ALL_LANES, lacking != 0))
        sum_again<T, SETS>(shared, index, lacking, wide);
}

template <class T>
__device__ __forceinline__ void sum_rows(const ShortRows &rows, u64 n, u32 ask, u32 absolute, u32 spread, void *out)
{
    using Bits = typename Element<T>::Bits;
    // Whatever is finite of shorter types has a window.
    constexpr bool LONG = sizeof(Bits) == 8;
    __shared__ Superaccumulator<T> wides[LONG ? ROW_THREADS / WARP : 1];
    Superaccumulator<T> *const wide = &wides[LONG ? threadIdx.x / WARP : 0];
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
