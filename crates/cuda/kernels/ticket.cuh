// The end of a grid: the block that draws the last ticket finishes what all blocks left in the scratch memory.
//
// The scratch memory is zero before the first launch, and every launch leaves tickets and sums zero again. Launches that share
// it must follow one another.

#pragma once

#include "fold.cuh"

// Where things are in the scratch memory, in words; crates/cuda/src/engine/scratch.rs has the same numbers.
constexpr int SCRATCH_SUMS = 32;
constexpr int SCRATCH_PARTIALS = 256;
// Kernels that need more room get other memory, which begins with so many words that are zero between launches;
// crates/cuda/src/engine/meeting.rs.
constexpr int MEETING_ZEROS = 17408;
constexpr int SCRATCH_PARTIAL_WORDS = 6;
// Where the next row's part begins, if several rows have several blocks each: at most 64.
constexpr u64 SCRATCH_ROW = SCRATCH_PARTIALS + SCRATCH_PARTIAL_WORDS * 64;

// Whether this block is the last to come here; if so, it sees what the others did before.
__device__ __forceinline__ bool is_last_block(u64 *scratch)
{
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        // The last ticket sets the counter back to 0.
        last = atomicInc(reinterpret_cast<u32 *>(scratch), gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    return last;
}

// Folds the states of all threads of the grid. Returns whether this is the thread that has the whole, in `state`.
template <class State>
__device__ __forceinline__ bool fold_grid(State &state, u64 *scratch)
{
    state = fold_block(state);
    if (gridDim.x > 1) {
        u64 *partials = scratch + SCRATCH_PARTIALS;
        if (threadIdx.x == 0) {
#pragma unroll
            for (int w = 0; w < State::WORDS; ++w)
                partials[blockIdx.x * State::WORDS + w] = state.word[w];
        }
        if (!is_last_block(scratch))
            return false;
        state = State();
        for (u32 b = threadIdx.x; b < gridDim.x; b += blockDim.x) {
            State other;
#pragma unroll
            for (int w = 0; w < State::WORDS; ++w)
                other.word[w] = __ldcg(&partials[b * State::WORDS + w]);
            state.merge(other);
        }
        state = fold_block(state);
    }
    return threadIdx.x == 0;
}

// Adds the entries that each block has, integers that wrap, so that the order of the blocks is of no matter; the last block writes the
// sums. All threads call it, behind a barrier.
template <int COUNT, class Entry>
__device__ __forceinline__ void add_over_grid(Entry entry, u64 *scratch, u64 *out)
{
    static_assert(COUNT <= SCRATCH_PARTIALS - SCRATCH_SUMS, "room for sums");
    u64 *sums = scratch + SCRATCH_SUMS;
    if (gridDim.x > 1) {
        for (int i = threadIdx.x; i < COUNT; i += blockDim.x) {
            if (const u64 mine = entry(i))
                atomicAdd(&sums[i], mine);
        }
        __threadfence();
        if (!is_last_block(scratch))
            return;
    }
    for (int i = threadIdx.x; i < COUNT; i += blockDim.x)
        out[i] = gridDim.x > 1 ? atomicExch(&sums[i], 0) : entry(i);
}
