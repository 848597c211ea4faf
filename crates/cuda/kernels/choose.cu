// Copies the elements of an array that marks choose, with something else in the place of the others, and to 64 bits where that is asked for.
// Axes are any, at any strides, also negative and 0; the first goes along the lanes of a warp.
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "element.cuh"
#include "name.cuh"

constexpr int THREADS = 256;
// Elements of a thread that are on their way at once.
constexpr int EACH = 8;
constexpr int AXES = 6;

// The elements from one step to the next, in the source, in the target and among the marks.
struct Axis {
    u32 len;
    i64 from, to, marks;
};

// What is done, as bits of a word.
enum Choice : u32 {
    WIDENS = 1,      // to f64, or to i64
    FILLS = 2,       // no element is chosen, and none is read
    NAN_IS_FAR = 4,  // NaNs that are chosen become infinite,
    NAN_IS_SEEN = 8, // and are told of; of integers, what is in the place of the others is
    ONLY_NAN = 16    // no other element is chosen
};

template <class T>
__device__ __forceinline__ u64 widened(typename Element<T>::Bits bits)
{
    if constexpr (Element<T>::FLOAT)
        return u64(__double_as_longlong(f64(Element<T>::value(bits))));
    else
        return u64(Element<T>::key(bits));
}

// A row is a run along the first axis. 2^log threads take it together, so that the places along other axes are found once for EACH elements.
template <class T>
__device__ __forceinline__ void choose(const typename Element<T>::Bits *from, void *to, const u8 *marks, u32 choice, u64 fill, u32 *seen,
    const Axis (&axes)[AXES], u32 count, u32 rows, u32 log)
{
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    bool any = false;
    const Axis &run = axes[0];
    const u32 width = 1u << log, reach = width * EACH, parts = (run.len + reach - 1) / reach, at_once = THREADS >> log;
    // No more parts than elements.
    for (u64 part = u64(blockIdx.x) * at_once + (threadIdx.x >> log); part < rows * parts; part += u64(gridDim.x) * at_once) {
        u32 index = u32(part) / parts;
        const u32 first = (u32(part) - index * parts) * reach + (threadIdx.x & (width - 1));
        i64 source = first * run.from, place = first * run.to, mark = first * run.marks;
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
        Bits items[EACH];
        bool chosen[EACH];
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            chosen[k] = (choice & FILLS) == 0 && first + k * width < run.len;
            // Those that are not marked are read, too: no load waits for another one.
            items[k] = chosen[k] ? from[source + k * (width * run.from)] : Bits(0);
            if (marks != nullptr && chosen[k])
                chosen[k] = marks[mark + k * (width * run.marks)] != 0;
        }
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            if (first + k * width >= run.len)
                continue;
            if constexpr (Format::FLOAT) {
                if ((choice & (NAN_IS_FAR | NAN_IS_SEEN)) != 0 && chosen[k] && Format::is_nan(items[k])) {
                    items[k] = Format::INFINITE;
                    any = true;
                }
                if ((choice & ONLY_NAN) != 0 && !Format::is_nan(items[k]))
                    chosen[k] = false;
            } else if constexpr (sizeof(Bits) == 8) {
                any = any || chosen[k] && items[k] == fill;
            }
            const i64 target = place + k * (width * run.to);
            if ((choice & WIDENS) != 0)
                static_cast<u64 *>(to)[target] = chosen[k] ? widened<T>(items[k]) : fill;
            else
                static_cast<Bits *>(to)[target] = chosen[k] ? items[k] : Bits(fill);
        }
    }
    // Once a block, by a store: the word is in the host's memory, where an atomic operation takes a microsecond.
    if ((Format::FLOAT || sizeof(Bits) == 8) && (choice & NAN_IS_SEEN) != 0 && __syncthreads_or(any) && threadIdx.x == 0)
        *static_cast<volatile u32 *>(seen) = 1;
}

#define AXIS(i) u32 len##i, i64 from##i, i64 to##i, i64 marks##i

extern "C" __global__ void __launch_bounds__(THREADS) NAMED(choose, ELEMENT)(const Element<ELEMENT>::Bits *from, void *to, const u8 *marks,
    u32 choice, u64 fill, u32 *seen, u32 rows, u32 log, u32 count, AXIS(0), AXIS(1), AXIS(2), AXIS(3), AXIS(4), AXIS(5))
{
    const Axis axes[AXES] = {{len0, from0, to0, marks0}, {len1, from1, to1, marks1}, {len2, from2, to2, marks2}, {len3, from3, to3, marks3},
        {len4, from4, to4, marks4}, {len5, from5, to5, marks5}};
    choose<ELEMENT>(from, to, marks, choice, fill, seen, axes, count, rows, log);
}
