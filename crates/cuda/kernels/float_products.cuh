// The exact sum of the products of two arrays' floats, or of the squares of one's.

#pragma once

#include "ladder.cuh"
#include "narrow_squares.cuh"
#include "product_bins.cuh"
#include "products.cuh"
#include "specials.cuh"
#include "ticket.cuh"

template <class T, bool TWO>
struct BinsOf : ProductBins<T> {};
template <>
struct BinsOf<bf16, false> : NarrowSquares<> {};

template <class T, bool TWO>
struct SpecialsOf {
    using Type = SpecialPairs<T>;
};
template <class T>
struct SpecialsOf<T, false> {
    using Type = SpecialElements<T>;
};

template <class T, bool TWO>
struct FloatProducts {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    using Lane = LaneProducts<T, TWO>;
    static constexpr bool PAIRED = TWO;
    static constexpr bool REFUSES = true;
    static constexpr int TILE = Lane::TILE;
    using Specials = typename SpecialsOf<T, TWO>::Type;

    // Of f16 the first window holds whatever is finite.
    static constexpr bool FITS = Lane::SHORT;
    // Whether bins take words of two elements.
    static constexpr bool BY_WORD = !TWO && !FITS && sizeof(Bits) == 2;

    Ladder<Lane> ladder;
    BinsOf<T, TWO> bins;
    bool special = false;
    // Of f64: whether the bins have not taken a product of the tile.
    bool left_over = false;

    static __device__ __forceinline__ Bits pair(Bits x, Bits y) { return TWO ? y : x; }
    __device__ __forceinline__ void one(Bits x, Bits y)
    {
        // Infinities of both signs make a NaN that no element is.
        if constexpr (TWO) {
            const Bits a = Element<T>::magnitude(x), b = Element<T>::magnitude(y);
            if ((a == 0 && b == Element<T>::INFINITE) || (b == 0 && a == Element<T>::INFINITE)) {
                ladder.wide.count(ladder.wide.POSITIVE);
                return ladder.wide.count(ladder.wide.NEGATIVE);
            }
        }
        absorb_product<T>(ladder.wide, x, pair(x, y));
    }
    __device__ __forceinline__ void open() { ladder.open(); }
    __device__ __forceinline__ void add(Bits x, Bits y) { ladder.lane.add(x, pair(x, y), ladder.window); }
    __device__ __forceinline__ void take(const uint4 &x, const uint4 &y)
    {
#pragma unroll
        for (int i = 0; i < ITEMS<T>; ++i)
            add(item<T>(x, i), item<T>(y, i));
    }
    __device__ __forceinline__ bool close()
    {
        if (!__all_sync(ALL_LANES, ladder.holds())) {
            special = __any_sync(ALL_LANES, ladder.is_special());
            return false;
        }
        ladder.commit();
        return true;
    }
    // Squares have no sign.
    __device__ __forceinline__ void count(const SpecialCounts &all)
    {
        if (TWO)
            ladder.wide.count(all.nans, all.positive, all.negative);
        else
            ladder.wide.count(all.nans, all.positive + all.negative, 0);
    }
    template <class Vectors>
    __device__ __forceinline__ bool moved(const Place<T, TWO> &place)
    {
        if constexpr (FITS)
            return false;
        Vectors vectors;
        vectors.load(place.at, place.apart, place.valid);
        int top = LOWEST_TOP;
        vectors.template each_element<T>(place, [&](Bits x, Bits y) {
            if (Element<T>::is_finite(x) && Element<T>::is_finite(y))
                top = max(top, Lane::top(x, pair(x, y)));
        });
        return ladder.move(top);
    }
    __device__ __forceinline__ bool there() const { return bins.there(); }
    __device__ __forceinline__ void any_open()
    {
        left_over = false;
        if (!bins.open)
            bins.clear();
        bins.make_room(TILE * ITEMS<T>, ladder.wide);
    }
    __device__ __forceinline__ void any(const uint4 &x, const uint4 &y)
    {
        if constexpr (BY_WORD) {
            bins.add(x.x);
            bins.add(x.y);
            bins.add(x.z);
            bins.add(x.w);
        } else {
            each_of(x, y);
        }
    }
    __device__ __forceinline__ void each_of(const uint4 &x, const uint4 &y)
    {
#pragma unroll
        for (int i = 0; i < ITEMS<T>; ++i) {
            const Bits a = item<T>(x, i), b = pair(a, item<T>(y, i));
            if constexpr (Lane::SPLIT) {
                left_over |= !bins.add(a, b) && !adds_nothing<T>(a, b);
            } else {
                bins.add(Lane::product(a, b));
            }
        }
    }
    __device__ __forceinline__ void any_close(const Place<T, TWO> &place)
    {
        if constexpr (Lane::SPLIT) {
            if (left_over) {
                place.each([&](Bits x, Bits y) {
                    const Bits b = pair(x, y);
                    if (!bins.takes(x, b) && Element<T>::is_finite(x) && Element<T>::is_finite(b))
                        one(x, y);
                });
            }
        }
    }
    __device__ __forceinline__ void finish()
    {
        ladder.finish();
        if constexpr (!FITS)
            bins.flush(ladder.wide);
    }
    __device__ __forceinline__ void pause(u32 tiles) { ladder.pause(tiles); }
};

// Leaves the vector form of core's superaccumulator in `out`.
template <class T, bool PAIRED>
__device__ __forceinline__ void float_products(const void *data, const void *others, u64 n, u64 *scratch, u64 *out)
{
    using Sums = Wide<typename Element<T>::Dot>;
    __shared__ Sums wide;
    wide.clear();
    __syncthreads();
    FloatProducts<T, PAIRED> pass{wide};
    pipe(data, others, n, pass);
    pass.finish();
    __syncthreads();
    add_over_grid<Sums::WORDS>([&](int i) { return wide.entry(i, n); }, scratch, out);
}
