// The sum of one lane's products of a tile, brought into the window: products of two arrays' elements, or squares of one's.
//
// A product of two shorter floats has at most 48 significant bits and an exponent within f64's normal range: it is exact in f64 and
// goes into the window as a term. Where elements are many to the byte, the window's last level takes what reaches it as it is, without
// a look at what is left over, by a proof that nothing is:
//
//  - Products of f16 are multiples of 2^-48, which is the last level's unit.
//  - Squares of bf16 have at most 16 significant bits. If none but zeros is below 2^(k(1) + 15), all are multiples of 2^k(1). They
//    have no sign, and all their bits are in the upper half of an f64, so that the smallest non-zero square is the smallest upper half
//    minus one: a zero wraps and drops out.
//
// A product of two f64 is split into p = a * b, rounded, and its error e = fma(a, b, -p), which is a term from level 1 on: it is at most
// 2^(k(0) - 1), like what level 0 hands down, and so level 1 takes twice as many adds. The error is exact unless it underflows, which
// it can only if |p| < 2^-968; with k(last) >= -960 such a p is left over, if it is not zero. A product that became zero
// of factors that are not is lost; their bits are left over in its place.

#pragma once

#include "load.cuh"
#include "window.cuh"

template <class T, bool PAIRED>
struct LaneProducts {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Limbs = typename Format::Dot;
    static constexpr bool SPLIT = sizeof(Bits) == 8;
    // Squares of bf16.
    static constexpr bool BOUNDED = Format::FRACTION == 7 && !PAIRED;
    static constexpr bool MULTIPLES = BOUNDED || Limbs::LSB == -48;
    // Products of a tile, and the adds that they are.
    static constexpr int COUNT = VECTORS * ITEMS<T> / (PAIRED ? 2 : 1);
    static constexpr int ADDS = SPLIT ? 2 * COUNT : COUNT;
    using Window = ::Window<Limbs, (SPLIT ? 3 : 2), (ADDS > 16 ? 5 : 4), MULTIPLES>;
    static_assert(ADDS <= Window::ADDS, "adds that an anchor takes");
    static_assert(!MULTIPLES || BOUNDED || Window::below(2 * 16 + ROOM) == Window::LOWEST, "f16: one window for all");
    static constexpr int GROWTH = 0;

    typename Window::Drift drift;
    u32 least = ~0u;

    static __device__ __forceinline__ int top(Bits x, Bits y) { return Format::top(x) + Format::top(PAIRED ? y : x); }
    static __device__ __forceinline__ void absorb(Wide<Limbs> &wide, Bits x, Bits y) { absorb_product<T>(wide, x, PAIRED ? y : x); }

    __device__ __forceinline__ LaneProducts(const Window &window) : drift(window.open()) {}

    __device__ __forceinline__ void add(Bits x, Bits y, const Window &window)
    {
        const f64 a = Format::value(x), b = PAIRED ? f64(Format::value(y)) : a;
        const f64 product = __dmul_rn(a, b);
        window.add(drift, product);
        if constexpr (BOUNDED)
            least = min(least, u32(__double2hiint(product)) - 1);
        if constexpr (SPLIT) {
            window.template add<1>(drift, __fma_rn(a, b, -product));
            // Zero, or so small that it is left over anyway.
            if (__double2hiint(product) << 1 == 0) {
                const u64 p = Format::magnitude(x), q = Format::magnitude(PAIRED ? y : x);
                drift.leftover |= p < q ? p : q;
            }
        }
    }

    // Whether the sum is certified and `drift` holds it.
    __device__ __forceinline__ bool close(const Window &window) const
    {
        const bool exact = !BOUNDED || least >= u32((window.first - Window::STEP + 15 + 1023) << 20) - 1;
        return exact && window.holds(drift);
    }
};
