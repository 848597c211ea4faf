// Walks any view: outputs and elements lie along any axes, at any strides, and go where the callers' order says.
//
// Threads take elements one by one, or by the unit where the elements of an output lie together (units.cuh); neighbours take what is
// nearest in memory. 2^log_lanes threads of a block share an output; gridDim.y blocks share its elements if there are few outputs, and the
// last of them folds what all have left. Where both ends are asked for, every second block answers the second one, so that both read the
// same elements at about the same time, of which memory is asked once.
//
// From one thread of a block to the next the elements of an output change first, 2^log_near of them; then outputs; then elements again:
//
//     8 threads, 4 lanes     log_near 2: output  0 0 0 0 1 1 1 1     log_near 1: output  0 0 1 1 0 0 1 1     log_near 0: output  0 1 0 1 0 1 0 1
//     of an output                       lane    0 1 2 3 0 1 2 3                 lane    0 1 0 1 2 3 2 3                 lane    0 0 1 1 2 2 3 3
//
// An accumulator says what is done:
//
//     Item, Bits, Asked, asked.fill()   elements; what is asked; an element that changes nothing
//     SINGLES, MOST                 elements that a thread has under way one by one; those that are taken at once, at most
//     take<V>(bits, number, asked)  takes elements, whose numbers in the callers' order are number(unit, i): V of them are a unit
//     SETTLES                       whether it may refuse: then take says so, and settle(elements, asked) takes them in
//     IS_END                        if there is another end, which blocks may be asked for
//     merge, WORDS, word, of_words  as in tally.cuh; merging is commutative and associative
//     write(out, place, asked)      leaves the answer
//     missing                       if it wants to know: how many NaNs were omitted
//     TAKES_INITIAL                 if an output may have one more element, which lies in no array
//     PACK, THREADS                 neighbouring outputs that are a place of the layout's outputs, if there are several, and threads of a block
//                                   then (strided_packs.cuh)
//     MAY_BE_LOST                   whether it may give up. Then write says whether it has an answer, gives_up(asked) the same of a part
//                                   that others are added to, is_lost() of that later, leaves_cut(asked) whether parts may be is_cut(), and
//     Wides                         are what cannot fail, in shared memory: absorb, deposit, entry, add_entry, WIDE_WORDS, write_wides

#pragma once

#include "fold.cuh"
#include "lost_outputs.cuh"
#include "packs.cuh"
#include "parameter.cuh"
#include "units.cuh"

constexpr u32 STRIDED_THREADS = 256;
// Units that a thread has under way: words, vectors, and elements of outputs that have few.
constexpr int WORDS_AT_ONCE = 8, VECTORS_AT_ONCE = 4, FEW_AT_ONCE = 2;

// Accumulators that take elements one by one and never fail.
template <class T, class Tally>
struct OneByOne : Tally {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    static constexpr int SINGLES = sizeof(Bits) < 4 ? 16 : 8, MOST = 16;
    static constexpr bool NUMBERED = false;
    static constexpr bool SETTLES = false;
    static constexpr bool MAY_BE_LOST = false;

    __device__ __forceinline__ OneByOne() {}
    __device__ __forceinline__ OneByOne(const Tally &tally) : Tally(tally) {}

    template <int V, int N, class Number>
    __device__ __forceinline__ void take(const Bits (&bits)[N], Number, const typename Tally::Asked &asked)
    {
#pragma unroll
        for (int k = 0; k < N; ++k)
            Tally::take(bits[k], asked);
    }
};

// Whether accumulators want to know how many elements are missing.
template <class Acc, class = void>
constexpr bool COUNTS_MISSING = false;
template <class Acc>
constexpr bool COUNTS_MISSING<Acc, decltype(void(sizeof(Acc::missing)))> = true;

// Puts what changes nothing in the place of NaNs.
template <class Acc, int N>
__device__ __forceinline__ void omit(Acc &acc, typename Acc::Bits (&bits)[N], typename Acc::Bits fill)
{
    if constexpr (Element<typename Acc::Item>::FLOAT) {
#pragma unroll
        for (int k = 0; k < N; ++k) {
            const bool is_nan = Element<typename Acc::Item>::is_nan(bits[k]);
            if constexpr (COUNTS_MISSING<Acc>)
                acc.missing += is_nan;
            bits[k] = is_nan ? fill : bits[k];
        }
    }
}

// Gives an accumulator elements by the unit of V.
template <int V, class Acc, int N, class Number>
__device__ __forceinline__ void give(Acc &acc, const Elements<typename Acc::Bits, N> &some, Number number, const typename Acc::Asked &asked)
{
    if constexpr (Acc::SETTLES) {
        if (!acc.template take<V>(some.bits, number, asked))
            acc.settle(some, asked);
    } else {
        acc.template take<V>(some.bits, number, asked);
    }
}

// Threads of a block.
template <class Acc, class = void>
constexpr u32 THREADS_OF = STRIDED_THREADS;
template <class Acc>
constexpr u32 THREADS_OF<Acc, decltype(void(sizeof(Acc::PACK)))> = Acc::THREADS;

// Which outputs and elements are this thread's.
struct Share {
    u32 log_lanes, lanes, groups; // threads of an output; outputs of a block
    u32 log_near;
    u32 slot, which;              // the thread's lane, and which of the block's outputs it has
    u32 output;                   // the number of that output in the walk
    u32 first, last;              // the block's units

    __device__ __forceinline__ Share(const Layout &layout, u32 threads) : log_lanes(layout.log_lanes), log_near(layout.log_near)
    {
        lanes = 1u << log_lanes;
        groups = threads >> log_lanes;
        const u32 near = threadIdx.x & ((1u << log_near) - 1), rest = threadIdx.x >> log_near;
        which = rest & (groups - 1);
        slot = near | rest / groups << log_near;
        output = layout.block() * groups + which;
        first = min(blockIdx.y * layout.share, layout.elements.len);
        last = min(first + layout.share, layout.elements.len);
    }
};

// Neighbouring outputs of a place, from which threads take elements together.
template <class Acc, class = void>
constexpr u32 PACK = 1;
template <class Acc>
constexpr u32 PACK<Acc, decltype(void(sizeof(Acc::PACK)))> = Acc::PACK;

// Bytes that places of elements count.
template <class Acc>
__device__ __forceinline__ u32 bytes_of(const Layout &layout)
{
    return PACK<Acc> > 1 ? layout.bytes : u32(sizeof(typename Acc::Bits));
}

// Where an output's first element lies, and the output's number. The last pack of a row ends with it: it has some outputs of the one before.
struct Output {
    const char *data;
    u32 number;
};
template <class Acc>
__device__ __forceinline__ Output output_at(const Layout &layout, u32 output)
{
    constexpr u32 P = PACK<Acc>;
    const Place place = layout.outputs.at(output / P);
    Output its = {layout.data + u64(place.elements) * sizeof(typename Acc::Bits), layout.first_output + place.number};
    if constexpr (P > 1) {
        const u32 first = place.inner * P;
        const i32 on = i32(output % P + min(first, layout.row - P) - first);
        its.data += i64(on) * i64(sizeof(typename Acc::Bits));
        its.number += u32(on * (i32(layout.outputs.numbers) / i32(P)));
    }
    return its;
}

// Whether blocks of their own may be asked for another end.
template <class Acc, class = void>
constexpr bool HAS_ENDS = false;
template <class Acc>
constexpr bool HAS_ENDS<Acc, decltype(void(sizeof(Acc::IS_END)))> = true;

// Whether accumulators may be given an initial element.
template <class Acc, class = void>
constexpr bool TAKES_INITIAL = false;
template <class Acc>
constexpr bool TAKES_INITIAL<Acc, decltype(void(sizeof(Acc::TAKES_INITIAL)))> = true;

// Loads the units that there are, and of vectors the elements that lie in their runs.
template <int V, int U, class Units>
__device__ __forceinline__ void load_some(typename Units::Raw (&raw)[U], const Layout &layout, const Share &share, u32 e,
    const char *const (&at)[U], const Place (&places)[U], const typename Units::Raw &fill)
{
    bool some[U], inside[U];
#pragma unroll
    for (int k = 0; k < U; ++k) {
        some[k] = e + (k << share.log_lanes) < share.last;
        inside[k] = true;
        if constexpr (Units::VECTOR) {
            some[k] = some[k] && int(places[k].inner) < int(layout.run);
            inside[k] = at[k] >= layout.data && at[k] + 16 <= layout.end;
        }
        raw[k] = fill;
        if (some[k] && inside[k])
            raw[k] = Units::at(at[k]);
    }
    if constexpr (Units::VECTOR) {
#pragma unroll
        for (int k = 0; k < U; ++k) {
            if (some[k]) {
                if (!inside[k])
                    raw[k] = vector_at_end<typename Units::Item>(at[k], layout.data, layout.end);
                raw[k] = Units::cut(raw[k], int(places[k].inner), int(layout.run), fill);
            }
        }
    }
}

// Takes this thread's units of an output whose first element is at data, U at once, of V elements each.
template <int V, int U, class Acc>
__device__ __forceinline__ void take_units(Acc &acc, const Layout &layout, const Share &share, const char *data, const typename Acc::Asked &asked)
{
    using Bits = typename Acc::Bits;
    using Units = ::Units<typename Acc::Item, V>;
    constexpr int ALL = U * V, N = ALL < Acc::MOST ? ALL : Acc::MOST;
    static_assert(ALL % N == 0 && N % V == 0 || V % N == 0, "whole units at once, or parts of one");
    const auto fill = Units::filled(Bits(asked.fill()));
    const bool omits = layout.omits();
    const Gaps<typename Acc::Item> gaps(layout.elements.gap);
#pragma unroll 1
    for (u32 e = share.first + share.slot; e < share.last; e += U << share.log_lanes) {
        Place places[U];
        layout.elements.places<Acc::NUMBERED, Units::VECTOR>(e, share.lanes, places);
        typename Units::Raw raw[U];
        u32 before[U]; // elements of an aligned vector that lie before its place
        const char *at[U];
        bool plain = e + ((U - 1) << share.log_lanes) < share.last;
#pragma unroll
        for (int k = 0; k < U; ++k) {
            at[k] = data + u64(places[k].elements) * Units::SIZE;
            before[k] = 0;
            if constexpr (Units::VECTOR) {
                before[k] = u32(u64(at[k])) % 16 / Units::SIZE;
                at[k] -= before[k] * Units::SIZE;
                places[k].inner = places[k].inner * V - before[k];
                plain = plain && int(places[k].inner) >= 0 && int(places[k].inner) <= int(layout.run) - V;
            }
        }
        if (plain) {
#pragma unroll
            for (int k = 0; k < U; ++k)
                raw[k] = Units::at(at[k]);
        } else {
            load_some<V, U, Units>(raw, layout, share, e, at, places, fill);
        }
        if constexpr (Units::VECTOR && !Acc::NUMBERED) {
            if (gaps.gap > 1) {
#pragma unroll
                for (int k = 0; k < U; ++k)
                    raw[k] = gaps.without(raw[k], places[k].inner, fill);
            }
        }
#pragma unroll
        for (int from = 0; from < ALL; from += N) {
            Elements<Bits, N> some;
#pragma unroll
            for (int i = 0; i < N; ++i)
                some.bits[i] = Units::item(raw[(from + i) / V], (from + i) % V);
            if (omits)
                omit(acc, some.bits, Bits(asked.fill()));
            const auto number = [&](int unit, int i) {
                const int k = from / V + unit;
                return u64(layout.first_element + places[k].number + (from % V + i - before[k]) * layout.step);
            };
            give<V>(acc, some, number, asked);
        }
    }
}

// Takes the initial element of an output if there is one: one block has it, and one lane. It is a unit of a batch that other elements use, too.
template <class Acc>
__device__ __forceinline__ void take_initial(Acc &acc, const Layout &layout, const Share &share, const typename Acc::Asked &asked)
{
    if constexpr (TAKES_INITIAL<Acc>) {
        if (layout.has_initial() && share.slot == 0 && blockIdx.y == 0) {
            using Bits = typename Acc::Bits;
            Elements<Bits, FEW_AT_ONCE> some;
#pragma unroll
            for (int i = 0; i < FEW_AT_ONCE; ++i)
                some.bits[i] = i == 0 ? Bits(layout.initial) : Bits(asked.fill());
            give<1>(acc, some, [](int, int) { return u64(0); }, asked);
        }
    }
}

// Takes this thread's elements of an output whose first element is at data.
template <class Acc>
__device__ __forceinline__ void take_elements(Acc &acc, const Layout &layout, const Share &share, const char *data, const typename Acc::Asked &asked)
{
    constexpr int SIZE = sizeof(typename Acc::Bits);
    take_initial(acc, layout, share, asked);
    if (layout.unit == 16 / SIZE) {
        take_units<16 / SIZE, VECTORS_AT_ONCE>(acc, layout, share, data, asked);
    } else if (layout.unit == 1) {
        if (share.last - share.first <= FEW_AT_ONCE << share.log_lanes)
            take_units<1, FEW_AT_ONCE>(acc, layout, share, data, asked);
        else
            take_units<1, Acc::SINGLES>(acc, layout, share, data, asked);
    } else if constexpr (SIZE < 4) {
        take_units<4 / SIZE, WORDS_AT_ONCE>(acc, layout, share, data, asked);
    }
}

// The outputs of a block whose totals are lost.
template <u32 MOST>
struct LostOutputs {
    u32 count;
    u32 output[MOST];
    u32 missing[MOST]; // of its elements
    bool is_cut[MOST]; // whether blocks have left parts of it that are cut

    __device__ __forceinline__ void note(u32 its, u32 its_missing, bool its_is_cut)
    {
        const u32 place = atomicAdd(&count, 1u);
        output[place] = its;
        missing[place] = its_missing;
        is_cut[place] = its_is_cut;
    }
};

// What threads have of outputs.
template <class Acc, bool IS_PACK = (PACK<Acc> > 1)>
struct SlotsOf {
    using Type = u64[Acc::WORDS][STRIDED_THREADS];
};
template <class Acc>
struct SlotsOf<Acc, true> {
    using Type = typename Acc::Kept;
};

// What the block has in shared memory: what its threads have of outputs, and then, if totals may be lost, superaccumulators. Of these
// there is room for 32 if they are small enough.
template <class Acc, bool MAY_BE_LOST = Acc::MAY_BE_LOST>
struct StridedRoom {
    u64 slots[Acc::WORDS][STRIDED_THREADS];
};
template <class Acc>
struct StridedRoom<Acc, true> {
    static constexpr u32 SOME = 32 * sizeof(typename Acc::Wides), LEAST = 12 << 10, GREATEST = 24 << 10;
    using Batch = LostBatch<Acc, SOME < LEAST ? LEAST : SOME < GREATEST ? SOME : GREATEST, THREADS_OF<Acc>>;
    using Slots = typename SlotsOf<Acc>::Type;
    union {
        Slots slots;
        Batch batch;
    };
    LostOutputs<PACK<Acc> * THREADS_OF<Acc>> lost;
};

template <class Acc>
__device__ __forceinline__ Acc from_lane(const Acc &acc, u32 distance)
{
    u64 words[Acc::WORDS];
#pragma unroll
    for (int w = 0; w < Acc::WORDS; ++w)
        words[w] = __shfl_xor_sync(ALL_LANES, acc.word(w), distance);
    return Acc(Acc::of_words(words));
}

// Folds what the threads of each output have: first what lanes of a warp have, near ones, and others of as many outputs apart. Thread t has
// the t-th output's then. All threads of the block call it; between two calls there must be a barrier.
template <class Acc>
__device__ __forceinline__ Acc fold_here(Acc acc, const Share &share)
{
    auto &slots = shared_room<StridedRoom<Acc>>().slots;
    const u32 thread = threadIdx.x, groups = share.groups;
    const u32 near = min(1u << share.log_near, 32u), apart = groups << share.log_near;
#pragma unroll 1
    for (u32 d = near / 2; d > 0; d /= 2)
        acc.merge(from_lane(acc, d));
#pragma unroll 1
    for (u32 d = 16; d >= apart; d /= 2)
        acc.merge(from_lane(acc, d));
    // What one warp has of an output is a part, which the first of its lanes there leaves.
    u32 parts, part;
    if (share.log_near >= 5) {
        const u32 warps = 1u << (share.log_near - 5);
        parts = share.lanes / 32;
        part = (thread / 32 & (warps - 1)) + thread / apart * warps;
    } else {
        const u32 abreast = max(apart, 32u);
        parts = STRIDED_THREADS / abreast;
        part = thread / abreast;
    }
    const bool leaves = (thread & (near - 1)) == 0 && thread % 32 < apart;
    if (leaves) {
#pragma unroll
        for (int w = 0; w < Acc::WORDS; ++w)
            slots[w][share.which * parts + part] = acc.word(w);
    }
    __syncthreads();
    Acc all;
    if (thread < groups) {
#pragma unroll 1
        for (u32 p = 0; p < parts; ++p) {
            u64 words[Acc::WORDS];
#pragma unroll
            for (int w = 0; w < Acc::WORDS; ++w)
                words[w] = slots[w][thread * parts + p];
            all.merge(Acc(Acc::of_words(words)));
        }
    }
    return all;
}

// The same as a function, which keeps the loops before it small; what fills many registers would go there by way of memory.
constexpr int MOST_PASSED = 12;
template <class Acc>
__device__ __noinline__ Acc fold_apart(Acc acc, const Share share)
{
    return fold_here(acc, share);
}
template <class Acc>
__device__ __forceinline__ Acc fold_lanes(const Acc &acc, const Share &share)
{
    if constexpr (Acc::WORDS <= MOST_PASSED)
        return fold_apart(acc, share);
    else
        return fold_here(acc, share);
}

// Blocks that share packs merge what they have left by groups of so many, and then what groups have: `MERGED` in the engine.
constexpr u32 MERGED = 32;
template <class Acc>
__device__ __forceinline__ u32 merge_groups()
{
    return PACK<Acc> > 1 && gridDim.y > MERGED ? (gridDim.y + MERGED - 1) / MERGED : 0;
}

// Where the p-th block of those that share an output leaves what it has, and groups of them behind all blocks.
template <class Acc>
__device__ __forceinline__ u64 *partial(const Layout &layout, u32 output, u32 p)
{
    const u64 place = HAS_ENDS<Acc> ? u64(layout.which_end()) * layout.outputs.len + output : output;
    return layout.partials + (place * (gridDim.y + merge_groups<Acc>()) + p) * Acc::WORDS;
}

template <class Acc>
__device__ __forceinline__ Acc partial_of(const Layout &layout, u32 output, u32 p)
{
    u64 words[Acc::WORDS];
#pragma unroll
    for (int w = 0; w < Acc::WORDS; ++w)
        words[w] = __ldcg(partial<Acc>(layout, output, p) + w);
    return Acc(Acc::of_words(words));
}

// Collects those that are lost of the outputs that threads below `groups` have. All threads of the block call it.
template <class Lost>
__device__ __forceinline__ void collect(Lost &lost, bool mine, u32 output, u32 missing, bool is_cut)
{
    __syncthreads();
    if (threadIdx.x == 0)
        lost.count = 0;
    __syncthreads();
    if (mine)
        lost.note(output, missing, is_cut);
    __syncthreads();
}

// What is asked of an output some of whose elements are missing.
template <class Asked>
__device__ __forceinline__ Asked without(Asked asked, u32 missing)
{
    asked.n -= missing;
    return asked;
}

// Adds the block's elements of an output, once more, to superaccumulators; `count` threads call it, of which this is one.
template <class Acc>
__device__ __noinline__ void absorb_elements(typename Acc::Wides &wides, const Layout &layout, u32 first, u32 last, u32 output,
    const typename Acc::Asked asked, u32 thread, u32 count)
{
    using Bits = typename Acc::Bits;
    const char *data = output_at<Acc>(layout, output).data;
    if (layout.has_initial() && first == 0 && thread == 0)
        Acc::absorb(wides, Bits(layout.initial), asked);
#pragma unroll 1
    for (u32 e = first + thread; e < last; e += count) {
        const Place place = layout.elements.at(e);
        const char *at = data + u64(place.elements) * bytes_of<Acc>(layout);
        int begin = 0, run = int(layout.unit);
        if (layout.unit * sizeof(Bits) == 16) {
            // The vector begins before its place if its run is not aligned.
            const int before = int(u32(u64(at)) % 16) / int(sizeof(Bits));
            at -= before * int(sizeof(Bits));
            begin = int(place.inner * layout.unit) - before;
            run = int(layout.run);
        }
        const int from = max(-begin, 0), to = min(run - begin, int(layout.unit));
#pragma unroll 1
        for (int i = from; i < to; ++i) {
            const Bits bits = reinterpret_cast<const Bits *>(at)[i];
            if ((begin + i & int(layout.elements.gap - 1)) != 0)
                continue;
            if (!layout.omits() || !Element<typename Acc::Item>::is_nan(bits))
                Acc::absorb(wides, bits, asked);
        }
    }
}

// Leaves the answers of a batch. All threads of the block call it.
template <class Acc>
__device__ __forceinline__ void write_batch(const Layout &layout, u32 first, u32 some, const typename Acc::Asked &asked)
{
    const auto &lost = shared_room<StridedRoom<Acc>>().lost;
    const u32 own = StridedRoom<Acc>::Batch::own(), i = first + own;
    if (own < some)
        write_lost<Acc, StridedRoom<Acc>>(own, layout.out, output_at<Acc>(layout, lost.output[i]).number, without(asked, lost.missing[i]));
}

// Adds the elements of the block's lost outputs: to answers, or to what blocks share.
template <class Acc>
__device__ __noinline__ void find_again(const Layout &layout, const typename Acc::Asked asked)
{
    using Wides = typename Acc::Wides;
    auto &room = shared_room<StridedRoom<Acc>>();
    const auto &lost = room.lost;
    const Share share(layout, THREADS_OF<Acc>);
    const auto add = [&](Wides &wides, u32 i, u32 lane, u32 lanes) {
        absorb_elements<Acc>(wides, layout, share.first, share.last, lost.output[i], asked, lane, lanes);
    };
    room.batch.find(lost.count, layout.log_near != 0, add, [&](u32 first, u32 some) {
        if (gridDim.y == 1)
            return write_batch<Acc>(layout, first, some, asked);
#pragma unroll 1
        for (u32 w = threadIdx.x; w < some * Acc::WIDE_WORDS; w += THREADS_OF<Acc>) {
            const u32 i = w / Acc::WIDE_WORDS, word = w % Acc::WIDE_WORDS;
            if (const u64 entry = Acc::entry(room.batch.wides[i], word))
                atomicAdd(&layout.wides[u64(lost.output[first + i]) * Acc::WIDE_WORDS + word], entry);
        }
    });
}

// The same for the last of the blocks that share outputs: it adds what the others have found to what they have left, or all elements of
// an output of which there are parts that are cut.
template <class Acc>
__device__ __noinline__ void fold_again(const Layout &layout, const typename Acc::Asked asked)
{
    using Wides = typename Acc::Wides;
    auto &room = shared_room<StridedRoom<Acc>>();
    const auto &lost = room.lost;
    const auto add = [&](Wides &wides, u32 i, u32 lane, u32 lanes) {
        const u32 output = lost.output[i];
        const bool is_cut = lost.is_cut[i];
        if (is_cut)
            absorb_elements<Acc>(wides, layout, 0, layout.elements.len, output, asked, lane, lanes);
#pragma unroll 1
        for (u32 p = lane; !is_cut && p < gridDim.y; p += lanes) {
            const Acc left = partial_of<Acc>(layout, output, p);
            if (!left.is_lost())
                left.deposit(wides);
        }
#pragma unroll 1
        for (u32 w = lane; w < Acc::WIDE_WORDS; w += lanes) {
            u64 &shared = layout.wides[u64(output) * Acc::WIDE_WORDS + w];
            if (const u64 entry = __ldcg(&shared)) {
                if (!is_cut)
                    Acc::add_entry(wides, w, entry);
                shared = 0;
            }
        }
    };
    room.batch.find(lost.count, true, add, [&](u32 first, u32 some) { write_batch<Acc>(layout, first, some, asked); });
}

// Whether this is the last of so many blocks that take a ticket there: all have left their parts. All threads of the block call it.
__device__ __forceinline__ bool is_last_of(u64 *ticket, u32 count)
{
    __shared__ bool is_last;
    __syncthreads();
    if (threadIdx.x == 0) {
        // What the block has written is there before its ticket is, and what others have is read after theirs.
        __threadfence();
        is_last = atomicInc(reinterpret_cast<u32 *>(ticket), count - 1) == count - 1;
        __threadfence();
    }
    __syncthreads();
    return is_last;
}

// Reduces a view.
template <class Acc>
__device__ __forceinline__ void reduce_view(const Layout &layout, const typename Acc::Asked &asked)
{
    const Share share(layout, THREADS_OF<Acc>);
    Acc acc;
    Output mine = {};
    if (share.output < layout.outputs.len) {
        mine = output_at<Acc>(layout, share.output);
        take_elements(acc, layout, share, mine.data, asked);
    }
    __syncwarp();
    if (share.lanes > 1)
        acc = fold_lanes(acc, share);

    // Thread t has the block's t-th output now; if it has no lanes beside it, it has had that all the time.
    const u32 output = layout.block() * share.groups + threadIdx.x;
    const bool has_one = threadIdx.x < share.groups && output < layout.outputs.len;
    const auto find_if = [&](bool lost, bool folds) {
        if constexpr (Acc::MAY_BE_LOST) {
            if (__syncthreads_or(lost)) {
                collect(shared_room<StridedRoom<Acc>>().lost, lost, output, acc.missing, acc.is_cut() && Acc::leaves_cut(asked));
                if (folds)
                    fold_again<Acc>(apart(layout), asked);
                else
                    find_again<Acc>(apart(layout), asked);
            }
        }
    };
    if (gridDim.y > 1) {
        if constexpr (Acc::MAY_BE_LOST)
            find_if(has_one && acc.gives_up(asked), false);
        if (has_one) {
#pragma unroll
            for (int w = 0; w < Acc::WORDS; ++w)
                partial<Acc>(layout, output, blockIdx.y)[w] = acc.word(w);
        }
        if (!is_last_of(layout.tickets + blockIdx.x, gridDim.y))
            return;
        acc = Acc();
        if (share.output < layout.outputs.len) {
            // The next one's loads are on their way while one is merged.
            Acc next;
            if (share.slot < gridDim.y)
                next = partial_of<Acc>(layout, share.output, share.slot);
#pragma unroll 1
            for (u32 p = share.slot; p < gridDim.y; p += share.lanes) {
                const Acc one = next;
                if (p + share.lanes < gridDim.y)
                    next = partial_of<Acc>(layout, share.output, p + share.lanes);
                acc.merge(one);
            }
        }
        __syncwarp();
        if (share.lanes > 1)
            acc = fold_lanes(acc, share);
    }
    const u32 number = share.lanes > 1 ? output_at<Acc>(layout, output).number : mine.number;
    if constexpr (Acc::MAY_BE_LOST)
        find_if(has_one && !acc.write(layout.out, number, asked), gridDim.y > 1);
    else if (has_one)
        acc.write(layout.out, HAS_ENDS<Acc> ? number + layout.which_end() * layout.apart : number, asked);
}

// Begins a kernel: STRIDED(name, threads, blocks)(layout) { ... }, for launches of which `blocks` fit a multiprocessor.
#define STRIDED(name, threads, blocks) \
    HAS_PARAMETER(NAMED(strided_##name, ELEMENT)) \
    static __device__ __forceinline__ void reduce(const Layout &); \
    extern "C" __global__ void __launch_bounds__(threads, blocks) NAMED(strided_##name, ELEMENT)(const __grid_constant__ Layout layout) \
    { \
        reduce(layout); \
    } \
    static __device__ __forceinline__ void reduce
