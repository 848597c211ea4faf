// The exact sum of the products of two arrays' floats, or of the squares of one's.

#pragma once

#include "ladder.cuh"
#include "products.cuh"
#include "ticket.cuh"

template <class T, bool TWO>
struct FloatProducts {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    using Lane = LaneProducts<T, TWO>;
    static constexpr bool PAIRED = TWO;
    static constexpr int TILE = Lane::TILE;

    Ladder<Lane> ladder;

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
    __device__ __forceinline__ void again(const Place<T, TWO> &place)
    {
        int top = LOWEST_TOP;
        place.each([&](Bits x, Bits y) {
            if (Element<T>::is_finite(x) && Element<T>::is_finite(y))
                top = max(top, Lane::top(x, pair(x, y)));
        });
        ladder.move(top);
        place.each([&](Bits x, Bits y) { add(x, y); });
        if (ladder.holds())
            ladder.commit();
        else
            place.each([&](Bits x, Bits y) { one(x, y); });
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
    pass.ladder.finish();
    __syncthreads();
    add_over_grid<Sums::WORDS>([&](int i) { return wide.entry(i, n); }, scratch, out);
}
