// Copies the elements of an array that marks choose, with something else in the place of the others, and to 64 bits where that is asked for.
// Axes are any, at any strides, also negative and 0; the first goes along the lanes of a warp.
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "name.cuh"
#include "unaligned.cuh"

constexpr int THREADS = 256;
// Elements of a thread that are on their way at once, and vectors where elements lie together.
constexpr int EACH = 8;
constexpr int VECTORS = 4;
// Blocks that fit a multiprocessor: elements that do not lie together want many threads, and those of a byte many registers.
constexpr int BLOCKS = sizeof(Element<ELEMENT>::Bits) == 1 ? 2 : 4;
constexpr int AXES = 6;

// The elements from one step to the next, in the source, in the target and among the marks.
struct Axis {
    u32 len;
    i64 from, to, marks;
};

// What is done, as bits of a word.
enum Choice : u32 {
    WIDENS = 1,      // to f64, or to i64
    NAN_IS_FAR = 2,  // NaNs that are chosen become infinite,
    NAN_IS_SEEN = 4, // and are told of; of integers, what is in the place of the others is
    ONLY_NAN = 8,    // no other element is chosen
    TOGETHER = 16    // the elements of a run, their copies and their marks lie together: of the same type
};

template <class T>
__device__ __forceinline__ u64 widened(typename Element<T>::Bits bits)
{
    if constexpr (Element<T>::FLOAT)
        return u64(__double_as_longlong(f64(Element<T>::value(bits))));
    else
        return u64(Element<T>::key(bits));
}

// The marks of a vector's elements.
template <int V>
struct MarksOf {
    using Type = typename PackOf<V>::Type;
};
template <>
struct MarksOf<2> {
    using Type = u16;
};

// What becomes of elements.
template <class T>
struct Chooser {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    static constexpr int V = 16 / int(sizeof(Bits));
    using Marks = typename MarksOf<V>::Type;

    u32 choice;
    u64 fill;
    bool any = false;

    // Whether an element that is marked or not comes into the copy, and as what.
    __device__ __forceinline__ bool takes(Bits &bits, bool chosen)
    {
        if constexpr (Format::FLOAT) {
            if ((choice & (NAN_IS_FAR | NAN_IS_SEEN)) != 0 && chosen && Format::is_nan(bits)) {
                bits = Format::INFINITE;
                any = true;
            }
            return chosen && ((choice & ONLY_NAN) == 0 || Format::is_nan(bits));
        } else if constexpr (sizeof(Bits) == 8) {
            any = any || chosen && bits == fill;
        }
        return chosen;
    }

    // A vector of elements, and their marks.
    struct Marked {
        Bits items[V];
        u8 marks[sizeof(Marks)];
    };
    // At an end of a run of `len` elements: those from the first-th on that it has.
    static __device__ __noinline__ Marked at_end(const Bits *from, const u8 *marks, int first, int len)
    {
        Marked some = {};
#pragma unroll
        for (int i = 0; i < V; ++i) {
            if (first + i >= 0 && first + i < len) {
                some.items[i] = from[first + i];
                some.marks[i] = marks == nullptr ? 1 : marks[first + i];
            }
        }
        return some;
    }
    // Vectors that lie `apart` from each other and are aligned alike. All loads are on their way before one is waited for.
    template <class Pack, int N>
    static __device__ __forceinline__ void read(Pack (&packs)[N], const char *at, u32 apart)
    {
        const u32 off = u32(u64(at)) % sizeof(Pack);
        at -= off;
#pragma unroll
        for (int k = 0; k < N; ++k)
            packs[k] = *reinterpret_cast<const Pack *>(at + k * apart);
        if (off == 0)
            return;
        Pack behind[N];
#pragma unroll
        for (int k = 0; k < N; ++k)
            behind[k] = reinterpret_cast<const Pack *>(at + k * apart)[1];
#pragma unroll
        for (int k = 0; k < N; ++k)
            packs[k] = beside(packs[k], behind[k], off);
    }
    template <class Pack>
    static __device__ __forceinline__ Pack beside(const Pack &low, const Pack &high, u32 off)
    {
        if constexpr (sizeof(Pack) == 2)
            return Pack((u32(high) << 16 | low) >> 8 * off);
        else
            return across(low, high, off);
    }

    // The elements of vectors that are `width` vectors apart, and their marks.
    template <int N>
    static __device__ __forceinline__ void read_inside(Marked (&some)[N], const Bits *from, const u8 *marks, u32 width)
    {
        uint4 items[N];
        Marks its[N] = {};
        read(items, reinterpret_cast<const char *>(from), width * 16);
        if (marks != nullptr)
            read(its, reinterpret_cast<const char *>(marks), width * V);
#pragma unroll
        for (int k = 0; k < N; ++k) {
            memcpy(some[k].items, &items[k], sizeof(items[k]));
            memcpy(some[k].marks, &its[k], sizeof(its[k]));
        }
    }

    // A part of a run of `len` elements, as `width` threads take it together, of which this is the lane-th.
    __device__ __forceinline__ void copy(const Bits *from, Bits *to, const u8 *marks, int len, u32 part, u32 width, u32 lane)
    {
        // Elements in front of the copy's first whole vector are of one that is not whole.
        const int head = int(u32(-u64(to)) % 16 / sizeof(Bits)), begin = head - (head > 0 ? V : 0);
        Marked some[VECTORS];
        int first[VECTORS];
#pragma unroll
        for (int k = 0; k < VECTORS; ++k)
            first[k] = begin + int((part * VECTORS + k) * width + lane) * V;
        // What is read lies within the run.
        if (first[0] >= V && first[VECTORS - 1] + 2 * V <= len) {
            read_inside(some, from + first[0], marks == nullptr ? marks : marks + first[0], width);
        } else {
#pragma unroll
            for (int k = 0; k < VECTORS; ++k) {
                Marked one[1];
                if (first[k] >= V && first[k] + 2 * V <= len)
                    read_inside(one, from + first[k], marks == nullptr ? marks : marks + first[k], width);
                else if (first[k] < len)
                    one[0] = at_end(from, marks, first[k], len);
                some[k] = one[0];
            }
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            const bool whole = first[k] >= 0 && first[k] + V <= len;
#pragma unroll
            for (int i = 0; i < V; ++i) {
                const bool is = marks == nullptr || some[k].marks[i] != 0;
                some[k].items[i] = takes(some[k].items[i], is && (whole || first[k] + i >= 0 && first[k] + i < len)) ? some[k].items[i] : Bits(fill);
            }
            if (whole) {
                uint4 items;
                memcpy(&items, some[k].items, sizeof(items));
                *reinterpret_cast<uint4 *>(to + first[k]) = items;
            } else if (first[k] < len) {
#pragma unroll
                for (int i = 0; i < V; ++i)
                    if (first[k] + i >= 0 && first[k] + i < len)
                        to[first[k] + i] = some[k].items[i];
            }
        }
    }
};

// A row is a run along the first axis. 2^log threads take it together, so that the places along other axes are found once for EACH elements.
template <class T>
__device__ __forceinline__ void choose(const typename Element<T>::Bits *from, void *to, const u8 *marks, u32 choice, u64 fill, u32 *seen,
    const Axis (&axes)[AXES], u32 count, u32 rows, u32 log)
{
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    Chooser<T> chooser = {choice, fill};
    const bool together = (choice & TOGETHER) != 0;
    const Axis &run = axes[0];
    const u32 width = 1u << log, at_once = THREADS >> log, lane = threadIdx.x & (width - 1);
    // Of vectors there may be one more, which the copy begins within.
    const u32 reach = together ? width * (VECTORS * Chooser<T>::V) : width * EACH;
    const u32 parts = (run.len + (together ? Chooser<T>::V : 0) + reach - 1) / reach;
    // No more parts than elements.
    for (u64 part = u64(blockIdx.x) * at_once + (threadIdx.x >> log); part < rows * parts; part += u64(gridDim.x) * at_once) {
        u32 index = u32(part) / parts;
        const u32 number = u32(part) - index * parts;
        i64 source = 0, place = 0, mark = 0;
#pragma unroll
        for (int a = 1; a < AXES; ++a) {
            if (a < count) {
                const u32 rest = a + 1 < count ? index / axes[a].len : 0;
                const i64 i = index - rest * axes[a].len;
                source += i * axes[a].from;
                place += i * axes[a].to;
                mark += i * axes[a].marks;
                index = rest;
            }
        }
        if (together) {
            chooser.copy(from + source, static_cast<Bits *>(to) + place, marks == nullptr ? marks : marks + mark, int(run.len), number, width, lane);
            continue;
        }
        const u32 first = number * reach + lane;
        source += first * run.from;
        place += first * run.to;
        mark += first * run.marks;
        Bits items[EACH];
        bool chosen[EACH];
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            chosen[k] = first + k * width < run.len;
            // Those that are not marked are read, too: no load waits for another one.
            items[k] = chosen[k] ? from[source + k * (width * run.from)] : Bits(0);
            if (marks != nullptr && chosen[k])
                chosen[k] = marks[mark + k * (width * run.marks)] != 0;
        }
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            if (first + k * width >= run.len)
                continue;
            chosen[k] = chooser.takes(items[k], chosen[k]);
            const i64 target = place + k * (width * run.to);
            if ((choice & WIDENS) != 0)
                static_cast<u64 *>(to)[target] = chosen[k] ? widened<T>(items[k]) : fill;
            else
                static_cast<Bits *>(to)[target] = chosen[k] ? items[k] : Bits(fill);
        }
    }
    // Once a block, by a store: the word is in the host's memory, where an atomic operation takes a microsecond.
    if ((Format::FLOAT || sizeof(Bits) == 8) && (choice & NAN_IS_SEEN) != 0 && __syncthreads_or(chooser.any) && threadIdx.x == 0)
        *static_cast<volatile u32 *>(seen) = 1;
}

#define AXIS(i) u32 len##i, i64 from##i, i64 to##i, i64 marks##i

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) NAMED(choose, ELEMENT)(const Element<ELEMENT>::Bits *from, void *to, const u8 *marks,
    u32 choice, u64 fill, u32 *seen, u32 rows, u32 log, u32 count, AXIS(0), AXIS(1), AXIS(2), AXIS(3), AXIS(4), AXIS(5))
{
    const Axis axes[AXES] = {{len0, from0, to0, marks0}, {len1, from1, to1, marks1}, {len2, from2, to2, marks2}, {len3, from3, to3, marks3},
        {len4, from4, to4, marks4}, {len5, from5, to5, marks5}};
    choose<ELEMENT>(from, to, marks, choice, fill, seen, axes, count, rows, log);
}
