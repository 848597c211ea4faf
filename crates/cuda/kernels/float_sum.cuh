// Exact sums of floats: windows while they certify, the superaccumulator for what they do not.

#pragma once

#include "range.cuh"
#include "ticket.cuh"

// Where a warp's window begins: terms below 2^START. Most data fits; other data moves it with its first tile.
constexpr int START = 10;
// Binades left above a tile that moved the window.
constexpr int ROOM = 4;

template <class T, bool ABSOLUTE>
struct FloatSum {
    using Item = T;
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Lane = LaneSum<T>;

    Wide<T> &wide;
    Window<T, Lane::LEVELS> window;

    __device__ __forceinline__ FloatSum(Wide<T> &wide) : wide(wide) { window.move(window.below(START)); }

    static __device__ __forceinline__ Bits taken(Bits bits) { return ABSOLUTE ? Format::magnitude(bits) : bits; }

    __device__ __forceinline__ void one(Bits bits) { wide.absorb(taken(bits)); }

    template <bool FULL>
    __device__ __forceinline__ void tile(const uint4 (&v)[VECTORS], const uint4 *at, u32 valid)
    {
        Lane lane(window);
        each<T, FULL>(v, valid, [&](Bits bits) { lane.add(taken(bits), window); });
        if (__all_sync(ALL_LANES, lane.close(window)))
            window.commit(lane.drift);
        else
            once_more(at, valid);
        if (++window.commits == window.COMMITS)
            window.flush(wide);
    }

    // A tile that some lane could not certify: in a window made for it, and what that cannot hold one by one.
    __device__ __forceinline__ void once_more(const uint4 *at, u32 valid)
    {
        int top = Format::UNIT;
        each_again<T>(at, valid, [&](Bits bits) {
            if (Format::magnitude(bits) < Format::INFINITE)
                top = max(top, Format::top(bits));
        });
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            top = max(top, __shfl_xor_sync(ALL_LANES, top, distance));
        const int first = window.below(top + Lane::K + ROOM);
        if (first != window.first) {
            window.flush(wide);
            window.move(first);
        }
        Lane lane(window);
        each_again<T>(at, valid, [&](Bits bits) { lane.add(taken(bits), window); });
        if (lane.close(window))
            window.commit(lane.drift);
        else
            each_again<T>(at, valid, [&](Bits bits) { wide.absorb(taken(bits)); });
    }
};

// Leaves the vector form of core's superaccumulator in `out`: limbs, count, NaNs, positive and negative infinities.
template <class T, bool ABSOLUTE>
__device__ __forceinline__ void float_sum(const void *data, u64 n, u64 *scratch, u64 *out)
{
    __shared__ Wide<T> wide;
    wide.clear();
    __syncthreads();
    FloatSum<T, ABSOLUTE> pass(wide);
    walk(data, n, pass);
    pass.window.flush(wide);
    __syncthreads();

    // Entries add with wrapping integers, so that the order of the blocks is of no matter.
    constexpr int COUNT = Wide<T>::LIMBS;
    u64 *sums = scratch + SCRATCH_SUMS;
    if (gridDim.x > 1) {
        for (int i = threadIdx.x; i < Wide<T>::WORDS; i += blockDim.x) {
            if (i != COUNT) {
                if (const u64 entry = u64(wide.entry(i)))
                    atomicAdd(&sums[i], entry);
            }
        }
        __threadfence();
        if (!is_last_block(scratch))
            return;
    }
    for (int i = threadIdx.x; i < Wide<T>::WORDS; i += blockDim.x) {
        if (i == COUNT)
            out[i] = n;
        else
            out[i] = gridDim.x > 1 ? atomicExch(&sums[i], 0) : u64(wide.entry(i));
    }
}
