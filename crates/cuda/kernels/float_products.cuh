// The exact sum of the products of two arrays' floats, or of the squares of one's.

#pragma once

#include "ladder.cuh"
#include "product_bins.cuh"
#include "products.cuh"
#include "ticket.cuh"

template <class T, bool TWO>
struct FloatProducts {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    using Lane = LaneProducts<T, TWO>;
    static constexpr bool PAIRED = TWO;
    static constexpr bool REFUSES = true;
    static constexpr int TILE = Lane::TILE;

    // Of f16 the first window holds whatever is finite, of f64 there are no bins.
    static constexpr bool FITS = Lane::SHORT;
    static constexpr bool BINNED = !Lane::SHORT && !Lane::SPLIT;

    Ladder<Lane> ladder;
    ProductBins<T> bins;
    SpecialProducts specials;

    static __device__ __forceinline__ Bits pair(Bits x, Bits y) { return TWO ? y : x; }

    __device__ __forceinline__ void one(Bits x, Bits y) { absorb_product<T>(ladder.wide, x, pair(x, y)); }
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
        if (!__all_sync(ALL_LANES, ladder.holds()))
            return false;
        ladder.commit();
        return true;
    }
    __device__ __forceinline__ bool again(const Place<T, TWO> &place)
    {
        if constexpr (FITS)
            return false;
        int top = LOWEST_TOP;
        place.each([&](Bits x, Bits y) {
            if (Element<T>::is_finite(x) && Element<T>::is_finite(y))
                top = max(top, Lane::top(x, pair(x, y)));
        });
        ladder.move(top);
        place.each([&](Bits x, Bits y) { add(x, y); });
        const bool holds = ladder.holds();
        if constexpr (BINNED) {
            if (bins.there() && !__all_sync(ALL_LANES, holds))
                return false;
        }
        if (holds)
            ladder.commit();
        else
            place.each([&](Bits x, Bits y) { one(x, y); });
        return true;
    }
    __device__ __forceinline__ void any_open()
    {
        specials.infinite = false;
        if constexpr (FITS)
            open();
        if constexpr (BINNED) {
            if (!bins.open)
                bins.clear();
            bins.make_room(TILE * ITEMS<T>);
        }
    }
    __device__ __forceinline__ void any(const uint4 &x, const uint4 &y)
    {
#pragma unroll
        for (int i = 0; i < ITEMS<T>; ++i) {
            const f64 product = specials.finite(Lane::product(item<T>(x, i), pair(item<T>(x, i), item<T>(y, i))));
            if constexpr (FITS)
                ladder.window.add(ladder.lane.drift, product);
            if constexpr (BINNED)
                bins.add(product);
        }
    }
    __device__ __forceinline__ void any_close(const Place<T, TWO> &place)
    {
        if constexpr (FITS)
            ladder.commit();
        if (specials.infinite) {
            place.each([&](Bits x, Bits y) {
                const f64 product = Lane::product(x, pair(x, y));
                if (SpecialProducts::is_infinite(product)) {
                    one(x, y);
                    --specials.count;
                }
            });
        }
    }
    __device__ __forceinline__ void finish()
    {
        ladder.finish();
        if constexpr (BINNED)
            bins.flush(ladder.wide);
        if (specials.count != 0)
            atomicAdd(&ladder.wide.specials[0], specials.count);
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
