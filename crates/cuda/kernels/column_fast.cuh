// Plain sums of terms of columns: what fast.cuh does for rows.

#pragma once

#include "column_tree.cuh"
#include "fast.cuh"

// Sums of all terms.
template <class T, Term TERM>
struct PlainSums {
    using Op = Fast<T, TERM>;
    using Bits = typename Element<T>::Bits;
    using Sum = typename Op::Sum;
    using Given = Nothing;
    using Part = Sum;
    static constexpr bool ORDERED = true;
    static constexpr bool RARE = false;
    static constexpr u32 PERIOD = ROWS;

    static __device__ __forceinline__ Part fold(Part a, Part b) { return add(a, b); }
    // A thread has all lanes of its own.
    static __device__ __forceinline__ Part swap(Part x, int) { return x; }

    template <u32 N>
    struct Lanes {
        Sum lane[N];

        __device__ __forceinline__ void begin(Nothing)
        {
#pragma unroll
            for (u32 k = 0; k < N; ++k)
                lane[k] = 0;
        }
        __device__ __forceinline__ void take(u32 k, Bits bits) { lane[k] = add(lane[k], Op::term(Element<T>::value(bits), 0)); }
        __device__ __forceinline__ void close() {}
        __device__ __forceinline__ Part part() { return fold_lanes(1, lane, PlainSums::fold, PlainSums::swap); }
    };
};

// Sums of the finite elements' terms, and how many of the others are NaN, and infinite above zero and below.
template <class T, Term TERM>
struct FiniteSums {
    using Op = Fast<T, TERM>;
    using Bits = typename Element<T>::Bits;
    using Sum = typename Op::Sum;
    using Given = Nothing;
    static constexpr bool ORDERED = true;
    static constexpr bool RARE = true;
    static constexpr u32 PERIOD = ROWS;

    // Of a leaf at most, whose elements such words can count; the last one leaves no byte unwritten.
    struct Part {
        Sum sum;
        u16 nans, above, below, none;
    };

    static __device__ __forceinline__ Part fold(const Part &a, const Part &b)
    {
        return {add(a.sum, b.sum), u16(a.nans + b.nans), u16(a.above + b.above), u16(a.below + b.below), 0};
    }

    template <u32 N>
    struct Lanes {
        Sum lane[N];
        u16 nans, above, below;

        __device__ __forceinline__ void begin(Nothing)
        {
            nans = above = below = 0;
#pragma unroll
            for (u32 k = 0; k < N; ++k)
                lane[k] = 0;
        }
        __device__ __forceinline__ void take(u32 k, Bits bits)
        {
            const Sum x = Element<T>::value(bits), z = Op::term(x, 0);
            const bool finite = is_finite(x);
            lane[k] = add(lane[k], finite ? z : 0);
            nans += z != z;
            above += !finite && z > 0;
            below += !finite && z < 0;
        }
        __device__ __forceinline__ void close() {}
        __device__ __forceinline__ Part part() { return {fold_lanes(1, lane, PlainSums<T, TERM>::fold, PlainSums<T, TERM>::swap), nans, above, below, 0}; }
    };
};

template <class T, Term TERM>
struct ColumnFast {
    using Op = Fast<T, TERM>;
    using Bits = typename Element<T>::Bits;
    using Leaf = TreeLeaf<Op>;
    static constexpr int COLUMNS = ITEMS<T>;

    // A node of a leaf.
    struct Total : FiniteSums<T, TERM>::Part {
        __device__ __forceinline__ Node<Op::WORDS> node() const { return {Op::word(this->sum), this->nans, this->above, this->below}; }
    };

    static __device__ __forceinline__ void leaf(Leaf &leaf, Total (&total)[COLUMNS])
    {
        typename Op::Sum sum[COLUMNS];
        leaf.template pass<PlainSums<T, TERM>>(sum);
        bool finite = true;
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            finite &= !leaf.owns(i) || is_finite(sum[i]);
            total[i] = {{sum[i], 0, 0, 0, 0}};
        }
        if (leaf.all(finite))
            return;
        typename FiniteSums<T, TERM>::Part part[COLUMNS];
        leaf.template pass<FiniteSums<T, TERM>>(part);
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i)
            total[i] = {part[i]};
    }
};
