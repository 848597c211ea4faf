// How many elements of each group are not zero, or NaN, or neither: counters of 32 bits, in slots and in global memory.

#pragma once

#include "answer.cuh"
#include "groups.cuh"

template <class T>
struct GroupCounts {
    using Bits = typename Element<T>::Bits;

    const Groups &all;
    Slots slots;
    u32 *const counters, *const rows; // [slot][copy] each
    const u32 copies, copy;

    __device__ __forceinline__ GroupCounts(const Groups &all) :
        all(all), slots(all), counters(slots.behind()), rows(counters + (slots.count << all.log_copies)), copies(1u << all.log_copies),
        copy(threadIdx.x & (copies - 1))
    {
        for (u32 i = threadIdx.x; i < 2 * slots.count << all.log_copies; i += GROUP_THREADS)
            counters[i] = 0;
        __syncthreads();
    }

    __device__ __forceinline__ void take(u32 group, Bits bits)
    {
        u32 slot;
        const bool here = slots.find(group, slot);
        const u32 at = (slot << all.log_copies) + copy;
        const bool counts = Bits((bits & Bits(all.mask)) - Bits(all.least_counted)) < Bits(all.counted);
        if (here) {
            atomicAdd(&rows[at], 1u);
            if (counts)
                atomicAdd(&counters[at], 1u);
        } else {
            atomicAdd(&all.rows[group], 1u);
            if (counts)
                atomicAdd(all.word(0, group), u64(1));
        }
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
            const u32 group = slots.group_of(all, i);
            u32 some = 0, of = 0;
#pragma unroll 1
            for (u32 at = i << all.log_copies; at < (i + 1) << all.log_copies; ++at) {
                some += counters[at];
                of += rows[at];
                counters[at] = rows[at] = 0;
            }
            if (of != 0)
                atomicAdd(&all.rows[group], of);
            if (some != 0)
                atomicAdd(all.word(0, group), u64(some));
        }
    }
};

__device__ __forceinline__ void write_count(const Groups &all, u32 group, u64 count, u32 n)
{
    switch (all.ask) {
    case COUNT: static_cast<u64 *>(all.out)[group] = n; return;
    case NUMBERS: static_cast<u64 *>(all.out)[group] = n - count; return;
    case ANY: static_cast<u8 *>(all.out)[group] = count != 0; return;
    case ALL: static_cast<u8 *>(all.out)[group] = count == n; return;
    default: static_cast<u64 *>(all.out)[group] = count;
    }
}

template <class T>
__device__ __forceinline__ void count_groups(const Groups &all)
{
    using Counts = GroupCounts<T>;
    if (all.phase != 0) {
        each_group(all, [&](u32 group) {
            const u32 n = all.rows[group];
            all.present[group] = n != 0;
            write_count(all, group, *all.word(0, group), n);
            *all.word(0, group) = 0;
        });
        return;
    }
    Counts counts(all);
    each_row<typename Counts::Bits>(all, [&](const u32 (&group)[GROUP_ROWS], const typename Counts::Bits (&bits)[GROUP_ROWS]) { counts.take_all(group, bits); },
        [&](bool is_last) {
            if (is_last) {
                __syncthreads();
                counts.flush();
            }
        });
}
