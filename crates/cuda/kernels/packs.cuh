// Neighbouring outputs, of which a thread takes elements together: a row of them is a pack.

#pragma once

#include "layout.cuh"
#include "unaligned.cuh"

// Elements side by side. They stay words until they are used: as elements of 16 bits they would be as many registers.
template <class Bits, int A>
using Pack = typename PackOf<A * sizeof(Bits)>::Type;

// Loads U packs that are aligned, or whose PARTS are.
template <int PARTS = 1, int U, class Pack>
__device__ __forceinline__ void load_aligned(Pack (&packs)[U], const char *const (&at)[U])
{
    using Part = typename PackOf<sizeof(Pack) / PARTS>::Type;
    Part parts[U][PARTS];
#pragma unroll
    for (int k = 0; k < U; ++k) {
#pragma unroll
        for (int i = 0; i < PARTS; ++i)
            parts[k][i] = reinterpret_cast<const Part *>(at[k])[i];
    }
#pragma unroll
    for (int k = 0; k < U; ++k)
        memcpy(&packs[k], parts[k], sizeof(Pack));
}

// The same of packs that lie anywhere, each in two aligned ones, if the view has all of these. Returns whether it has.
template <int U, class Pack>
__device__ __forceinline__ bool load_unaligned(Pack (&packs)[U], const char *const (&at)[U], const char *begin, const char *end)
{
    constexpr int BYTES = sizeof(Pack);
    bool inside = true;
#pragma unroll
    for (int k = 0; k < U; ++k)
        inside = inside && at[k] - BYTES >= begin && at[k] + 2 * BYTES <= end;
    if (!inside)
        return false;
    Pack low[U], high[U];
#pragma unroll
    for (int k = 0; k < U; ++k) {
        const Pack *const before = reinterpret_cast<const Pack *>(at[k] - u64(at[k]) % BYTES);
        low[k] = before[0];
        high[k] = before[1];
    }
#pragma unroll
    for (int k = 0; k < U; ++k)
        packs[k] = across(low[k], high[k], u32(u64(at[k])) % BYTES);
    return true;
}

// The first `count` elements of packs, one by one, `distance` elements apart, and zeros behind them.
template <class Bits, int A, int U>
__device__ __forceinline__ void load_elements(Pack<Bits, A> (&packs)[U], const char *const (&at)[U], u32 count, u32 distance)
{
#pragma unroll
    for (int k = 0; k < U; ++k) {
        Bits bits[A];
#pragma unroll
        for (u32 a = 0; a < A; ++a) {
            bits[a] = 0;
            if (a < count)
                bits[a] = *reinterpret_cast<const Bits *>(at[k] + u64(a * distance) * sizeof(Bits));
        }
        memcpy(&packs[k], bits, sizeof(bits));
    }
}

// Places of a walk: those of a thread.
struct Places {
    u32 first, last, step;
};

// A batch of U elements of each of A outputs, of which the first lies at `data`: those from the e-th on that a thread has. `load(packs, at)` loads
// what lies at some places, which count so many bytes.
template <int U, class Acc, u32 A>
struct PackBatch {
    using Bits = typename Acc::Bits;
    Pack<Bits, A> packs[U];
    Place places[U];

    template <class Load>
    __device__ __forceinline__ PackBatch(const Layout &layout, const Places &its, u32 e, const char *data, u32 bytes, const Load &load)
    {
        layout.elements.places<Acc::NUMBERED, false>(e, its.step, places);
        // Behind the last element, the first of these once more, of which no notice is taken.
        if (!is_whole(its, e)) {
#pragma unroll
            for (int k = 1; k < U; ++k)
                places[k].elements = is_there(its, e, k) ? places[k].elements : places[0].elements;
        }
        const char *at[U];
#pragma unroll
        for (int k = 0; k < U; ++k)
            at[k] = data + u64(places[k].elements) * bytes;
        load(packs, at);
    }

    static __device__ __forceinline__ bool is_there(const Places &its, u32 e, int k) { return e + k * its.step < its.last; }
    static __device__ __forceinline__ bool is_whole(const Places &its, u32 e) { return is_there(its, e, U - 1); }

    __device__ __forceinline__ void elements(Bits (&bits)[U][A]) const
    {
#pragma unroll
        for (int k = 0; k < U; ++k)
            memcpy(bits[k], &packs[k], sizeof(packs[k]));
    }
};
