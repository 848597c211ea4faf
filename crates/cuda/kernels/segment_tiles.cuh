// Segments by offsets: each begins where the one before it ends. Each warp has 2^log_groups of them and walks over their elements in
// tiles, so that a thread has as many elements as any other, whatever the lengths are.
//
// A tile is copied to shared memory while the one before it is taken. Each thread has some neighbouring elements of it, and a bit for each
// that says whether it is the last one of its segment:
//
//     thread     0               1               2               3
//     elements   . . . . . . .|. . . . . . . . . . . . . .|. .|. . . . . .
//     it has     a part, a tail  a tail          a part, a whole one, a tail ...
//
// What ends in a thread is left in a slot, and what is still open there, the tail, is merged over the threads behind it, up to the next
// end; there it is added to what that thread left. What is open at the tile's end is carried to the next one. After the last tile the
// slots are answers.
//
// Accumulators are those of tile_part.cuh, which may be unsure. Segments of which they are, and warps that would have far more elements
// than others, are left to the launch that follows (segments.cuh), and so are long segments. No warp waits for another one.

#pragma once

#include "segments.cuh"
#include "tile_part.cuh"

// A warp: one that has more to do than others keeps no other one waiting.
constexpr int TILE_THREADS = 32;
constexpr int TILE_WARPS = TILE_THREADS / 32;
// The most segments of a warp, and those that are done once more together, where few are: 2 to the power of these.
constexpr int TILE_LOG_GROUPS = 8;
constexpr int LOG_SOME = 3;
constexpr int TILE_GROUPS = 1 << TILE_LOG_GROUPS;
// Tiles of a warp, at most.
constexpr int MOST_TILES = 128;
static_assert(TILE_GROUPS >> LOG_SOME <= 32, "a bit for each that may be done once more");

// How elements lie in a tile: EACH of a thread, as vectors. Neighbouring threads' vectors of one number are 16 bytes apart, but for the
// size of what a thread has: moving them about within 128 bytes keeps 8 threads from meeting in a bank.
template <class T>
struct TileShape {
    using Bits = typename Element<T>::Bits;
    static constexpr u32 SIZE = sizeof(Bits), V = 16 / SIZE, EACH = SIZE >= 2 ? 64 / SIZE : 32, VECTORS = EACH / V;
    static constexpr u32 ELEMENTS = 32 * EACH, ALL = 32 * VECTORS;
    static_assert(EACH <= 32, "a bit for each");

    static __device__ __forceinline__ u32 at(u32 thread, u32 vector)
    {
        return thread * VECTORS + (vector ^ (thread * VECTORS / 8 % VECTORS));
    }
    // Where the tile's v-th vector is: 32 vectors further on, 32 vectors further on.
    static __device__ __forceinline__ u32 place(u32 v) { return at(v / VECTORS, v % VECTORS); }
    static_assert(32 / 8 % VECTORS == 0, "the same exchange within 128 bytes");
};

// What a warp has in shared memory.
template <class Part>
struct TileRoom {
    using Shape = TileShape<typename Part::Item>;
    uint4 stages[2][Shape::ALL];
    u64 slots[TILE_GROUPS][Part::WORDS];
    u32 bounds[TILE_GROUPS + 1];
    u32 marks[Shape::ELEMENTS / 32];
    // Segments that are not for here, by bit.
    u32 aside[TILE_GROUPS / 32];
};

template <class Part>
__device__ __forceinline__ Part part_of(const u64 (&slot)[Part::WORDS])
{
    return Part(Part::of_words(slot));
}
template <class Part>
__device__ __forceinline__ void leave(u64 (&slot)[Part::WORDS], const Part &part)
{
#pragma unroll
    for (int w = 0; w < Part::WORDS; ++w)
        slot[w] = part.word(w);
}
// The sum of the words of this lane and those below.
__device__ __forceinline__ u32 sum_up_to(u32 word)
{
#pragma unroll
    for (u32 d = 1; d < 32; d *= 2) {
        // Where there is no lane that far below, nothing is added.
        asm volatile("{ .reg .u32 other; .reg .pred is; shfl.sync.up.b32 other|is, %0, %1, 0, -1; @is add.u32 %0, %0, other; }" : "+r"(word) : "r"(d));
    }
    return word;
}

template <class Part>
__device__ __forceinline__ Part from_below(const Part &part, u32 distance)
{
    u64 words[Part::WORDS];
#pragma unroll
    for (int w = 0; w < Part::WORDS; ++w)
        words[w] = __shfl_up_sync(ALL_LANES, part.word(w), distance);
    return Part(Part::of_words(words));
}

// The elements [begin, end) of an array, seen from the aligned vector that the first one lies in.
template <class T>
struct TileRun {
    using Shape = TileShape<T>;
    const char *first;
    u32 base;          // the element of the array that the vector would begin with
    u32 before, total; // elements before `begin`, and with them up to `end`
    bool begins, ends; // whether all bytes of the first vector and of the last one are the array's
    u32 whole;         // tiles of which all bytes are, but for a first one of which they are not

    __device__ __forceinline__ TileRun(const Segments &all, u32 begin, u32 end)
    {
        const char *const data = all.data + u64(begin) * Shape::SIZE;
        before = u32(u64(data)) % 16 / Shape::SIZE;
        base = begin - before;
        first = data - before * Shape::SIZE;
        total = before + (end - begin);
        begins = first >= all.data;
        ends = first + u64(vectors()) * 16 <= all.data + all.len * Shape::SIZE;
        const u32 tiles = (vectors() - !ends) / Shape::ALL;
        whole = tiles - min(u32(!begins), tiles);
    }
    __device__ __forceinline__ u32 vectors() const { return (total + Shape::V - 1) / Shape::V; }
    __device__ __forceinline__ u32 tiles() const { return (total + Shape::ELEMENTS - 1) / Shape::ELEMENTS; }

    // Begins to copy a tile to where the thread's first vector is in shared memory.
    __device__ __forceinline__ void copy(const Segments &all, char *to, u32 tile) const
    {
        const u32 at = tile * Shape::ALL + threadIdx.x % 32;
        const char *const from = first + u64(at) * 16;
        if (tile - !begins < whole) {
#pragma unroll
            for (u32 k = 0; k < Shape::VECTORS; ++k)
                copy_vector(to + 512 * k, from + 512 * k);
        } else {
            const u32 last = vectors() - 1;
#pragma unroll 1
            for (u32 k = 0; k < Shape::VECTORS; ++k) {
                const u32 vector = at + 32 * k;
                if (vector <= last && (vector > 0 || begins) && (vector < last || ends))
                    copy_vector(to + 512 * k, from + 512 * k);
                else if (vector <= last)
                    *reinterpret_cast<uint4 *>(to + 512 * k) = vector_at_end<T>(from + 512 * k, all.data, all.data + all.len * Shape::SIZE);
            }
        }
        end_copies();
    }

    // Puts `fill` in the place of elements of a tile that are not of the run; the thread's own.
    __device__ __forceinline__ void clip(uint4 *stage, u32 tile, u64 fill) const
    {
        const u32 lane = threadIdx.x % 32, from = tile == 0 ? before : 0, to = min(total - tile * Shape::ELEMENTS, Shape::ELEMENTS);
        if (from == 0 && to == Shape::ELEMENTS)
            return;
        const uint4 filled = Units<T, int(Shape::V)>::filled(typename Shape::Bits(fill));
#pragma unroll 1
        for (u32 w = 0; w < Shape::VECTORS; ++w) {
            const u32 at = lane * Shape::EACH + w * Shape::V;
            uint4 &vector = stage[Shape::at(lane, w)];
            if (at >= to || at + Shape::V <= from)
                vector = filled;
            else if (at < from || at + Shape::V > to)
                vector = keep<T, int(Shape::V)>(vector, int(at) - int(from), int(to - from), filled);
        }
    }
};

template <class Part>
struct TileWalk {
    using Item = typename Part::Item;
    using Bits = typename Part::Bits;
    using Asked = typename Part::Asked;
    using Shape = TileShape<Item>;
    using Room = TileRoom<Part>;

    const Segments &all;
    Room &room;
    const Asked &asked; // of no matter how many elements
    u32 lane;
    u32 rank = 0;    // slots that are filled
    u32 unsure = 0;  // segments that are not answered, 2^LOG_SOME a bit

    // Sets the bits of elements that are the last ones of their segments, from segment `next` on and before `beyond`. Returns the first
    // segment that ends behind the tile. Empty ones end where the one before them does, or before all elements.
    __device__ __forceinline__ u32 mark(const TileRun<Item> &run, u32 tile, u32 next, u32 beyond)
    {
        if (lane < Shape::ELEMENTS / 32)
            room.marks[lane] = 0;
        __syncwarp();
        const u32 begin = tile * Shape::ELEMENTS, base = run.base + begin, from = tile == 0 ? run.before : 0;
        u32 here;
#pragma unroll 1
        do {
            here = 0;
#pragma unroll
            for (u32 k = 0; k < 2; ++k) {
                const u32 j = next + 32 * k + lane;
                // Behind the tile's first element.
                const u32 end = j < beyond ? room.bounds[j + 1] - base : ~0u;
                const bool is_here = end <= Shape::ELEMENTS;
                if (is_here && end > from)
                    atomicOr(&room.marks[(end - 1) / 32], 1u << (end - 1) % 32);
                here += __popc(__ballot_sync(ALL_LANES, is_here));
            }
            next += here;
        } while (here == 64);
        __syncwarp();
        return next;
    }

    // Takes a tile that is there. What is open at its end takes the place of what was before. Returns whether all that ended is exact.
    __device__ __forceinline__ bool take(const uint4 *stage, Part &carry)
    {
        const u32 bit = lane * Shape::EACH;
        const u32 ends = Shape::EACH == 32 ? room.marks[lane] : room.marks[bit / 32] >> bit % 32 & ((1u << Shape::EACH % 32) - 1);
        // Slots of the threads before.
        const u32 own = __popc(ends), slot = sum_up_to(own), mine = rank + slot - own;
        rank += __shfl_sync(ALL_LANES, slot, 31);

        Part part;
        typename Part::Run run;
        u64(*to)[Part::WORDS] = room.slots + mine;
#pragma unroll
        for (u32 w = 0; w < Shape::VECTORS; ++w) {
            const uint4 vector = stage[Shape::at(lane, w)];
            Part::see(vector, run);
#pragma unroll
            for (u32 i = 0; i < Shape::V; ++i) {
                part.take(Units<Item, int(Shape::V)>::item(vector, int(i)), asked);
                if (ends >> (w * Shape::V + i) & 1) {
                    leave(*to++, part);
                    part = Part();
                }
            }
        }
        const u32 enders = __ballot_sync(ALL_LANES, ends != 0);
        bool is_exact = true;
        if (Part::hold(run)) {
            put_together(part, enders, mine, [](Part &all, const Part &other) { all.plus(other); });
        } else {
            is_exact = Part::sure(run, asked, Shape::EACH, [&](u32 e) -> Bits {
                return reinterpret_cast<const Bits *>(stage + Shape::at(lane, e / Shape::V))[e % Shape::V];
            });
            put_together(part, enders, mine, [&](Part &all, const Part &other) { is_exact = all.merge(other) && is_exact; });
        }
        // What was open before goes to the first that ends.
        if (lane == __ffs(enders) - 1) {
            Part head = part_of<Part>(room.slots[mine]);
            is_exact = head.merge(carry) && is_exact;
            leave(room.slots[mine], head);
        }
        u64 words[Part::WORDS];
#pragma unroll
        for (int w = 0; w < Part::WORDS; ++w)
            words[w] = __shfl_sync(ALL_LANES, part.word(w), 31);
        const Part open = Part(Part::of_words(words));
        if (enders != 0)
            carry = open;
        else
            is_exact = carry.merge(open) && is_exact;
        return __all_sync(ALL_LANES, is_exact);
    }

    // Adds tails to what they are open to: those of the threads behind, up to the next one in which something ends, and there to what ends
    // first, in slot `mine`.
    template <class Plus>
    __device__ __forceinline__ void put_together(Part &part, u32 enders, u32 mine, Plus plus)
    {
        const u32 below = enders & ~0u >> (31 - lane), distance = lane - (below != 0 ? 31 - __clz(below) : 0);
        const u32 farthest = warp_max(distance);
#pragma unroll 1
        for (u32 d = 1; d <= farthest; d *= 2) {
            const Part other = from_below(part, d);
            plus(part, distance >= d ? other : Part());
        }
        const Part open = from_below(part, 1);
        if ((enders >> lane & 1) != 0 && lane != 0) {
            Part head = part_of<Part>(room.slots[mine]);
            plus(head, open);
            leave(room.slots[mine], head);
        }
    }

    // Walks over segments [from, beyond) of the warp, which follow each other.
    __device__ __forceinline__ void walk(u32 from, u32 beyond)
    {
        const u32 begin = room.bounds[from], end = room.bounds[beyond];
        if (begin == end)
            return;
        const TileRun<Item> run(all, begin, end);
        const u32 tiles = run.tiles();
        Part carry;
        u32 next = from;
        char *const to = reinterpret_cast<char *>(room.stages[0] + Shape::place(lane));
        run.copy(all, to, 0);
#pragma unroll 1
        for (u32 tile = 0; tile < tiles; ++tile) {
            // The next one is on its way while this one is taken.
            if (tile + 1 < tiles)
                run.copy(all, to + (tile + 1) % 2 * sizeof(room.stages[0]), tile + 1);
            else
                end_copies();
            const u32 first = next;
            next = mark(run, tile, next, beyond);
            wait_for_copies<1>();
            __syncwarp();
            uint4 *const stage = room.stages[tile % 2];
            run.clip(stage, tile, asked.fill());
            if (!take(stage, carry)) {
                const u32 last = min(next, beyond - 1) >> LOG_SOME;
                unsure |= ~0u >> (31 - last) & ~0u << (first >> LOG_SOME);
            }
            __syncwarp();
        }
    }

    // Leaves segments to the next launch: `which` has a bit for each 2^LOG_SOME of them.
    __device__ __forceinline__ void leave_to_next(u64 first, u32 which, u32 log_groups)
    {
        const u32 count = __popc(which);
        const bool is_whole = log_groups <= LOG_SOME || (count > 2 && count < 1u << (log_groups - LOG_SOME));
        u64 at = 0;
        if (lane == 0)
            at = atomicAdd(&all.counters[AGAIN], u64(is_whole ? 1 : count));
        at = __shfl_sync(ALL_LANES, at, 0);
        if (is_whole) {
            if (lane == 0)
                all.again[at] = first | u64(log_groups) << AGAIN_LOG;
        } else if (which >> lane & 1) {
            all.again[at + __popc(which & ((1u << lane) - 1))] = (first + (lane << LOG_SOME)) | u64(LOG_SOME) << AGAIN_LOG;
        }
    }

    // Finds the warp's segments. Returns the elements of those that are for here.
    __device__ __forceinline__ u32 find_all(u64 first, u32 groups)
    {
        constexpr u32 BEYOND = ~0u, AT_ONCE = 4;
        // No element has a number as large as that.
        const auto offset = [&](u32 j) -> u32 {
            const u64 at = all.begins == nullptr ? (first + j) * all.fixed : Segments::boundary(all.begins, all.begin_width, first + j);
            return at > all.len ? BEYOND : u32(at);
        };
#pragma unroll 1
        for (u32 j = lane; j <= groups; j += AT_ONCE * 32) {
            u32 bounds[AT_ONCE];
#pragma unroll
            for (u32 k = 0; k < AT_ONCE; ++k)
                bounds[k] = offset(min(j + 32 * k, groups));
#pragma unroll
            for (u32 k = 0; k < AT_ONCE; ++k)
                room.bounds[min(j + 32 * k, groups)] = bounds[k];
        }
        __syncwarp();
        u32 elements = 0, empty = ~0u;
#pragma unroll 1
        for (u32 j = lane; j - lane < groups; j += 32) {
            const u32 begin = room.bounds[min(j, groups - 1)], end = room.bounds[min(j, groups - 1) + 1], len = end - begin;
            const bool is_bad = begin > end || end == BEYOND, is_short = !is_bad && len <= all.most;
            if (j < groups && (!is_short || len == 0)) {
                dismiss(all, first + j, {begin, len}, is_bad ? SegmentIs::BAD : is_short ? SegmentIs::EMPTY : SegmentIs::LONG);
                if (is_short)
                    empty = min(empty, j);
            }
            elements += j < groups && is_short ? len : 0;
            const u32 aside = __ballot_sync(ALL_LANES, j < groups && !is_short);
            if (lane == 0)
                room.aside[j / 32] = aside;
        }
#pragma unroll
        for (u32 d = 16; d > 0; d /= 2)
            elements += __shfl_xor_sync(ALL_LANES, elements, d);
        // One for a warp: the same word is slow for many.
        if (__any_sync(ALL_LANES, empty != ~0u)) {
            empty = warp_min(empty);
            if (lane == 0)
                atomicMin(&all.notes[1], first + empty);
        }
        __syncwarp();
        return elements;
    }

    // The first segment from `from` on that is not for here, or `groups`.
    __device__ __forceinline__ u32 next_aside(u32 from, u32 groups) const
    {
#pragma unroll 1
        while (from < groups) {
            const u32 word = room.aside[from / 32] >> from % 32;
            if (word != 0)
                return from + __ffs(word) - 1;
            from = (from / 32 + 1) * 32;
        }
        return groups;
    }

    // Writes the answer of the thread's segment j, if it is here, of what a slot has. Those that are not sure are noted.
    template <class Ask>
    __device__ __forceinline__ void write(u64 first, u32 j, bool is_here, u32 slot, Ask ask)
    {
        bool is_sure = true;
        if (is_here)
            is_sure = part_of<Part>(room.slots[slot]).write(all.out, first + j, ask(room.bounds[j + 1] - room.bounds[j]));
        const u32 others = __ballot_sync(ALL_LANES, !is_sure);
        if (others == 0)
            return;
#pragma unroll
        for (u32 k = 0; k < 32 >> LOG_SOME; ++k) {
            if ((others >> (k << LOG_SOME) & ((1u << (1 << LOG_SOME)) - 1)) != 0)
                unsure |= 1u << ((j - lane >> LOG_SOME) + k);
        }
    }

    template <class Ask>
    __device__ __forceinline__ void reduce(u64 first, u32 groups, u32 log_groups, Ask ask)
    {
        if (find_all(first, groups) > MOST_TILES * Shape::ELEMENTS) {
            leave_to_next(first, ~0u >> (31 - (groups - 1 >> LOG_SOME)), log_groups);
            return;
        }
#pragma unroll 1
        for (u32 from = 0; from < groups;) {
            const u32 beyond = next_aside(from, groups);
            if (from < beyond)
                walk(from, beyond);
            from = beyond + 1;
        }
        if (rank == groups) {
            // Each segment has the slot of its number.
#pragma unroll 1
            for (u32 j = lane; j - lane < groups; j += 32)
                write(first, j, j < groups, j, ask);
        } else {
            rank = 0;
#pragma unroll 1
            for (u32 j = lane; j - lane < groups; j += 32) {
                const bool is_here = j < groups && room.bounds[j + 1] != room.bounds[j] && (room.aside[j / 32] >> j % 32 & 1) == 0;
                const u32 some = __ballot_sync(ALL_LANES, is_here);
                write(first, j, is_here, rank + __popc(some & ((1u << lane) - 1)), ask);
                rank += __popc(some);
            }
        }
        if (unsure != 0)
            leave_to_next(first, unsure, log_groups);
    }
};

// `ask` says what is asked of n elements.
template <class Part, class Ask>
__device__ __forceinline__ void reduce_tiles(const Segments &all, Ask ask)
{
    __shared__ TileRoom<Part> rooms[TILE_WARPS];
    const u32 warp = threadIdx.x / 32;
    const u64 first = (u64(blockIdx.x) * TILE_WARPS + warp) << all.log_groups;
    if (first >= all.count)
        return;
    const auto asked = ask(0);
    TileWalk<Part> walk = {all, rooms[warp], asked, threadIdx.x % 32};
    walk.reduce(first, u32(min(u64(1) << all.log_groups, all.count - first)), all.log_groups, ask);
}

// Begins a kernel: SEGMENT_TILES(tiles_name, blocks)(all) { ... }, for launches of which `blocks` fit a multiprocessor.
#define SEGMENT_TILES(name, blocks) \
    static __device__ __forceinline__ void reduce(const Segments &); \
    extern "C" __global__ void __launch_bounds__(TILE_THREADS, blocks) NAMED(segment_##name, ELEMENT)(const __grid_constant__ Segments all) \
    { \
        reduce(all); \
    } \
    static __device__ __forceinline__ void reduce
