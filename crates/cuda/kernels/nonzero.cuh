// Which limbs of a fixed-point integer are not 0: of a format's, most are, and one thread takes them one after the other.

#pragma once

#include "digits.cuh"

// So many limbs are worth the search.
constexpr int MANY_LIMBS = 16;

// They lie from the first to the last.
struct Nonzero {
    int first, last = -1;

    // `limb` says what the i-th is.
    template <class Limb>
    __device__ __forceinline__ Nonzero(int count, Limb limb) : first(count)
    {
#pragma unroll 2
        for (int i = 0; i < count; ++i) {
            if (limb(i) != 0) {
                first = min(first, i);
                last = i;
            }
        }
    }
};
