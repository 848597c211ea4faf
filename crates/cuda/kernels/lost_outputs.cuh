// Outputs of a block whose totals are lost: superaccumulators find them, of which shared memory has some at a time.
//
// All threads of the block take in the elements of such a batch. Then each of its outputs is finished by a thread: carries, digits and
// quotients, each of which waits for the one before, go side by side for all of them.

#pragma once

#include "element.cuh"

// So many superaccumulators as a batch has fit BYTES of shared memory; no more than the block has threads.
template <class Acc, u32 BYTES, u32 THREADS>
struct LostBatch {
    using Wides = typename Acc::Wides;
    static constexpr u32 MOST = BYTES / sizeof(Wides) < THREADS ? BYTES / sizeof(Wides) : THREADS;
    static_assert(MOST > 0, "room for one");

    Wides wides[MOST];

    // Takes `count` outputs, batch by batch: add(wides, i, lane, lanes) takes elements of the i-th, every `lanes`-th from `lane` on, and
    // done(first, some) does what is to be done with a batch. Neighbouring threads have neighbouring elements if `near` says so, else
    // neighbouring outputs. All threads of the block call it.
    template <class Add, class Done>
    __device__ __forceinline__ void find(u32 count, bool near, Add add, Done done)
    {
        const u32 thread = threadIdx.x;
#pragma unroll 1
        for (u32 first = 0; first < count; first += MOST) {
            const u32 some = min(count - first, MOST), lanes = THREADS / some;
            // Somebody may still read what was here before.
            __syncthreads();
            for (u32 w = thread; w < some * (sizeof(Wides) / 4); w += THREADS)
                reinterpret_cast<u32 *>(wides)[w] = 0;
            __syncthreads();
            const u32 which = near ? thread / lanes : thread % some, lane = near ? thread % lanes : thread / some;
            if (which < some && lane < lanes)
                add(wides[which], first + which, lane, lanes);
            __syncthreads();
            done(first, some);
        }
        __syncthreads();
    }

    // The output of a batch that this thread finishes: one of each warp before a second one of any.
    static __device__ __forceinline__ u32 own() { return threadIdx.x % 32 * (THREADS / 32) + threadIdx.x / 32; }
};

// What a block has in shared memory, one for each type.
template <class Room>
__device__ __forceinline__ Room &shared_room()
{
    __shared__ Room room;
    return room;
}

// Writes the answer of the i-th superaccumulators of a room. A function of its own, which others share.
template <class Acc, class Room>
__device__ __noinline__ void write_lost(u32 i, void *out, u64 place, const typename Acc::Asked asked)
{
    const typename Acc::Wides &wides = shared_room<Room>().batch.wides[i];
    Acc::write_wides([&](int w) { return Acc::entry(wides, w); }, out, place, asked);
}
