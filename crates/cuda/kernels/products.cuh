// The sum of one lane's products of a tile, brought into the window: products of two arrays' elements, or squares of one's.
//
// A product of two shorter floats has at most 2 P <= 48 significant bits, P those of one, and an exponent within f64's normal range: it
// is exact in f64 and goes into the window as a term. With one array, where there are twice as many for each byte that is read, the
// last level takes what reaches it as it is, without a look at what is left over, by a proof that nothing is:
//
//  - A square that is not below 2^(k(1) + 2 P - 1) is a multiple of 2^k(1). Squares have no sign and no subnormal upper half: the
//    smallest but zero is found by the upper halves minus one, as a zero wraps and drops out.
//  - Products of f16 are multiples of 2^-48, which is the last level's unit.
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
    static constexpr bool SHORT = Limbs::LSB == -48;
    static constexpr bool BOUNDED = !PAIRED && !SPLIT && !SHORT;
    static constexpr int SIGNIFICANT = 2 * (Format::FRACTION + 1);
    // Vectors of a lane in a tile, of each array, and the adds that they are.
    static constexpr int TILE = PAIRED ? VECTORS / 2 : VECTORS;
    static constexpr int ADDS = TILE * ITEMS<T> * (SPLIT ? 2 : 1);
    using Window = ::Window<Limbs, (SPLIT ? 3 : 2), (ADDS > 16 ? 5 : 4), BOUNDED || SHORT>;
    static_assert(ADDS <= Window::ADDS, "adds that an anchor takes");
    static_assert(!SHORT || Window::below(2 * 16 + ROOM) == Window::LOWEST, "f16: one window for all");
    static constexpr int K = 0;

    typename Window::Drift drift;
    u32 least = ~0u;

    __device__ __forceinline__ LaneProducts(const Window &window) : drift(window.open()) {}

    // The least t with the product of finite elements below 2^t.
    static __device__ __forceinline__ int top(Bits x, Bits y) { return Format::top(x) + Format::top(y); }

    // Of shorter floats; exact.
    static __device__ __forceinline__ f64 product(Bits x, Bits y) { return __dmul_rn(Format::value(x), Format::value(y)); }

    __device__ __forceinline__ void add(Bits x, Bits y, const Window &window)
    {
        const f64 a = Format::value(x), b = Format::value(y);
        const f64 product = __dmul_rn(a, b);
        window.add(drift, product);
        if constexpr (BOUNDED)
            least = min(least, u32(__double2hiint(product)) - 1);
        if constexpr (SPLIT) {
            window.template add<1>(drift, __fma_rn(a, b, -product));
            // Zero, or so small that it is left over anyway.
            if (__double2hiint(product) << 1 == 0) {
                const u64 p = Format::magnitude(x), q = Format::magnitude(y);
                drift.leftover |= p < q ? p : q;
            }
        }
    }

    // Whether the sum is certified and `drift` holds it.
    __device__ __forceinline__ bool close(const Window &window) const
    {
        const bool exact = !BOUNDED || least >= u32((window.first - Window::STEP + SIGNIFICANT - 1 + 1023) << 20) - 1;
        return exact && window.holds(drift);
    }
};
