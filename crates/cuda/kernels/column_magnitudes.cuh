// The largest absolute value of each column.

#pragma once

#include "column_tally.cuh"
#include "magnitudes.cuh"

// Magnitudes of elements shorter than a word are compared on top of one, as ranks are.
template <class T>
struct ShortMagnitudes {
    using Magnitude = MagnitudeOf<T>;
    static constexpr int COLUMNS = ITEMS<T>;
    static constexpr u32 CHUNK = 1 << 16;
    static constexpr int WIDTH = Magnitude::WIDTH;
    static constexpr int EACH = 32 / WIDTH;

    u32 largest[COLUMNS] = {};

    __device__ __forceinline__ ShortMagnitudes(const typename Magnitude::Asked &) {}

    __device__ __forceinline__ void take(const uint4 (&v)[BATCH])
    {
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k) {
            const u32 words[4] = {Magnitude::magnitudes(v[k].x), Magnitude::magnitudes(v[k].y), Magnitude::magnitudes(v[k].z),
                Magnitude::magnitudes(v[k].w)};
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i)
                largest[i] = max(largest[i], words[i / EACH] << (32 - WIDTH - WIDTH * (i % EACH)));
        }
    }
    __device__ __forceinline__ void close(u32, u32) {}

    __device__ __forceinline__ void hand_over(Magnitude &magnitude, int i) const
    {
        magnitude.largest = typename Magnitude::Bits(largest[i] >> (32 - WIDTH));
    }
};

template <class T>
struct ShortTaker<MagnitudeOf<T>> {
    using Taker = ShortMagnitudes<T>;
};
