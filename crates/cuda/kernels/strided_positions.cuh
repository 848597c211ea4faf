// Where the smallest or the largest element is first, over any axes of any view.

#pragma once

#include "positions.cuh"
#include "strided.cuh"

template <class T>
struct Position : PositionOf<T> {
    using Base = PositionOf<T>;
    using Item = T;
    using Bits = typename Base::Bits;
    static constexpr int SINGLES = 8, MOST = 8;
    static constexpr bool NUMBERED = true;
    static constexpr bool SETTLES = false;
    static constexpr bool MAY_BE_LOST = false, IS_END = true;

    __device__ __forceinline__ Position() {}
    __device__ __forceinline__ Position(const Base &base) : Base(base) {}

    // Numbers ascend within a unit, so that the first of the smallest rank there is the first in the callers' order.
    template <int V, int N, class Number>
    __device__ __forceinline__ void take(const Bits (&bits)[N], Number number, const typename Base::Asked &asked)
    {
        constexpr int PART = V < N ? V : N;
#pragma unroll
        for (int unit = 0; unit < N / PART; ++unit) {
            Bits least = Base::Rank::of(bits[unit * PART], asked);
            int at = 0;
#pragma unroll
            for (int i = 1; i < PART; ++i) {
                const Bits rank = Base::Rank::of(bits[unit * PART + i], asked);
                at = rank < least ? i : at;
                least = rank < least ? rank : least;
            }
            Base::merge(Base::of_element(least, u64(number(unit, at))));
        }
    }
};
