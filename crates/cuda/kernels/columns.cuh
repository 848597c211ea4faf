// Reductions of neighbouring columns: a thread owns the columns in 16 bytes of a row, its strip, and walks down the rows.
//
//     short tables    a thread for each strip, which it walks from the first row to the last
//     tall tables     tiles of `width` strips, for each some blocks that share the rows; in a block, groups of `width` threads take rows
//                     in turns
//
// What the groups of a block have is folded in shared memory, and what its blocks have in the scratch memory, where the last one
// finishes. There may be several tables at equal distances, and rows may lie along two axes: `inner` of them `stride` bytes apart, the
// next so many `jump` bytes behind these.

#pragma once

#include "load.cuh"
#include "name.cuh"
#include "ticket.cuh"
#include "unaligned.cuh"
#include "warp_output.cuh"

// Sums of floats want so many registers that a multiprocessor has two blocks: with 64 KiB on their way.
constexpr u32 COLUMN_THREADS = 256;
constexpr int COLUMN_BLOCKS = 2;

// Rows of a strip that are on their way at once. Two halves in turns would keep fewer there: the compiler waits for both where the first
// is wanted.
constexpr u32 BATCH = 8;

extern __shared__ __align__(16) u64 column_shared[];

struct ColumnTable {
    const char *data;
    u32 columns;
    u64 rows;
    u32 inner; // 0 if all rows lie along one axis
    i64 stride, jump;
    u32 tables;
    i64 table_stride;
    const char *first, *end; // no element lies below, or from there on
    u32 unit;  // a power of two that divides all addresses, distances and the bytes of a row
    u32 width; // 0 for short tables
    u32 answer; // bytes of an answer
    u64 *scratch;

    __device__ __forceinline__ bool is_tall() const { return width != 0; }
    __device__ __forceinline__ u32 groups() const { return COLUMN_THREADS / width; }

    // Of each table.
    template <class T>
    __device__ __forceinline__ u32 strips() const
    {
        return (columns + ITEMS<T> - 1) / ITEMS<T>;
    }
};

// Bytes from the first row to another one.
__device__ __forceinline__ i64 row_offset(u64 row, u32 inner, i64 stride, i64 jump)
{
    return inner == 0 ? i64(row) * stride : i64(row / inner) * jump + i64(row % inner) * stride;
}

// A thread's columns and rows.
template <class T>
struct Strip {
    using Bits = typename Element<T>::Bits;
    static constexpr u32 COLUMNS = ITEMS<T>;

    const char *data = nullptr; // of the strip in the table's first row
    u64 place = 0;              // of its first column among the outputs
    u32 columns = 0;            // 0 if the thread has none
    u64 first = 0;              // its first row, how many there are, and the next one's distance
    u32 rows = 0, step = 1;
    u32 group = 0, slot = 0;    // in a tall table: the group of threads, and which thread of it

    Strip() = default;

    // At a strip of the index-th table.
    __device__ __forceinline__ void stand(const ColumnTable &table, u32 index, u32 strip)
    {
        data = table.data + index * table.table_stride + u64(strip) * 16;
        place = u64(index) * table.columns + strip * COLUMNS;
        columns = min(table.columns - strip * COLUMNS, COLUMNS);
    }

    // At one of the strips of all tables, those of the first ahead of the second's; if there is none, it has no columns.
    __device__ __forceinline__ void stand(const ColumnTable &table, u32 strip)
    {
        const u32 strips = table.strips<T>(), index = strip / strips;
        columns = 0;
        if (index < table.tables)
            stand(table, index, strip % strips);
    }

    __device__ __forceinline__ Strip(const ColumnTable &table)
    {
        const u32 strips = table.strips<T>();
        u32 strip, index;
        bool has;
        if (table.is_tall()) {
            group = threadIdx.x / table.width;
            slot = threadIdx.x % table.width;
            strip = blockIdx.y * table.width + slot;
            index = blockIdx.z;
            has = group < table.groups() && strip < strips;
            step = table.groups();
            const u64 begin = share(table.rows, blockIdx.x), end = share(table.rows, blockIdx.x + 1);
            first = begin + group;
            rows = has && first < end ? u32((end - first + step - 1) / step) : 0;
        } else {
            const u32 all = blockIdx.x * COLUMN_THREADS + threadIdx.x;
            index = all / strips;
            strip = all % strips;
            has = index < table.tables;
            rows = has ? u32(table.rows) : 0;
        }
        if (has)
            stand(table, index, strip);
    }
};

// Where a thread is on its way down.
struct Walk {
    const char *at;
    u32 inner; // the row's place along the inner axis
    u32 left;
};

template <class T>
struct Walker {
    using Bits = typename Element<T>::Bits;

    const ColumnTable &table;
    u32 bytes; // of a row that are the strip's
    i64 near;  // from a row to the thread's next, and how far that moves along the inner axis, whose end is never met if it is the only one
    u32 turn, inner;
    uint4 fill; // in the place of rows that there are not
    u32 mask[4]; // of bytes that are the strip's

    __device__ __forceinline__ Walker(const ColumnTable &table, const Strip<T> &strip, u64 fill)
        : table(table), bytes(strip.columns * sizeof(Bits)), near(row_offset(strip.step, table.inner, table.stride, table.jump)),
          turn(table.inner == 0 ? 0 : strip.step % table.inner), inner(table.inner == 0 ? ~0u : table.inner), fill(make_uint4(u32(fill), u32(fill >> 32), u32(fill), u32(fill >> 32)))
    {
#pragma unroll
        for (u32 w = 0; w < 4; ++w)
            mask[w] = bytes >= 4 * w + 4 ? ~0u : bytes <= 4 * w ? 0 : (1u << 8 * (bytes - 4 * w)) - 1;
    }

    __device__ __forceinline__ Walk begin(const Strip<T> &strip) const
    {
        const u32 inner = table.inner == 0 ? 0 : u32(strip.first % table.inner);
        return {strip.data + row_offset(strip.first, table.inner, table.stride, table.jump), inner, strip.rows};
    }

    __device__ __forceinline__ void step(Walk &walk) const
    {
        walk.inner += turn;
        const bool wraps = walk.inner >= inner;
        walk.inner -= wraps ? inner : 0;
        walk.at += near + (wraps ? table.jump - i64(table.inner) * table.stride : 0);
        walk.left -= walk.left != 0;
    }

    // The strip's bytes of an aligned row, and zeros behind them.
    template <u32 UNIT>
    __device__ __forceinline__ uint4 read(const char *at) const
    {
        if constexpr (UNIT == 16)
            return *reinterpret_cast<const uint4 *>(at);
        const uint2 low = *reinterpret_cast<const uint2 *>(at);
        const uint2 high = bytes > 8 ? *reinterpret_cast<const uint2 *>(at + 8) : make_uint2(0, 0);
        return make_uint4(low.x, low.y, high.x, high.y);
    }

    template <u32 UNIT>
    __device__ __forceinline__ void load_units(uint4 (&v)[BATCH], Walk &walk) const
    {
        if (table.inner == 0 && walk.left >= BATCH) {
#pragma unroll
            for (u32 k = 0; k < BATCH; ++k)
                v[k] = read<UNIT>(walk.at + k * near);
            walk.at += BATCH * near;
            walk.left -= BATCH;
            return;
        }
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k) {
            v[k] = fill;
            if (walk.left != 0)
                v[k] = read<UNIT>(walk.at);
            step(walk);
        }
    }

    // Whether the two aligned vectors that have a strip's bytes of a row lie inside the tables.
    __device__ __forceinline__ bool is_inside(const char *at) const { return at - 15 >= table.first && at + 32 <= table.end; }

    // The same near the tables' ends, element by element, the last one on top first.
    __device__ __forceinline__ uint4 read_at_end(const char *at) const
    {
        uint4 v = make_uint4(0, 0, 0, 0);
#pragma unroll 1
        for (u32 i = 0; i < 16; i += sizeof(Bits)) {
            const u32 bits = i < bytes ? u32(*reinterpret_cast<const Bits *>(at + i)) : 0;
            constexpr u32 WIDTH = 8 * sizeof(Bits);
            v.x = __funnelshift_rc(v.x, v.y, WIDTH);
            v.y = __funnelshift_rc(v.y, v.z, WIDTH);
            v.z = __funnelshift_rc(v.z, v.w, WIDTH);
            v.w = __funnelshift_rc(v.w, bits, WIDTH);
        }
        return v;
    }

    // Without what is not the strip's.
    __device__ __forceinline__ uint4 own(const uint4 &v) const
    {
        return make_uint4(v.x & mask[0], v.y & mask[1], v.z & mask[2], v.w & mask[3]);
    }

    // A batch of rows at any address, from the two aligned vectors that have a strip's bytes of each.
    __device__ __forceinline__ void load_unaligned(uint4 *v, Walk &walk) const
    {
        uint4 low[BATCH], high[BATCH];
        u32 off[BATCH];
        if (table.inner == 0 && walk.left >= BATCH && is_inside(walk.at) && is_inside(walk.at + (BATCH - 1) * near)) {
#pragma unroll
            for (u32 k = 0; k < BATCH; ++k) {
                const char *const at = walk.at + k * near;
                off[k] = u32(u64(at)) % 16;
                const uint4 *const vectors = reinterpret_cast<const uint4 *>(at - off[k]);
                low[k] = vectors[0];
                high[k] = vectors[1];
            }
            walk.at += BATCH * near;
            walk.left -= BATCH;
        } else {
#pragma unroll
            for (u32 k = 0; k < BATCH; ++k) {
                low[k] = high[k] = fill;
                off[k] = 0;
                if (walk.left != 0) {
                    if (is_inside(walk.at)) {
                        off[k] = u32(u64(walk.at)) % 16;
                        const uint4 *const vectors = reinterpret_cast<const uint4 *>(walk.at - off[k]);
                        low[k] = vectors[0];
                        high[k] = vectors[1];
                    } else {
                        low[k] = read_at_end(walk.at);
                    }
                }
                step(walk);
            }
        }
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k)
            v[k] = own(across(low[k], high[k], off[k]));
    }

    // A batch of rows.
    __device__ __forceinline__ void load(uint4 (&v)[BATCH], Walk &walk) const
    {
        if (table.unit == 16)
            return load_units<16>(v, walk);
        if (sizeof(Bits) == 8 || table.unit == 8)
            return load_units<8>(v, walk);
        if constexpr (sizeof(Bits) < 8)
            load_unaligned(v, walk);
    }
};

// Gives a strip's rows to what takes them: batches, and after up to CHUNK rows, a multiple of a batch, a word that they may be closed.
template <class T, class Taker>
__device__ __forceinline__ void walk_down(const ColumnTable &table, const Strip<T> &strip, u64 fill, Taker &taker)
{
    const Walker<T> walker(table, strip, fill);
    Walk walk = walker.begin(strip);
#pragma unroll 1
    for (u32 done = 0; done < strip.rows; done += Taker::CHUNK) {
        const u32 rows = min(strip.rows - done, Taker::CHUNK);
#pragma unroll 1
        for (u32 taken = 0; taken < rows; taken += BATCH) {
            uint4 v[BATCH];
            walker.load(v, walk);
            taker.take(v);
        }
        taker.close();
    }
}

// Folds what the groups of a block have into the first group's: `merge` adds what another thread has of the same columns, which it
// left in shared memory. All threads of the block call it.
template <class T, class Merge>
__device__ __forceinline__ void fold_groups(const ColumnTable &table, const Strip<T> &strip, Merge merge)
{
#pragma unroll 1
    for (u32 groups = table.groups(); groups > 1;) {
        const u32 half = (groups + 1) / 2;
        __syncthreads();
        if (strip.group < groups - half)
            merge(threadIdx.x + half * table.width);
        groups = half;
    }
}

// Where the blocks of a tile meet: a ticket, and then `words` words for each column, the first of all columns and so on. Between launches
// they are zero.
__device__ __forceinline__ u64 *workspace_of_tile(const ColumnTable &table, u32 columns, u64 words)
{
    return table.scratch + (u64(blockIdx.z) * gridDim.y + blockIdx.y) * (1 + columns * words);
}

// The r-th row of a table is as ColumnTable says; the answers of the first table's columns go to the first places of out, and so on.
#define COLUMNS(name) \
    static __device__ __forceinline__ void reduce(const ColumnTable &, u32, u32, void *, u32 *); \
    extern "C" __global__ void __launch_bounds__(COLUMN_THREADS, COLUMN_BLOCKS) NAMED(name, ELEMENT)(const char *data, u32 columns, \
        u64 rows, u32 inner, i64 stride, i64 jump, u32 tables, i64 table_stride, const char *first, const char *end, u32 unit, u32 width, \
        u32 ask, u32 absolute, u32 answer, u64 *scratch, void *out, u32 *overflow) \
    { \
        reduce({data, columns, rows, inner, stride, jump, tables, table_stride, first, end, unit, width, answer, scratch}, ask, absolute, \
            out, overflow); \
    } \
    static __device__ __forceinline__ void reduce
