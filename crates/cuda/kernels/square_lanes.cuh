// A chunk of a column: the sum of its squares, and of its elements, in levels of anchored windows (window.cuh).
//
// Squares have no sign: the first level never comes back to a binade that it has left, and so is looked at in the end. There it also tells
// NaNs. A chunk has 2^4 elements; the first level's unit is 2^k, k even, and so squares add up to less than 2^(k + 51) + 2^(k + 3).
//
// Shorter floats
//
// Their squares are exact in f64; a fused multiply-add makes the term and takes it in at once. The second level's unit is 2^(k - 48). Let u be
// 2^(k / 2 - 24) and P an element's significant bits:
//
//  - An element that is not below 2^(P - 1) u, or of a format whose last bit is u or more, is a multiple of u, and its square one of u^2.
//    Then the second level takes what the first hands down, at most 2^(k - 1) each, without a loss. The smallest element but zero is found
//    by twice its bits minus one, as a zero wraps and drops out. f16 has one window for all its values.
//  - Elements add up to less than sqrt(2^4 2^(k + 51.1)) = 2^51.6 u, by Cauchy and Schwarz, as do any of them: their plain sum is exact.
//
// f64
//
// A square is p, rounded, and its error e, each of which has two levels: their units are 2^k and 2^(k - 48), 2^(k - 52) and 2^(k - 100).
// Elements have 2^(k / 2 - 23) and 2^(k / 2 - 71). Of elements that are not below 2^(k / 2 + 2):
//
//  - p is a multiple of 2^(k - 48), e of 2^(k - 100), and elements are of 2^(k / 2 - 50): the second levels take what the first ones hand
//    down without a loss.
//  - |e| is at most 2^-53 p. So errors add up to 2^(k - 1.9), half of what would leave their binade, and elements to 2^(k / 2 + 27.6), by
//    Cauchy and Schwarz, three quarters of that. None of them has to be looked at.
//  - k is at least -974, so that e does not underflow. What is large enough to overflow is no less than what leaves the binade.

#pragma once

#include "window.cuh"

// Elements of a chunk.
constexpr u32 SQUARE_CHUNK = 16;

// Adds a term to two levels.
__device__ __forceinline__ void take_in(f64 &upper, f64 &lower, f64 r) { lower = __dadd_rn(lower, take_in(upper, r)); }

// The unit of the first level, for chunks whose elements are below 2^(top + room) and squares thus add up to 2^(k + 50). Threads should have
// the same where their elements are much alike.
__device__ __forceinline__ int first_unit(int top, int room)
{
    const int alike = room / 2;
    return 2 * ((top + alike - 1 & -alike) + room) - 46;
}

template <class T, bool SPREAD>
struct SquareLane {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    static constexpr bool RANGED = Format::Dot::LSB != -48;
    // Binades above the elements that say where a window is. It reaches 24 binades down from there, of bf16 40.
    static constexpr int ROOM = sizeof(Bits) == 4 ? 4 : 8;
    static constexpr int LOWEST = Format::Dot::LSB + 48;
    // Totals of squares, and of elements behind them.
    static constexpr int SQUARES = 2;
    static constexpr int LEVELS = SPREAD ? 3 : 2;

    f64 at[2];
    f64 sum;
    u32 least;

    static __device__ __forceinline__ int place_above(int top) { return RANGED ? max(first_unit(top, ROOM), LOWEST) : LOWEST; }

    // The unit of a total is 2 to the power of this.
    static __device__ __forceinline__ int unit(int l, int place) { return l < SQUARES ? place - 48 * l : place / 2 - 24; }

    __device__ __forceinline__ void open(int place)
    {
#pragma unroll
        for (int l = 0; l < 2; ++l)
            at[l] = level_at(unit(l, place));
        sum = 0.0;
        least = ~0u;
    }

    __device__ __forceinline__ void add(Bits bits)
    {
        const f32 x = Format::value(bits);
        if constexpr (RANGED)
            least = min(least, (__float_as_uint(x) << 1) - 1);
        const f64 wide = x, t = __fma_rn(wide, wide, at[0]);
        at[1] = __dadd_rn(at[1], __fma_rn(wide, wide, __dsub_rn(at[0], t)));
        at[0] = t;
        if constexpr (SPREAD)
            sum = __dadd_rn(sum, wide);
    }

    __device__ __forceinline__ bool holds(int place) const
    {
        bool exact = true;
        if constexpr (RANGED) {
            const int last = place / 2 - 24;
            exact = last <= Format::UNIT || least >= u32((last + Format::FRACTION + 127) << 24) - 1;
        }
        return exact && u32(__double2hiint(at[0]) ^ anchor(place)) >> 20 == 0;
    }

    // Infinities do not come from anything else: their squares add up to one.
    __device__ __forceinline__ bool is_special() const { return u32(__double2hiint(at[0])) << 1 >= 0xffe00000; }
    __device__ __forceinline__ bool is_nan() const { return at[0] != at[0]; }

    // What a chunk that holds has.
    __device__ __forceinline__ void totals(int place, i64 *total) const
    {
#pragma unroll
        for (int l = 0; l < 2; ++l)
            total[l] = taken(at[l], unit(l, place));
        if constexpr (SPREAD)
            total[2] = __double2ll_rz(__dmul_rn(sum, __hiloint2double((1023 - unit(2, place)) << 20, 0)));
    }
};

template <bool SPREAD>
struct SquareLane<f64, SPREAD> {
    static constexpr bool RANGED = true;
    // The window reaches 21 binades down from there.
    static constexpr int ROOM = 4;
    static constexpr int LOWEST = -974, HIGHEST = 970;
    static constexpr int SQUARES = 4;
    static constexpr int LEVELS = SPREAD ? 6 : 4;

    f64 at[LEVELS];
    u32 least;

    static __device__ __forceinline__ int place_above(int top) { return min(max(first_unit(top, ROOM), LOWEST), HIGHEST); }
    static __device__ __forceinline__ int unit(int l, int place)
    {
        return (l < SQUARES ? place - 52 * (l / 2) : place / 2 - 23) - 48 * (l % 2);
    }

    __device__ __forceinline__ void open(int place)
    {
#pragma unroll
        for (int l = 0; l < LEVELS; ++l)
            at[l] = level_at(unit(l, place));
        least = ~0u;
    }

    __device__ __forceinline__ void add(u64 bits)
    {
        const f64 x = Element<f64>::value(bits), p = __dmul_rn(x, x);
        take_in(at[0], at[1], p);
        take_in(at[2], at[3], __fma_rn(x, x, -p));
        if constexpr (SPREAD)
            take_in(at[4], at[5], x);
        // One more where the lower half is not zero: no number but zero drops out.
        least = min(least, (u32(bits >> 32) << 1) - 1 + (u32(bits) != 0));
    }

    __device__ __forceinline__ bool holds(int place) const
    {
        return least >= u32((place / 2 + 2 + 1023) << 21) - 1 && u32(__double2hiint(at[0]) ^ anchor(place)) >> 20 == 0;
    }

    // Squares of large numbers make infinities, too.
    __device__ __forceinline__ bool is_special() const { return is_nan(); }
    __device__ __forceinline__ bool is_nan() const { return at[0] != at[0]; }

    __device__ __forceinline__ void totals(int place, i64 *total) const
    {
#pragma unroll
        for (int l = 0; l < LEVELS; ++l)
            total[l] = taken(at[l], unit(l, place));
    }
};
