// Sixteen bytes of elements, and where an array has them.

#pragma once

#include "types.cuh"

// What one load of sixteen bytes brings.
template <class X>
struct alignas(16) Vector {
    static constexpr u32 COUNT = 16 / sizeof(X);
    X item[COUNT];
};

template <class X>
__device__ __forceinline__ T add_vector(const Vector<X> &vector)
{
    T sum = value(vector.item[0]);
#pragma unroll
    for (u32 k = 1; k < Vector<X>::COUNT; ++k)
        sum += value(vector.item[k]);
    return sum;
}

// An array need not begin or end at a multiple of sixteen bytes: `head` elements come before the vectors, and fewer than a vector has
// behind them.
template <class X>
struct Split {
    const X *in;
    u64 n, head, vectors;

    __device__ __forceinline__ Split(const X *in, u64 n) : in(in), n(n)
    {
        const u64 before = (0 - u64(in)) % 16 / sizeof(X);
        head = before < n ? before : n;
        vectors = (n - head) / Vector<X>::COUNT;
    }

    __device__ __forceinline__ const Vector<X> *body() const { return reinterpret_cast<const Vector<X> *>(in + head); }

    // The few elements of both ends, one each for the first threads of the grid.
    __device__ __forceinline__ T ends(u64 thread) const
    {
        const u64 behind = head + vectors * Vector<X>::COUNT + thread;
        T sum = thread < head ? value(in[thread]) : T(0);
        if (behind < n)
            sum += value(in[behind]);
        return sum;
    }
};
