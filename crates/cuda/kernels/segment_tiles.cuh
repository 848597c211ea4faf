// Segments by offsets: each begins where the one before it ends. Each warp has 2^log_groups of them and walks over their elements in
// tiles, so that a thread has as many elements as any other, whatever the lengths are.
//
// A tile is copied to shared memory while the one before it is taken. Each thread has some neighbouring elements of it. What takes them is
// tile_differences.cuh, for what can be subtracted, or tile_parts.cuh:
//
//     Item, Asked, Own              elements, what is asked of a segment, and what a warp has in shared memory besides
//     FILLS                         whether it takes what changes nothing in the place of NaNs that are omitted
//     begin()                       before the first tile of segments that follow each other
//     take(stage, tile, asked_of)   whether the segments of a tile that is there are exact so far; `asked_of` says what is asked of n elements
//     finish(asked_of)              after the last one
//
// A tile in which no segment ends is only added to what each thread has of the open one.
//
// Segments that are not exact, and warps that would have far more elements than others, are left to the launch that follows
// (segments.cuh), and so are long segments. No warp waits for another one.

#pragma once

#include "segments.cuh"

// A warp: one that has more to do than others keeps no other one waiting.
constexpr int TILE_THREADS = 32;
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
        return (thread * VECTORS + thread * VECTORS / 8 % VECTORS) ^ vector;
    }
    // Where the tile's v-th vector is: 32 vectors further on, 32 vectors further on.
    static __device__ __forceinline__ u32 place(u32 v) { return at(v / VECTORS, v % VECTORS); }
    static_assert(32 / 8 % VECTORS == 0, "the same exchange within 128 bytes");
};

// The largest and the smallest of the warp's words.
__device__ __forceinline__ u32 warp_max(u32 word)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(ALL_LANES, word);
#else
#pragma unroll
    for (u32 d = 16; d > 0; d /= 2)
        word = max(word, __shfl_xor_sync(ALL_LANES, word, d));
    return word;
#endif
}
__device__ __forceinline__ u32 warp_min(u32 word) { return ~warp_max(~word); }

// The elements [begin, end) of an array, seen from the aligned vector that the first one lies in.
template <class T>
struct TileRun {
    using Shape = TileShape<T>;
    const char *from;  // the thread's first vector of the next tile that is copied, and its number
    u32 next = 0;
    u32 base;          // the element of the array that the vector would begin with
    u32 before, total; // elements before `begin`, and with them up to `end`
    bool begins, ends; // whether all bytes of the first vector and of the last one are the array's
    u32 whole;         // tiles of which all bytes are, but for a first one of which they are not

    __device__ __forceinline__ TileRun(const Segments &all, u32 begin, u32 end)
    {
        const char *const data = all.data + u64(begin) * Shape::SIZE;
        before = u32(u64(data)) % 16 / Shape::SIZE;
        base = begin - before;
        const char *const first = data - before * Shape::SIZE;
        from = first + threadIdx.x * 16;
        total = before + (end - begin);
        begins = first >= all.data;
        ends = first + u64(vectors()) * 16 <= all.data + all.len * Shape::SIZE;
        const u32 tiles = (vectors() - !ends) / Shape::ALL;
        whole = tiles - min(u32(!begins), tiles);
    }
    __device__ __forceinline__ u32 vectors() const { return (total + Shape::V - 1) / Shape::V; }
    __device__ __forceinline__ u32 tiles() const { return (total + Shape::ELEMENTS - 1) / Shape::ELEMENTS; }

    // Begins to copy the next tile to where the thread's first vector is in shared memory.
    __device__ __forceinline__ void copy(const Segments &all, char *to)
    {
        if (next - !begins < whole) {
#pragma unroll
            for (u32 k = 0; k < Shape::VECTORS; ++k)
                copy_vector(to + 512 * k, from + 512 * k);
        } else {
            const u32 last = vectors() - 1;
#pragma unroll 1
            for (u32 k = 0; k < Shape::VECTORS; ++k) {
                const u32 vector = next * Shape::ALL + threadIdx.x + 32 * k;
                if (vector <= last && (vector > 0 || begins) && (vector < last || ends))
                    copy_vector(to + 512 * k, from + 512 * k);
                else if (vector <= last)
                    *reinterpret_cast<uint4 *>(to + 512 * k) = vector_at_end<T>(from + 512 * k, all.data, all.data + all.len * Shape::SIZE);
            }
        }
        ++next;
        from += 16 * Shape::ALL;
    }

    // Puts `fill` in the place of elements of a tile that are not of the run; the thread's own.
    __device__ __forceinline__ void clip(uint4 *stage, u32 tile, u64 fill) const
    {
        const u32 lane = threadIdx.x, from = tile == 0 ? before : 0, to = min(total - tile * Shape::ELEMENTS, Shape::ELEMENTS);
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

    // Puts `fill` in the place of NaNs; the thread's own.
    static __device__ __noinline__ void omit(uint4 *stage, u64 fill)
    {
        constexpr u32 SIZE = Shape::SIZE, WORDS = SIZE < 4 ? 1 : SIZE / 4, OF_ONE = SIZE < 4 ? 0xffff : ~0u;
        const u32 filled = Units<T, int(Shape::V)>::filled(typename Shape::Bits(fill)).x;
#pragma unroll 1
        for (u32 w = 0; w < Shape::VECTORS; ++w) {
            uint4 &vector = stage[Shape::at(threadIdx.x, w)];
            u32 words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
            for (u32 i = 0; i < Shape::V; ++i) {
                const u32 mask = Element<T>::is_nan(item<T>(vector, int(i))) ? OF_ONE << i * SIZE % 4 * 8 : 0;
#pragma unroll
                for (u32 of = i * SIZE / 4; of < i * SIZE / 4 + WORDS; ++of)
                    words[of] = (words[of] & ~mask) | (filled & mask);
            }
            vector = {words[0], words[1], words[2], words[3]};
        }
    }
};

// A tile of segments that follow each other.
struct Tile {
    u32 base;         // the element of the array that it begins with
    u32 from;         // its elements that come before the segments
    u32 next, beyond; // the first segment that ends in it or behind it, which `take` moves on, and the last one's next
};

// The segments of a warp.
template <class T>
struct TileSegments {
    using Shape = TileShape<T>;
    struct Room {
        uint4 stages[2][Shape::ALL];
        u32 bounds[TILE_GROUPS + 1];
        // Segments that are not for here, by bit.
        u32 aside[TILE_GROUPS / 32];
    };

    const Segments &all;
    Room &room;
    u64 first;
    u32 groups;
    u32 lane = threadIdx.x;
    u32 unsure = 0; // segments that are not answered, 2^LOG_SOME a bit

    // The tile's elements up to the end of a segment; more if that is not here.
    static __device__ __forceinline__ u32 end_of(const Room &room, u32 j, const Tile &tile)
    {
        return j < tile.beyond ? room.bounds[j + 1] - tile.base : ~0u;
    }
    static __device__ __forceinline__ bool has_end(const Room &room, const Tile &tile) { return end_of(room, tile.next, tile) <= Shape::ELEMENTS; }
    __device__ __forceinline__ u32 len(u32 j) const { return room.bounds[j + 1] - room.bounds[j]; }

    // Leaves segments to the next launch: `which` has a bit for each 2^LOG_SOME of them. Where many are, all are, together; but where they are
    // too long for that, apart.
    __device__ __forceinline__ void leave_to_next(u32 which, bool apart)
    {
        const u32 count = __popc(which), log_groups = all.log_groups;
        const bool is_whole = log_groups <= LOG_SOME || count > 2 && !apart;
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

    // Leaves where segments begin, and the last one ends, in shared memory; BEYOND where that is no element's number.
    static constexpr u32 BEYOND = ~0u;
    template <class Offset>
    __device__ __forceinline__ void load_bounds(Offset offset)
    {
        constexpr u32 AT_ONCE = 4;
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
    }

    // Finds the warp's segments. Returns the elements of those that are for here.
    __device__ __forceinline__ u32 find_all()
    {
        if (all.begins != nullptr && all.begin_width != WORD_64) {
            const u32 *const begins = static_cast<const u32 *>(all.begins) + first;
            const u32 most = u32(all.begin_width == SIGNED_32 ? min(all.len, u64(~0u >> 1)) : all.len);
            load_bounds([&](u32 j) { return begins[j] > most ? BEYOND : begins[j]; });
        } else {
            load_bounds([&](u32 j) -> u32 {
                const u64 at = all.begins == nullptr ? (first + j) * all.fixed : static_cast<const u64 *>(all.begins)[first + j];
                return at > all.len ? BEYOND : u32(at);
            });
        }
        if (lane < TILE_GROUPS / 32)
            room.aside[lane] = 0;
        __syncwarp();
        // Most have elements, and few enough.
        bool odd = false;
#pragma unroll 4
        for (u32 j = lane; j < groups; j += 32)
            odd = odd || len(j) - 1 >= all.most || room.bounds[j + 1] == BEYOND;
        return __any_sync(ALL_LANES, odd) ? dismiss_some() : room.bounds[groups] - room.bounds[0];
    }

    // Dismisses segments that are not for here, or have no elements.
    __device__ __forceinline__ u32 dismiss_some()
    {
        u32 elements = 0;
#pragma unroll 1
        for (u32 j = lane; j - lane < groups; j += 32) {
            const u32 begin = room.bounds[min(j, groups - 1)], end = room.bounds[min(j, groups - 1) + 1], len = end - begin;
            const bool is_bad = begin > end || end == BEYOND, is_short = !is_bad && len <= all.most;
            if (j < groups && (!is_short || len == 0))
                dismiss(all, first + j, {begin, len}, is_bad ? SegmentIs::BAD : is_short ? SegmentIs::EMPTY : SegmentIs::LONG);
            elements += j < groups && is_short ? len : 0;
            const u32 aside = __ballot_sync(ALL_LANES, j < groups && !is_short);
            if (lane == 0)
                room.aside[j / 32] = aside;
        }
#pragma unroll
        for (u32 d = 16; d > 0; d /= 2)
            elements += __shfl_xor_sync(ALL_LANES, elements, d);
        __syncwarp();
        return elements;
    }

    // The first segment from `from` on that is not for here, or `groups`.
    __device__ __forceinline__ u32 next_aside(u32 from) const
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
};

// Walks over segments [from, beyond) of the warp, which follow each other.
template <class Taker, class Ask>
__device__ __forceinline__ void walk_tiles(Taker &taker, u32 from, u32 beyond, Ask asked_of)
{
    using Shape = typename Taker::Shape;
    const Segments &all = taker.all;
    auto &room = taker.room;
    const u32 begin = room.bounds[from], end = room.bounds[beyond];
    if (begin == end)
        return;
    TileRun<typename Taker::Item> run(all, begin, end);
    const u32 tiles = run.tiles();
    Tile here = {run.base, run.before, from, beyond};
    const u64 fill = asked_of(0).fill();
    taker.begin();
    char *const to = reinterpret_cast<char *>(room.stages[0] + Shape::place(threadIdx.x));
    u32 which = 0;
    run.copy(all, to);
    end_copies();
#pragma unroll 1
    for (u32 tile = 0; tile < tiles; ++tile, which ^= Shape::ALL) {
        // The next one is on its way while this one is taken.
        if (tile + 1 < tiles)
            run.copy(all, to + 16 * (which ^ Shape::ALL));
        end_copies();
        wait_for_copies<1>();
        __syncwarp();
        uint4 *const stage = room.stages[0] + which;
        if (tile == 0 || tile + 1 == tiles)
            run.clip(stage, tile, fill);
        if constexpr (Taker::FILLS) {
            if (all.omits())
                run.omit(stage, fill);
        }
        const u32 next = here.next;
        if (!taker.take(stage, here, asked_of)) {
            const u32 last = min(here.next, beyond - 1) >> LOG_SOME;
            taker.unsure |= ~0u >> (31 - last) & ~0u << (next >> LOG_SOME);
        }
        here.base += Shape::ELEMENTS;
        here.from = 0;
        __syncwarp();
    }
}

template <class Taker, class Ask>
__device__ __forceinline__ void reduce_tiles(const Segments &all, Ask asked_of)
{
    __shared__ typename Taker::Room room;
    __shared__ typename Taker::Own own;
    const u64 first = u64(blockIdx.x) << all.log_groups;
    const u32 groups = u32(min(u64(1) << all.log_groups, all.count - first));
    Taker taker(all, room, own, first, groups);
    if (taker.find_all() > MOST_TILES * Taker::Shape::ELEMENTS) {
        taker.leave_to_next(~0u >> (31 - (groups - 1 >> LOG_SOME)), true);
        return;
    }
#pragma unroll 1
    for (u32 from = 0; from < groups;) {
        const u32 beyond = taker.next_aside(from);
        if (from < beyond)
            walk_tiles(taker, from, beyond, asked_of);
        from = beyond + 1;
    }
    taker.finish(asked_of);
    if (taker.unsure != 0)
        taker.leave_to_next(taker.unsure, false);
}

// Begins a kernel: SEGMENT_TILES(tiles_name, blocks)(all) { ... }, for launches of which `blocks` fit a multiprocessor.
#define SEGMENT_TILES(name, blocks) \
    static __device__ __forceinline__ void reduce(const Segments &); \
    extern "C" __global__ void __launch_bounds__(TILE_THREADS, blocks) NAMED(segment_##name, ELEMENT)(const __grid_constant__ Segments all) \
    { \
        reduce(all); \
    } \
    static __device__ __forceinline__ void reduce
