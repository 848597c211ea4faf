// The exact sums of floats and of their squares, in one pass.

#pragma once

#include "ladder.cuh"
#include "pipeline.cuh"
#include "products.cuh"
#include "range.cuh"
#include "ticket.cuh"

template <class T>
struct FloatMoments {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    static constexpr bool PAIRED = false;

    // Squares of bf16 that are certified certify the sum of the elements too. The squares add up to at most 2^(k(0) + 52) and none but
    // zeros is below 2^(k(1) + 15), where k(0) - k(1) = 47. So the 32 elements are multiples of 2^((k(1) + 15) / 2 - 1/2 - 7), and any
    // sum of them is at most sqrt(32 * 2^(k(0) + 52)), by Cauchy and Schwarz, which is 2^52 of those: it fits an f64.
    using Squares = LaneProducts<T, false>;
    static constexpr bool IMPLIED = Squares::BOUNDED;
    using Elements = LaneSum<T, false, IMPLIED>;

    Ladder<Elements> elements;
    Ladder<Squares> squares;

    struct Held {
        bool elements;
        bool squares;
    };

    __device__ __forceinline__ void one(Bits x, Bits)
    {
        elements.one(x, x);
        squares.one(x, x);
    }
    __device__ __forceinline__ void open()
    {
        elements.open();
        squares.open();
    }
    __device__ __forceinline__ void add(Bits x)
    {
        elements.add(x, x);
        squares.add(x, x);
    }
    __device__ __forceinline__ void take(const uint4 &x, const uint4 &)
    {
#pragma unroll
        for (int i = 0; i < ITEMS<T>; ++i)
            add(item<T>(x, i));
    }
    __device__ __forceinline__ Held holds()
    {
        Held held{elements.holds(), squares.holds()};
        held.elements &= held.squares || !IMPLIED;
        return held;
    }
    __device__ __forceinline__ void count()
    {
        elements.count();
        squares.count();
    }
    __device__ __forceinline__ bool close()
    {
        const Held held = holds();
        if (!__all_sync(ALL_LANES, held.elements && held.squares))
            return false;
        elements.commit();
        squares.commit();
        count();
        return true;
    }
    __device__ __forceinline__ void again(const Place<T, false> &place)
    {
        int top = LOWEST_TOP;
        place.each([&](Bits x, Bits) {
            if (Element<T>::is_finite(x))
                top = max(top, Element<T>::top(x));
        });
        elements.move(top);
        squares.move(2 * top);
        place.each([&](Bits x, Bits) { add(x); });
        const Held held = holds();
        if (held.elements)
            elements.commit();
        else
            place.each([&](Bits x, Bits) { elements.one(x, x); });
        if (held.squares)
            squares.commit();
        else
            place.each([&](Bits x, Bits) { squares.one(x, x); });
        count();
    }
};

// Leaves the vector forms of the two superaccumulators in `out`, each with counters of its own.
template <class T>
__device__ __forceinline__ void float_moments(const void *data, u64 n, u64 *scratch, u64 *out)
{
    using Pass = FloatMoments<T>;
    using Sums = Wide<typename Pass::Elements::Limbs>;
    using SquareSums = Wide<typename Pass::Squares::Limbs>;
    __shared__ Sums sums;
    __shared__ SquareSums squares;
    sums.clear();
    squares.clear();
    __syncthreads();
    Pass pass{sums, squares};
    pipe(data, nullptr, n, pass);
    pass.elements.finish();
    pass.squares.finish();
    __syncthreads();
    const auto entry = [&](int i) { return i < Sums::WORDS ? sums.entry(i, n) : squares.entry(i - Sums::WORDS, n); };
    add_over_grid<Sums::WORDS + SquareSums::WORDS>(entry, scratch, out);
}
