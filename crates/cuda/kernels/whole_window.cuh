// Windows that hold whatever is finite of floats shorter than f64: as many levels as the format has.
//
// They are for what narrower windows do not hold, where they take a dozen plain adds an element and no atomic one.

#pragma once

#include "window.cuh"

// Finite elements are below 2 to the power of this.
template <class T>
constexpr int TOP_OF = int(Element<T>::INFINITE >> Element<T>::FRACTION) - 1 + Element<T>::UNIT + Element<T>::FRACTION;

// Exact sums of elements.
template <class T>
struct WholeSum {
    using Format = typename Element<T>::Sum;
    // A level holds 47 binades of terms above its unit, and each one more holds 48.
    static constexpr int LEVELS = (TOP_OF<T> - Format::LSB) / 48 + 1;
    using Levels = Window<Format, LEVELS, 4, true>;

    Levels window = Levels(Levels::LOWEST);

    // Adds those of some elements that are finite.
    template <int N>
    __device__ __forceinline__ void take(const typename Element<T>::Bits (&some)[N])
    {
        static_assert(N <= Levels::ADDS, "adds that an anchor takes");
        auto drift = window.open();
#pragma unroll
        for (int k = 0; k < N; ++k) {
            window.add(drift, Element<T>::is_finite(some[k]) ? f64(Element<T>::value(some[k])) : 0.0);
        }
        window.commit(drift);
    }
};
