// The smallest or the largest element of each group: ranks of which the greatest wins, in slots and in global memory.
//
// A group's word is zero as long as nothing has come, and so it is where the last of all ranks has: that sets a mark. Who has no better
// rank than what there is changes nothing, which is what most rows find.

#pragma once

#include "groups.cuh"
#include "tally.cuh"

template <class T>
struct GroupExtremes {
    using Extreme = ExtremeOf<T>;
    using Bits = typename Extreme::Bits;
    enum Mark { HAS_LAST };

    const Groups &all;
    Slots slots;
    u64 *const best; // of each slot
    const typename Extreme::Asked asked;

    __device__ __forceinline__ GroupExtremes(const Groups &all) : all(all), slots(all), best(reinterpret_cast<u64 *>(slots.behind())), asked(all.ask, all.omits(), all.overflow)
    {
        for (u32 i = threadIdx.x; i < slots.count; i += GROUP_THREADS)
            best[i] = 0;
        __syncthreads();
    }

    static __device__ __forceinline__ void raise(u64 *best, u64 rank)
    {
        if (*static_cast<volatile u64 *>(best) < rank)
            atomicMax(best, rank);
    }

    __device__ __forceinline__ void take(u32 group, Bits bits)
    {
        const u64 rank = u64(Bits(~Extreme::rank_of(bits, asked)));
        if (rank == 0) {
            all.mark(HAS_LAST, group);
            return;
        }
        u32 slot;
        raise(slots.find(group, slot) ? &best[slot] : all.word(0, group), rank);
    }

    __device__ __forceinline__ void take_all(const u32 (&group)[GROUP_ROWS], const Bits (&bits)[GROUP_ROWS])
    {
#pragma unroll
        for (int k = 0; k < GROUP_ROWS; ++k) {
            if (group[k] != NO_GROUP)
                take(group[k], bits[k]);
        }
    }

    // Brings what slots have to global memory, and leaves zeros. Before and after it there must be barriers.
    __device__ __forceinline__ void flush()
    {
#pragma unroll 1
        for (u32 i = threadIdx.x; i < slots.count; i += GROUP_THREADS) {
            if (const u64 rank = best[i]) {
                raise(all.word(0, slots.group_of(all, i)), rank);
                best[i] = 0;
            }
        }
    }
};

template <class T>
__device__ __forceinline__ void find_extremes_of_groups(const Groups &all)
{
    using Extremes = GroupExtremes<T>;
    using Bits = typename Extremes::Bits;
    if (all.phase != 0) {
        const typename Extremes::Extreme::Asked asked(all.ask, all.omits(), all.overflow);
        each_group(all, [&](u32 group) {
            const u64 rank = *all.word(0, group);
            const bool some = rank != 0 || all.is_marked(Extremes::HAS_LAST, group);
            all.present[group] = some;
            // A group without rows has zeros.
            if (some)
                Extremes::Extreme::write(Bits(~rank), all.out, group, asked);
            else if (!Extremes::Extreme::Format::FLOAT && asked.ask == MAGNITUDE)
                static_cast<u64 *>(all.out)[group] = 0;
            else
                static_cast<Bits *>(all.out)[group] = 0;
            *all.word(0, group) = 0;
        });
        return;
    }
    Extremes extremes(all);
    each_row<Bits>(all, [&](const u32 (&group)[GROUP_ROWS], const Bits (&bits)[GROUP_ROWS]) { extremes.take_all(group, bits); },
        [&](bool is_last) {
            if (is_last) {
                __syncthreads();
                extremes.flush();
            }
        });
}
