// Outputs of a block whose totals are lost: superaccumulators find them, of which shared memory has some at a time.
//
// All threads of the block take in the elements of such a batch. Of few outputs each has several superaccumulators, since threads that add to
// the same words wait for each other. Then each output is finished by a thread: carries, digits and quotients, each of which waits for the
// one before, go side by side for all of them.

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
            const u32 some = min(count - first, MOST), lanes = THREADS / some, copies = min(MOST / some, 32);
            // Somebody may still read what was here before.
            __syncthreads();
#pragma unroll 1
            for (u32 w = thread; w < some * copies * (sizeof(Wides) / 4); w += THREADS)
                reinterpret_cast<u32 *>(wides)[w] = 0;
            __syncthreads();
            const u32 which = near ? thread / lanes : thread % some, lane = near ? thread % lanes : thread / some;
            if (which < some && lane < lanes)
                add(wides[which + lane % copies * some], first + which, lane, lanes);
            __syncthreads();
            if (copies > 1) {
#pragma unroll 1
                for (u32 w = thread; w < some * Acc::WIDE_WORDS; w += THREADS) {
#pragma unroll 1
                    for (u32 c = 1; c < copies; ++c)
                        Acc::add_entry(wides[w % some], w / some, Acc::entry(wides[w % some + c * some], w / some));
                }
                __syncthreads();
            }
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
