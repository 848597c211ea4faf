// Segments of an array: runs of elements of any lengths that may overlap, leave gaps and come in any order; each is an output.
//
// Two launches do it. In the first one each block has 2^log_groups segments that follow each other:
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
// Where segments follow each other in memory another kernel may take the place of the first launch (segment_tiles.cuh). What it cannot
// answer it leaves as a list of segments, which the second launch takes first.
//
// Accumulators are those of strided.cuh. There may be quick ones that know whether they are sure (quick_sum.cuh); the threads of a segment of
// which they are not take it once more. A total that is lost is found by the whole block, in a superaccumulator.

#pragma once

#include "strided.cuh"

constexpr int SEGMENT_PIECE = 4096;
constexpr u32 SEGMENT_WARPS = STRIDED_THREADS / 32;
// The most segments of a block.
constexpr int LOG_GROUPS = 9, MOST_GROUPS = 1 << LOG_GROUPS;
// What is copied to shared memory at once: vectors of each thread, and bytes.
constexpr int STAGED_VECTORS = 3, STAGE_BYTES = 16 * STAGED_VECTORS * STRIDED_THREADS;
// Elements that a thread takes of a short segment, at most; bytes of a mean segment for each of its threads.
constexpr u32 EACH = 64, BYTES_EACH = 32;
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
    u64 *counters;      // zero between launches: those of SegmentCounter; then a ticket for each listed segment
    u64 *list;          // of each listed segment the number of its first piece, and itself
    u64 *partials;      // what blocks leave of segments that they share: two for each block,
    u64 *wides;         // and the same in superaccumulators, where it was lost
    u64 *again;         // segments that are to be done once more: the first of some, and log2 of how many in the upper bits
    u32 *overflow;      // set when a segment has no answer: it cannot be, has no elements where some are needed, or its total does not fit
    u64 none;           // the answer of no elements
    u64 initial;        // an element that takes part in each segment, behind its own
    u32 has_initial;
    u32 begin_width, end_width;
    u32 answer_size;    // bytes of an answer
    u32 ask, flags;     // those of Layout
    u32 log_groups, most;
    u32 phase;
    u32 needs_elements;

    __device__ __forceinline__ bool is_absolute() const { return (flags & ABSOLUTE) != 0; }
    __device__ __forceinline__ bool omits() const { return (flags & OMITS) != 0; }

    // The word may be in the host's memory, where an atomic operation takes a microsecond.
    __device__ __forceinline__ void tell() const { *static_cast<volatile u32 *>(overflow) = 1; }

    static __device__ __forceinline__ u64 boundary(const void *of, u32 width, u64 i)
    {
        if (width == WORD_64)
            return static_cast<const u64 *>(of)[i];
        const u32 word = static_cast<const u32 *>(of)[i];
        return width == SIGNED_32 ? u64(i64(i32(word))) : word;
    }
};

// What launches count: listed segments and pieces; blocks that are done; runs of segments that are to be done once more, and are taken.
enum SegmentCounter : u32 { LISTED = 0, BLOCKS_DONE = 1, AGAIN = 2, AGAIN_TAKEN = 3, FIRST_TICKET = 4 };
constexpr int AGAIN_LOG = 40;

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
            if (all.omits())
                omit(acc, some.bits, Bits(asked.fill()));
            const auto number = [&](int unit, int i) { return from + u64(e + (part / V + unit) * lanes) * V + (part % V + i) - before; };
            give<V>(acc, some, number, asked);
        }
    }
    if (all.has_initial && from == 0 && slot == 0) {
        Elements<Bits, 1> one;
        one.bits[0] = Bits(all.initial);
        if (all.omits())
            omit(acc, one.bits, Bits(asked.fill()));
        const auto number = [&](int, int) { return segment.len; };
        give<1>(acc, one, number, asked);
    }
}

// The same as a function, for any number of elements.
template <class Acc>
__device__ __noinline__ Acc taken(const Segments &all, Span segment, u64 from, u64 len, u32 slot, u32 lanes, const typename Acc::Asked asked)
{
    Acc acc;
    take_span<VECTORS_AT_ONCE, u64>(acc, all, segment, from, len, slot, lanes, asked);
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

// What 2^k neighbouring threads have omitted together, of accumulators whose words do not say it; all threads of the warp call it.
__device__ __forceinline__ u32 omitted_together(u32 missing, u32 lanes)
{
#pragma unroll 1
    for (u32 d = lanes / 2; d > 0; d /= 2)
        missing += __shfl_xor_sync(ALL_LANES, missing, d);
    return missing;
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
// Writes an answer; returns whether it is known.
template <class Acc>
__device__ __forceinline__ bool write_if_known(Acc &acc, void *out, u64 i, const typename Acc::Asked &asked)
{
    if constexpr (Acc::MAY_BE_LOST)
        return acc.write(out, i, asked);
    acc.write(out, i, asked);
    return true;
}
template <class Acc>
__device__ __noinline__ bool write_apart(Acc acc, void *out, u64 i, const typename Acc::Asked asked)
{
    return write_if_known(acc, out, i, asked);
}
template <class Acc>
__device__ __forceinline__ bool write_answer(Acc &acc, void *out, u64 i, const typename Acc::Asked &asked)
{
    if constexpr (Acc::WORDS <= MOST_PASSED)
        return write_apart(acc, out, i, asked);
    return write_if_known(acc, out, i, asked);
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
    u32 missing; // NaNs among the elements that are as if they were not there
};
template <class Acc>
__device__ __noinline__ void write_words(const BlockWides<Acc> &block, void *out, u64 i, const typename Acc::Asked asked)
{
    Acc::write_wides([&](int w) { return block.words[w]; }, out, i, without(asked, block.missing));
}

// Adds elements of a segment to superaccumulators and leaves their words; all threads of the block call it.
template <class Acc>
__device__ __noinline__ void absorb_span(BlockWides<Acc> &block, const Segments &all, Span segment, u64 from, u64 len,
    const typename Acc::Asked asked)
{
    using Bits = typename Acc::Bits;
    typename Acc::Wides &wides = block.wides;
    __syncthreads();
    wides.clear();
    if (threadIdx.x == 0)
        block.missing = 0;
    __syncthreads();
    const Bits *const items = reinterpret_cast<const Bits *>(all.data) + segment.begin + from;
    u32 missing = 0;
    const auto absorb = [&](Bits bits) {
        if (all.omits() && Element<typename Acc::Item>::is_nan(bits))
            ++missing;
        else
            Acc::absorb(wides, bits, asked);
    };
#pragma unroll 1
    for (u64 e = threadIdx.x; e < len; e += STRIDED_THREADS)
        absorb(items[e]);
    if (all.has_initial && from == 0 && threadIdx.x == 0)
        absorb(Bits(all.initial));
    if (missing != 0)
        atomicAdd(&block.missing, missing);
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
    u16 which[MOST_GROUPS];

    __device__ __forceinline__ void clear() { count = taken = 0; }
    __device__ __forceinline__ void push(u32 group) { which[atomicAdd(&count, 1u)] = u16(group); }
};

// What a segment is: one that does not lie within the array, or has no elements where these are needed, or is for the second launch.
enum class SegmentIs : u32 { SHORT, BAD, EMPTY, LONG };
__device__ __forceinline__ SegmentIs what_is(const Segments &all, u64 i, Span &span)
{
    if (!find(all, i, span))
        return SegmentIs::BAD;
    if (span.len == 0 && !all.has_initial)
        return SegmentIs::EMPTY;
    return span.len > all.most ? SegmentIs::LONG : SegmentIs::SHORT;
}

// What is done at once with a segment that is not short, by one thread.
__device__ __forceinline__ void dismiss(const Segments &all, u64 i, const Span &span, SegmentIs is)
{
    if (is == SegmentIs::BAD) {
        all.tell();
    } else if (is == SegmentIs::EMPTY) {
        if (all.needs_elements)
            all.tell();
        write_none(all, i);
    } else if (is == SegmentIs::LONG) {
        const u64 pieces = (span.len + SEGMENT_PIECE - 1) / SEGMENT_PIECE;
        const u64 before = atomicAdd(&all.counters[LISTED], u64(1) << PIECE_BITS | pieces);
        u64 *const entry = all.list + 2 * (before >> PIECE_BITS);
        entry[0] = before & ((u64(1) << PIECE_BITS) - 1);
        entry[1] = i;
    }
}

// Writes an answer, or queues a segment whose total is lost.
template <class Acc>
__device__ __forceinline__ void write_or_push(Acc &acc, const Segments &all, u64 i, u32 group, SegmentQueue &lost, const typename Acc::Asked &asked)
{
    const bool is_known = write_answer(acc, all.out, i, asked);
    if constexpr (Acc::MAY_BE_LOST) {
        if (!is_known)
            lost.push(group);
    }
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
        if (all.omits())
            omit(acc, some.bits, Bits(asked.fill()));
        give<1>(acc, some, [&](int unit, int) { return u64(e + unit * lanes); }, asked);
    }
    if (all.has_initial && slot == 0) {
        Elements<Bits, 1> one;
        one.bits[0] = Bits(all.initial);
        if (all.omits())
            omit(acc, one.bits, Bits(asked.fill()));
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

// A copy of 16 bytes to shared memory that the thread does not wait for, and a wait for all but the last `LEFT` groups of such.
__device__ __forceinline__ void copy_vector(char *to, const char *from)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(u32(__cvta_generic_to_shared(to))), "l"(from) : "memory");
#else
    *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(from);
#endif
}
__device__ __forceinline__ void end_copies()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int LEFT>
__device__ __forceinline__ void wait_for_copies()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}

// Elements of the array, as a run of them; empty if boundaries descend or it is not copied.
struct Stretch {
    u32 from, len;
};

// Begins to copy elements to shared memory, as the aligned vectors that they lie in; all threads of the block call it.
template <class T>
__device__ __forceinline__ void copy_elements(char *stage, const Segments &all, const Stretch &some)
{
    constexpr u32 SIZE = sizeof(typename Element<T>::Bits);
    const char *const data = all.data + u64(some.from) * SIZE, *const end = all.data + all.len * SIZE;
    const u32 before = u32(u64(data)) % 16, vectors = some.len == 0 ? 0 : (before + some.len * SIZE + 15) / 16;
    const char *const first = data - before;
    // Of the whole array the first vector and the last one may lie partly outside.
    const bool begins = first >= all.data, ends = first + 16 * u64(vectors) <= end;
#pragma unroll
    for (int k = 0; k < STAGED_VECTORS; ++k) {
        const u32 v = threadIdx.x + k * STRIDED_THREADS;
        if (v < vectors && (v > 0 || begins) && (v + 1 < vectors || ends))
            copy_vector(stage + 16 * v, first + 16 * v);
        else if (v < vectors)
            *reinterpret_cast<uint4 *>(stage + 16 * v) = vector_at_end<T>(first + 16 * v, all.data, end);
    }
    end_copies();
}

// The segments that waited, each by a warp. Those whose totals are lost are queued.
template <class Acc, class Quick, class Ask>
__device__ __forceinline__ void take_waiting(const Segments &all, SegmentQueue &waiting, SegmentQueue &lost, u64 first, Ask ask)
{
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
            if (all.phase == 0) {
                Quick quick = taken<Quick>(apart(all), span, 0, span.len, lane, 32, asked);
                __syncwarp();
                fold_neighbours(quick, 32);
                if (all.omits())
                    quick.missing = omitted_together(quick.missing, 32);
                if (__any_sync(ALL_LANES, lane == 0 && quick.write(all.out, i, asked)))
                    continue;
            }
        }
        Acc acc = taken<Acc>(apart(all), span, 0, span.len, lane, 32, asked);
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
    // Where each begins, and its elements: DONE if there is nothing to do here.
    u32 begin[MOST_GROUPS], len[MOST_GROUPS];
    // How many are to be done, and their elements.
    u32 count, elements;

    // Finds them; all threads of the block call it.
    __device__ __forceinline__ void find_all(const Segments &all, u64 first, u32 groups)
    {
        if (threadIdx.x == 0) {
            count = elements = 0;
        }
        __syncthreads();
        u32 mine = 0, how_many = 0;
#pragma unroll 2
        for (u32 group = threadIdx.x; group < groups; group += STRIDED_THREADS) {
            Span span = {};
            bool is = false;
            if (first + group < all.count) {
                const SegmentIs what = what_is(all, first + group, span);
                is = what == SegmentIs::SHORT;
                // What is done once more was dismissed the first time.
                if (!is && all.phase == 0)
                    dismiss(all, first + group, span, what);
            }
            begin[group] = u32(span.begin);
            len[group] = is ? u32(span.len) : DONE;
            mine += is ? u32(span.len) : 0;
            how_many += is;
        }
#pragma unroll
        for (u32 d = 16; d > 0; d /= 2) {
            mine += __shfl_xor_sync(ALL_LANES, mine, d);
            how_many += __shfl_xor_sync(ALL_LANES, how_many, d);
        }
        if (threadIdx.x % 32 == 0 && how_many != 0) {
            atomicAdd(&count, how_many);
            atomicAdd(&elements, mine);
        }
        __syncthreads();
    }

    // What segments [base, beyond) of an array of `all` elements have together, if that fits. Where boundaries descend or lie it is some
    // elements of the array.
    __device__ __forceinline__ Stretch together(u32 base, u32 beyond, u64 all, u32 size) const
    {
        if (base >= beyond)
            return {};
        const u32 from = begin[base], its = len[beyond - 1], to = begin[beyond - 1] + (its == DONE ? 0 : its);
        return {from, from <= to && to <= all && u64(to - from) * size <= STAGE_BYTES - 16 ? to - from : 0};
    }

    // The threads of a segment: 2 to the power of this, for elements of so many bytes.
    __device__ __forceinline__ u32 log_lanes(u32 log_groups, u32 size) const
    {
        const u32 bytes = elements * size / max(count, 1u);
        u32 log = 0;
        while (log < 5 && bytes > BYTES_EACH << log)
            ++log;
        constexpr u32 LOG_THREADS = 8;
        static_assert(STRIDED_THREADS == 1 << LOG_THREADS, "all threads have segments");
        return log_groups < LOG_THREADS ? max(log, min(LOG_THREADS - log_groups, 5u)) : log;
    }
};

// What blocks have in shared memory for segments that are not long; the same for all accumulators of a kernel.
struct SegmentRoom {
    SegmentQueue waiting, lost;
    BlockSegments here;
    alignas(16) char stages[2][STAGE_BYTES];
};
__device__ __forceinline__ SegmentRoom &segment_room()
{
    __shared__ SegmentRoom room;
    return room;
}

// Each segment of 2^log_groups that is not long.
template <class Acc, class Quick, class Ask>
__device__ __forceinline__ void reduce_short(const Segments &all, BlockWides<Acc> &block, u64 first, u32 log_groups, Ask ask)
{
    using Bits = typename Acc::Bits;
    constexpr bool HAS_QUICK = !IS_SAME<Quick, NoQuick>;
    SegmentRoom &room = segment_room();
    SegmentQueue &waiting = room.waiting, &lost = room.lost;
    BlockSegments &here = room.here;
    const u32 groups = 1u << log_groups;
    if (threadIdx.x == 0) {
        waiting.clear();
        lost.clear();
    }
    here.find_all(all, first, groups);
    const u32 log = here.log_lanes(log_groups, sizeof(Bits)), lanes = 1u << log, slot = threadIdx.x & (lanes - 1);
    const u32 abreast = STRIDED_THREADS >> log, beyond = u32(min(u64(groups), all.count - first));
    const auto stretch = [&](u32 base) { return here.together(base, min(base + abreast, beyond), all.len, sizeof(Bits)); };
    Stretch next = stretch(0);
    copy_elements<typename Acc::Item>(room.stages[0], all, next);
    u32 which = 0;
#pragma unroll 1
    for (u32 base = 0; base < beyond; base += abreast, which ^= 1) {
        // The next ones' elements are on their way while these are taken.
        const Stretch these = next;
        next = stretch(base + abreast);
        copy_elements<typename Acc::Item>(room.stages[which ^ 1], all, next);
        wait_for_copies<1>();
        const u32 group = base + (threadIdx.x >> log), len = here.len[group], begin = here.begin[group];
        const u64 i = first + group;
        bool mine = group < beyond && len != BlockSegments::DONE;
        if (mine && len > EACH << log) {
            if (slot == 0)
                waiting.push(group);
            mine = false;
        }
        // Boundaries may descend.
        const bool is_copied = __syncthreads_and(!mine || (begin >= these.from && begin - these.from + len <= these.len));
        const char *const stage = room.stages[which] + u32(u64(all.data + u64(these.from) * sizeof(Bits))) % 16;
        const Bits *const items = reinterpret_cast<const Bits *>(stage) + (begin - these.from);
        const auto asked = ask(u64(len) + all.has_initial);
        if constexpr (HAS_QUICK) {
            // Tiles have tried the like already.
            if (all.phase == 0) {
                Quick quick;
                if (mine) {
                    if (is_copied)
                        take_copy(quick, all, items, len, slot, lanes, asked);
                    else
                        quick = taken<Quick>(apart(all), {begin, len}, 0, len, slot, lanes, asked);
                }
                __syncwarp();
                fold_neighbours(quick, lanes);
                if (all.omits())
                    quick.missing = omitted_together(quick.missing, lanes);
                bool is_sure = true;
                if (mine && slot == 0)
                    is_sure = quick.write(all.out, i, asked);
                is_sure = __shfl_sync(ALL_LANES, is_sure, threadIdx.x % 32 & ~(lanes - 1));
                mine = mine && !is_sure;
            }
        }
        if (!HAS_QUICK || __any_sync(ALL_LANES, mine)) {
            Acc acc;
            if (mine) {
                if (is_copied && Acc::WORDS <= 2)
                    take_copy(acc, all, items, len, slot, lanes, asked);
                else if (is_copied)
                    acc = taken_of_copy<Acc>(apart(all), items, len, slot, lanes, asked);
                else
                    acc = taken<Acc>(apart(all), {begin, len}, 0, len, slot, lanes, asked);
            }
            __syncwarp();
            fold_neighbours(acc, lanes);
            if (mine && slot == 0)
                write_or_push(acc, all, i, group, lost, asked);
        }
        __syncthreads();
    }
    take_waiting<Acc, Quick>(all, waiting, lost, first, ask);
    if constexpr (Acc::MAY_BE_LOST) {
        __syncthreads();
#pragma unroll 1
        for (u32 w = 0; w < lost.count; ++w) {
            const u64 its = first + lost.which[w];
            Span span;
            find(all, its, span);
            const auto asked = ask(span.len + all.has_initial);
            absorb_span<Acc>(block, apart(all), span, 0, span.len, asked);
            if (threadIdx.x == 0)
                write_words<Acc>(block, all.out, its, asked);
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

// Adds up in superaccumulators what blocks have left of a listed segment, and leaves the words.
template <class Acc>
__device__ __forceinline__ void add_parts(const Segments &all, BlockWides<Acc> &block, const Pieces &pieces, const Run &run)
{
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
}

// The end of a listed segment, by the last block that has had a part of it.
template <class Acc>
__device__ __forceinline__ void finish_shared(const Segments &all, BlockWides<Acc> &block, const Pieces &pieces, const Run &run, u64 segment,
    const Span &span, const typename Acc::Asked &asked)
{
    Acc acc;
    bool is_cut = false;
    each_left(pieces, run, [&](u32 slot) {
        const Acc left = left_at<Acc>(all, slot);
        if constexpr (Acc::MAY_BE_LOST)
            is_cut = is_cut || left.is_cut();
        acc.merge(left);
    });
    __syncwarp();
    acc = fold_threads(acc);
    const bool is_lost = threadIdx.x == 0 && !write_answer(acc, all.out, segment, asked);
    if constexpr (Acc::MAY_BE_LOST) {
        if (__syncthreads_or(is_lost)) {
            if (__syncthreads_or(is_cut)) {
                // Superaccumulators take parts that are not cut only.
                absorb_span<Acc>(block, apart(all), span, 0, span.len, asked);
            } else {
                add_parts(all, block, pieces, run);
                if (threadIdx.x == 0)
                    block.missing = acc.missing;
            }
            if (threadIdx.x == 0)
                write_words<Acc>(block, all.out, segment, asked);
            __syncthreads();
        }
    }
}

// What a block has of a listed segment.
template <class Acc>
__device__ __forceinline__ void reduce_run(const Segments &all, BlockWides<Acc> &block, const Pieces &pieces, const Run &run, u64 entry, u64 segment, const Span &span,
    const typename Acc::Asked &asked)
{
    const u64 from = run.from * SEGMENT_PIECE, len = min(run.to * SEGMENT_PIECE, span.len) - from;
    Acc acc = taken<Acc>(apart(all), span, from, len, threadIdx.x, STRIDED_THREADS, asked);
    __syncwarp();
    acc = fold_threads(acc);
    const u32 slot = run.slot(blockIdx.x);
    bool is_lost = threadIdx.x == 0 && run.is_whole() && !write_answer(acc, all.out, segment, asked);
    if constexpr (Acc::MAY_BE_LOST) {
        is_lost = is_lost || (threadIdx.x == 0 && !run.is_whole() && acc.gives_up(asked));
        if (__syncthreads_or(is_lost)) {
            absorb_span<Acc>(block, apart(all), span, from, len, asked);
            if (run.is_whole()) {
                if (threadIdx.x == 0)
                    write_words<Acc>(block, all.out, segment, asked);
            } else {
                for (u32 w = threadIdx.x; w < Acc::WIDE_WORDS; w += STRIDED_THREADS)
                    all.wides[u64(slot) * Acc::WIDE_WORDS + w] = block.words[w];
            }
        }
    }
    if (run.is_whole())
        return;
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
        u64 *const ticket = all.counters + FIRST_TICKET + entry;
        const u64 mine = run.to - run.from;
        is_last = atomicAdd(ticket, mine) + mine == run.pieces;
        __threadfence();
        if (is_last)
            *ticket = 0;
    }
    __syncthreads();
    if (is_last)
        finish_shared<Acc>(all, block, pieces, run, segment, span, asked);
}

// The listed segments.
template <class Acc, class Ask>
__device__ __forceinline__ void reduce_long(const Segments &all, BlockWides<Acc> &block, Ask ask)
{
    const u64 listed = __ldcg(&all.counters[LISTED]), entries = listed >> PIECE_BITS;
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
        const bool is_last = atomicInc(reinterpret_cast<u32 *>(&all.counters[BLOCKS_DONE]), gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
        if (is_last)
            all.counters[LISTED] = all.counters[AGAIN] = all.counters[AGAIN_TAKEN] = 0;
    }
}

// `ask` says what is asked of n elements.
template <class Acc, class Quick = NoQuick, class Ask>
__device__ __forceinline__ void reduce_segments(const Segments &all, Ask ask)
{
    __shared__ BlockWides<Acc> block;
    __shared__ u64 taken;
    u64 some = blockIdx.x;
    u32 log_groups = all.log_groups;
#pragma unroll 1
    while (true) {
        if (all.phase != 0) {
            if (threadIdx.x == 0)
                taken = atomicAdd(&all.counters[AGAIN_TAKEN], u64(1));
            __syncthreads();
            const u64 mine = taken;
            __syncthreads();
            if (mine >= __ldcg(&all.counters[AGAIN]))
                break;
            some = all.again[mine];
            log_groups = u32(some >> AGAIN_LOG);
            some &= (u64(1) << AGAIN_LOG) - 1;
        } else {
            some <<= log_groups;
        }
        reduce_short<Acc, Quick>(all, block, some, log_groups, ask);
        if (all.phase == 0)
            return;
        __syncthreads();
    }
    reduce_long<Acc>(all, block, ask);
}

// Begins a kernel: SEGMENTS(name, blocks)(all) { ... }, for launches of which `blocks` fit a multiprocessor.
#define SEGMENTS(name, blocks) \
    HAS_PARAMETER(NAMED(segments_##name, ELEMENT)) \
    static __device__ __forceinline__ void reduce(const Segments &); \
    extern "C" __global__ void __launch_bounds__(STRIDED_THREADS, blocks) NAMED(segments_##name, ELEMENT)(const __grid_constant__ Segments all) \
    { \
        reduce(all); \
    } \
    static __device__ __forceinline__ void reduce
