// Folds the states of a warp's lanes and of a block's warps.
//
// A state is an array `word` of 64-bit integers with `merge`, and what its constructor makes is the state of no elements. Merging
// is commutative and associative to the bit, so that every order gives the same.

#pragma once

#include "element.cuh"

constexpr u32 ALL_LANES = 0xffffffff;

template <class State>
__device__ __forceinline__ State fold_warp(State state)
{
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        State other;
#pragma unroll
        for (int w = 0; w < State::WORDS; ++w)
            other.word[w] = __shfl_xor_sync(ALL_LANES, state.word[w], distance);
        state.merge(other);
    }
    return state;
}

// The state of the whole block, in its first warp. All threads of the block, whole warps, call it; between two calls there must
// be a barrier.
template <class State>
__device__ __forceinline__ State fold_block(State state)
{
    __shared__ u64 slots[32][State::WORDS];
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    state = fold_warp(state);
    if (blockDim.x == 32)
        return state;
    if (lane == 0) {
#pragma unroll
        for (int w = 0; w < State::WORDS; ++w)
            slots[warp][w] = state.word[w];
    }
    __syncthreads();
    State others;
    if (warp == 0) {
        if (lane < blockDim.x / 32) {
#pragma unroll
            for (int w = 0; w < State::WORDS; ++w)
                others.word[w] = slots[lane][w];
        }
        others = fold_warp(others);
    }
    return others;
}

// Words that add.
template <int N>
struct Totals {
    static constexpr int WORDS = N;
    u64 word[N] = {};
    __device__ __forceinline__ void merge(const Totals &other)
    {
#pragma unroll
        for (int w = 0; w < N; ++w)
            word[w] += other.word[w];
    }
};
