// Short rows side by side in a warp: 1 to 32 neighbouring lanes share a row, so that no lane waits for the others of a block.
//
// A row is read as the aligned vectors of 16 bytes that it touches, which its lanes take in turns, a lane `each` of one row. What
// such a vector has before or behind the row is replaced by `fill`, elements that change no answer.

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
    u32 each;   // the vectors of a lane of a row: 1, 2 or 4
    // Bytes that may be read beside the rows: all of a dense array, else none.
    const char *begin, *end;
    // Whether rows follow each other from an aligned address on and fill their lanes' vectors.
    bool exact;
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

    // This lane's sets of a tile.
    __device__ __forceinline__ void load(const ShortRows &rows, u64 tile)
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
            const int offset = int(16 * (rows.slot() + ((q & (rows.each - 1)) << rows.shift)) - u32(u64(begin) % 16));
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

// A lane's place in tiles of rows that fill their lanes' vectors and follow each other from an aligned address on.
struct ExactTiles {
    const char *at;
    u32 offsets[VECTORS];

    __device__ __forceinline__ ExactTiles(const ShortRows &rows) : at(rows.data + rows.group() * rows.bytes + 16 * rows.slot())
    {
        const u32 log = rows.each / 2, apart = rows.groups() * rows.bytes;
#pragma unroll
        for (u32 q = 0; q < VECTORS; ++q)
            offsets[q] = (q >> log) * apart + ((q & (rows.each - 1)) << rows.shift) * 16;
    }

    __device__ __forceinline__ void load(uint4 (&v)[VECTORS], u64 tile) const
    {
        const char *first = at + tile * (VECTORS * WARP * 16);
#pragma unroll
        for (u32 q = 0; q < VECTORS; ++q)
            v[q] = *reinterpret_cast<const uint4 *>(first + offsets[q]);
    }
};

// Calls `take` with each tile that this warp has; the next one's loads are on their way then.
template <class T, class Take>
__device__ __forceinline__ void each_tile(const ShortRows &rows, Take take)
{
    const u32 log = RowTile<T>::log_rows(rows);
    const u64 warps = u64(gridDim.x) * (ROW_THREADS / WARP), tiles = (rows.count + (1u << log) - 1) >> log;
    const u64 first = u64(blockIdx.x) * (ROW_THREADS / WARP) + threadIdx.x / WARP;
    const u64 whole = rows.exact ? rows.count >> log : 0;
    const ExactTiles exact(rows);
    RowTile<T> now, next;
#pragma unroll 1
    for (u64 tile = first; tile < tiles + warps; tile += warps) {
        if (tile < whole)
            exact.load(next.v, tile);
        else if (tile < tiles)
            next.load(rows, tile);
        if (tile != first)
            take(now, tile - warps);
        now = next;
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
// many vectors each of the 2^shift lanes of a row takes, 1, 2 or 4. The r-th answer goes to the r-th place of out.
#define ROWS(name) ROWS_OF(name, ROW_BLOCKS)
#define ROWS_OF(name, blocks) \
    static __device__ __forceinline__ void reduce(ShortRows, u64, u32, u32, u32, void *, u32 *); \
    extern "C" __global__ void __launch_bounds__(ROW_THREADS, blocks) NAMED(name, ELEMENT)(const char *data, u64 count, \
        i64 stride, u64 n, const char *begin, const char *end, u32 shift, u32 each, u32 ask, u32 absolute, u32 spread, void *out, \
        u32 *overflow) \
    { \
        const u32 bytes = u32(n * sizeof(Element<ELEMENT>::Bits)); \
        const bool exact = begin != end && u64(data) % 16 == 0 && bytes == 16 * each << shift; \
        const ShortRows rows = {data, count, stride, bytes, shift, each, begin, end, exact, 0}; \
        reduce(rows, n, ask, absolute, spread, out, overflow); \
    } \
    static __device__ __forceinline__ void reduce
