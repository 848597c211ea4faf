// How many elements are not zero, and how many are NaN (which is not zero).

#pragma once

#include "load.cuh"
#include "ticket.cuh"

template <class T>
struct Counts {
    using Item = T;
    using Format = Element<T>;
    using Bits = typename Format::Bits;

    u64 nonzero = 0;
    u64 nans = 0;

    static __device__ __forceinline__ bool is_nonzero(Bits bits)
    {
        if constexpr (Format::FLOAT)
            return Format::magnitude(bits) != 0;
        else
            return bits != 0;
    }

    __device__ __forceinline__ void one(Bits bits)
    {
        nonzero += is_nonzero(bits);
        if constexpr (Format::FLOAT)
            nans += Format::is_nan(bits);
    }

    // Elements shorter than a word, side by side: adding what lacks to 2^(WIDTH - 1) brings a carry to the upper bit of those
    // that are not zero, and, for magnitudes, of those above the infinities.
    static constexpr u32 EVERY = sizeof(Bits) == 1 ? 0x01010101 : 0x00010001;
    static constexpr u32 UPPER = EVERY << (8 * sizeof(Bits) - 1 & 31);
    static constexpr u32 REST = UPPER - EVERY;

    __device__ __forceinline__ void side_by_side(u32 word, u32 &nonzero, u32 &nans) const
    {
        u32 any = (word & REST) + REST;
        if constexpr (Format::FLOAT) {
            const u32 above = (word & REST) + (REST - EVERY * u32(Format::INFINITE));
            nans += __popc(above & UPPER);
        } else {
            any |= word;
        }
        nonzero += __popc(any & UPPER);
    }

    template <bool FULL>
    __device__ __forceinline__ void tile(const uint4 (&v)[VECTORS], u32, u32 valid)
    {
        u32 some = 0, wrong = 0;
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            if (FULL || k < valid) {
                if constexpr (sizeof(Bits) < 4) {
                    side_by_side(v[k].x, some, wrong);
                    side_by_side(v[k].y, some, wrong);
                    side_by_side(v[k].z, some, wrong);
                    side_by_side(v[k].w, some, wrong);
                } else {
#pragma unroll
                    for (int i = 0; i < ITEMS<T>; ++i) {
                        const Bits bits = item<T>(v[k], i);
                        some += is_nonzero(bits);
                        if constexpr (Format::FLOAT)
                            wrong += Format::is_nan(bits);
                    }
                }
            }
        }
        nonzero += some;
        nans += wrong;
    }
};

// Leaves the payload of core's state: elements, what is not zero, NaNs.
template <class T>
__device__ __forceinline__ void counts(const void *data, u64 n, u64 *scratch, u64 *out)
{
    Counts<T> pass;
    walk(data, n, scratch, pass);
    Totals<2> totals;
    totals.word[0] = pass.nonzero;
    totals.word[1] = pass.nans;
    totals = fold_block(totals);
    add_over_grid<2>([&](int i) { return i == 0 ? totals.word[0] : totals.word[1]; }, scratch, out + 1);
    if (blockIdx.x == 0 && threadIdx.x == 0)
        out[0] = n;
}
