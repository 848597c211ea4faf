// The end of a grid: blocks meet in the scratch memory, and whoever comes last finishes. What takes time here is a way to the L2
// cache and back, of which there are as few as can be: nobody waits for a fence, since each word says itself whether it is whole.
//
// The scratch memory is zero before the first launch, and every launch leaves it zero again. Launches that share it must follow
// one another.

#pragma once

#include "fold.cuh"

// Where things are in the scratch memory, in words; crates/cuda/src/engine/scratch.rs has the same numbers.
constexpr int SCRATCH_SUMS = 32;
constexpr int SCRATCH_PARTIALS = 256;
// Kernels that need more room get other memory, which begins with so many words that are zero between launches;
// crates/cuda/src/engine/block_workspace.rs.
constexpr int WORKSPACE_ZEROS = 17408;
constexpr int SCRATCH_PARTIAL_WORDS = 12;
// Where the next row's part begins, if several rows have several blocks each: at most 64.
constexpr u64 SCRATCH_ROW = SCRATCH_PARTIALS + SCRATCH_PARTIAL_WORDS * 64;

// Whether this block is the last of `count` to come here; if so, it sees what the others did before.
__device__ __forceinline__ bool is_last(u32 *ticket, u32 count)
{
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        // The last ticket sets the counter back to 0.
        last = atomicInc(ticket, count - 1) == count - 1;
        __threadfence();
    }
    __syncthreads();
    return last;
}

// The same of the grid's blocks.
__device__ __forceinline__ bool is_last_block(u64 *scratch)
{
    return is_last(reinterpret_cast<u32 *>(scratch), gridDim.x);
}

// A block's partial state lies in halves, each in the lower half of a word whose upper half says that it is there.
constexpr u64 THERE = 1ull << 32;

template <class State>
__device__ __forceinline__ void leave_partial(const State &state, u64 *at)
{
    static_assert(2 * State::WORDS <= SCRATCH_PARTIAL_WORDS, "room for halves");
#pragma unroll
    for (int w = 0; w < State::WORDS; ++w)
        asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};"
                     :
                     : "l"(__cvta_generic_to_global(at + 2 * w)), "l"(THERE | (state.word[w] & 0xffffffff)), "l"(THERE | state.word[w] >> 32)
                     : "memory");
}

// Takes a partial state that is on its way, and leaves zeros.
template <class State>
__device__ __forceinline__ State take_partial(u64 *at)
{
    State state;
    bool whole;
    do {
        whole = true;
#pragma unroll
        for (int w = 0; w < State::WORDS; ++w) {
            u64 low, high;
            asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(__cvta_generic_to_global(at + 2 * w)) : "memory");
            whole &= (low & high & THERE) != 0;
            state.word[w] = high << 32 | (low & 0xffffffff);
        }
    } while (!whole);
#pragma unroll
    for (int w = 0; w < State::WORDS; ++w)
        asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %1};" : : "l"(__cvta_generic_to_global(at + 2 * w)), "l"(0ull) : "memory");
    return state;
}

// Folds the states of all threads of the grid. Returns whether this is the thread that has the whole, in `state`. The block that
// takes the last ticket uses what the others left or are about to: their stores are ahead of their tickets.
template <class State>
__device__ __forceinline__ bool fold_grid(State &state, u64 *scratch)
{
    state = fold_block(state);
    if (gridDim.x > 1) {
        __shared__ bool last;
        u64 *partials = scratch + SCRATCH_PARTIALS;
        if (threadIdx.x == 0) {
            leave_partial(state, partials + blockIdx.x * (2 * State::WORDS));
            // The last ticket sets the counter back to 0.
            last = atomicInc(reinterpret_cast<u32 *>(scratch), gridDim.x - 1) == gridDim.x - 1;
        }
        __syncthreads();
        if (!last)
            return false;
        state = State();
        for (u32 b = threadIdx.x; b < gridDim.x; b += blockDim.x)
            state.merge(take_partial<State>(partials + b * (2 * State::WORDS)));
        state = fold_block(state);
    }
    return threadIdx.x == 0;
}

// A sum of entries of blocks carries the number of those that have added theirs in its upper bits. Below them is room for sums in
// [-2^53, 2^53): of entries of fewer than 2^10 blocks that are below 2^43. Limbs of superaccumulators are below 2^34, words that are
// sums of halves over 2^10 threads below 2^42, counts below 2^41; the topmost limb, whose upper half goes nowhere else, is as
// large as sums of 2^41 elements or products make it in all, below 2^50: f16 has the most, of 2^16 each in units of 2^8.
constexpr int CARRIED = 54;
constexpr u32 CARRIED_BLOCKS = 1 << (64 - CARRIED);
// More entries than this would take longer, as every block adds all of them, than a ticket for those that are not zero.
constexpr int CARRIED_ENTRIES = 80;

// Adds the entries that each block has, integers that wrap, so that the order of the blocks is of no matter; whoever comes last
// writes the sums. All threads call it, behind a barrier, or for entries of which each thread knows those it adds.
template <int COUNT, class Entry>
__device__ __forceinline__ void add_over_grid(Entry entry, u64 *scratch, u64 *out)
{
    static_assert(COUNT <= SCRATCH_PARTIALS - SCRATCH_SUMS, "room for sums");
    u64 *sums = scratch + SCRATCH_SUMS;
    if (gridDim.x == 1) {
        for (int i = threadIdx.x; i < COUNT; i += blockDim.x)
            out[i] = entry(i);
        return;
    }
    if (COUNT <= CARRIED_ENTRIES && gridDim.x < CARRIED_BLOCKS) {
        for (int i = threadIdx.x; i < COUNT; i += blockDim.x) {
            const u64 mine = entry(i);
            const u64 sum = atomicAdd(&sums[i], (1ull << CARRIED) + mine) + mine;
            const u64 others = (sum + (1ull << (CARRIED - 1))) >> CARRIED;
            if (others == gridDim.x - 1) {
                out[i] = sum - (others << CARRIED);
                atomicExch(&sums[i], 0);
            }
        }
        return;
    }
    for (int i = threadIdx.x; i < COUNT; i += blockDim.x) {
        if (const u64 mine = entry(i))
            atomicAdd(&sums[i], mine);
    }
    __threadfence();
    if (!is_last_block(scratch))
        return;
    for (int i = threadIdx.x; i < COUNT; i += blockDim.x)
        out[i] = atomicExch(&sums[i], 0);
}
