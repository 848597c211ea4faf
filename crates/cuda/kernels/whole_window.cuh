// Windows that hold whatever is finite: as many levels as the format has. Of f64, which has too many, they reach 331 binades down from the
// largest term.
//
// They are for what a window that moves does not hold, where they take a dozen plain adds an element and no atomic one.

#pragma once

#include "fixed_point.cuh"
#include "window.cuh"

// Finite elements are below 2 to the power of this.
template <class T>
constexpr int TOP_OF = int(Element<T>::INFINITE >> Element<T>::FRACTION) - 1 + Element<T>::UNIT + Element<T>::FRACTION;

// Exact sums of elements, or of their squares, which f64 holds but for those of f64.
template <class T, bool SQUARED = false>
struct WholeSum {
    using Bits = typename Element<T>::Bits;
    static constexpr bool LONG = sizeof(Bits) == 8;
    static_assert(!(LONG && SQUARED), "f64 does not hold squares of f64");
    template <bool OF_SQUARES, class E>
    struct FormatOf {
        using Type = typename E::Sum;
    };
    template <class E>
    struct FormatOf<true, E> {
        using Type = typename E::Dot;
    };
    using Format = typename FormatOf<SQUARED, Element<T>>::Type;
    // A level holds 47 binades of terms above its unit, and each one more holds 48.
    static constexpr int LEVELS = LONG ? 8 : ((SQUARED ? 2 : 1) * TOP_OF<T> - Format::LSB) / 48 + 1;
    using Levels = Window<Format, LEVELS, 4, !LONG>;

    Levels window;

    // For elements below 2^top.
    __device__ __forceinline__ WholeSum(int top) : window(LONG ? Levels::below(top) : Levels::LOWEST) {}

    // Adds those of some elements that are finite. Returns whether it did.
    template <int N>
    __device__ __forceinline__ bool take(const Bits (&some)[N])
    {
        static_assert(N <= Levels::ADDS, "adds that an anchor takes");
        auto drift = window.open();
#pragma unroll
        for (int k = 0; k < N; ++k) {
            const f64 x = Element<T>::is_finite(some[k]) ? f64(Element<T>::value(some[k])) : 0.0;
            window.add(drift, SQUARED ? __dmul_rn(x, x) : x);
        }
        if (LONG && !Levels::holds(drift))
            return false;
        window.commit(drift);
        return true;
    }

    // What the lanes of a row have, in units of the format's last bit.
    __device__ __forceinline__ FixedPoint<LEVELS> folded(u32 lanes) const
    {
        FixedPoint<LEVELS> all;
#pragma unroll
        for (int l = 0; l < LEVELS; ++l) {
            all.total[l] = window.total[l];
            for (u32 d = lanes / 2; d > 0; d /= 2)
                all.total[l] += __shfl_xor_sync(ALL_LANES, all.total[l], d);
        }
        return all;
    }
};
