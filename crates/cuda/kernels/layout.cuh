// Any view, as kernels are told of it: which elements of memory make which output, and where its answer goes.
//
// Outputs and the elements of an output are each numbered along axes, the fastest first. Axes that are one in memory have been joined
// by the host, so that most views have one or two of either kind.

#pragma once

#include "element.cuh"

constexpr int LAYOUT_AXES = 6;

// An inner axis: what divides by its length, and what a step of the next axis moves beyond a whole walk over this one: elements of the array,
// and numbers of the order that callers see. Both may be negative: all of this wraps, and ends where it should.
//
// n / len = (mulhi(n, magic) + n) >> shift for n < 2^31, where 2^shift is the first power of two from len on and magic is
// 2^32 (2^shift - len) / len + 1, cut off (Granlund and Montgomery 1994, with N = 32 and one bit to spare).
struct LayoutAxis {
    u32 magic, shift, elements, numbers;
};

// A place along some axes: elements of the array from the first one on, its number, and which of the fastest axis it is.
struct Place {
    u32 elements, number, inner;
};

struct LayoutWalk {
    u32 count, len;        // inner axes, and how many places there are: fewer than 2^31
    u32 elements, numbers; // what a step of the fastest axis moves
    u32 fastest;           // places of the fastest axis
    u32 gap;               // elements of a run from one that is an output's to the next
    LayoutAxis inner[LAYOUT_AXES - 1];

    // U places, `step` apart from `first` on. Their numbers in the callers' order, and which of the fastest axis they are, only if
    // somebody wants to know. Most views have one axis or two: as a loop, those that are not there take no instructions and no registers.
    template <bool NUMBERED, bool INNER, int U>
    __device__ __forceinline__ void places(u32 first, u32 step, Place (&place)[U]) const
    {
        u32 index[U];
#pragma unroll
        for (int k = 0; k < U; ++k) {
            index[k] = first + k * step;
            place[k] = {index[k] * elements, NUMBERED ? index[k] * numbers : 0, index[k]};
        }
#pragma unroll 1
        for (u32 a = 0; a < count; ++a) {
            const LayoutAxis axis = inner[a];
#pragma unroll
            for (int k = 0; k < U; ++k) {
                const u32 rest = (__umulhi(index[k], axis.magic) + index[k]) >> axis.shift;
                place[k].elements += rest * axis.elements;
                if constexpr (NUMBERED)
                    place[k].number += rest * axis.numbers;
                if constexpr (INNER)
                    place[k].inner -= a == 0 ? rest * fastest : 0;
                index[k] = rest;
            }
        }
    }

    __device__ __forceinline__ Place at(u32 index) const
    {
        Place place[1];
        places<true, true>(index, 0, place);
        return place[0];
    }
};

enum Flags : u32 {
    ABSOLUTE = 1,
    OMITS = 2,
    HAS_INITIAL = 8, // 4 is in strided_extremes.cuh
    BOTH_ENDS = 16,  // every second block answers the next word after `ask`
};

// The parameters of a reduction of a view: crates/cuda/src/engine/layout.rs has the same struct.
//
// Where the elements of an output lie together, the fastest axis is a run of them, and its places are units: `unit` elements that a
// thread takes at once. A unit of a vector is aligned, so that the first and the last of a run may reach beyond it. Where elements of an
// output are a power of two apart, within 8 bytes, a run has those between as well, which are read and do not count.
struct Layout {
    const char *data;   // the first element of the first output; nothing of the view lies below,
    const char *end;    // or from here on
    void *out;          // where answers go
    u64 *tickets;       // zero between launches: one for each block of outputs
    u64 *partials;      // what blocks that share outputs leave for the last of them
    u64 *wides;         // zero between launches: superaccumulators that such blocks share
    u32 *overflow;      // set when a total does not fit its type, or nothing is left of an output that has to have something
    u64 n;              // elements of an output, its initial one among them
    u32 first_output;   // in the callers' order, of the first output of the walk
    u32 first_element;  // and of the first element
    u32 step;           // from one number of a run to the next
    u32 ask;
    u32 flags;          // as `Flags` says
    u32 log_lanes;      // 2^log_lanes threads of a block share an output
    u32 log_near;       // of them, 2^log_near are neighbours
    u32 unit;           // elements of a unit
    u32 run;            // elements of a run, below 2^31
    u32 share;          // units of a block
    LayoutWalk outputs, elements;
    u64 apart;          // from the answers to the first of two asks to those of the second
    u64 initial;        // the bits of one more element of every output, if there is one
    u32 row;            // of packs (packs.cuh): outputs of the fastest axis
    u32 bytes;          // and bytes that places of elements count

    __device__ __forceinline__ bool is_absolute() const { return (flags & ABSOLUTE) != 0; }
    // Whether NaNs are as if they were not there.
    __device__ __forceinline__ bool omits() const { return (flags & OMITS) != 0; }
    __device__ __forceinline__ bool has_initial() const { return (flags & HAS_INITIAL) != 0; }
    // Which end this block answers, and which block it is of those that do.
    __device__ __forceinline__ u32 which_end() const { return (flags & BOTH_ENDS) != 0 ? blockIdx.x % 2 : 0; }
    __device__ __forceinline__ u32 block() const { return (flags & BOTH_ENDS) != 0 ? blockIdx.x / 2 : blockIdx.x; }
};
