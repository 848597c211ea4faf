// Puts keys in order, and places beside them: a stable sort by one digit of 8 bits at a time, the lowest first.
//
// A pass has two launches. Each block counts the digits of its part; then each one knows from the counts of all where its own items of
// every digit go. Ranks within a warp are those among lanes with the same digit.

#pragma once

#include "fold.cuh"
#include "row_tiles.cuh"

struct Keyed {
    u64 *keys;
    u32 *places;
};

constexpr u32 DIGITS = 256;
constexpr u32 ORDER_WARPS = GROUP_THREADS / 32;
static_assert(GROUP_THREADS == 2 * DIGITS, "two threads a digit");

struct KeyOrder {
    Keyed from, to;
    u32 n;
    u32 shift;   // of the digit
    u32 *counts; // of every digit, of each block

    // The block's part of all items: whole tiles but for the last one.
    __device__ __forceinline__ u32 per_block() const
    {
        const u32 tiles = (n + GROUP_TILE - 1) / GROUP_TILE;
        return (tiles + gridDim.x - 1) / gridDim.x * GROUP_TILE;
    }
    __device__ __forceinline__ u32 begin() const { return min(u64(n), u64(blockIdx.x) * per_block()); }
    __device__ __forceinline__ u32 end() const { return min(u64(n), u64(blockIdx.x + 1) * per_block()); }

    __device__ __forceinline__ u32 digit(u64 key) const { return u32(key >> shift) % DIGITS; }

    __device__ __forceinline__ void count() const
    {
        __shared__ u32 count[DIGITS];
        if (threadIdx.x < DIGITS)
            count[threadIdx.x] = 0;
        __syncthreads();
        for (u32 i = begin() + threadIdx.x; i < end(); i += GROUP_THREADS)
            atomicAdd(&count[digit(from.keys[i])], 1u);
        __syncthreads();
        if (threadIdx.x < DIGITS)
            counts[blockIdx.x * DIGITS + threadIdx.x] = count[threadIdx.x];
    }

    // Where the block's first item of each digit goes: behind all those of lower digits, and those of the digit in blocks before.
    __device__ __forceinline__ void find_starts(u32 (&next)[DIGITS], u32 (&halves)[ORDER_WARPS][DIGITS]) const
    {
        const u32 digit = threadIdx.x % DIGITS, half = threadIdx.x / DIGITS;
        u32 all = 0, before = 0;
#pragma unroll 8
        for (u32 block = half; block < gridDim.x; block += 2) {
            const u32 some = counts[block * DIGITS + digit];
            all += some;
            before += block < blockIdx.x ? some : 0;
        }
        halves[half][digit] = all;
        halves[2 + half][digit] = before;
        __syncthreads();
        if (half == 0) {
            all = halves[0][digit] + halves[1][digit];
            u32 sum = all;
#pragma unroll
            for (u32 distance = 1; distance < 32; distance *= 2) {
                const u32 other = __shfl_up_sync(ALL_LANES, sum, distance);
                sum += threadIdx.x % 32 >= distance ? other : 0;
            }
            halves[4][digit] = sum;
            next[digit] = sum - all + halves[2][digit] + halves[3][digit];
        }
        __syncthreads();
        if (half == 0) {
            u32 lower = 0;
            for (u32 last = 31; last < digit / 32 * 32; last += 32)
                lower += halves[4][last];
            next[digit] += lower;
        }
        __syncthreads();
    }

    __device__ __forceinline__ void place() const
    {
        __shared__ u32 next[DIGITS];
        __shared__ u32 of_warps[ORDER_WARPS][DIGITS];
        find_starts(next, of_warps);
        const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll 1
        for (u32 first = begin(); first < end(); first += GROUP_TILE) {
            for (u32 i = threadIdx.x; i < ORDER_WARPS * DIGITS; i += GROUP_THREADS)
                of_warps[i / DIGITS][i % DIGITS] = 0;
            __syncthreads();
            // A warp's items follow each other, so that the order of items with the same digit stays.
            u64 key[GROUP_ROWS];
            u32 place[GROUP_ROWS], rank[GROUP_ROWS];
            const u32 mine = first + warp * (32 * GROUP_ROWS) + lane;
#pragma unroll
            for (int k = 0; k < GROUP_ROWS; ++k) {
                const u32 i = min(mine + 32 * k, n - 1);
                key[k] = from.keys[i];
                place[k] = from.places[i];
            }
#pragma unroll
            for (int k = 0; k < GROUP_ROWS; ++k) {
                const u32 its = digit(key[k]);
                u32 same = __ballot_sync(ALL_LANES, mine + 32 * k < n);
#pragma unroll
                for (u32 bit = 0; bit < 8; ++bit) {
                    const u32 set = __ballot_sync(ALL_LANES, its >> bit & 1);
                    same &= its >> bit & 1 ? set : ~set;
                }
                const u32 before = same & ((1u << lane) - 1);
                rank[k] = of_warps[warp][its] + __popc(before);
                __syncwarp();
                if (mine + 32 * k < n && before == 0)
                    of_warps[warp][its] += __popc(same);
                __syncwarp();
            }
            __syncthreads();
            if (threadIdx.x < DIGITS) {
                u32 at = next[threadIdx.x];
#pragma unroll
                for (u32 w = 0; w < ORDER_WARPS; ++w) {
                    const u32 some = of_warps[w][threadIdx.x];
                    of_warps[w][threadIdx.x] = at;
                    at += some;
                }
                next[threadIdx.x] = at;
            }
            __syncthreads();
#pragma unroll
            for (int k = 0; k < GROUP_ROWS; ++k) {
                if (mine + 32 * k < n) {
                    const u32 at = of_warps[warp][digit(key[k])] + rank[k];
                    to.keys[at] = key[k];
                    to.places[at] = place[k];
                }
            }
            __syncthreads();
        }
    }
};
