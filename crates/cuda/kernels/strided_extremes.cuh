// What the walk over views keeps of an extreme.

#pragma once

#include "strided.cuh"
#include "tally.cuh"

// In crates/cuda/src/engine/answer.rs. The other flags are in layout.cuh.
constexpr u32 TELLS = 4;

// An extreme that tells of outputs which have nothing but elements of the last rank, if that is asked for.
template <class T>
struct ViewExtreme : ExtremeOf<T> {
    using Base = ExtremeOf<T>;
    static constexpr bool IS_END = true;

    struct Asked : Base::Asked {
        bool tells;
        __device__ __forceinline__ Asked(const Layout &layout)
            : Base::Asked(layout.ask + layout.which_end(), layout.omits(), layout.overflow), tells((layout.flags & TELLS) != 0)
        {
        }
    };

    __device__ __forceinline__ ViewExtreme() {}
    __device__ __forceinline__ ViewExtreme(const Base &base) : Base(base) {}

    __device__ __forceinline__ void write(void *out, u64 place, const Asked &asked) const
    {
        // By a store: the word may be in the host's memory, where an atomic operation takes a microsecond.
        if (asked.tells && this->rank == Base().rank)
            *static_cast<volatile u32 *>(asked.overflow) = 1;
        Base::write(out, place, asked);
    }
};
