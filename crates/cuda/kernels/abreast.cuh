// Outputs of few elements, side by side: a thread has several outputs that follow each other along the fastest kept axis, each with all
// of its elements. What is worked out once for an output elsewhere, where it lies and where its answer goes, is shared by all of them.
//
// Accumulators are those of strided.cuh, of which no merging is asked, or say themselves whether they are sure of an answer (few.cuh).
// A thread with outputs that these are not sure of takes its elements in once more by accumulators of any number of elements, all of its
// outputs side by side where these say so, or one after the other; and an output whose total is lost is found by the whole block.

#pragma once

#include "strided.cuh"
#include "warp_output.cuh"

// The parameters: crates/cuda/src/engine/abreast.rs has the same struct. Places of the layout's outputs are `OutputsAbreast` outputs
// each, of which the last along its axis may have fewer; its elements are taken one by one.
struct Abreast {
    Layout layout;
    u32 row;               // outputs along the fastest axis
    u32 elements, numbers; // from one of them to the next
    u32 answer;            // bytes of an answer
};

// How many outputs a thread has: 16 bytes of elements, and no more than its registers hold. `outputs_of_a_thread` in the engine.
template <class Acc>
constexpr int OUTPUTS_ABREAST = sizeof(typename Acc::Bits) == 1 ? 8 : 16 / sizeof(typename Acc::Bits);

// The first output of a place, how many it has (none behind the last place), and where it lies.
template <class Acc>
struct OutputsAt {
    using Bits = typename Acc::Bits;
    static constexpr int SIZE = sizeof(Bits), A = OUTPUTS_ABREAST<Acc>;
    const char *data;
    u32 count, number;

    __device__ __forceinline__ OutputsAt(const Abreast &all, u32 place)
    {
        const Place at = all.layout.outputs.at(place);
        data = all.layout.data + u64(at.elements) * SIZE;
        count = place < all.layout.outputs.len ? min(u32(A), all.row - at.inner * A) : 0;
        number = all.layout.first_output + at.number;
    }
    __device__ __forceinline__ const char *of(const Abreast &all, u32 a) const { return data + u64(a * all.elements) * SIZE; }
};

// Accumulators of few elements name the general ones that answer when they do not.
template <class Acc, class = void>
struct GeneralOf {
    using Type = Acc;
    static constexpr bool IS_FEW = false, HAS_AGAIN = false, SHIFTS = false, SETTLES_LATER = false;
};
template <class Acc>
struct GeneralOf<Acc, decltype(void(sizeof(typename Acc::General)))> {
    using Type = typename Acc::General;
    static constexpr bool IS_FEW = true, HAS_AGAIN = Acc::HAS_AGAIN, SHIFTS = Acc::SHIFTS, SETTLES_LATER = Acc::SETTLES_LATER;
};

// Takes the elements of outputs, U of each at once, output by output: as those that are far APART where that is known.
template <int U, bool APART, class Acc, u32 A, class Load>
__device__ __forceinline__ void take_packs(Acc (&acc)[A], const Layout &layout, const Places &its, const char *data, const Load &load,
    const typename Acc::Asked &asked)
{
    using Bits = typename Acc::Bits;
    const Bits fill = Bits(asked.fill());
    const bool omits = layout.omits();
#pragma unroll 1
    for (u32 e = its.first; e < its.last; e += U * its.step) {
        PackBatch<U, Acc, A> batch(layout, its, e, data, sizeof(Bits), load);
        Bits bits[U][A];
        batch.elements(bits);
        const auto number = [&](int unit, int) { return u64(layout.first_element + batch.places[unit].number); };
#pragma unroll
        for (u32 a = 0; a < A; ++a) {
            Elements<Bits, U> some;
#pragma unroll
            for (int k = 0; k < U; ++k)
                some.bits[k] = batch.is_there(its, e, k) ? bits[k][a] : fill;
            if (omits)
                omit(acc[a], some.bits, fill);
            if constexpr (GeneralOf<Acc>::SHIFTS) {
                if (e == its.first)
                    acc[a].begin(bits[0][a]);
#pragma unroll
                for (int k = 1; k < U; ++k)
                    some.bits[k] = batch.is_there(its, e, k) ? bits[k][a] : acc[a].first;
            }
            if constexpr (APART)
                acc[a].settle(some, asked);
            else
                give<1>(acc[a], some, number, asked);
        }
    }
}

// Loads elements of a thread's outputs.
template <class At>
struct OutputPacks {
    const Abreast &all;
    const At &mine;

    template <int U, class Pack>
    __device__ __forceinline__ void operator()(Pack (&packs)[U], const char *const (&at)[U]) const
    {
        if (mine.count == At::A && all.elements == 1) {
            bool aligned = true;
#pragma unroll
            for (int k = 0; k < U; ++k)
                aligned = aligned && u64(at[k]) % sizeof(Pack) == 0;
            if (aligned)
                return load_aligned(packs, at);
            if (At::SIZE < 8 && load_unaligned(packs, at, all.layout.data, all.layout.end))
                return;
        }
        load_elements<typename At::Bits, At::A>(packs, at, mine.count, all.elements);
    }
};

// Takes all elements of a thread's outputs, U of each at once, as those that are far APART where that is known.
template <int U, bool APART = false, class Acc, class At>
__device__ __forceinline__ void take_abreast(Acc (&acc)[OUTPUTS_ABREAST<Acc>], const Abreast &all, const At &mine,
    const typename Acc::Asked &asked)
{
    const Places its = {0, all.layout.elements.len, 1};
    take_packs<U, APART>(acc, all.layout, its, mine.data, OutputPacks<At>{all, mine}, asked);
}

// Takes the elements of one of a thread's outputs, in general, and leaves its answer. Returns whether its total is lost.
template <class Acc>
__device__ __noinline__ bool take_generally(const Abreast &all, const char *data, u32 number, const typename Acc::Asked asked)
{
    using Bits = typename Acc::Bits;
    Acc acc;
#pragma unroll 1
    for (u32 e = 0; e < all.layout.elements.len; ++e) {
        Elements<Bits, 1> some;
        some.bits[0] = *reinterpret_cast<const Bits *>(data + u64(all.layout.elements.at(e).elements) * sizeof(Bits));
        if (all.layout.omits())
            omit(acc, some.bits, Bits(asked.fill()));
        give<1>(acc, some, [](int, int) { return u64(0); }, asked);
    }
    if constexpr (Acc::MAY_BE_LOST)
        return !acc.write(all.layout.out, number, asked);
    acc.write(all.layout.out, number, asked);
    return false;
}

// What a block has in shared memory: room for answers that go together, and then, if totals may be lost, superaccumulators. Those that are
// lost are named by the thread and which of its outputs they are.
template <class Acc, u32 BYTES, bool MAY_BE_LOST = Acc::MAY_BE_LOST>
struct AbreastRoom {
    alignas(16) char answers[STRIDED_THREADS / 32][BYTES];
};
template <class Acc, u32 BYTES>
struct AbreastRoom<Acc, BYTES, true> {
    // Of large ones fewer kernels share a multiprocessor.
    using Batch = LostBatch<Acc, sizeof(typename Acc::Wides) < 1000 ? 12 << 10 : 16 << 10, STRIDED_THREADS>;
    union {
        alignas(16) char answers[STRIDED_THREADS / 32][BYTES];
        Batch batch;
    };
    u32 count;
    u16 lost[STRIDED_THREADS * OUTPUTS_ABREAST<Acc>];
};

// Adds the elements of the block's lost outputs to superaccumulators, and leaves their answers. All threads of the block call it.
template <class Acc, class Room>
__device__ __noinline__ void find_abreast(const Abreast &all, const typename Acc::Asked asked)
{
    using Bits = typename Acc::Bits;
    constexpr u32 A = OUTPUTS_ABREAST<Acc>;
    auto &room = shared_room<Room>();
    const auto place = [&](u32 i) { return OutputsAt<Acc>(all, blockIdx.x * STRIDED_THREADS + room.lost[i] / A); };
    // Adds every `lanes`-th element that is not omitted to superaccumulators, if there are such, and returns how many are omitted.
    const auto add_some = [&](typename Acc::Wides *wides, u32 i, u32 lane, u32 lanes) {
        const char *const data = place(i).of(all, room.lost[i] % A);
        u32 missing = 0;
        for (u32 e = lane; e < all.layout.elements.len; e += lanes) {
            const Bits bits = *reinterpret_cast<const Bits *>(data + u64(all.layout.elements.at(e).elements) * sizeof(Bits));
            if (all.layout.omits() && Element<typename Acc::Item>::is_nan(bits))
                ++missing;
            else if (wides != nullptr)
                Acc::absorb(*wides, bits, asked);
        }
        return missing;
    };
    const auto add = [&](typename Acc::Wides &wides, u32 i, u32 lane, u32 lanes) { add_some(&wides, i, lane, lanes); };
    room.batch.find(room.count, false, add, [&](u32 first, u32 some) {
        const u32 own = Room::Batch::own(), i = first + own;
        if (own < some) {
            const auto its = without(asked, all.layout.omits() ? add_some(nullptr, i, 0, 1) : 0);
            write_lost<Acc, Room>(own, all.layout.out, place(i).number + room.lost[i] % A * all.numbers, its);
        }
    });
}

// How many binades there are between the largest and the smallest element of an output that are not 0, or some more; of infinities and
// NaNs, more than any format has.
template <class T>
__device__ __noinline__ u32 gap_of(const Abreast &all, const char *data)
{
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    u32 most = 0, least = ~0u;
#pragma unroll 1
    for (u32 e = 0; e < all.layout.elements.len; ++e) {
        const Bits bits = *reinterpret_cast<const Bits *>(data + u64(all.layout.elements.at(e).elements) * sizeof(Bits));
        if (!Format::is_finite(bits))
            return 1 << Format::WIDTH / 2;
        const u32 exponent = u32(Format::magnitude(bits) >> Format::FRACTION);
        most = max(most, exponent);
        least = Format::magnitude(bits) == 0 ? least : min(least, exponent);
    }
    return most - min(most, least);
}

// What is asked of an output, without what an accumulator has omitted.
template <class Acc>
__device__ __forceinline__ typename Acc::Asked asked_of(const Acc &acc, const typename Acc::Asked &asked)
{
    if constexpr (COUNTS_MISSING<Acc>)
        return without(asked, acc.missing);
    else
        return asked;
}

// Answers once more what a thread is not sure of: a function of its own, whose registers would be missing where most outputs are sure.
template <class Acc>
__device__ __noinline__ u32 take_again(typename Acc::Bits (&answers)[OUTPUTS_ABREAST<Acc>], u32 unsure, const Abreast &all,
    const OutputsAt<Acc> &mine, const typename Acc::Asked asked)
{
    constexpr int A = OUTPUTS_ABREAST<Acc>;
    typename Acc::General acc[A];
    take_abreast<4, true>(acc, all, mine, asked);
#pragma unroll
    for (u32 a = 0; a < A; ++a)
        if ((unsure >> a & 1) != 0 && acc[a].answer(answers[a], asked_of(acc[a], asked)))
            unsure ^= 1u << a;
    return unsure;
}

// Leaves the answers of accumulators of few elements. Returns which of them are none: these are written over. All threads of the warp
// call it.
template <class Acc>
__device__ __forceinline__ u32 write_few(const Acc (&acc)[OUTPUTS_ABREAST<Acc>], const Abreast &all, const OutputsAt<Acc> &mine, char *room,
    const typename Acc::Asked &asked)
{
    using Bits = typename Acc::Bits;
    constexpr u32 A = OUTPUTS_ABREAST<Acc>;
    Bits answer[A];
    u32 unsure = 0;
#pragma unroll
    for (u32 a = 0; a < A; ++a)
        unsure |= acc[a].answer(answer[a], asked_of(acc[a], asked)) ? 0 : 1u << a;
    unsure &= (1u << mine.count) - 1;
    if constexpr (GeneralOf<Acc>::SETTLES_LATER) {
#pragma unroll
        for (u32 a = 0; a < A; ++a)
            if ((unsure >> a & 1) != 0 && acc[a].settles(gap_of<typename Acc::Item>(apart(all), mine.of(all, a)), answer[a], asked))
                unsure ^= 1u << a;
    }
    if constexpr (GeneralOf<Acc>::HAS_AGAIN) {
        if (unsure != 0) {
            Bits again[A];
            const OutputsAt<Acc> same = mine;
            const u32 before = unsure;
            unsure = take_again<Acc>(again, before, apart(all), same, asked);
#pragma unroll
            for (u32 a = 0; a < A; ++a)
                answer[a] = ((before ^ unsure) >> a & 1) != 0 ? again[a] : answer[a];
        }
        __syncwarp();
    }
    write_together(static_cast<Bits *>(all.layout.out), mine.number, i32(all.numbers), mine.count, answer, room);
    return unsure;
}

// Answers a thread's outputs in general. Returns which totals are lost. All threads of the block call it.
template <class Acc>
__device__ __noinline__ u32 answer_generally(const Abreast &all, u32 unsure, const typename Acc::Asked asked)
{
    using General = typename Acc::General;
    if constexpr (Acc::HAS_TABLE)
        General::prepare();
    u32 lost = 0;
#pragma unroll 1
    for (; unsure != 0; unsure &= unsure - 1) {
        const u32 a = __ffs(int(unsure)) - 1;
        const OutputsAt<Acc> mine(all, blockIdx.x * STRIDED_THREADS + threadIdx.x);
        if (take_generally<General>(all, mine.of(all, a), mine.number + a * all.numbers, asked))
            lost |= 1u << a;
    }
    return lost;
}

// Reduces a view whose outputs have few elements.
template <class Acc>
__device__ __forceinline__ void reduce_abreast(const Abreast &all, const typename Acc::Asked &asked)
{
    constexpr int A = OUTPUTS_ABREAST<Acc>;
    using General = typename GeneralOf<Acc>::Type;
    constexpr u32 BYTES = A * (GeneralOf<Acc>::IS_FEW ? sizeof(typename Acc::Bits) : 8);
    using Room = AbreastRoom<General, warp_output_bytes(BYTES)>;
    auto &shared = shared_room<Room>();
    char *const room = shared.answers[threadIdx.x / 32];
    const OutputsAt<Acc> mine(all, blockIdx.x * STRIDED_THREADS + threadIdx.x);
    Acc acc[A];
    if (mine.count != 0) {
        if (all.layout.elements.len == 1)
            take_abreast<1>(acc, all, mine, asked);
        else if (all.layout.elements.len == 2)
            take_abreast<2>(acc, all, mine, asked);
        else
            take_abreast<4>(acc, all, mine, asked);
    }
    if constexpr (GeneralOf<Acc>::IS_FEW) {
        // Those that are not sure, and then those that are lost.
        u32 left = write_few(acc, all, mine, room, asked);
        if (!__syncthreads_or(left != 0))
            return;
        left = answer_generally<Acc>(apart(all), left, asked);
        if constexpr (General::MAY_BE_LOST) {
            if (__syncthreads_or(left != 0)) {
                if (threadIdx.x == 0)
                    shared.count = 0;
                __syncthreads();
                for (u32 place = left != 0 ? atomicAdd(&shared.count, u32(__popc(left))) : 0; left != 0; left &= left - 1)
                    shared.lost[place++] = u16(threadIdx.x * A + __ffs(int(left)) - 1);
                __syncthreads();
                find_abreast<General, Room>(apart(all), asked);
            }
        }
    } else {
        static_assert(!Acc::MAY_BE_LOST, "only accumulators of few elements give up");
        write_answers(all.layout.out, mine.number, i32(all.numbers), mine.count, all.answer, acc, room, asked);
    }
}

// Begins a kernel: ABREAST(name, blocks)(all) { ... }, for launches of which `blocks` fit a multiprocessor.
#define ABREAST(name, blocks) \
    HAS_PARAMETER(NAMED(abreast_##name, ELEMENT)) \
    static __device__ __forceinline__ void reduce(const Abreast &); \
    extern "C" __global__ void __launch_bounds__(STRIDED_THREADS, blocks) NAMED(abreast_##name, ELEMENT)(const __grid_constant__ Abreast all) \
    { \
        reduce(all); \
    } \
    static __device__ __forceinline__ void reduce
