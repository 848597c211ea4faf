// The sum of one lane's elements of a tile, brought into the window.
//
// f64 goes element by element. The shorter types add in plain f64 first, which the range certificate (RNG) makes exact:
// crates/cpu/src/exact/range.rs has the argument. With m the largest and l + 1 the smallest non-zero of 2 * bits as f32, every
// element is a multiple of 2^(f - 126 - P) below 2^(e - 126), where e = m >> 24, f = (l + 1) >> 24 and P is the significand's
// length. A sum of 2^K of them fits 53 bits if e - f <= 53 - P - K, which m - l <= (53 - P - K) << 24 implies. A zero wraps and
// drops out. Infinities and NaNs make the sum one, which the window does not hold. f16 needs no certificate: 2^13 of its values
// fit.

#pragma once

#include "load.cuh"
#include "spread.cuh"
#include "window.cuh"

// IMPLIED says that the caller has another proof that f64 holds any sum of these elements.
template <class T, bool IMPLIED = false>
struct LaneSum {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Limbs = typename Format::Sum;
    static constexpr int LEVELS = Limbs::LIMBS > 2 ? 2 : 1;
    using Window = ::Window<Limbs, LEVELS, 4>;
    static constexpr bool RANGED = LEVELS > 1 && !IMPLIED;
    // log2 of the elements: how much larger than one of them the sum may be.
    static constexpr int K = sizeof(Bits) == 4 ? 4 : 5;
    // Vectors of a lane in a tile.
    static constexpr int TILE = VECTORS;
    static_assert(TILE * ITEMS<T> == 1 << K, "a lane's elements of a tile");

    f64 sum = 0.0;
    Spread<T, K> spread;
    typename Window::Drift drift;

    LaneSum() = default;
    __device__ __forceinline__ LaneSum(const Window &) {}

    __device__ __forceinline__ void add(Bits bits, const Window &)
    {
        const f32 x = Format::value(bits);
        if constexpr (RANGED)
            spread.see(x);
        sum = __dadd_rn(sum, f64(x));
    }

    // Adds two elements of 16 bits. All of a tile come so, or none.
    __device__ __forceinline__ void add_pair(u32 word, const Window &)
    {
        if constexpr (RANGED)
            spread.see_pair(word);
        sum = __dadd_rn(sum, f64(Format::value(Bits(word))));
        sum = __dadd_rn(sum, f64(Format::value(Bits(word >> 16))));
    }

    // Whether the sum is certified and `drift` holds it.
    __device__ __forceinline__ bool close(const Window &window)
    {
        if constexpr (RANGED && sizeof(Bits) == 2)
            spread.settle();
        drift = window.open();
        window.add(drift, sum);
        return (!RANGED || spread.holds()) && window.holds(drift);
    }
};

template <bool IMPLIED>
struct LaneSum<f64, IMPLIED> {
    using Limbs = Element<f64>::Sum;
    static constexpr int LEVELS = 2;
    using Window = ::Window<Limbs, LEVELS, 4>;
    // The window has room for a tile of its largest.
    static constexpr int K = 0;
    static constexpr int TILE = 8;
    static_assert(TILE * ITEMS<f64> <= Window::ADDS, "adds that an anchor takes");

    Window::Drift drift;

    LaneSum() = default;
    __device__ __forceinline__ LaneSum(const Window &window) : drift(window.open()) {}

    __device__ __forceinline__ void add(u64 bits, const Window &window)
    {
        window.add(drift, Element<f64>::value(bits));
    }

    __device__ __forceinline__ bool close(const Window &window) { return window.holds(drift); }
};
