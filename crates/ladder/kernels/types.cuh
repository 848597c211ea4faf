// What every rung adds, and where its block's elements are.
//
// T    what is added. Integers are added as unsigned ones: their sums wrap, and have the bits of signed sums. 16-bit floats are added
//      as f32.
// In   what an array holds: bits of 16-bit floats, else T.

#pragma once

#include "element.cuh"

template <class E>
struct Added {
    using T = typename Element<E>::Bits;
    using In = T;
};
template <> struct Added<f32> { using T = f32; using In = f32; };
template <> struct Added<f64> { using T = f64; using In = f64; };
template <> struct Added<f16> { using T = f32; using In = u16; };
template <> struct Added<bf16> { using T = f32; using In = u16; };

using T = Added<ELEMENT>::T;
using In = Added<ELEMENT>::In;

// An element as something to add; what a launch before has added is that already.
template <class X, class E = ELEMENT>
__device__ __forceinline__ T value(X x)
{
    if constexpr (sizeof(X) == 2)
        return Element<E>::value(x);
    else
        return x;
}

// How many elements there are in this block's tile of `width`: fewer in the last block, none beyond it.
__device__ __forceinline__ u32 tile_length(u64 n, u32 width)
{
    const u64 begin = u64(blockIdx.x) * width;
    return begin >= n ? 0 : n - begin < width ? u32(n - begin) : width;
}

// The two launches of a rung: one over elements, one over what the first has left.
#define TWO_LAUNCHES(name)                                                                    \
    extern "C" __global__ void name(const In *in, T *out, u64 n) { name##_of(in, out, n); }   \
    extern "C" __global__ void name##_again(const T *in, T *out, u64 n) { name##_of(in, out, n); }

// The same for each power of two that a block's number of threads can be.
#define FOR_EVERY_WIDTH(macro)                                                                                                   \
    macro(1) macro(2) macro(4) macro(8) macro(16) macro(32) macro(64) macro(128) macro(256) macro(512) macro(1024)
