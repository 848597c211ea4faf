// The exact sums of floats and of their squares, in one pass.

#pragma once

#include "ladder.cuh"
#include "narrow_squares.cuh"
#include "product_bins.cuh"
#include "products.cuh"
#include "range.cuh"
#include "specials.cuh"
#include "ticket.cuh"

// Bins of the elements, with as few limbs as will do: the loads under way want shared memory too.
template <class T>
struct ElementBins {
    static constexpr u32 BYTES = 0;
};
template <>
struct ElementBins<bf16> : NarrowElements {};
template <>
struct ElementBins<f32> : FieldBins<24, 24> {};
template <>
struct ElementBins<f64> : LongBins<4> {};

template <class T>
struct SquareBins : ProductBins<T, ElementBins<T>::BYTES> {};
template <>
struct SquareBins<bf16> : NarrowSquares<ElementBins<bf16>::BYTES> {};

template <class T>
struct FloatMoments {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    static constexpr bool PAIRED = false;
    static constexpr bool REFUSES = true;

    // Of shorter floats, squares that are certified certify the sum of the N elements too. They add up to at most 2^(k(0) + 52) and none
    // but zeros is below 2^(k(1) + 2 P - 1), P the significand's bits. So the elements are multiples of 2^(k(1) / 2), and any sum of them is
    // at most sqrt(N * 2^(k(0) + 52)), by Cauchy and Schwarz: 2^52 of those, as N = 2^H and k(0) - k(1) = 52 - H. It fits an f64. The
    // sum of f16 fits anyway.
    using Squares = LaneProducts<T, false>;
    static constexpr bool IMPLIED = Squares::BOUNDED;
    using Elements = LaneSum<T, IMPLIED>;
    static constexpr int TILE = Squares::TILE;
    using Specials = SpecialElements<T>;

    // Of f16 the first windows hold whatever is finite.
    static constexpr bool FITS = Squares::SHORT;
    // Whether bins take words of two elements.
    static constexpr bool BY_WORD = !FITS && sizeof(Bits) == 2;

    Ladder<Elements> elements;
    Ladder<Squares> squares;
    ElementBins<T> element_bins;
    SquareBins<T> square_bins;
    bool special = false;
    // Of f64: whether the bins have not taken a square of the tile.
    bool left_over = false;

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
        if (!__all_sync(ALL_LANES, held.elements && held.squares)) {
            special = __any_sync(ALL_LANES, squares.is_special());
            return false;
        }
        elements.commit();
        squares.commit();
        return true;
    }
    __device__ __forceinline__ void count(const SpecialCounts &all)
    {
        elements.wide.count(all.nans, all.positive, all.negative);
        squares.wide.count(all.nans, all.positive + all.negative, 0);
    }
    template <class Vectors>
    __device__ __forceinline__ bool moved(const Place<T, false> &place)
    {
        if constexpr (FITS)
            return false;
        Vectors vectors;
        vectors.load(place.at, place.apart, place.valid);
        int top = LOWEST_TOP;
        vectors.template each_element<T>(place, [&](Bits x, Bits) {
            if (Element<T>::is_finite(x))
                top = max(top, Element<T>::top(x));
        });
        const bool one = elements.move(top), other = squares.move(2 * top);
        return one || other;
    }
    __device__ __forceinline__ bool there() const { return square_bins.there(); }
    __device__ __forceinline__ void any_open()
    {
        left_over = false;
        if (!square_bins.open) {
            element_bins.clear();
            square_bins.clear();
        }
        element_bins.make_room(TILE * ITEMS<T>, elements.wide);
        square_bins.make_room(TILE * ITEMS<T>, squares.wide);
    }
    __device__ __forceinline__ void any(const uint4 &v, const uint4 &)
    {
        if constexpr (BY_WORD) {
            element_bins.add(v.x, square_bins);
            element_bins.add(v.y, square_bins);
            element_bins.add(v.z, square_bins);
            element_bins.add(v.w, square_bins);
        } else {
            each_of(v);
        }
    }
    __device__ __forceinline__ void each_of(const uint4 &v)
    {
#pragma unroll
        for (int i = 0; i < ITEMS<T>; ++i) {
            const Bits bits = item<T>(v, i);
            if constexpr (Squares::SPLIT) {
                element_bins.add(bits);
                left_over |= !square_bins.add(bits, bits) && !adds_nothing<T>(bits, bits);
            } else {
                element_bins.add(Element<T>::value(bits));
                square_bins.add(Squares::product(bits, bits));
            }
        }
    }
    __device__ __forceinline__ void any_close(const Place<T, false> &place)
    {
        if constexpr (Squares::SPLIT) {
            if (left_over) {
                place.each([&](Bits x, Bits) {
                    if (!square_bins.takes(x, x) && Element<T>::is_finite(x))
                        absorb_product<T>(squares.wide, x, x);
                });
            }
        }
    }
    __device__ __forceinline__ void finish()
    {
        elements.finish();
        squares.finish();
        if constexpr (!FITS) {
            element_bins.flush(elements.wide);
            square_bins.flush(squares.wide);
        }
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
    pass.finish();
    __syncthreads();
    const auto entry = [&](int i) { return i < Sums::WORDS ? sums.entry(i, n) : squares.entry(i - Sums::WORDS, n); };
    add_over_grid<Sums::WORDS + SquareSums::WORDS>(entry, scratch, out);
}
