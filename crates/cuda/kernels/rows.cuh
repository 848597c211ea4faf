// Short rows side by side in a warp: 1 to 32 neighbouring lanes share a row, so that no lane waits for the others of a block.
//
// A row is read as the aligned vectors of 16 bytes that it touches, which its lanes take in turns, a lane `each` of one row. What
// such a vector has before or behind the row is replaced by `fill`, elements that change no answer. A row that is longer than what
// all lanes of a warp take is read in several parts, one after the other.

#pragma once

#include "fold.cuh"
#include "load.cuh"
#include "name.cuh"

constexpr int ROW_THREADS = 256;
constexpr int ROW_BLOCKS = 3;

constexpr u32 WARP = 32;

struct ShortRows {
    const char *data; // the first row
    u64 count;
    i64 stride; // bytes from row to row
    u32 bytes;  // of a row
    u32 shift;  // the lanes of a row are 2 to the power of this
    u32 each;   // the vectors of a lane of a row's part: 1, 2 or 4
    u32 parts;  // of a row
    // Bytes that may be read beside the rows: all of a dense array, else none.
    const char *begin, *end;
    // Whether rows begin at aligned addresses, not far from each other, and have whole vectors.
    bool aligned;
    u64 fill;

    __device__ __forceinline__ const char *row(u64 r) const { return data + i64(r) * stride; }
    __device__ __forceinline__ u32 lanes() const { return 1u << shift; }
    // This lane's place among those of its row, and which of the warp's groups of them it is in.
    __device__ __forceinline__ u32 slot() const { return threadIdx.x & (lanes() - 1); }
    __device__ __forceinline__ u32 group() const { return threadIdx.x % WARP >> shift; }
    __device__ __forceinline__ u32 groups() const { return WARP >> shift; }
    // Rows that a lane has in a tile.
    __device__ __forceinline__ u32 sets() const { return VECTORS >> each / 2; }
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

// A word of a vector, the bytes from `low` to `high` of the vector, with `fill` in the places of the others; the word begins at byte
// `at`. Shifts by 32 and more leave nothing.
__device__ __forceinline__ u32 fill_around(u32 word, int at, int low, int high, u32 fill)
{
    u32 upper, lower;
    asm("shl.b32 %0, %1, %2;" : "=r"(upper) : "r"(~0u), "r"(8 * max(low - at, 0)));
    asm("shr.u32 %0, %1, %2;" : "=r"(lower) : "r"(~0u), "r"(8 * max(at + 4 - high, 0)));
    return (word & (upper & lower)) | (fill & ~(upper & lower));
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

    // Rows of a tile: 2 to the power of this.
    static __device__ __forceinline__ u32 log_rows(const ShortRows &rows) { return 7 - rows.each / 2 - rows.shift; }

    // A part of this lane's sets of a tile.
    __device__ __forceinline__ void load(const ShortRows &rows, u64 tile, u32 part = 0)
    {
        const u64 first = row(rows, tile, 0);
        const u32 left = first < rows.count ? u32(min(rows.count - first, u64(1) << 31)) : 0;
        const char *data = rows.row(first);
        const i64 apart = i64(rows.groups()) * rows.stride;
        const u32 log = rows.each / 2;
        // The first and the last byte of a vector that are a row's.
        int low[VECTORS], high[VECTORS];
#pragma unroll
        for (u32 q = 0; q < VECTORS; ++q) {
            const u32 set = q >> log;
            const char *begin = data + set * apart;
            const int offset = int(16 * (rows.slot() + ((part * rows.each + (q & (rows.each - 1))) << rows.shift)) - u32(u64(begin) % 16));
            const char *at = begin + offset;
            const bool none = set * rows.groups() >= left || offset >= int(rows.bytes);
            low[q] = none ? 16 : max(-offset, 0);
            high[q] = min(int(rows.bytes) - offset, 16);
            const bool inside = low[q] == 0 && high[q] == 16;
            v[q] = make_uint4(0, 0, 0, 0);
            if (!none) {
                if (inside || (at >= rows.begin && at + 16 <= rows.end))
                    v[q] = *reinterpret_cast<const uint4 *>(at);
                else
                    v[q] = read_part<Bits>(at, low[q], high[q]);
            }
        }
        const u32 even = u32(rows.fill), odd = u32(rows.fill >> 32);
#pragma unroll
        for (u32 q = 0; q < VECTORS; ++q) {
            if (low[q] != 0 || high[q] != 16) {
                v[q].x = fill_around(v[q].x, 0, low[q], high[q], even);
                v[q].y = fill_around(v[q].y, 4, low[q], high[q], odd);
                v[q].z = fill_around(v[q].z, 8, low[q], high[q], even);
                v[q].w = fill_around(v[q].w, 12, low[q], high[q], odd);
            }
        }
    }
};

// A lane's place in whole tiles of rows that begin at aligned addresses and have whole vectors.
template <class T>
struct AlignedTiles {
    const char *at;
    i64 tile_bytes;
    u32 part_bytes, offsets[VECTORS];
    int left[VECTORS]; // bytes of the row from each of the lane's vectors on
    uint4 fill;

    __device__ __forceinline__ AlignedTiles(const ShortRows &rows)
        : at(rows.data + i64(rows.group()) * rows.stride + 16 * rows.slot()), tile_bytes(rows.stride << RowTile<T>::log_rows(rows)),
          part_bytes(16 * rows.each << rows.shift)
    {
        const u32 log = rows.each / 2, apart = rows.groups() * u32(rows.stride);
#pragma unroll
        for (u32 q = 0; q < VECTORS; ++q) {
            const u32 vector = (q & (rows.each - 1)) << rows.shift;
            offsets[q] = (q >> log) * apart + vector * 16;
            left[q] = int(rows.bytes) - int(16 * (rows.slot() + vector));
        }
        fill = {u32(rows.fill), u32(rows.fill >> 32), u32(rows.fill), u32(rows.fill >> 32)};
    }

    __device__ __forceinline__ void load(uint4 (&v)[VECTORS], u64 tile, u32 part) const
    {
        const char *first = at + i64(tile) * tile_bytes + part * part_bytes;
#pragma unroll
        for (u32 q = 0; q < VECTORS; ++q) {
            v[q] = fill;
            if (int(part * part_bytes) < left[q])
                v[q] = *reinterpret_cast<const uint4 *>(first + offsets[q]);
        }
    }
};

// Calls `take` with each part of each tile that this warp has; the next one's loads are on their way then.
template <class T, class Take>
__device__ __forceinline__ void each_part(const ShortRows &rows, Take take)
{
    const u32 log = RowTile<T>::log_rows(rows);
    const u64 warps = u64(gridDim.x) * (ROW_THREADS / WARP), tiles = (rows.count + (1u << log) - 1) >> log;
    const u64 whole = rows.aligned ? rows.count >> log : 0;
    const AlignedTiles<T> aligned(rows);
    RowTile<T> now, next;
    u64 tile = u64(blockIdx.x) * (ROW_THREADS / WARP) + threadIdx.x / WARP, before = tile;
    u32 part = 0, part_before = rows.parts;
#pragma unroll 1
    while (before < tiles) {
        if (tile < whole)
            aligned.load(next.v, tile, part);
        else if (tile < tiles)
            next.load(rows, tile, part);
        if (part_before < rows.parts)
            take(now, before, part_before);
        now = next;
        before = tile;
        part_before = part;
        const bool last = part + 1 == rows.parts;
        part = last ? 0 : part + 1;
        tile += last ? warps : 0;
    }
}

// The same with tiles of rows that have one part.
template <class T, class Take>
__device__ __forceinline__ void each_tile(ShortRows rows, Take take)
{
    rows.parts = 1;
    each_part<T>(rows, [&](const RowTile<T> &tile, u64 index, u32) { take(tile, index); });
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

// Calls `take`, with all lanes of the warp, with the index of each row of a tile that lacks an answer. All lanes of such a row say so.
template <class T, int SETS, class Take>
__device__ __forceinline__ void each_lacking(const ShortRows &rows, u64 tile, bool (&lacks)[SETS], Take take)
{
#pragma unroll 1
    while (const u32 lane = __ffs(int(__ballot_sync(ALL_LANES, any(lacks))))) {
        int set = 0;
#pragma unroll
        for (int s = SETS - 1; s >= 0; --s)
            set = lacks[s] ? s : set;
        set = __shfl_sync(ALL_LANES, set, lane - 1);
        const u32 group = (lane - 1) >> rows.shift;
        take((tile * SETS + set) * rows.groups() + group);
#pragma unroll
        for (int s = 0; s < SETS; ++s)
            lacks[s] = lacks[s] && !(s == set && rows.group() == group);
    }
}

// The r-th of `count` rows of n elements is r * stride bytes behind data; a dense array may be read from begin to end. `each` is how
// many vectors each of the 2^shift lanes of a row takes of each of its parts, 1, 2 or 4; only tallies take more than one part. The r-th
// answer goes to the r-th place of out.
#define ROWS(name) ROWS_OF(name, ROW_BLOCKS)
#define ROWS_OF(name, blocks) \
    static __device__ __forceinline__ void reduce(ShortRows, u64, u32, u32, u32, void *, u32 *); \
    extern "C" __global__ void __launch_bounds__(ROW_THREADS, blocks) NAMED(name, ELEMENT)(const char *data, u64 count, \
        i64 stride, u64 n, const char *begin, const char *end, u32 shift, u32 each, u32 parts, u32 ask, u32 absolute, u32 spread, \
        void *out, u32 *overflow) \
    { \
        const u32 bytes = u32(n * sizeof(Element<ELEMENT>::Bits)); \
        const bool aligned = (u64(data) | u64(stride) | bytes) % 16 == 0 && u64(stride) < 1 << 24; \
        const ShortRows rows = {data, count, stride, bytes, shift, each, parts, begin, end, aligned, 0}; \
        reduce(rows, n, ask, absolute, spread, out, overflow); \
    } \
    static __device__ __forceinline__ void reduce
