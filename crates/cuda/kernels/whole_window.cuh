// Windows that hold whatever is finite: as many levels as the format has. Of f64, which has too many, they reach 331 binades down from the
// largest term, or 379 of squares.
//
// They are for what narrower windows do not hold, where they take a dozen plain adds an element and no atomic one.

#pragma once

#include "fixed_point.cuh"
#include "window.cuh"

// Finite elements are below 2 to the power of this.
template <class T>
constexpr int TOP_OF = int(Element<T>::INFINITE >> Element<T>::FRACTION) - 1 + Element<T>::UNIT + Element<T>::FRACTION;

// Exact sums of elements, or of their squares; of f64 in so many levels.
template <class T, bool SQUARED = false, int OF_LONG = 8>
struct WholeSum {
    using Bits = typename Element<T>::Bits;
    static constexpr bool LONG = sizeof(Bits) == 8;
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
    static constexpr int LEVELS = LONG ? OF_LONG : ((SQUARED ? 2 : 1) * TOP_OF<T> - Format::LSB) / 48 + 1;
    using Levels = Window<Format, LEVELS, 4, !LONG>;
    using Drift = typename Levels::Drift;

    Levels window;

    // Of f64, for terms below 2^top; units of squares are squares of others.
    explicit __device__ __forceinline__ WholeSum(int top) : window(!LONG ? Levels::LOWEST : SQUARED ? Levels::below(top) + 1 & ~1 : Levels::below(top)) {}

    __device__ __forceinline__ int unit() const { return window.unit(LEVELS - 1); }

    // What those of some elements that are finite add.
    template <int N>
    __device__ __forceinline__ Drift drift(const Bits (&some)[N]) const
    {
        static_assert((SQUARED && LONG ? 2 : 1) * N <= Levels::ADDS, "adds that an anchor takes");
        Drift drift = window.open();
#pragma unroll
        for (int k = 0; k < N; ++k) {
            const f64 x = Element<T>::is_finite(some[k]) ? f64(Element<T>::value(some[k])) : 0.0;
            const f64 term = SQUARED ? __dmul_rn(x, x) : x;
            window.add(drift, term);
            if constexpr (SQUARED && LONG) {
                // The square's error (products.cuh). A square of zero is one, or so small that its element is left over in its place.
                window.template add<1>(drift, __fma_rn(x, x, -term));
                if (__double2hiint(term) << 1 == 0)
                    drift.leftover |= u64(__double_as_longlong(x));
            }
        }
        return drift;
    }
    static __device__ __forceinline__ bool holds(const Drift &drift) { return !LONG || Levels::holds(drift); }

    // Adds those of some elements that are finite. Returns whether it did.
    template <int N>
    __device__ __forceinline__ bool take(const Bits (&some)[N])
    {
        const Drift its = drift(some);
        if (!holds(its))
            return false;
        window.commit(its);
        return true;
    }

    // What the lanes of a row have, in units of 2^unit().
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

// Exact sums of elements, unless nobody asks for them, and of their squares, in units of 2^unit() and of its square.
template <class T, bool SPREAD = true>
struct WholeMoments {
    using Bits = typename Element<T>::Bits;
    using Sum = WholeSum<T, false, 4>;
    using Squares = WholeSum<T, true>;
    static constexpr bool LONG = Sum::LONG;

    Sum sum;
    Squares squares;

    // Of f64, for elements below 2^top.
    explicit __device__ __forceinline__ WholeMoments(int top) : sum(top), squares(2 * top)
    {
        if (LONG)
            sum.window.first = squares.unit() / 2 + Sum::Levels::STEP * (Sum::LEVELS - 1);
    }

    __device__ __forceinline__ int unit() const { return sum.unit(); }

    template <int N>
    __device__ __forceinline__ bool take(const Bits (&some)[N])
    {
        const auto squared = squares.drift(some);
        if (!Squares::holds(squared) || SPREAD && !sum.take(some))
            return false;
        squares.window.commit(squared);
        return true;
    }
};
