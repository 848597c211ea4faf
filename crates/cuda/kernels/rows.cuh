// Short rows side by side in a warp: 1 to 32 neighbouring lanes share a row, so that no lane waits for the others of a block.
//
// A row is read as the aligned vectors of 16 bytes that it touches, which its lanes take in turns, a lane `each` of one row. What
// such a vector has before or behind the row is replaced by `fill`, elements that change no answer.

#pragma once

#include "load.cuh"
#include "name.cuh"

constexpr int ROW_THREADS = 256;
constexpr int ROW_BLOCKS = 4;

constexpr u32 WARP = 32;

struct ShortRows {
    const char *data; // the first row
    u64 count;
    i64 stride; // bytes from row to row
    u32 bytes;  // of a row
    u32 shift;  // the lanes of a row are 2 to the power of this
    u32 each;   // the vectors of a lane of a row: 1, 2 or 4
    // Bytes that may be read beside the rows: all of a dense array, else none.
    const char *begin, *end;
    u64 fill;

    __device__ __forceinline__ const char *row(u64 r) const { return data + i64(r) * stride; }
    __device__ __forceinline__ u32 lanes() const { return 1u << shift; }
    // This lane's place among those of its row, and which of the warp's groups of them it is in.
    __device__ __forceinline__ u32 slot() const { return threadIdx.x & (lanes() - 1); }
    __device__ __forceinline__ u32 group() const { return threadIdx.x % WARP >> shift; }
    __device__ __forceinline__ u32 groups() const { return WARP >> shift; }
    // Rows that a lane has in a tile.
    __device__ __forceinline__ u32 sets() const { return VECTORS / each; }
};

// A vector of which only the bytes from `low` to `high` may be read.
template <class Bits>
__device__ __forceinline__ uint4 read_part(const char *at, int low, int high)
{
    u64 first = 0, second = 0;
#pragma unroll 1
    for (int i = low; i < high; i += sizeof(Bits)) {
        const u64 bits = *reinterpret_cast<const Bits *>(at + i);
        if (i < 8)
            first |= bits << 8 * i;
        else
            second |= bits << 8 * (i - 8);
    }
    return make_uint4(u32(first), u32(first >> 32), u32(second), u32(second >> 32));
}

// Two words of a vector, the bytes from `low` to `high`, with `fill` in the places of the others.
__device__ __forceinline__ void fill_around(u32 &x, u32 &y, int low, int high, u64 fill)
{
    low = min(max(low, 0), 8);
    high = min(high, 8);
    const u64 keep = low < high ? ~u64(0) >> (64 - 8 * (high - low)) << 8 * low : 0;
    const u64 both = ((u64(y) << 32 | x) & keep) | (fill & ~keep);
    x = u32(both);
    y = u32(both >> 32);
}

// What a warp reads at once: vectors of EACH to a lane of VECTORS / EACH rows, its sets.
template <class T>
struct RowTile {
    using Bits = typename Element<T>::Bits;

    uint4 v[VECTORS];

    // The row of a lane's set in the tile-th tile.
    static __device__ __forceinline__ u64 row(const ShortRows &rows, u64 tile, u32 set)
    {
        return (tile * rows.sets() + set) * rows.groups() + rows.group();
    }

    static __device__ __forceinline__ u64 tiles(const ShortRows &rows)
    {
        const u64 of_a_tile = rows.sets() * rows.groups();
        return (rows.count + of_a_tile - 1) / of_a_tile;
    }

    __device__ __forceinline__ void load(const ShortRows &rows, u64 tile)
    {
        // The first and the last byte of a vector that are a row's, where not all are.
        int edges[VECTORS];
#pragma unroll
        for (int q = 0; q < VECTORS; ++q) {
            const u64 r = row(rows, tile, q / rows.each);
            const char *begin = rows.row(r), *end = begin + rows.bytes;
            const char *at = begin - u64(begin) % 16 + 16 * (rows.slot() + (q % rows.each << rows.shift));
            const bool none = r >= rows.count || at >= end;
            const int low = at < begin ? int(begin - at) : 0, high = end - at < 16 ? int(end - at) : 16;
            edges[q] = none ? 0 : low | high << 8;
            if (!none && ((low == 0 && high == 16) || (at >= rows.begin && at + 16 <= rows.end)))
                v[q] = *reinterpret_cast<const uint4 *>(at);
            else
                v[q] = none ? make_uint4(0, 0, 0, 0) : read_part<Bits>(at, low, high);
        }
#pragma unroll
        for (int q = 0; q < VECTORS; ++q) {
            if (edges[q] != 16 << 8) {
                const int low = edges[q] & 0xff, high = edges[q] >> 8;
                fill_around(v[q].x, v[q].y, low, high, rows.fill);
                fill_around(v[q].z, v[q].w, low - 8, high - 8, rows.fill);
            }
        }
    }
};

// Calls `take` with each tile that this warp has.
template <class T, class Take>
__device__ __forceinline__ void each_tile(const ShortRows &rows, Take take)
{
    const u64 warps = u64(gridDim.x) * (ROW_THREADS / WARP);
#pragma unroll 1
    for (u64 tile = u64(blockIdx.x) * (ROW_THREADS / WARP) + threadIdx.x / WARP; tile < RowTile<T>::tiles(rows); tile += warps) {
        RowTile<T> now;
        now.load(rows, tile);
        take(now, tile);
    }
}

template <int N>
__device__ __forceinline__ bool any(const bool (&flags)[N])
{
    bool some = false;
#pragma unroll
    for (int i = 0; i < N; ++i)
        some = some || flags[i];
    return some;
}

// Calls `take` with each row of a tile but those to skip, and with its index: each lane of a row has some of its sets.
template <class T, int SETS, class Row, class Take>
__device__ __forceinline__ void each_answer(const ShortRows &rows, u64 tile, const Row (&row)[SETS], const bool (&skip)[SETS], Take take)
{
#pragma unroll 1
    for (u32 set = rows.slot(); set < SETS; set += rows.lanes()) {
        Row mine = row[0];
        bool skipped = skip[0];
#pragma unroll
        for (int s = 1; s < SETS; ++s) {
            if (set == s) {
                mine = row[s];
                skipped = skip[s];
            }
        }
        const u64 r = RowTile<T>::row(rows, tile, set);
        if (!skipped && r < rows.count)
            take(mine, r);
    }
}

// The r-th of `count` rows of n elements is r * stride bytes behind data; a dense array may be read from begin to end. `each` is how
// many vectors each of the 2^shift lanes of a row takes, 1, 2 or 4. The r-th answer goes to the r-th place of out.
#define ROWS(name) \
    static __device__ __forceinline__ void reduce(ShortRows, u64, u32, u32, u32, void *, u32 *); \
    extern "C" __global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS) NAMED(name, ELEMENT)(const char *data, u64 count, \
        i64 stride, u64 n, const char *begin, const char *end, u32 shift, u32 each, u32 ask, u32 absolute, u32 spread, void *out, \
        u32 *misfits) \
    { \
        const ShortRows rows = {data, count, stride, u32(n * sizeof(Element<ELEMENT>::Bits)), shift, each, begin, end, 0}; \
        reduce(rows, n, ask, absolute, spread, out, misfits); \
    } \
    static __device__ __forceinline__ void reduce
