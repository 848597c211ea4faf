// Groups of the rows of a column: each row's key is the number of its group, less a number that all share.
//
// Every accumulator is integers at fixed weights, which rows change by atomic adds, or ranks, which they raise by atomic maxima. Both
// commute, so that neither the order of the rows nor the place where a row meets its group changes a bit:
//
//     a slot in shared memory      of a group that the block has one for, in copies for neighbouring lanes
//     the group in global memory   else, and where a row does not fit what slots have room for; a block's slots end there too
//
// With as many slots as groups each group has its own. With fewer the first group that asks for a slot gets it: frequent ones ask
// first, mostly, so that a few of them do not wait for each other in global memory.
//
// The second launch makes the answers, a thread for each group, and leaves the global accumulators zero.

#pragma once

#include "answer.cuh"
#include "fold.cuh"
#include "layout.cuh"
#include "name.cuh"
#include "row_tiles.cuh"

// The parameters: crates/cuda/src/engine/groups.rs has the same struct.
struct Groups {
    const char *data;   // the first value
    const char *keys;   // and its key
    u64 n;              // rows, fewer than 2^31
    u64 least;          // the key of group 0
    u64 *words;         // zero between questions: of each word of an accumulator, that of every group
    u32 *rows;          // zero before: how many each group has, if that is counted
    u32 *marks;         // zero before: bits for groups, `mark_words` words of each mark
    u64 *notes;         // ones before: the first row whose key is no group's; a zero for every set of words that is in use
    void *out;
    u8 *present;        // whether a group has rows
    u32 *overflow;      // set when a total does not fit its type
    u64 none;           // the answer of no rows
    u64 mask, least_counted, counted; // an element is counted if these bits of it, as a number, are one of so many from the least on
    u32 groups, mark_words;
    u32 log_slots, log_copies;
    u32 key_bytes;
    u32 counts_rows;
    u32 ask, flags;     // those of Layout
    u32 phase;
    u32 is_signed;      // whether integers are: kernels are compiled for those that are not

    __device__ __forceinline__ bool is_absolute() const { return (flags & ABSOLUTE) != 0; }
    __device__ __forceinline__ bool omits() const { return (flags & OMITS) != 0; }

    // Most marks are there already.
    __device__ __forceinline__ void mark(u32 which, u32 group) const
    {
        u32 *const word = &marks[which * mark_words + group / 32];
        if ((*static_cast<volatile u32 *>(word) >> group % 32 & 1) == 0)
            atomicOr(word, 1u << group % 32);
    }
    __device__ __forceinline__ bool is_marked(u32 which, u32 group) const { return marks[which * mark_words + group / 32] >> group % 32 & 1; }
    __device__ __forceinline__ u64 *word(int w, u32 group) const { return words + u64(w) * groups + group; }
    __device__ __forceinline__ bool has_own_slots() const { return groups <= 1u << log_slots; }
};

constexpr u32 NO_GROUP = ~0u;

// The groups of the thread's rows of a tile, which has `left` rows from `first` on. Rows that there are not, and those whose key is no
// group's, have NO_GROUP.
template <class Key>
__device__ __forceinline__ void load_groups(u32 (&group)[GROUP_ROWS], const Groups &all, u64 first, u32 left)
{
    const Key *const keys = reinterpret_cast<const Key *>(all.keys) + first;
    Key key[GROUP_ROWS];
    load_rows(key, keys, left);
#pragma unroll
    for (int k = 0; k < GROUP_ROWS; ++k) {
        const Key number = Key(key[k] - Key(all.least));
        group[k] = threadIdx.x + k * GROUP_THREADS < left && number < all.groups ? u32(number) : NO_GROUP;
    }
}

// Calls `take` with the groups and the values of GROUP_ROWS rows at once, some of which may have no group, and `after` when the thread
// has had one more tile of the block's, with whether that was the last.
template <class Bits, class Take, class After>
__device__ __forceinline__ void each_row(const Groups &all, Take take, After after)
{
    u64 stranger = ~u64(0);
#pragma unroll 1
    for (u64 first = u64(blockIdx.x) * GROUP_TILE; first < all.n; first += u64(gridDim.x) * GROUP_TILE) {
        const u32 left = u32(min(all.n - first, u64(GROUP_TILE)));
        Bits bits[GROUP_ROWS];
        load_rows(bits, reinterpret_cast<const Bits *>(all.data) + first, left);
        u32 group[GROUP_ROWS];
        switch (all.key_bytes) {
        case 1: load_groups<u8>(group, all, first, left); break;
        case 2: load_groups<u16>(group, all, first, left); break;
        case 4: load_groups<u32>(group, all, first, left); break;
        default: load_groups<u64>(group, all, first, left); break;
        }
#pragma unroll
        for (int k = GROUP_ROWS - 1; k >= 0; --k) {
            const u32 row = threadIdx.x + k * GROUP_THREADS;
            if (group[k] == NO_GROUP && row < left)
                stranger = min(stranger, first + row);
        }
        take(group, bits);
        after(all.n - first <= u64(gridDim.x) * GROUP_TILE);
    }
    if (stranger != ~u64(0))
        atomicMin(&all.notes[0], stranger);
}

// Which group has which slot of the block. Behind it in dynamic shared memory is what the slots hold.
struct Slots {
    u32 *owners; // NO_GROUP for slots that nobody has yet; none if all groups have their own
    u32 count;
    bool own;

    static __device__ __forceinline__ u32 *memory()
    {
        extern __shared__ __align__(16) u32 dynamic[];
        return dynamic;
    }

    // Before slots are looked for there must be a barrier.
    __device__ __forceinline__ Slots(const Groups &all) : owners(memory()), count(1u << all.log_slots), own(all.has_own_slots())
    {
        if (own)
            return;
        for (u32 i = threadIdx.x; i < count; i += GROUP_THREADS)
            owners[i] = NO_GROUP;
    }

    __device__ __forceinline__ u32 *behind() const { return owners + (own ? 0 : count); }

    // The slot of a group, if it has one: the first group that comes to a slot keeps it. Several ways of a slot, and slots that others get
    // after a while, took five times as long for 2^20 groups on an H200, and more than twice for groups of which few come often.
    __device__ __forceinline__ bool find(u32 group, u32 &slot) const
    {
        slot = group;
        if (own)
            return true;
        // The upper bits of a product with an odd number near the golden ratio: neighbours are far apart.
        slot = group * 0x9e3779b1u >> (__clz(int(count)) + 1);
        u32 owner = *static_cast<volatile u32 *>(&owners[slot]);
        if (owner == NO_GROUP) {
            owner = atomicCAS(&owners[slot], NO_GROUP, group);
            if (owner == NO_GROUP)
                owner = group;
        }
        return owner == group;
    }

    __device__ __forceinline__ u32 group_of(const Groups &all, u32 slot) const { return own ? (slot < all.groups ? slot : NO_GROUP) : owners[slot]; }
};

// Calls `finish` with every group, a thread for each.
template <class Finish>
__device__ __forceinline__ void each_group(const Groups &all, Finish finish)
{
#pragma unroll 1
    for (u64 group = u64(blockIdx.x) * GROUP_THREADS + threadIdx.x; group < all.groups; group += u64(gridDim.x) * GROUP_THREADS)
        finish(u32(group));
}

// Begins a kernel: GROUPS(name, blocks)(all) { ... }, for launches of which `blocks` fit a multiprocessor.
#define GROUPS(name, blocks) \
    static __device__ __forceinline__ void reduce(const Groups &); \
    extern "C" __global__ void __launch_bounds__(GROUP_THREADS, blocks) NAMED(groups_##name, ELEMENT)(const __grid_constant__ Groups all) \
    { \
        reduce(all); \
    } \
    static __device__ __forceinline__ void reduce
