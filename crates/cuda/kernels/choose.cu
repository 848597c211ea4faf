// Copies the elements of an array that marks choose, with something else in the place of the others, and to 64 bits where that is asked for.
// Axes are any, at any strides, also negative and 0; the first goes along the lanes of a warp.
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "element.cuh"
#include "name.cuh"

constexpr int THREADS = 256;
// Elements of a thread that are on their way at once.
constexpr int EACH = 4;
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

template <class T>
__device__ __forceinline__ void choose(const typename Element<T>::Bits *from, void *to, const u8 *marks, u32 choice, u64 fill, u32 *seen,
    const Axis (&axes)[AXES], u32 count, u32 total)
{
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    bool any = false;
    for (u64 first = u64(blockIdx.x) * (THREADS * EACH) + threadIdx.x; first < total; first += u64(gridDim.x) * (THREADS * EACH)) {
        Bits items[EACH];
        bool chosen[EACH];
        i64 places[EACH];
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            chosen[k] = false;
            items[k] = 0;
            places[k] = 0;
            u32 index = u32(first) + k * THREADS;
            if (first + k * THREADS < total) {
                i64 source = 0, mark = 0;
#pragma unroll
                for (int a = 0; a < AXES; ++a) {
                    if (a < count) {
                        const u32 rest = a + 1 < count ? index / axes[a].len : 0;
                        const i64 i = index - rest * axes[a].len;
                        source += i * axes[a].from;
                        places[k] += i * axes[a].to;
                        mark += i * axes[a].marks;
                        index = rest;
                    }
                }
                chosen[k] = (choice & FILLS) == 0 && (marks == nullptr || marks[mark] != 0);
                if (chosen[k])
                    items[k] = from[source];
            }
        }
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            if (first + k * THREADS >= total)
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
            if ((choice & WIDENS) != 0)
                static_cast<u64 *>(to)[places[k]] = chosen[k] ? widened<T>(items[k]) : fill;
            else
                static_cast<Bits *>(to)[places[k]] = chosen[k] ? items[k] : Bits(fill);
        }
    }
    // Once a block, by a store: the word is in the host's memory, where an atomic operation takes a microsecond.
    if ((Format::FLOAT || sizeof(Bits) == 8) && (choice & NAN_IS_SEEN) != 0 && __syncthreads_or(any) && threadIdx.x == 0)
        *static_cast<volatile u32 *>(seen) = 1;
}

#define AXIS(i) u32 len##i, i64 from##i, i64 to##i, i64 marks##i

extern "C" __global__ void __launch_bounds__(THREADS) NAMED(choose, ELEMENT)(const Element<ELEMENT>::Bits *from, void *to, const u8 *marks,
    u32 choice, u64 fill, u32 *seen, u32 total, u32 count, AXIS(0), AXIS(1), AXIS(2), AXIS(3), AXIS(4), AXIS(5))
{
    const Axis axes[AXES] = {{len0, from0, to0, marks0}, {len1, from1, to1, marks1}, {len2, from2, to2, marks2}, {len3, from3, to3, marks3},
        {len4, from4, to4, marks4}, {len5, from5, to5, marks5}};
    choose<ELEMENT>(from, to, marks, choice, fill, seen, axes, count, total);
}
