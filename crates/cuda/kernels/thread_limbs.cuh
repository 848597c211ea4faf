// Limbs of each thread in dynamic shared memory, as [warp][limb][lane]: the lanes of a warp stay out of each other's way whichever
// limbs they take, and from one limb to the next it is always as far. Limb l weighs 2^(LOWEST + STEP * l).

#pragma once

#include "wide.cuh"

extern __shared__ u64 dynamic_shared[];

__device__ __forceinline__ u32 dynamic_shared_size()
{
    u32 size;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(size));
    return size;
}

// They lie behind BEFORE bytes for each thread, which are somebody else's. SPARE limbs behind the others are in no sum.
template <class LIMB, int COUNT, int SPACING, int LOWEST_EXPONENT, int SPARE = 0, int BEFORE = 0>
struct ThreadLimbs {
    using Limb = LIMB;
    static constexpr int LIMBS = COUNT;
    static constexpr int STEP = SPACING;
    static constexpr int LOWEST = LOWEST_EXPONENT;
    // Bytes of dynamic shared memory for each thread of the block, up to the end of its limbs.
    static constexpr u32 BYTES = BEFORE + sizeof(Limb) * (COUNT + SPARE);

    Limb *column;
    u32 added = 0;
    bool open = false;

    __device__ __forceinline__ ThreadLimbs() : column(first() + place(threadIdx.x / 32, 0) + threadIdx.x % 32) {}

    static __device__ __forceinline__ Limb *first()
    {
        return reinterpret_cast<Limb *>(reinterpret_cast<char *>(dynamic_shared) + BEFORE * blockDim.x);
    }
    // Where a warp's limb l is.
    static __device__ __forceinline__ u32 place(u32 warp, u32 l) { return (warp * (COUNT + SPARE) + l) * 32; }

    // Whether the launch gave the block shared memory for this.
    static __device__ __forceinline__ bool there() { return dynamic_shared_size() >= BYTES * blockDim.x; }

    __device__ __forceinline__ Limb &limb(u32 l) const { return column[l * 32]; }

    __device__ __forceinline__ void clear()
    {
        for (u32 l = 0; l < COUNT + SPARE; ++l)
            limb(l) = 0;
        open = true;
    }

    // Brings all limbs but the last one into [0, 2^STEP).
    __device__ __forceinline__ void carry()
    {
        Limb over = 0;
#pragma unroll 1
        for (u32 l = 0; l < LIMBS - 1; ++l) {
            const Limb sum = limb(l) + over;
            over = sum >> STEP;
            limb(l) = sum - (over << STEP);
        }
        limb(LIMBS - 1) += over;
    }

    // Adds what a warp's lanes have of limb l, in halves, which add over many columns without overflow.
    template <class Sums>
    __device__ __forceinline__ void deposit(Sums &wide, u32 l, Totals<2> halves) const
    {
        const u32 lane = threadIdx.x % 32;
        halves = fold_warp(halves);
        if (lane < 2) {
            const i64 half = i64(halves.word[lane == 0 ? 0 : 1]);
            wide.deposit(half < 0, half < 0 ? -u64(half) : u64(half), LOWEST + STEP * int(l) + 32 * int(lane));
        }
    }

    static __device__ __forceinline__ void take(Totals<2> &halves, i64 one)
    {
        halves.word[0] += u64(one) & 0xffffffff;
        halves.word[1] += u64(one >> 32);
    }

    // Moves what the warp's lanes have to the block's superaccumulator. All of them call it.
    template <class Sums>
    __device__ __forceinline__ void spill(Sums &wide)
    {
#pragma unroll 1
        for (u32 l = 0; l < LIMBS; ++l) {
            Totals<2> halves;
            take(halves, limb(l));
            limb(l) = 0;
            deposit(wide, l, halves);
        }
    }

    // Moves what the block's threads have to its superaccumulator. All of them call it.
    template <class Sums>
    __device__ __forceinline__ void flush(Sums &wide)
    {
        if (!__syncthreads_or(open))
            return;
        if (!open)
            clear();
        __syncthreads();
        const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        for (u32 l = warp; l < LIMBS; l += blockDim.x / 32) {
            Totals<2> halves;
            for (u32 w = 0; w < blockDim.x / 32; ++w)
                take(halves, first()[place(w, l) + lane]);
            deposit(wide, l, halves);
        }
    }
};
