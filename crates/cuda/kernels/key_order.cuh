// Puts keys in order, and places beside them: a stable sort by one digit of 8 bits at a time, the lowest first.
//
// A pass has two launches. Each block counts the digits of its part; then each one knows from the counts of all where its own items of
// every digit go. Ranks within a warp are those among lanes with the same digit. A few keys that are distinct find their places by counting
// those that are less, in one launch.

#pragma once

#include "fold.cuh"
#include "row_tiles.cuh"

struct Keyed {
    u64 *keys;
    u32 *places;
};

constexpr u32 DIGITS = 256;
// Instead of a digit: keys that differ from the one before are the only items, and behind the last of them is a place that is the number
// of all keys.
constexpr u32 EDGES = 64;
constexpr u32 ORDER_WARPS = GROUP_THREADS / 32;
static_assert(GROUP_THREADS == 2 * DIGITS, "two threads a digit");

struct KeyOrder {
    Keyed from, to; // places that there are not are those of the keys
    u32 n;
    u32 shift;   // of the digit, or EDGES
    u32 *counts; // of every digit, of each block
    u32 *found;  // of EDGES: how many there are

    // The block's part of all items: whole tiles but for the last one.
    __device__ __forceinline__ u32 per_block() const
    {
        const u32 tiles = (n + GROUP_TILE - 1) / GROUP_TILE;
        return (tiles + gridDim.x - 1) / gridDim.x * GROUP_TILE;
    }
    __device__ __forceinline__ u32 begin() const { return min(u64(n), u64(blockIdx.x) * per_block()); }
    __device__ __forceinline__ u32 end() const { return min(u64(n), u64(blockIdx.x + 1) * per_block()); }

    __device__ __forceinline__ u32 digit(u64 key) const { return shift == EDGES ? 0 : u32(key >> shift) % DIGITS; }
    __device__ __forceinline__ bool is_item(u32 i, u64 key) const { return i < n && (shift != EDGES || i == 0 || from.keys[i - 1] != key); }

    __device__ __forceinline__ void count() const
    {
        __shared__ u32 count[DIGITS];
        if (threadIdx.x < DIGITS)
            count[threadIdx.x] = 0;
        __syncthreads();
        u32 edges = 0;
        for (u32 i = begin() + threadIdx.x; i < end(); i += GROUP_THREADS) {
            const u64 key = from.keys[i];
            if (shift == EDGES)
                edges += is_item(i, key);
            else
                atomicAdd(&count[digit(key)], 1u);
        }
        if (edges != 0)
            atomicAdd(&count[0], edges);
        __syncthreads();
        if (threadIdx.x < DIGITS)
            counts[blockIdx.x * DIGITS + threadIdx.x] = count[threadIdx.x];
    }

    // The places of distinct keys: RANK_LANES lanes count together which are less than theirs.
    static constexpr u32 RANK_LANES = 8;
    __device__ __forceinline__ void rank() const
    {
        const u32 each = gridDim.x * (GROUP_THREADS / RANK_LANES), lane = threadIdx.x % RANK_LANES;
        const u32 rounds = (n + each - 1) / each;
        u32 i = blockIdx.x * (GROUP_THREADS / RANK_LANES) + threadIdx.x / RANK_LANES;
#pragma unroll 1
        for (u32 round = 0; round < rounds; ++round, i += each) {
            const u64 key = from.keys[min(i, n - 1)];
            u32 less = 0;
#pragma unroll 8
            for (u32 other = lane; other < n; other += RANK_LANES)
                less += from.keys[other] < key;
#pragma unroll
            for (u32 distance = RANK_LANES / 2; distance > 0; distance /= 2)
                less += __shfl_xor_sync(ALL_LANES, less, distance);
            if (lane == 0 && i < n) {
                to.keys[less] = key;
                to.places[less] = from.places[i];
            }
        }
    }

    // The sum of what the threads of lower digits have; the first DIGITS threads have something, and all of the block call it.
    static __device__ __forceinline__ u32 sum_before(u32 some)
    {
        __shared__ u32 of_warps[DIGITS / 32];
        u32 sum = some;
#pragma unroll
        for (u32 distance = 1; distance < 32; distance *= 2) {
            const u32 other = __shfl_up_sync(ALL_LANES, sum, distance);
            sum += threadIdx.x % 32 >= distance ? other : 0;
        }
        if (threadIdx.x < DIGITS && threadIdx.x % 32 == 31)
            of_warps[threadIdx.x / 32] = sum;
        __syncthreads();
        u32 lower = 0;
#pragma unroll
        for (u32 warp = 0; warp < DIGITS / 32; ++warp)
            lower += warp < threadIdx.x / 32 ? of_warps[warp] : 0;
        __syncthreads();
        return lower + sum - some;
    }

    // Where the block's first item of the thread's digit goes: behind all those of lower digits, and those of the digit in blocks before.
    __device__ __forceinline__ u32 find_start(u32 (&halves)[2][2][DIGITS]) const
    {
        constexpr u32 AT_ONCE = 16;
        const u32 digit = threadIdx.x % DIGITS, half = threadIdx.x / DIGITS;
        u32 all = 0, before = 0;
#pragma unroll 1
        for (u32 first = half; first < gridDim.x; first += 2 * AT_ONCE) {
            u32 some[AT_ONCE];
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; ++i)
                some[i] = first + 2 * i < gridDim.x ? counts[(first + 2 * i) * DIGITS + digit] : 0;
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; ++i) {
                all += some[i];
                before += first + 2 * i < blockIdx.x ? some[i] : 0;
            }
        }
        halves[half][0][digit] = all;
        halves[half][1][digit] = before;
        __syncthreads();
        all = halves[0][0][digit] + halves[1][0][digit];
        before = halves[0][1][digit] + halves[1][1][digit];
        if (shift == EDGES && blockIdx.x == 0 && threadIdx.x == 0) {
            *found = all;
            to.places[all] = n;
        }
        return sum_before(half == 0 ? all : 0) + before;
    }

    __device__ __forceinline__ void place() const
    {
        // The keys of a tile in order, and then their places; before the first tile what `find_start` needs.
        union Staged {
            u64 keys[GROUP_TILE];
            u32 places[GROUP_TILE];
            u32 halves[2][2][DIGITS];
        };
        __shared__ Staged staged;
        __shared__ unsigned short of_warps[ORDER_WARPS][DIGITS]; // items of a digit in warps before
        __shared__ u32 moves[DIGITS];                            // from the place in a tile to that of all items
        __shared__ u32 starts[DIGITS];                           // the digit's first item in the tile
        __shared__ u32 items;                                    // of the tile
        u32 next = find_start(staged.halves);
        const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll 1
        for (u32 first = begin(); first < end(); first += GROUP_TILE) {
            __syncthreads();
            for (u32 i = threadIdx.x; i < ORDER_WARPS * DIGITS; i += GROUP_THREADS)
                of_warps[i / DIGITS][i % DIGITS] = 0;
            __syncthreads();
            // A warp's items follow each other, so that the order of items with the same digit stays.
            u64 key[GROUP_ROWS];
            u32 place[GROUP_ROWS], rank[GROUP_ROWS], is = 0;
            const u32 mine = first + warp * (32 * GROUP_ROWS) + lane;
#pragma unroll
            for (int k = 0; k < GROUP_ROWS; ++k) {
                const u32 i = min(mine + 32 * k, n - 1);
                key[k] = from.keys[i];
                place[k] = from.places != nullptr && shift != EDGES ? from.places[i] : i;
                is |= u32(is_item(mine + 32 * k, key[k])) << k;
            }
#pragma unroll
            for (int k = 0; k < GROUP_ROWS; ++k) {
                const u32 its = digit(key[k]);
                u32 same = __ballot_sync(ALL_LANES, is >> k & 1);
#pragma unroll
                for (u32 bit = 0; bit < 8; ++bit) {
                    const u32 set = __ballot_sync(ALL_LANES, its >> bit & 1);
                    same &= its >> bit & 1 ? set : ~set;
                }
                const u32 before = same & ((1u << lane) - 1);
                rank[k] = of_warps[warp][its] + __popc(before);
                __syncwarp();
                if ((is >> k & 1) != 0 && before == 0)
                    of_warps[warp][its] += __popc(same);
                __syncwarp();
            }
            __syncthreads();
            u32 of_tile = 0;
            if (threadIdx.x < DIGITS) {
#pragma unroll
                for (u32 w = 0; w < ORDER_WARPS; ++w) {
                    const u32 some = of_warps[w][threadIdx.x];
                    of_warps[w][threadIdx.x] = of_tile;
                    of_tile += some;
                }
            }
            const u32 start = sum_before(of_tile);
            if (threadIdx.x < DIGITS) {
                starts[threadIdx.x] = start;
                moves[threadIdx.x] = next - start;
                next += of_tile;
                if (threadIdx.x == DIGITS - 1)
                    items = start + of_tile;
            }
            __syncthreads();
#pragma unroll
            for (int k = 0; k < GROUP_ROWS; ++k) {
                const u32 its = digit(key[k]);
                rank[k] += starts[its] + of_warps[warp][its];
                if (is >> k & 1)
                    staged.keys[rank[k]] = key[k];
            }
            __syncthreads();
            // Neighbours go to neighbouring places, but for the ends of digits.
            u32 at[GROUP_ROWS];
#pragma unroll
            for (int k = 0; k < GROUP_ROWS; ++k) {
                if (const u32 i = threadIdx.x + k * GROUP_THREADS; i < items) {
                    at[k] = i + moves[digit(staged.keys[i])];
                    to.keys[at[k]] = staged.keys[i];
                }
            }
            __syncthreads();
#pragma unroll
            for (int k = 0; k < GROUP_ROWS; ++k)
                if (is >> k & 1)
                    staged.places[rank[k]] = place[k];
            __syncthreads();
#pragma unroll
            for (int k = 0; k < GROUP_ROWS; ++k)
                if (const u32 i = threadIdx.x + k * GROUP_THREADS; i < items)
                    to.places[at[k]] = staged.places[i];
        }
    }
};
