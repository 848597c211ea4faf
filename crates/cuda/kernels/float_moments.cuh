// The exact sums of floats and of their squares, in one pass.

#pragma once

#include "ladder.cuh"
#include "products.cuh"
#include "range.cuh"
#include "ticket.cuh"

template <class T>
struct FloatMoments {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    static constexpr bool PAIRED = false;

    // Of shorter floats, squares that are certified certify the sum of the N elements too. They add up to at most 2^(k(0) + 52) and none
    // but zeros is below 2^(k(1) + 2 P - 1), P the significand's bits. So the elements are multiples of 2^(k(1) / 2), and any sum of them is
    // at most sqrt(N * 2^(k(0) + 52)), by Cauchy and Schwarz: 2^52 of those, as N = 2^H and k(0) - k(1) = 52 - H. It fits an f64. The
    // sum of f16 fits anyway.
    using Squares = LaneProducts<T, false>;
    static constexpr bool IMPLIED = Squares::BOUNDED;
    using Elements = LaneSum<T, IMPLIED>;
    static constexpr int TILE = Squares::TILE;

    Ladder<Elements> elements;
    Ladder<Squares> squares;

    struct Held {
        bool elements;
        bool squares;
    };

    __device__ __forceinline__ void one(Bits x, Bits)
    {
        absorb<T>(elements.wide, x);
        absorb_product<T>(squares.wide, x, x);
    }
    __device__ __forceinline__ void open()
    {
        elements.open();
        squares.open();
    }
    __device__ __forceinline__ void add(Bits x)
    {
        elements.lane.add(x, elements.window);
        squares.lane.add(x, x, squares.window);
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
    __device__ __forceinline__ bool close()
    {
        const Held held = holds();
        if (!__all_sync(ALL_LANES, held.elements && held.squares))
            return false;
        elements.commit();
        squares.commit();
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
            place.each([&](Bits x, Bits) { absorb<T>(elements.wide, x); });
        if (held.squares)
            squares.commit();
        else
            place.each([&](Bits x, Bits) { absorb_product<T>(squares.wide, x, x); });
    }
    __device__ __forceinline__ void pause(u32 tiles)
    {
        elements.pause(tiles);
        squares.pause(tiles);
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
