// The exact sum of floats, of their magnitudes, squares or products: what a lane says it is.

#pragma once

#include "ladder.cuh"
#include "pipeline.cuh"
#include "ticket.cuh"

template <class T, class Lane, bool TWO>
struct FloatSum {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    static constexpr bool PAIRED = TWO;

    Ladder<Lane> ladder;

    __device__ __forceinline__ void one(Bits x, Bits y) { ladder.one(x, y); }
    __device__ __forceinline__ void open() { ladder.open(); }
    __device__ __forceinline__ void take(const uint4 &x, const uint4 &y)
    {
#pragma unroll
        for (int i = 0; i < ITEMS<T>; ++i)
            ladder.add(item<T>(x, i), item<T>(y, i));
    }
    __device__ __forceinline__ bool close()
    {
        if (!__all_sync(ALL_LANES, ladder.holds()))
            return false;
        ladder.commit();
        ladder.count();
        return true;
    }
    __device__ __forceinline__ void again(const Place<T, TWO> &place)
    {
        int top = LOWEST_TOP;
        place.each([&](Bits x, Bits y) {
            if (Element<T>::is_finite(x) && Element<T>::is_finite(y))
                top = max(top, Lane::top(x, y));
        });
        ladder.move(top);
        place.each([&](Bits x, Bits y) { ladder.add(x, y); });
        if (ladder.holds())
            ladder.commit();
        else
            place.each([&](Bits x, Bits y) { ladder.one(x, y); });
        ladder.count();
    }
};

// Leaves the vector form of core's superaccumulator in `out`: limbs, count, NaNs, positive and negative infinities.
template <class T, class Lane, bool PAIRED = false>
__device__ __forceinline__ void float_sum(const void *data, const void *others, u64 n, u64 *scratch, u64 *out)
{
    using Sums = Wide<typename Lane::Limbs>;
    __shared__ Sums wide;
    wide.clear();
    __syncthreads();
    FloatSum<T, Lane, PAIRED> pass{wide};
    pipe(data, others, n, pass);
    pass.ladder.finish();
    __syncthreads();
    add_over_grid<Sums::WORDS>([&](int i) { return wide.entry(i, n); }, scratch, out);
}
