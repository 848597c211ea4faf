// Numbers rows by their keys, from 0 on for each distinct one, and brings what was made of each number into the order of the keys.
// elements: u64
//
// Several columns are one key: each a digit of it, whose base is the range of the column.

#include "key_order.cuh"
#include "key_table.cuh"
#include "name.cuh"

// What a launch does.
enum Phase : u32 {
    JOIN,     // to[i] = from[i] * factor + key of row i
    ENTER,    // slots of rows in the table
    LIST,     // distinct keys of the table and their slots, or places that are marked, in any order
    NUMBER,   // numbers of keys in order, by their slots
    LOOK_UP,  // numbers of rows in the place of their slots
    RANK,     // an order of a few keys
    COUNT,    // one pass of an order
    PLACE,
    PICK,     // to[i] = the item at the i-th place
    KEYS,     // to[i] = the digit of the i-th key that a column is, and its least key
    WIDEN,    // to[i] = what keys are more than the least one, in f64
    POSITIONS // to[i] = the row at the to[i]-th place behind from[i]
};

// The parameters: crates/cuda/src/engine/numbering.rs has the same struct.
struct Numbering {
    const void *keys; // of JOIN and ENTER: of a column
    const void *from;
    void *to;
    u64 n;         // of rows, slots, keys or places
    u64 least;     // the least key of a column
    u64 factor;    // of the keys before; of KEYS the range of the columns behind
    u64 range;     // of KEYS that of the column, or 0 if that does not matter
    KeyTable table;
    u32 *rows;     // slots, then numbers
    Keyed found, others;
    u32 *counts;
    const u8 *marks; // of places, instead of a table
    u32 shift;
    u32 size;      // of a key or an item
    Phase phase;
};

// Calls a task for unsigned integers of the size of the items.
template <class Task>
__device__ __forceinline__ void by_size(u32 size, Task task)
{
    switch (size) {
    case 1: return task.template of<u8>();
    case 2: return task.template of<u16>();
    case 4: return task.template of<u32>();
    default: return task.template of<u64>();
    }
}

template <class Take>
__device__ __forceinline__ void each(u64 n, Take take)
{
    for (u64 i = u64(blockIdx.x) * GROUP_THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * GROUP_THREADS)
        take(i);
}

struct Enter {
    const Numbering &all;

    template <class Key>
    __device__ __forceinline__ void of() const
    {
        each_tile(all.n, [&](u64 first, u32 left) {
            // Others have found no room: rows are put in order without a table.
            const bool is_full = *static_cast<volatile u32 *>(all.table.full) != 0;
            __syncwarp();
            if (!is_full)
                all.table.enter(static_cast<const Key *>(all.keys) + first, Key(all.least), all.rows + first, left);
            __syncwarp();
        });
    }
};

struct Join {
    const Numbering &all;

    template <class Key>
    __device__ __forceinline__ void of() const
    {
        const Key *const keys = static_cast<const Key *>(all.keys);
        const u64 *const before = static_cast<const u64 *>(all.from);
        each(all.n, [&](u64 i) { static_cast<u64 *>(all.to)[i] = (before != nullptr ? before[i] * all.factor : 0) + Key(keys[i] - Key(all.least)); });
    }
};

struct Widen {
    const Numbering &all;

    template <class Key>
    __device__ __forceinline__ void of() const
    {
        const Key *const keys = static_cast<const Key *>(all.keys);
        each(all.n, [&](u64 i) { static_cast<f64 *>(all.to)[i] = f64(Key(keys[i] - Key(all.least))); });
    }
};

struct Pick {
    const Numbering &all;

    template <class Item>
    __device__ __forceinline__ void of() const
    {
        const Item *const items = static_cast<const Item *>(all.from);
        each(all.n, [&](u64 i) { static_cast<Item *>(all.to)[i] = items[all.found.places != nullptr ? all.found.places[i] : i]; });
    }
};

struct Keys {
    const Numbering &all;

    template <class Key>
    __device__ __forceinline__ void of() const
    {
        each(all.n, [&](u64 i) {
            const u64 key = (all.found.keys != nullptr ? all.found.keys[i] : i) / all.factor;
            static_cast<Key *>(all.to)[i] = Key(all.least + (all.range != 0 ? key % all.range : key));
        });
    }
};

// The place of a key is one of the block's, behind those of the blocks that were here before.
__device__ __forceinline__ void list(const Numbering &all)
{
    __shared__ u32 count, start;
    each_tile(all.n, [&](u64 first, u32 left) {
        if (threadIdx.x == 0)
            count = 0;
        __syncthreads();
        u64 key[GROUP_ROWS];
        u32 rank[GROUP_ROWS], of_warp = 0;
        bool is[GROUP_ROWS];
#pragma unroll
        for (int k = 0; k < GROUP_ROWS; ++k) {
            const u32 row = threadIdx.x + k * GROUP_THREADS;
            key[k] = first + row;
            is[k] = row < left && (all.marks != nullptr ? all.marks[key[k]] != 0 : all.table.has_key(u32(first) + row, key[k]));
            const u32 lanes = __ballot_sync(ALL_LANES, is[k]);
            rank[k] = of_warp + __popc(lanes & ((1u << threadIdx.x % 32) - 1));
            of_warp += __popc(lanes);
        }
        u32 before = 0;
        if (threadIdx.x % 32 == 0)
            before = atomicAdd(&count, of_warp);
        before = __shfl_sync(ALL_LANES, before, 0);
        __syncthreads();
        if (threadIdx.x == 0)
            start = atomicAdd(all.table.found, count);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < GROUP_ROWS; ++k) {
            if (!is[k])
                continue;
            const u32 number = start + before + rank[k], place = u32(first) + threadIdx.x + k * GROUP_THREADS;
            all.found.keys[number] = key[k];
            all.found.places[number] = place;
        }
        __syncthreads();
    });
}

extern "C" __global__ void __launch_bounds__(GROUP_THREADS, 2) NAMED(number, ELEMENT)(const __grid_constant__ Numbering all)
{
    const KeyOrder order = {all.found, all.others, u32(all.n), all.shift, all.counts, all.table.found};
    switch (all.phase) {
    case JOIN: return by_size(all.size, Join{all});
    case ENTER: return by_size(all.size, Enter{all});
    case LIST: return list(all);
    case NUMBER: return each(all.n, [&](u64 i) { all.table.numbers[all.found.places[i]] = u32(i); });
    case LOOK_UP: return each_tile(all.n, [&](u64 first, u32 left) { all.table.look_up(all.rows + first, left); });
    case RANK: return order.rank();
    case COUNT: return order.count();
    case PLACE: return order.place();
    case PICK: return by_size(all.size, Pick{all});
    case KEYS: return by_size(all.size, Keys{all});
    case WIDEN: return by_size(all.size, Widen{all});
    case POSITIONS:
        return each(all.n, [&](u64 i) {
            u64 &position = static_cast<u64 *>(all.to)[i];
            position = all.found.places[static_cast<const u32 *>(all.from)[i] + position];
        });
    }
}
