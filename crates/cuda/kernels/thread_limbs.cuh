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

// They lie behind BEFORE bytes for each thread, which are somebody else's. SPARE limbs behind the others are in no sum. So many
// neighbouring lanes as SHARING share a column, where shared memory is short, and take turns.
template <class LIMB, int COUNT, int SPACING, int LOWEST_EXPONENT, int SPARE = 0, int BEFORE = 0, int SHARING = 1>
struct ThreadLimbs {
    using Limb = LIMB;
    static constexpr int LIMBS = COUNT;
    static constexpr int STEP = SPACING;
    static constexpr int LOWEST = LOWEST_EXPONENT;
    // Bytes of dynamic shared memory for each thread of the block, up to the end of its limbs.
    static constexpr u32 BYTES = BEFORE + sizeof(Limb) * (COUNT + SPARE) / SHARING;
    // Of a warp.
    static constexpr u32 COLUMNS = 32 / SHARING;
    static_assert(sizeof(Limb) * (COUNT + SPARE) % SHARING == 0, "whole bytes");

    Limb *column;
    u32 added = 0;
    bool open = false;

    __device__ __forceinline__ ThreadLimbs() : column(first() + place(threadIdx.x / 32, 0) + threadIdx.x % 32 / SHARING) {}

    static __device__ __forceinline__ Limb *first()
    {
        return reinterpret_cast<Limb *>(reinterpret_cast<char *>(dynamic_shared) + BEFORE * blockDim.x);
    }
    // Where a warp's limb l is.
    static __device__ __forceinline__ u32 place(u32 warp, u32 l) { return (warp * (COUNT + SPARE) + l) * COLUMNS; }

    // Whether the launch gave the block shared memory for this.
    static __device__ __forceinline__ bool there() { return dynamic_shared_size() >= BYTES * blockDim.x; }

    __device__ __forceinline__ Limb &limb(u32 l) const { return column[l * COLUMNS]; }

    // Lets the lanes that share a column do something with it one after the other. All lanes of a warp call it, and what follows.
    template <class Work>
    static __device__ __forceinline__ void in_turns(Work work)
    {
        if constexpr (SHARING == 1) {
            work();
        } else {
#pragma unroll
            for (u32 turn = 0; turn < SHARING; ++turn) {
                if (threadIdx.x % SHARING == turn)
                    work();
                __syncwarp();
            }
        }
    }
    // The same where one of them does it for all.
    template <class Work>
    static __device__ __forceinline__ void once(Work work)
    {
        if (threadIdx.x % SHARING == 0)
            work();
        if (SHARING > 1)
            __syncwarp();
    }

    __device__ __forceinline__ void clear()
    {
        once([&] {
#pragma unroll 1
            for (u32 l = 0; l < COUNT + SPARE; ++l)
                limb(l) = 0;
        });
        open = true;
    }

    // Brings all limbs but the last one into [0, 2^STEP).
    __device__ __forceinline__ void carry()
    {
        once([&] { carry_column(); });
    }

    __device__ __forceinline__ void carry_column()
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

    // Moves what a warp's lanes have of limb l to the superaccumulator. One thread for each limb of each warp: their columns in an
    // order that keeps the lanes out of each other's way, and their atomic adds side by side. Halves add without overflow.
    template <class Sums>
    static __device__ __forceinline__ void put(Sums &wide, u32 warp, u32 l)
    {
        const Limb *limbs = first() + place(warp, l);
        u64 low = 0;
        i64 high = 0;
#pragma unroll 8
        for (u32 c = 0; c < COLUMNS; ++c) {
            const i64 one = limbs[(c + threadIdx.x) % COLUMNS];
            low += u64(one) & 0xffffffff;
            high += one >> 32;
        }
        high += i64(low >> 32);
        const int exponent = LOWEST + STEP * int(l);
        const u64 all = u64(high) << 32 | (low & 0xffffffff);
        if (high == i32(high)) {
            wide.deposit(high < 0, high < 0 ? -all : all, exponent);
        } else {
            wide.deposit(false, low & 0xffffffff, exponent);
            wide.deposit(high < 0, high < 0 ? -u64(high) : u64(high), exponent + 32);
        }
    }

    // Moves what the warp's lanes have to the block's superaccumulator. All of them call it.
    template <class Sums>
    __device__ __forceinline__ void spill(Sums &wide)
    {
        static_assert(SHARING == 1, "a column of each lane");
        __syncwarp();
#pragma unroll 1
        for (u32 l = threadIdx.x % 32; l < LIMBS; l += 32)
            put(wide, threadIdx.x / 32, l);
        __syncwarp();
#pragma unroll 1
        for (u32 l = 0; l < LIMBS; ++l)
            limb(l) = 0;
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
#pragma unroll 1
        for (u32 i = threadIdx.x; i < LIMBS * (blockDim.x / 32); i += blockDim.x)
            put(wide, i / LIMBS, i % LIMBS);
    }
};
