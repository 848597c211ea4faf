// Segments of an array: runs of elements of any lengths that may overlap, leave gaps and come in any order; each is an output.
//
// Two launches of one kernel do it. In the first one each block has 2^log_groups segments that follow each other:
//
//     short                    by 1 to 32 neighbouring threads, as many segments at once as the block's mean length asks for. What they
//                              have together is copied to shared memory where it fits, so that all loads are under way at once
//     up to `most` elements    by a warp: those of the block wait in a queue for its warps
//     more                     go to a list in global memory, in pieces of PIECE elements
//
// In the second one blocks have as many pieces of the list each, whosesoever they are. What a block has of a segment that others share
// it leaves as a partial, and the last one to count its pieces at the segment's ticket folds them. Accumulators are integers, so that
// neither the order of the list nor that of the blocks changes a bit.
//
// Accumulators are those of strided.cuh. There may be quick ones that know whether they are sure (quick_sum.cuh); segments of which they
// are not wait for a warp. A total that is lost is found once more by the whole block, in a superaccumulator.

#pragma once

#include "strided.cuh"

constexpr int SEGMENT_PIECE = 4096;
constexpr u32 SEGMENT_WARPS = STRIDED_THREADS / 32;
// What is copied to shared memory at once: vectors of each thread, and bytes.
constexpr int STAGED_VECTORS = 5, STAGE_BYTES = 16 * STAGED_VECTORS * STRIDED_THREADS;
// Elements that a thread takes of a short segment, at most; bytes of a mean segment for each of its threads.
constexpr u32 EACH = 64, BYTES_EACH = 64;
// Pieces are counted in the lower bits of a word, listed segments in the upper ones.
constexpr int PIECE_BITS = 36;

// How a boundary lies in memory: `Width` in crates/cuda/src/engine/segments.rs.
enum Boundary : u32 { UNSIGNED_32 = 0, SIGNED_32 = 1, WORD_64 = 2 };

// The parameters: crates/cuda/src/engine/segments.rs has the same struct.
struct Segments {
    const char *data;   // the first element of the array
    u64 len;            // its elements, fewer than 2^32
    const void *begins; // of each segment; null if all have `fixed` elements, one behind the other
    const void *ends;
    u64 fixed;
    u64 count;          // segments
    void *out;
    u64 *notes;         // ones before: the first segment that cannot be, and the first without elements
    u64 *counters;      // zero between launches: what is listed; blocks that are done; then a ticket for each listed segment
    u64 *list;          // of each listed segment the number of its first piece, and itself
    u64 *partials;      // what blocks leave of segments that they share: two for each block,
    u64 *wides;         // and the same in superaccumulators, where it was lost
    u32 *overflow;      // set when a total does not fit its type
    u64 none;           // the answer of no elements
    u64 initial;        // an element that takes part in each segment, behind its own
    u32 has_initial;
    u32 begin_width, end_width;
    u32 answer_size;    // bytes of an answer
    u32 ask, absolute;
    u32 log_groups, most;
    u32 phase;

    static __device__ __forceinline__ u64 boundary(const void *of, u32 width, u64 i)
    {
        if (width == WORD_64)
            return static_cast<const u64 *>(of)[i];
        const u32 word = static_cast<const u32 *>(of)[i];
        return width == SIGNED_32 ? u64(i64(i32(word))) : word;
    }
};

struct Span {
    u64 begin, len;
};

// Where a segment lies. Returns whether it lies within the array.
__device__ __forceinline__ bool find(const Segments &all, u64 i, Span &span)
{
    if (all.begins == nullptr) {
        span = {i * all.fixed, all.fixed};
        return true;
    }
    // Negative ones are beyond all arrays.
    const u64 begin = Segments::boundary(all.begins, all.begin_width, i), end = Segments::boundary(all.ends, all.end_width, i);
    span = {begin, end - begin};
    return begin <= end && end <= all.len;
}

// Of operations that have no quicker way for few elements.
struct NoQuick {};

template <class A, class B>
constexpr bool IS_SAME = false;
template <class A>
constexpr bool IS_SAME<A, A> = true;

// Gives an accumulator elements by the unit of V.
template <int V, class Acc, int N, class Number>
__device__ __forceinline__ void give(Acc &acc, const Elements<typename Acc::Bits, N> &some, Number number, const typename Acc::Asked &asked)
{
    if constexpr (Acc::SETTLES) {
        if (!acc.template take<V>(some.bits, number, asked))
            acc = Acc::settled(acc, some, asked);
    } else {
        acc.template take<V>(some.bits, number, asked);
    }
}

// The elements of a vector that a run has, which begins `ahead` elements behind the vector or before it; `fill` in the place of others.
template <class T, int V>
__device__ __forceinline__ uint4 keep(const uint4 &v, int ahead, int run, const uint4 &fill)
{
    if constexpr (V > 4) {
        return Units<T, V>::cut(v, ahead, run, fill);
    } else {
        // Words of an element are kept together.
        constexpr int WORDS = 4 / V;
        const auto word = [&](u32 of, u32 other, int w) { return u32(ahead + w / WORDS) < u32(run) ? of : other; };
        return {word(v.x, fill.x, 0), word(v.y, fill.y, 1), word(v.z, fill.z, 2), word(v.w, fill.w, 3)};
    }
}

// Takes elements [from, from + len) of a segment: those of every `lanes`-th vector, U vectors at once. The initial value comes with the
// first lane of a segment's beginning. Index counts the elements, and some more.
template <int U, class Index, class Acc>
__device__ __forceinline__ void take_span(Acc &acc, const Segments &all, const Span &segment, u64 from, Index len, u32 slot, u32 lanes,
    const typename Acc::Asked &asked)
{
    using Bits = typename Acc::Bits;
    constexpr int SIZE = sizeof(Bits), V = 16 / SIZE, ALL = U * V, N = ALL < Acc::MOST ? ALL : Acc::MOST;
    using Units = ::Units<typename Acc::Item, V>;
    static_assert(ALL % N == 0 && (N % V == 0 || V % N == 0), "whole units at once, or parts of one");
    const char *const data = all.data + (segment.begin + from) * SIZE, *const end = all.data + all.len * SIZE;
    const u32 before = u32(u64(data)) % 16 / SIZE;
    const char *const first = data - before * SIZE;
    const Index vectors = (before + len + V - 1) / V;
    const auto fill = Units::filled(Bits(asked.fill()));
#pragma unroll 1
    for (Index e = slot; e < vectors; e += U * lanes) {
        typename Units::Raw raw[U];
        const Index last = e + (U - 1) * lanes;
        if (e * V >= before && (last + 1) * V <= before + len) {
#pragma unroll
            for (int k = 0; k < U; ++k)
                raw[k] = Units::at(first + u64(e + k * lanes) * 16);
        } else {
#pragma unroll
            for (int k = 0; k < U; ++k) {
                const Index vector = e + k * lanes;
                const char *const at = first + u64(vector) * 16;
                raw[k] = fill;
                if (vector < vectors)
                    raw[k] = at >= all.data && at + 16 <= end ? Units::at(at) : vector_at_end<typename Acc::Item>(at, all.data, end);
            }
#pragma unroll
            for (int k = 0; k < U; ++k) {
                // Where the run begins, of the first vector, and what it has from there on, or from the vector on.
                const Index vector = e + k * lanes, ahead = vector * V;
                const bool is_first = vector == 0;
                const Index left = is_first ? len : before + len - ahead;
                const int run = vector < vectors ? int(left < Index(2 * V) ? left : Index(2 * V)) : 0;
                raw[k] = keep<typename Acc::Item, V>(raw[k], is_first ? -int(before) : 0, run, fill);
            }
        }
#pragma unroll
        for (int part = 0; part < ALL; part += N) {
            Elements<Bits, N> some;
#pragma unroll
            for (int i = 0; i < N; ++i)
                some.bits[i] = Units::item(raw[(part + i) / V], (part + i) % V);
            const auto number = [&](int unit, int i) { return from + u64(e + (part / V + unit) * lanes) * V + (part % V + i) - before; };
            give<V>(acc, some, number, asked);
        }
    }
    if (all.has_initial && from == 0 && slot == 0) {
        Elements<Bits, 1> one;
        one.bits[0] = Bits(all.initial);
        const auto number = [&](int, int) { return segment.len; };
        give<1>(acc, one, number, asked);
    }
}

// The same as a function, for any number of elements.
template <class Acc>
__device__ __noinline__ Acc taken(const Segments &all, Span segment, u64 from, u64 len, u32 slot, u32 lanes, const typename Acc::Asked asked)
{
    Acc acc;
    take_span<sizeof(typename Acc::Bits) < 4 ? 2 : VECTORS_AT_ONCE, u64>(acc, all, segment, from, len, slot, lanes, asked);
    return acc;
}

// Folds what 2^k neighbouring threads have; all threads of the warp call it.
template <class Acc>
__device__ __forceinline__ void fold_neighbours(Acc &acc, u32 lanes)
{
#pragma unroll 1
    for (u32 d = lanes / 2; d > 0; d /= 2)
        acc.merge(from_lane(acc, d));
}

// What is long, as functions of their own, which keep the walk small; what fills many registers would go there by way of memory.
template <class Acc>
__device__ __noinline__ Acc folded_apart(Acc acc)
{
    fold_neighbours(acc, 32);
    return acc;
}
template <class Acc>
__device__ __forceinline__ Acc folded_warp(Acc acc)
{
    if constexpr (Acc::WORDS <= MOST_PASSED)
        return folded_apart(acc);
    fold_neighbours(acc, 32);
    return acc;
}
template <class Acc>
__device__ __noinline__ void write_apart(Acc acc, void *out, u64 i, const typename Acc::Asked asked)
{
    acc.write(out, i, asked);
}
template <class Acc>
__device__ __forceinline__ void write_answer(Acc &acc, void *out, u64 i, const typename Acc::Asked &asked)
{
    if constexpr (Acc::WORDS <= MOST_PASSED)
        write_apart(acc, out, i, asked);
    else
        acc.write(out, i, asked);
}
template <class Acc>
__device__ __noinline__ void write_words(const u64 *words, void *out, u64 i, const typename Acc::Asked asked)
{
    Acc::write_wides([&](int w) { return words[w]; }, out, i, asked);
}

// Folds what all threads of the block have: the first one has all of it then. Between two calls there must be a barrier.
template <class Acc>
__device__ __forceinline__ Acc fold_threads(Acc acc)
{
    __shared__ u64 slots[Acc::WORDS][SEGMENT_WARPS];
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    acc = folded_warp(acc);
    if (lane == 0) {
#pragma unroll
        for (int w = 0; w < Acc::WORDS; ++w)
            slots[w][warp] = acc.word(w);
    }
    __syncthreads();
    Acc all;
    if (threadIdx.x == 0) {
#pragma unroll 1
        for (u32 i = 0; i < SEGMENT_WARPS; ++i) {
            u64 words[Acc::WORDS];
#pragma unroll
            for (int w = 0; w < Acc::WORDS; ++w)
                words[w] = slots[w][i];
            all.merge(Acc(Acc::of_words(words)));
        }
    }
    __syncthreads();
    return all;
}

// Superaccumulators of a block, and their words.
template <class Acc, bool MAY_BE_LOST = Acc::MAY_BE_LOST>
struct BlockWides {};
template <class Acc>
struct BlockWides<Acc, true> {
    typename Acc::Wides wides;
    u64 words[Acc::WIDE_WORDS];
};

// Adds elements of a segment to superaccumulators and leaves their words; all threads of the block call it.
template <class Acc>
__device__ __noinline__ void absorb_span(BlockWides<Acc> &block, const Segments &all, Span segment, u64 from, u64 len,
    const typename Acc::Asked asked)
{
    using Bits = typename Acc::Bits;
    typename Acc::Wides &wides = block.wides;
    __syncthreads();
    wides.clear();
    __syncthreads();
    const Bits *const items = reinterpret_cast<const Bits *>(all.data) + segment.begin + from;
#pragma unroll 1
    for (u64 e = threadIdx.x; e < len; e += STRIDED_THREADS)
        Acc::absorb(wides, items[e], asked);
    if (all.has_initial && from == 0 && threadIdx.x == 0)
        Acc::absorb(wides, Bits(all.initial), asked);
    __syncthreads();
    for (u32 w = threadIdx.x; w < Acc::WIDE_WORDS; w += STRIDED_THREADS)
        block.words[w] = Acc::entry(wides, w);
    __syncthreads();
}

// The answer of no elements.
__device__ __forceinline__ void write_none(const Segments &all, u64 i)
{
    switch (all.answer_size) {
    case 1: static_cast<u8 *>(all.out)[i] = u8(all.none); return;
    case 2: static_cast<u16 *>(all.out)[i] = u16(all.none); return;
    case 4: static_cast<u32 *>(all.out)[i] = u32(all.none); return;
    default: static_cast<u64 *>(all.out)[i] = all.none;
    }
}

// Segments of a block that wait, by their number in it.
struct SegmentQueue {
    u32 count, taken;
    u32 which[STRIDED_THREADS];

    __device__ __forceinline__ void clear() { count = taken = 0; }
    __device__ __forceinline__ void push(u32 group) { which[atomicAdd(&count, 1u)] = group; }
};

// Those that cannot be or have no elements are done with here, and long ones listed. Returns whether elements are to be taken in.
__device__ __forceinline__ bool is_here(const Segments &all, u64 i, Span &span, bool speaks, u32 group, u32 &first_empty)
{
    if (!find(all, i, span)) {
        if (speaks)
            atomicMin(&all.notes[0], i);
        return false;
    }
    if (span.len == 0 && !all.has_initial) {
        if (speaks) {
            write_none(all, i);
            atomicMin(&first_empty, group);
        }
        return false;
    }
    if (span.len > all.most) {
        if (speaks) {
            const u64 pieces = (span.len + SEGMENT_PIECE - 1) / SEGMENT_PIECE;
            const u64 before = atomicAdd(&all.counters[0], u64(1) << PIECE_BITS | pieces);
            u64 *const entry = all.list + 2 * (before >> PIECE_BITS);
            entry[0] = before & ((u64(1) << PIECE_BITS) - 1);
            entry[1] = i;
        }
        return false;
    }
    return true;
}

// Writes an answer, or queues a segment whose total is lost.
template <class Acc>
__device__ __forceinline__ void write_or_push(Acc &acc, const Segments &all, u64 i, u32 group, SegmentQueue &lost, const typename Acc::Asked &asked)
{
    if constexpr (Acc::MAY_BE_LOST) {
        if (acc.is_lost()) {
            lost.push(group);
            return;
        }
    }
    write_answer(acc, all.out, i, asked);
}

// Takes the elements of a segment that are copied to shared memory.
template <class Acc>
__device__ __forceinline__ void take_copy(Acc &acc, const Segments &all, const typename Acc::Bits *items, u32 len, u32 slot, u32 lanes,
    const typename Acc::Asked &asked)
{
    using Bits = typename Acc::Bits;
    constexpr int N = Acc::MOST < 8 ? Acc::MOST : 8;
#pragma unroll 1
    for (u32 e = slot; e < len; e += N * lanes) {
        Elements<Bits, N> some;
#pragma unroll
        for (int k = 0; k < N; ++k)
            some.bits[k] = e + k * lanes < len ? items[e + k * lanes] : Bits(asked.fill());
        give<1>(acc, some, [&](int unit, int) { return u64(e + unit * lanes); }, asked);
    }
    if (all.has_initial && slot == 0) {
        Elements<Bits, 1> one;
        one.bits[0] = Bits(all.initial);
        give<1>(acc, one, [&](int, int) { return u64(len); }, asked);
    }
}
template <class Acc>
__device__ __noinline__ Acc taken_of_copy(const Segments &all, const typename Acc::Bits *items, u32 len, u32 slot, u32 lanes,
    const typename Acc::Asked asked)
{
    Acc acc;
    take_copy(acc, all, items, len, slot, lanes, asked);
    return acc;
}

// Copies elements to shared memory, as the aligned vectors that they lie in; all threads of the block call it. Returns the first one's
// place there.
template <class T>
__device__ __forceinline__ const char *copy_elements(char *stage, const Segments &all, u64 begin, u32 len)
{
    constexpr u32 SIZE = sizeof(typename Element<T>::Bits);
    const char *const data = all.data + begin * SIZE, *const end = all.data + all.len * SIZE;
    const u32 before = u32(u64(data)) % 16, vectors = (before + len * SIZE + 15) / 16;
    const char *const first = data - before;
    const auto is_inside = [&](u32 v) { return first + 16 * v >= all.data && first + 16 * v + 16 <= end; };
    uint4 vector[STAGED_VECTORS];
#pragma unroll
    for (int k = 0; k < STAGED_VECTORS; ++k) {
        const u32 v = threadIdx.x + k * STRIDED_THREADS;
        if (v < vectors && is_inside(v))
            vector[k] = *reinterpret_cast<const uint4 *>(first + 16 * v);
    }
#pragma unroll
    for (int k = 0; k < STAGED_VECTORS; ++k) {
        const u32 v = threadIdx.x + k * STRIDED_THREADS;
        if (v < vectors && is_inside(v))
            *reinterpret_cast<uint4 *>(stage + 16 * v) = vector[k];
    }
    // Of the whole array the first vector and the last one may lie partly outside.
#pragma unroll 1
    for (u32 v = threadIdx.x; v < vectors; v += STRIDED_THREADS) {
        if (!is_inside(v))
            *reinterpret_cast<uint4 *>(stage + 16 * v) = vector_at_end<T>(first + 16 * v, all.data, end);
    }
    return stage + before;
}

// The segments that waited, each by a warp. Those whose totals are lost are queued.
template <class Acc, class Quick, class Ask>
__device__ __forceinline__ void take_waiting(const Segments &all, SegmentQueue &waiting, SegmentQueue &lost, u64 first, Ask ask)
{
    using Bits = typename Acc::Bits;
    const u32 lane = threadIdx.x % 32;
    while (true) {
        u32 w = 0;
        if (lane == 0)
            w = atomicAdd(&waiting.taken, 1u);
        w = __shfl_sync(ALL_LANES, w, 0);
        if (w >= waiting.count)
            return;
        const u32 group = waiting.which[w];
        const u64 i = first + group;
        Span span;
        find(all, i, span);
        const auto asked = ask(span.len + all.has_initial);
        if constexpr (!IS_SAME<Quick, NoQuick>) {
            Quick quick = taken<Quick>(all, span, 0, span.len, lane, 32, asked);
            __syncwarp();
            fold_neighbours(quick, 32);
            Bits answer;
            if (__all_sync(ALL_LANES, quick.answer(answer, asked))) {
                if (lane == 0)
                    static_cast<Bits *>(all.out)[i] = answer;
                continue;
            }
        }
        Acc acc = taken<Acc>(all, span, 0, span.len, lane, 32, asked);
        __syncwarp();
        acc = folded_warp(acc);
        if (lane == 0)
            write_or_push(acc, all, i, group, lost, asked);
        __syncwarp();
    }
}

// What a block knows of its segments.
struct BlockSegments {
    static constexpr u32 DONE = ~0u;
    // Where each begins and ends, and its elements: DONE if there is nothing to do here.
    u64 begin[STRIDED_THREADS], end[STRIDED_THREADS];
    u32 len[STRIDED_THREADS];
    u32 first_empty;
    // How many are to be done, and their elements.
    u32 count, elements;

    // Finds them; all threads of the block call it.
    __device__ __forceinline__ void find_all(const Segments &all, u64 first, u32 groups)
    {
        const u32 group = threadIdx.x;
        if (group == 0) {
            first_empty = ~0u;
            count = elements = 0;
        }
        __syncthreads();
        u32 its = DONE;
        if (group < groups) {
            Span span = {};
            if (first + group < all.count && is_here(all, first + group, span, true, group, first_empty))
                its = u32(span.len);
            begin[group] = span.begin;
            end[group] = span.begin + span.len;
            len[group] = its;
        }
        u32 some = its == DONE ? 0 : its;
#pragma unroll
        for (u32 d = 16; d > 0; d /= 2)
            some += __shfl_xor_sync(ALL_LANES, some, d);
        const u32 how_many = __popc(__ballot_sync(ALL_LANES, its != DONE));
        if (threadIdx.x % 32 == 0 && how_many != 0) {
            atomicAdd(&count, how_many);
            atomicAdd(&elements, some);
        }
        __syncthreads();
        // One for a block: the same word is slow for many.
        if (group == 0 && first_empty != ~0u)
            atomicMin(&all.notes[1], first + first_empty);
    }

    // The threads of a segment: 2 to the power of this, for elements of so many bytes.
    __device__ __forceinline__ u32 log_lanes(u32 log_groups, u32 size) const
    {
        const u32 bytes = elements * size / max(count, 1u);
        u32 log = 0;
        while (log < 4 && bytes > BYTES_EACH << log)
            ++log;
        constexpr u32 LOG_THREADS = 8;
        static_assert(STRIDED_THREADS == 1 << LOG_THREADS, "all threads have segments");
        return max(log, LOG_THREADS - log_groups);
    }
};

// What blocks have in shared memory for segments that are not long; the same for all accumulators of a kernel.
struct SegmentRoom {
    SegmentQueue waiting, lost;
    BlockSegments here;
    alignas(16) char stage[STAGE_BYTES];
};
__device__ __forceinline__ SegmentRoom &segment_room()
{
    __shared__ SegmentRoom room;
    return room;
}

// Each segment that is not long.
template <class Acc, class Quick, class Ask>
__device__ __forceinline__ void reduce_short(const Segments &all, BlockWides<Acc> &block, Ask ask)
{
    using Bits = typename Acc::Bits;
    constexpr bool HAS_QUICK = !IS_SAME<Quick, NoQuick>;
    SegmentRoom &room = segment_room();
    SegmentQueue &waiting = room.waiting, &lost = room.lost;
    BlockSegments &here = room.here;
    const u32 groups = 1u << all.log_groups;
    const u64 first = u64(blockIdx.x) << all.log_groups;
    if (threadIdx.x == 0) {
        waiting.clear();
        lost.clear();
    }
    here.find_all(all, first, groups);
    const u32 log = here.log_lanes(all.log_groups, sizeof(Bits)), lanes = 1u << log, slot = threadIdx.x & (lanes - 1);
#pragma unroll 1
    for (u32 base = 0; base < groups && first + base < all.count; base += STRIDED_THREADS >> log) {
        const u32 group = base + (threadIdx.x >> log);
        const u32 last = u32(min(u64(base + (STRIDED_THREADS >> log)), all.count - first)) - 1;
        const u32 len = here.len[group];
        const u64 i = first + group, begin = here.begin[group], from = here.begin[base], to = here.end[last];
        bool mine = len != BlockSegments::DONE;
        if (mine && len > EACH << log) {
            if (slot == 0)
                waiting.push(group);
            mine = false;
        }
        // Boundaries may descend.
        const bool fits = from <= to && (to - from) * sizeof(Bits) <= STAGE_BYTES - 16;
        const bool is_copied = __syncthreads_and(fits && (!mine || (begin >= from && begin + len <= to)));
        const Bits *items = nullptr;
        if (is_copied) {
            items = reinterpret_cast<const Bits *>(copy_elements<typename Acc::Item>(room.stage, all, from, u32(to - from)) + (begin - from) * sizeof(Bits));
            __syncthreads();
        }
        const auto asked = ask(u64(len) + all.has_initial);
        if constexpr (HAS_QUICK) {
            Quick quick;
            if (mine) {
                if (is_copied)
                    take_copy(quick, all, items, len, slot, lanes, asked);
                else
                    quick = taken<Quick>(all, {begin, len}, 0, len, slot, lanes, asked);
            }
            __syncwarp();
            fold_neighbours(quick, lanes);
            if (mine && slot == 0) {
                Bits answer;
                if (quick.answer(answer, asked))
                    static_cast<Bits *>(all.out)[i] = answer;
                else
                    waiting.push(group);
            }
        } else {
            Acc acc;
            if (mine) {
                if (is_copied)
                    acc = taken_of_copy<Acc>(all, items, len, slot, lanes, asked);
                else
                    acc = taken<Acc>(all, {begin, len}, 0, len, slot, lanes, asked);
            }
            __syncwarp();
            fold_neighbours(acc, lanes);
            if (mine && slot == 0)
                write_or_push(acc, all, i, group, lost, asked);
        }
    }
    __syncthreads();
    take_waiting<Acc, Quick>(all, waiting, lost, first, ask);
    if constexpr (Acc::MAY_BE_LOST) {
        __syncthreads();
#pragma unroll 1
        for (u32 w = 0; w < lost.count; ++w) {
            const u64 its = first + lost.which[w];
            Span span;
            find(all, its, span);
            const auto asked = ask(span.len + all.has_initial);
            absorb_span<Acc>(block, all, span, 0, span.len, asked);
            if (threadIdx.x == 0)
                write_words<Acc>(block.words, all.out, its, asked);
        }
    }
}

// The pieces of a block: as many as others have.
struct Pieces {
    u64 total;
    u32 blocks;

    __device__ __forceinline__ u64 first(u32 block) const { return total * block / blocks; }
    __device__ __forceinline__ u32 block_of(u64 piece) const { return u32(((piece + 1) * blocks - 1) / total); }
};

// What a block has of a listed segment: pieces [from, to) of `pieces`, the first of which is piece `start` of the list.
struct Run {
    u64 start, from, to, pieces;

    __device__ __forceinline__ bool is_whole() const { return from == 0 && to == pieces; }
    // A block shares one segment with those before it, and one that begins there with those behind.
    __device__ __forceinline__ u32 slot(u32 block) const { return 2 * block + (from == 0); }
};

template <class Acc>
__device__ __forceinline__ Acc left_at(const Segments &all, u32 slot)
{
    u64 words[Acc::WORDS];
#pragma unroll
    for (int w = 0; w < Acc::WORDS; ++w)
        words[w] = __ldcg(all.partials + u64(slot) * Acc::WORDS + w);
    return Acc(Acc::of_words(words));
}

// Calls `take` with the slots in which blocks have left parts of a listed segment, a thread with some of them.
template <class Take>
__device__ __forceinline__ void each_left(const Pieces &pieces, const Run &run, Take take)
{
    const u32 first = pieces.block_of(run.start), last = pieces.block_of(run.start + run.pieces - 1);
#pragma unroll 1
    for (u32 b = first + threadIdx.x; b <= last; b += STRIDED_THREADS) {
        if (pieces.first(b) < pieces.first(b + 1))
            take(2 * b + (b == first));
    }
}

// The end of a listed segment, by the last block that has had a part of it.
template <class Acc>
__device__ __forceinline__ void finish_shared(const Segments &all, BlockWides<Acc> &block, const Pieces &pieces, const Run &run, u64 segment,
    const typename Acc::Asked &asked)
{
    Acc acc;
    each_left(pieces, run, [&](u32 slot) { acc.merge(left_at<Acc>(all, slot)); });
    __syncwarp();
    acc = fold_threads(acc);
    if constexpr (Acc::MAY_BE_LOST) {
        if (__syncthreads_or(threadIdx.x == 0 && acc.is_lost())) {
            block.wides.clear();
            __syncthreads();
            each_left(pieces, run, [&](u32 slot) {
                const Acc left = left_at<Acc>(all, slot);
                if (!left.is_lost())
                    left.deposit(block.wides);
            });
            __syncthreads();
            const u32 first = pieces.block_of(run.start), last = pieces.block_of(run.start + run.pieces - 1);
            for (u32 w = threadIdx.x; w < Acc::WIDE_WORDS; w += STRIDED_THREADS) {
                u64 sum = Acc::entry(block.wides, w);
#pragma unroll 1
                for (u32 b = first; b <= last; ++b) {
                    const u32 slot = 2 * b + (b == first);
                    if (pieces.first(b) < pieces.first(b + 1) && left_at<Acc>(all, slot).is_lost())
                        sum += __ldcg(all.wides + u64(slot) * Acc::WIDE_WORDS + w);
                }
                block.words[w] = sum;
            }
            __syncthreads();
            if (threadIdx.x == 0)
                write_words<Acc>(block.words, all.out, segment, asked);
            __syncthreads();
            return;
        }
    }
    if (threadIdx.x == 0)
        write_answer(acc, all.out, segment, asked);
}

// What a block has of a listed segment.
template <class Acc>
__device__ __forceinline__ void reduce_run(const Segments &all, BlockWides<Acc> &block, const Pieces &pieces, const Run &run, u64 entry, u64 segment, const Span &span,
    const typename Acc::Asked &asked)
{
    const u64 from = run.from * SEGMENT_PIECE, len = min(run.to * SEGMENT_PIECE, span.len) - from;
    Acc acc = taken<Acc>(all, span, from, len, threadIdx.x, STRIDED_THREADS, asked);
    __syncwarp();
    acc = fold_threads(acc);
    bool is_lost = false;
    const u32 slot = run.slot(blockIdx.x);
    if constexpr (Acc::MAY_BE_LOST) {
        is_lost = __syncthreads_or(threadIdx.x == 0 && acc.is_lost());
        if (is_lost) {
            absorb_span<Acc>(block, all, span, from, len, asked);
            if (run.is_whole()) {
                if (threadIdx.x == 0)
                    write_words<Acc>(block.words, all.out, segment, asked);
            } else {
                for (u32 w = threadIdx.x; w < Acc::WIDE_WORDS; w += STRIDED_THREADS)
                    all.wides[u64(slot) * Acc::WIDE_WORDS + w] = block.words[w];
            }
        }
    }
    if (run.is_whole()) {
        if (threadIdx.x == 0 && !is_lost)
            write_answer(acc, all.out, segment, asked);
        return;
    }
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
#pragma unroll
        for (int w = 0; w < Acc::WORDS; ++w)
            all.partials[u64(slot) * Acc::WORDS + w] = acc.word(w);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        // What the block has written is there before its pieces are counted, and what others have is read after theirs.
        __threadfence();
        u64 *const ticket = all.counters + 2 + entry;
        const u64 mine = run.to - run.from;
        is_last = atomicAdd(ticket, mine) + mine == run.pieces;
        __threadfence();
        if (is_last)
            *ticket = 0;
    }
    __syncthreads();
    if (is_last)
        finish_shared<Acc>(all, block, pieces, run, segment, asked);
}

// The listed segments.
template <class Acc, class Ask>
__device__ __forceinline__ void reduce_long(const Segments &all, BlockWides<Acc> &block, Ask ask)
{
    const u64 listed = __ldcg(&all.counters[0]), entries = listed >> PIECE_BITS;
    const Pieces pieces = {listed & ((u64(1) << PIECE_BITS) - 1), gridDim.x};
    u64 piece = pieces.first(blockIdx.x);
    const u64 last = pieces.first(blockIdx.x + 1);
    // The last entry that begins no later than the block.
    u64 entry = 0, beyond = entries;
#pragma unroll 1
    while (piece < last && beyond - entry > 1) {
        const u64 middle = (entry + beyond) / 2;
        if (all.list[2 * middle] <= piece)
            entry = middle;
        else
            beyond = middle;
    }
#pragma unroll 1
    for (; piece < last; ++entry) {
        const u64 start = all.list[2 * entry], segment = all.list[2 * entry + 1];
        Span span;
        find(all, segment, span);
        const u64 count = (span.len + SEGMENT_PIECE - 1) / SEGMENT_PIECE;
        const Run run = {start, piece - start, min(last - start, count), count};
        reduce_run<Acc>(all, block, pieces, run, entry, segment, span, ask(span.len + all.has_initial));
        piece = start + run.to;
        __syncthreads();
    }
    // The last block leaves the counters as they were. All have read them.
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        const bool is_last = atomicInc(reinterpret_cast<u32 *>(&all.counters[1]), gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
        if (is_last)
            all.counters[0] = 0;
    }
}

// `ask` says what is asked of n elements.
template <class Acc, class Quick = NoQuick, class Ask>
__device__ __forceinline__ void reduce_segments(const Segments &all, Ask ask)
{
    __shared__ BlockWides<Acc> block;
    if (all.phase == 0)
        reduce_short<Acc, Quick>(all, block, ask);
    else
        reduce_long<Acc>(all, block, ask);
}

// Begins a kernel: SEGMENTS(name, blocks)(all) { ... }, for launches of which `blocks` fit a multiprocessor.
#define SEGMENTS(name, blocks) \
    static __device__ __forceinline__ void reduce(const Segments &); \
    extern "C" __global__ void __launch_bounds__(STRIDED_THREADS, blocks) NAMED(segments_##name, ELEMENT)(const __grid_constant__ Segments all) \
    { \
        reduce(all); \
    } \
    static __device__ __forceinline__ void reduce
