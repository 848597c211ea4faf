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
#include "window.cuh"

// IMPLIED says that the caller has another proof that f64 holds any sum of these elements.
template <class T, bool ABSOLUTE, bool IMPLIED = false>
struct LaneSum {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Limbs = typename Format::Sum;
    using Window = ::Window<Limbs, (Limbs::LIMBS > 2 ? 2 : 1), 4>;
    static constexpr bool RANGED = Limbs::LIMBS > 2 && !IMPLIED;
    // log2 of the elements: how much larger than one of them the sum may be.
    static constexpr int GROWTH = sizeof(Bits) == 4 ? 4 : 5;
    static_assert(VECTORS * ITEMS<T> == 1 << GROWTH, "a lane's elements of a tile");
    static constexpr u32 LARGEST_SPREAD = u32(53 - (Format::FRACTION + 1) - GROWTH) << 24;

    f64 sum = 0.0;
    u32 most = 0;
    u32 least = ~0u;
    typename Window::Drift drift;

    static __device__ __forceinline__ Bits taken(Bits bits) { return ABSOLUTE ? Format::magnitude(bits) : bits; }
    static __device__ __forceinline__ int top(Bits x, Bits) { return Format::top(x); }
    static __device__ __forceinline__ void absorb(Wide<Limbs> &wide, Bits x, Bits) { ::absorb<T>(wide, taken(x)); }

    __device__ __forceinline__ LaneSum(const Window &) {}

    __device__ __forceinline__ void add(Bits bits, Bits, const Window &)
    {
        const f32 x = Format::value(taken(bits));
        if constexpr (RANGED) {
            const u32 doubled = __float_as_uint(x) << 1;
            most = max(most, doubled);
            least = min(least, doubled - 1);
        }
        sum = __dadd_rn(sum, f64(x));
    }

    // Whether the sum is certified and `drift` holds it.
    __device__ __forceinline__ bool close(const Window &window)
    {
        drift = window.open();
        window.add(drift, sum);
        const bool exact = !RANGED || most - least <= LARGEST_SPREAD;
        return exact && window.holds(drift);
    }
};

template <bool ABSOLUTE, bool IMPLIED>
struct LaneSum<f64, ABSOLUTE, IMPLIED> {
    using Format = Element<f64>;
    using Limbs = Format::Sum;
    using Window = ::Window<Limbs, 2, 4>;
    // The window has room for a tile of its largest.
    static constexpr int GROWTH = 0;
    static_assert(VECTORS * ITEMS<f64> <= Window::ADDS, "adds that an anchor takes");

    Window::Drift drift;

    static __device__ __forceinline__ u64 taken(u64 bits) { return ABSOLUTE ? Format::magnitude(bits) : bits; }
    static __device__ __forceinline__ int top(u64 x, u64) { return Format::top(x); }
    static __device__ __forceinline__ void absorb(Wide<Limbs> &wide, u64 x, u64) { ::absorb<f64>(wide, taken(x)); }

    __device__ __forceinline__ LaneSum(const Window &window) : drift(window.open()) {}

    __device__ __forceinline__ void add(u64 bits, u64, const Window &window)
    {
        window.add(drift, Format::value(taken(bits)));
    }

    __device__ __forceinline__ bool close(const Window &window) { return window.holds(drift); }
};
