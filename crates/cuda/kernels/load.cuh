// Walks an array: every element goes to exactly one thread, 16 bytes at a time, at any address that its type allows.
//
//     |head|  tile  |  tile  | ... |  tile  | part of a tile |tail|
//
// Head and tail are what lies outside whole aligned vectors, fewer elements than a vector has. Blocks take consecutive tiles,
// which memory likes better than tiles in turn, and take the last ones of a large array as they are done: tile_scheduler.cuh. The next tile's loads are on their
// way while a tile is worked on.
//
// A pass says what is done with the elements:
//
//     pass.one(bits)                              takes a peeled element
//     pass.tile<FULL>(vectors, number, valid)     takes this thread's vectors of a tile; valid of them, if the tile is not FULL.
//                                                 The block's first tile has number 0, others follow in the array's order, and a
//                                                 block's tiles ascend

#pragma once

#include "tile_scheduler.cuh"
#include "dependent_launch.cuh"

// Vectors of a thread in a tile, and the launch that the kernels are compiled for: with two blocks a multiprocessor has 64 KiB
// in flight.
constexpr int VECTORS = 4;
constexpr int THREADS = 512;
constexpr int BLOCKS = 2;

// Tiles that go to bins at once, at most, before a window is tried again.
constexpr u32 LONGEST_PATIENCE = 64;

// Elements of type T in a vector, and the i-th of them; i is a constant once loops are unrolled.
template <class T>
constexpr int ITEMS = 16 / int(sizeof(typename Element<T>::Bits));

template <class T>
__device__ __forceinline__ typename Element<T>::Bits item(const uint4 &v, int i)
{
    using Bits = typename Element<T>::Bits;
    if constexpr (sizeof(Bits) == 8) {
        return i == 0 ? u64(v.y) << 32 | v.x : u64(v.w) << 32 | v.z;
    } else {
        constexpr int EACH = 4 / sizeof(Bits);
        const u32 word = i / EACH == 0 ? v.x : i / EACH == 1 ? v.y : i / EACH == 2 ? v.z : v.w;
        return Bits(word >> (8 * sizeof(Bits) * (i % EACH)));
    }
}

// Where the b-th of the grid's shares of `tiles` begins. Small arrays have a tile for each block, and no time for a division.
__device__ __forceinline__ u64 share(u64 tiles, u64 b)
{
    return tiles == gridDim.x ? b : tiles * b / gridDim.x;
}

// This thread's part of an array, between its ends.
struct Part {
    const uint4 *at; // the thread's first vector
    u32 step;        // vectors from one tile to the next
    u64 tiles;       // whole ones of the block's share
    u32 scheduled;   // tiles of the array behind all shares, which blocks are given
    u32 before;      // tiles from the block's first to those
    bool rest;       // whether the block has the part of a tile behind them all,
    u32 valid;       // and how many of its vectors the thread has

    __device__ __forceinline__ const uint4 *tile(u64 number) const { return at + number * step; }
    // The number of the part of a tile, if the block has it.
    __device__ __forceinline__ u64 last() const { return tiles + scheduled; }
};

// The thread's vectors of the tile at `at`.
template <int N>
__device__ __forceinline__ void load(uint4 (&v)[N], const uint4 *__restrict__ at)
{
#pragma unroll
    for (int k = 0; k < N; ++k)
        v[k] = at[32 * k];
}

// As many of them as there are.
template <int N>
__device__ __forceinline__ void load(uint4 (&v)[N], const uint4 *__restrict__ at, u32 valid)
{
#pragma unroll
    for (int k = 0; k < N; ++k)
        if (k < valid)
            v[k] = at[32 * k];
}

// The thread's vectors of the block's tile of that number, before the launches ahead have ended.
template <int N>
__device__ __forceinline__ void load_before_wait(uint4 (&v)[N], const Part &part, u32 number)
{
    const u32 valid = number < part.tiles ? N : number == part.tiles && part.rest ? part.valid : 0;
#pragma unroll
    for (int k = 0; k < N; ++k)
        if (k < valid)
            v[k] = read_before_wait(&part.at[number * part.step + 32 * k]);
}

// Vectors that are there already, so that the registers they came in may be used again.
template <int N>
__device__ __forceinline__ void copy(uint4 (&v)[N], const uint4 (&from)[N])
{
#pragma unroll
    for (int k = 0; k < N; ++k)
        v[k] = from[k];
}

// What lies outside whole aligned vectors, and how many of these there are.
struct Ends {
    u64 head;
    u64 vectors;
    u32 tail;
};

template <class T>
__device__ __forceinline__ Ends ends(const void *data, u64 n)
{
    const u64 before = (16 - u64(data) % 16) % 16 / sizeof(typename Element<T>::Bits);
    const u64 head = before < n ? before : n;
    return {head, (n - head) / ITEMS<T>, u32((n - head) % ITEMS<T>)};
}

// Which of the whole vectors are this thread's, N of a tile. If tiles are SCHEDULED, some are given to blocks later.
template <class T, bool SCHEDULED, int N = VECTORS>
__device__ __forceinline__ Part part_of(const void *data, u64 n)
{
    const Ends cut = ends<T>(data, n);
    Part part;
    part.step = blockDim.x * N;
    const u64 whole = cut.vectors / part.step;
    const u32 rest = u32(cut.vectors % part.step);
    part.scheduled = SCHEDULED ? scheduled_of(whole, part.step * ITEMS<T>) : 0;
    const u64 shared = whole - part.scheduled;
    const u64 first = share(shared + (rest != 0), blockIdx.x);
    const u64 last = share(shared + (rest != 0), blockIdx.x + 1);
    part.before = u32(shared - first);
    part.rest = first <= shared && shared < last;
    part.tiles = last - first - part.rest;
    // A warp's vectors of a tile lie together.
    const u32 place = threadIdx.x / 32 * (32 * N) + threadIdx.x % 32;
    part.valid = place < rest ? min((rest - place - 1) / 32 + 1, N) : 0;
    part.at = reinterpret_cast<const uint4 *>(static_cast<const typename Element<T>::Bits *>(data) + cut.head) + first * part.step + place;
    return part;
}

// Gives the pass what lies outside whole vectors.
template <class Pass>
__device__ __forceinline__ void peel(const void *data, u64 n, Pass &pass)
{
    using T = typename Pass::Item;
    const typename Element<T>::Bits *__restrict__ items = static_cast<const typename Element<T>::Bits *>(data);
    const Ends cut = ends<T>(data, n);
    if (blockIdx.x == 0 && threadIdx.x < cut.head)
        pass.one(items[threadIdx.x]);
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x < cut.tail)
        pass.one(items[n - cut.tail + threadIdx.x]);
}

// A pass whose elements need many registers takes fewer vectors of a tile, N.
template <int N = VECTORS, class Pass>
__device__ __forceinline__ void walk(const void *data, u64 n, u64 *scratch, Pass &pass)
{
    const Part part = part_of<typename Pass::Item, true, N>(data, n);
    // Two sets of registers in turn: copies from one to the other would hold the loads back.
    uint4 even[N], odd[N];
    load_before_wait(even, part, 0);
    load_before_wait(odd, part, 1);
    wait_for_launch_ahead();
    peel(data, n, pass);
    TileScheduler scheduler(part.scheduled, scratch);
    u32 number = 0;
    for (u64 left = part.tiles;;) {
        for (const uint4 *at = part.tile(number); left > 0; left -= 2, number += 2, at += 2 * part.step) {
            pass.template tile<true>(even, number, N);
            if (left == 1)
                break;
            if (left > 2)
                load(even, at + 2 * part.step);
            pass.template tile<true>(odd, number + 1, N);
            if (left == 2)
                break;
            if (left > 3)
                load(odd, at + 3 * part.step);
        }
        if (!scheduler.next(number, left))
            break;
        number += part.before;
        load(even, part.tile(number));
        if (left > 1)
            load(odd, part.tile(number + 1));
    }
    if (part.rest) {
        uint4 some[N];
        if (part.last() == 0)
            copy(some, even);
        else if (part.last() == 1)
            copy(some, odd);
        else
            load(some, part.tile(part.last()), part.valid);
        pass.template tile<false>(some, u32(part.last()), part.valid);
    }
}

// Calls `take` with every element of this thread's vectors of a tile.
template <class T, bool FULL, int N, class Take>
__device__ __forceinline__ void each(const uint4 (&v)[N], u32 valid, Take take)
{
#pragma unroll
    for (int k = 0; k < N; ++k) {
        if (FULL || k < valid) {
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i)
                take(item<T>(v[k], i));
        }
    }
}

// Calls `take` with every word of this thread's vectors of a tile.
template <bool FULL, int N, class Take>
__device__ __forceinline__ void each_word(const uint4 (&v)[N], u32 valid, Take take)
{
#pragma unroll
    for (int k = 0; k < N; ++k) {
        if (FULL || k < valid) {
            take(v[k].x);
            take(v[k].y);
            take(v[k].z);
            take(v[k].w);
        }
    }
}

// Every element once more from memory: short code for what is seldom done.
template <class T, class Take>
__device__ __forceinline__ void each_again(const uint4 *at, u32 valid, Take take)
{
    using Bits = typename Element<T>::Bits;
#pragma unroll 1
    for (u32 k = 0; k < valid; ++k) {
        const Bits *items = reinterpret_cast<const Bits *>(at + 32 * k);
#pragma unroll 1
        for (int i = 0; i < ITEMS<T>; ++i)
            take(items[i]);
    }
}
