// Any view, as kernels are told of it: which elements of memory make which output, and where its answer goes.
//
// Outputs and the elements of an output are each numbered along axes, the fastest first. Axes that are one in memory have been joined
// by the host, so that most views have one or two of either kind.

#pragma once

#include "element.cuh"

constexpr int LAYOUT_AXES = 6;

// An axis: its length, what divides by it, and what a step moves: bytes of the array, and numbers of the order that callers see.
//
// n / len = (mulhi(n, magic) + n) >> shift for n < 2^31, where 2^shift is the first power of two from len on and magic is
// 2^32 (2^shift - len) / len + 1, cut off (Granlund and Montgomery 1994, with N = 32 and one bit to spare).
struct LayoutAxis {
    u32 len, magic, shift, unused;
    i64 bytes, numbers;
};

// A place along some axes.
struct Place {
    i64 bytes, number;
};

struct LayoutWalk {
    u32 count, len; // inner axes, and how many places there are: fewer than 2^31
    LayoutAxis inner[LAYOUT_AXES - 1];
    LayoutAxis outer;

    // U places, `step` apart from `first` on; their numbers in the callers' order only if somebody wants to know.
    template <bool NUMBERED, int U>
    __device__ __forceinline__ void places(u32 first, u32 step, Place (&place)[U]) const
    {
        u32 index[U];
#pragma unroll
        for (int k = 0; k < U; ++k) {
            index[k] = first + k * step;
            place[k] = {0, 0};
        }
#pragma unroll
        for (int a = 0; a < LAYOUT_AXES - 1; ++a) {
            if (a < count) {
                const LayoutAxis &axis = inner[a];
#pragma unroll
                for (int k = 0; k < U; ++k) {
                    const u32 rest = (__umulhi(index[k], axis.magic) + index[k]) >> axis.shift;
                    const u32 i = index[k] - rest * axis.len;
                    place[k].bytes += i64(i) * axis.bytes;
                    if constexpr (NUMBERED)
                        place[k].number += i64(i) * axis.numbers;
                    index[k] = rest;
                }
            }
        }
#pragma unroll
        for (int k = 0; k < U; ++k) {
            place[k].bytes += i64(index[k]) * outer.bytes;
            if constexpr (NUMBERED)
                place[k].number += i64(index[k]) * outer.numbers;
        }
    }

    __device__ __forceinline__ Place at(u32 index) const
    {
        Place place[1];
        places<true>(index, 0, place);
        return place[0];
    }
};

// The parameters of a reduction of a view: crates/cuda/src/engine/layout.rs has the same struct.
struct Layout {
    const char *data;   // the first element of the first output
    void *out;          // where answers go
    u64 *tickets;       // zero between launches: one for each block of outputs
    u64 *partials;      // what blocks that share outputs leave for the last of them
    u64 *wides;         // zero between launches: superaccumulators that such blocks share
    u32 *overflow;      // set when a total does not fit its type
    u64 n;              // elements of an output
    u64 first_output;   // in the callers' order, of the first output of the walk
    u64 first_element;  // and of the first element
    u32 ask;
    u32 absolute;
    u32 log_lanes;      // 2^log_lanes threads of a block share an output
    u32 log_near;       // of them, 2^log_near are neighbours
    LayoutWalk outputs, elements;
};
