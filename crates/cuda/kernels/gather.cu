// Copies a box of an array to where rows can be reduced: any axes, any strides, also negative and 0.
// elements: u8 u16 u32 u64
//
// Axes come with their length and the elements from one step to the next, in the source and in the target. The lanes of a warp
// go along the first axis, and where that is short along the second and so on: one order serves both sides if the source's
// neighbours are the target's, or if the side that goes by larger steps has few of them. Else `transpose` has tiles of the first
// two axes read along the second, which is the source's, and written along the first, which is the target's.

#include "element.cuh"
#include "name.cuh"

constexpr int THREADS = 256;
// Elements of a thread that are on their way at once.
constexpr int EACH = 4;
constexpr int TILE = 32;
constexpr int AXES = 6;

struct Axis {
    u32 len;
    i64 from, to;
};

// Moves both places by the axes from FIRST on, of which `index` is the place in their order.
template <int FIRST>
__device__ __forceinline__ void step(const Axis (&axes)[AXES], u32 count, u32 index, i64 &from, i64 &to)
{
#pragma unroll
    for (int a = FIRST; a < AXES; ++a) {
        if (a < count) {
            const u32 rest = index / axes[a].len;
            const i64 i = index - rest * axes[a].len;
            from += i * axes[a].from;
            to += i * axes[a].to;
            index = rest;
        }
    }
}

template <class T>
__device__ __forceinline__ void in_order(const T *from, T *to, const Axis (&axes)[AXES], u32 count, u32 total)
{
    for (u64 first = u64(blockIdx.x) * (THREADS * EACH) + threadIdx.x; first < total; first += u64(gridDim.x) * (THREADS * EACH)) {
        T items[EACH];
        i64 places[EACH];
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            const u64 index = first + k * THREADS;
            i64 place = 0;
            places[k] = 0;
            if (index < total) {
                step<0>(axes, count, u32(index), place, places[k]);
                items[k] = from[place];
            }
        }
#pragma unroll
        for (int k = 0; k < EACH; ++k)
            if (first + k * THREADS < total)
                to[places[k]] = items[k];
    }
}

template <class T>
__device__ __forceinline__ void in_tiles(const T *from, T *to, const Axis (&axes)[AXES], u32 count, u32 total)
{
    // A column more, so that columns lie in different banks.
    __shared__ T tile[TILE][TILE + 1];
    const u32 lane = threadIdx.x % TILE, warp = threadIdx.x / TILE;
    const u32 along = (axes[0].len + TILE - 1) / TILE, across = (axes[1].len + TILE - 1) / TILE;
    for (u32 index = blockIdx.x; index < total; index += gridDim.x) {
        const u32 first = index % along * TILE, second = index / along % across * TILE;
        i64 begin = 0, end = 0;
        step<2>(axes, count, index / along / across, begin, end);
        if (second + lane < axes[1].len) {
#pragma unroll
            for (u32 row = warp; row < TILE; row += THREADS / TILE)
                if (first + row < axes[0].len)
                    tile[row][lane] = from[begin + i64(first + row) * axes[0].from + i64(second + lane) * axes[1].from];
        }
        __syncthreads();
        if (first + lane < axes[0].len) {
#pragma unroll
            for (u32 row = warp; row < TILE; row += THREADS / TILE)
                if (second + row < axes[1].len)
                    to[end + i64(first + lane) * axes[0].to + i64(second + row) * axes[1].to] = tile[lane][row];
        }
        __syncthreads();
    }
}

#define AXIS(i) u32 len##i, i64 from##i, i64 to##i

// `total` counts elements, or tiles if there are two axes to transpose.
extern "C" __global__ void __launch_bounds__(THREADS) NAMED(gather, ELEMENT)(const ELEMENT *from, ELEMENT *to, u32 total,
    u32 transpose, u32 count, AXIS(0), AXIS(1), AXIS(2), AXIS(3), AXIS(4), AXIS(5))
{
    const Axis axes[AXES] = {{len0, from0, to0}, {len1, from1, to1}, {len2, from2, to2}, {len3, from3, to3}, {len4, from4, to4},
        {len5, from5, to5}};
    if (transpose)
        in_tiles(from, to, axes, count, total);
    else
        in_order(from, to, axes, count, total);
}
