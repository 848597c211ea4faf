// A table of the distinct keys of rows, and the number of each row's key.
//
// Keys are differences from the least one, of 64 bits. A key is in the first slot that has it, from the one that its bits choose on. The
// key of all ones is what empty slots hold: it has a slot of its own, behind the others, which holds a zero once the key has come.

#pragma once

#include "row_tiles.cuh"

constexpr u64 NO_KEY = ~u64(0);
// Slots that are looked at for a key. With three quarters of the slots in use a key is hardly ever farther away.
constexpr u32 MOST_STEPS = 128;

struct KeyTable {
    u64 *keys;    // of all slots: ones before the first key
    u32 *numbers; // of their keys
    u32 log;      // of the number of slots
    u32 *found;   // zero before: how many keys there are
    u32 *full;    // zero before: set when a key has no slot

    __device__ __forceinline__ u32 slots() const { return 1u << log; }

    __device__ __forceinline__ u64 there(u32 slot) const { return *static_cast<volatile u64 *>(&keys[slot]); }

    // Where a key is looked for first: the upper bits of a product to which all bits of the key come.
    __device__ __forceinline__ u32 home(u64 key) const
    {
        key = (key ^ key >> 32) * 0xd6e8feb86659fd93ull;
        return u32((key ^ key >> 32) * 0x9e3779b97f4a7c15ull >> (64 - log));
    }

    // Enters the keys of a tile's rows, and notes the slot of each row. A key takes the first empty slot. All of a thread's keys go on to
    // the next slots together, as each look takes its time.
    template <class Key>
    __device__ __forceinline__ void enter(const Key *keys_of_rows, Key least, u32 *slots_of_rows, u32 left) const
    {
        constexpr u32 ALL = (1u << GROUP_ROWS) - 1;
        Key key[GROUP_ROWS];
        load_rows(key, keys_of_rows, left);
        u32 slot[GROUP_ROWS], done = 0;
        u64 has[GROUP_ROWS];
#pragma unroll
        for (int k = 0; k < GROUP_ROWS; ++k) {
            key[k] -= least;
            slot[k] = home(key[k]);
            if (u64(key[k]) == NO_KEY) {
                slot[k] = slots();
                *static_cast<volatile u64 *>(&keys[slot[k]]) = 0;
                has[k] = NO_KEY;
                done |= 1u << k;
            } else {
                has[k] = there(slot[k]);
            }
        }
#pragma unroll 1
        for (u32 step = 0; step < MOST_STEPS; ++step) {
#pragma unroll
            for (int k = 0; k < GROUP_ROWS; ++k) {
                if ((done >> k & 1) == 0 && has[k] == NO_KEY) {
                    has[k] = atomicCAS(&keys[slot[k]], NO_KEY, u64(key[k]));
                    if (has[k] == NO_KEY)
                        has[k] = key[k];
                }
            }
#pragma unroll
            for (int k = 0; k < GROUP_ROWS; ++k)
                done |= u32(has[k] == key[k]) << k;
            if (done == ALL)
                break;
#pragma unroll
            for (int k = 0; k < GROUP_ROWS; ++k) {
                if ((done >> k & 1) == 0) {
                    slot[k] = (slot[k] + 1) & (slots() - 1);
                    has[k] = there(slot[k]);
                }
            }
        }
        if (done != ALL)
            *static_cast<volatile u32 *>(full) = 1;
#pragma unroll
        for (int k = 0; k < GROUP_ROWS; ++k)
            if (const u32 row = threadIdx.x + k * GROUP_THREADS; row < left)
                slots_of_rows[row] = slot[k];
    }

    // The key of a slot, if it has one.
    __device__ __forceinline__ bool has_key(u32 slot, u64 &key) const
    {
        key = keys[slot];
        const bool is_empty = key == NO_KEY;
        if (slot == slots())
            key = NO_KEY;
        return !is_empty;
    }

    // Puts the number of its key in the place of each row's slot.
    __device__ __forceinline__ void look_up(u32 *rows, u32 left) const
    {
        u32 number[GROUP_ROWS];
#pragma unroll
        for (int k = 0; k < GROUP_ROWS; ++k) {
            // Not the last row instead of one that there is not: its own thread writes it.
            const u32 row = threadIdx.x + k * GROUP_THREADS;
            number[k] = row < left ? rows[row] : 0;
        }
#pragma unroll
        for (int k = 0; k < GROUP_ROWS; ++k)
            number[k] = numbers[number[k]];
#pragma unroll
        for (int k = 0; k < GROUP_ROWS; ++k)
            if (const u32 row = threadIdx.x + k * GROUP_THREADS; row < left)
                rows[row] = number[k];
    }
};
