// Exact totals of columns of floats, of which windows hold a chunk of rows at a time.
//
// A chunk that its window holds is committed to integers of the thread, in units that the window's place says. One that is not certified
// goes, element by element, into the column's superaccumulators in shared memory: in a tall table, which has them for each column of the
// tile. In a short one the column is given up, and its thread does it again in the end, by an accumulator of elements that are far apart; what
// that loses its warp does, in superaccumulators that it has for one strip.
//
// Windows' totals are in shared memory too, so that registers are left for loads.
//
// A form says what is kept of a column:
//
//     Item, Wides                   the elements, and a column's superaccumulators
//     Apart, asked(ask, n)          an accumulator of elements that are far apart, and what is asked of it
//     LEVELS                        its totals
//     PLACES                        windows of a thread: one for each column, or one that all share
//     initial(), place_above(top)   where windows are at first, and with room for more than elements below 2^top
//     deposit(wides, l, total, p)   adds a window's total to superaccumulators
//     absorb(wides, part)           adds a part of a column
//     WORDS, entry(wides, i, n)     their vector form, of n elements
//     answer(word, ask, n)          what is asked of a vector form
//     Chunk                         a window that is made for a chunk, if each column has its own: `fits(part)`, its place, totals

#pragma once

#include "columns.cuh"
#include "exact_answer.cuh"
#include "units.cuh"

// Where some rows of a column lie.
template <class T>
struct ColumnPart {
    const char *data; // the column's element in the table's first row
    i64 stride, jump;
    u64 first;
    u32 inner, step, rows;
    typename Element<T>::Bits mask;

    // Calls `take` with some elements after the other, zeros behind the last.
    template <class Take>
    __device__ __forceinline__ void each(Take take) const
    {
        using Bits = typename Element<T>::Bits;
#pragma unroll 1
        for (u32 done = 0; done < rows; done += BATCH) {
            Bits some[BATCH];
#pragma unroll
            for (u32 k = 0; k < BATCH; ++k) {
                // No branch uses what it loads, so that all loads are under way together.
                const u32 row = min(done + k, rows - 1);
                const Bits bits = *reinterpret_cast<const Bits *>(data + row_offset(first + u64(row) * step, inner, stride, jump));
                some[k] = done + k < rows ? Bits(bits & mask) : Bits(0);
            }
            take(some);
        }
    }

    // A power of two that the finite ones are below.
    __device__ __forceinline__ int top() const
    {
        using Format = Element<T>;
        int top = Format::UNIT;
        each([&](const typename Format::Bits (&some)[BATCH]) {
#pragma unroll
            for (u32 k = 0; k < BATCH; ++k)
                top = Format::is_finite(some[k]) ? max(top, Format::top(some[k])) : top;
        });
        return top;
    }
};

// Adds a part's elements one by one.
template <class T, class One>
__device__ __forceinline__ void absorb_alone(const ColumnPart<T> &part, One one)
{
    part.each([&](const typename Element<T>::Bits (&some)[BATCH]) {
#pragma unroll 1
        for (u32 k = 0; k < BATCH; ++k)
            one(some[k]);
    });
}

// What a thread has committed: for each column and level a total, and for each place of a window its upper level's unit.
template <class Form>
struct Committed {
    using Wides = typename Form::Wides;
    static constexpr u32 COLUMNS = ITEMS<typename Form::Item>;
    static constexpr u32 LEVELS = Form::LEVELS;
    static constexpr u32 PLACES = Form::PLACES;

    u32 thread;

    __device__ __forceinline__ i64 &total(u32 i, u32 l) const
    {
        return reinterpret_cast<i64 *>(column_shared)[(i * LEVELS + l) * COLUMN_THREADS + thread];
    }
    __device__ __forceinline__ i32 &place(u32 i) const
    {
        return reinterpret_cast<i32 *>(column_shared + COLUMNS * LEVELS * COLUMN_THREADS)[i % PLACES * COLUMN_THREADS + thread];
    }
    // The superaccumulators behind all of these.
    static __device__ __forceinline__ Wides *wides()
    {
        return reinterpret_cast<Wides *>(column_shared + (COLUMNS * LEVELS + (PLACES + 1) / 2) * COLUMN_THREADS);
    }
    // And what warps write their answers from, behind the superaccumulators of a short table.
    static __device__ __forceinline__ char *room()
    {
        constexpr u32 BEFORE = (COLUMNS * LEVELS + (PLACES + 1) / 2) * COLUMN_THREADS * 8 + COLUMN_THREADS / 32 * COLUMNS * sizeof(Wides);
        return reinterpret_cast<char *>(column_shared) + (BEFORE + 15) / 16 * 16;
    }

    __device__ __forceinline__ void clear() const
    {
#pragma unroll
        for (u32 i = 0; i < COLUMNS; ++i) {
#pragma unroll
            for (u32 l = 0; l < LEVELS; ++l)
                total(i, l) = 0;
            place(i) = Form::initial();
        }
    }

    __device__ __forceinline__ bool is_empty(u32 i) const
    {
        i64 some = 0;
#pragma unroll
        for (u32 l = 0; l < LEVELS; ++l)
            some |= total(i, l);
        return some == 0;
    }

    __device__ __forceinline__ void commit(u32 i, const i64 *totals) const
    {
#pragma unroll
        for (u32 l = 0; l < LEVELS; ++l)
            total(i, l) += totals[l];
    }

    // Moves a column's totals to its superaccumulators.
    __device__ __forceinline__ void flush(u32 i, Wides &wides) const
    {
#pragma unroll 1
        for (u32 l = 0; l < LEVELS; ++l) {
            const i64 mine = total(i, l);
            if (mine != 0)
                Form::deposit(wides, l, mine, place(i));
            total(i, l) = 0;
        }
    }

    // Adds what another thread has of the same columns; moves it to the superaccumulators where it has other units, or the sum is too
    // large. Returns whether it did that.
    __device__ __forceinline__ bool merge(const Committed &other, Wides *wides) const
    {
        bool moved = false;
#pragma unroll 1
        for (u32 p = 0; p < PLACES; ++p) {
            bool none = true;
#pragma unroll 1
            for (u32 i = p; i < COLUMNS; i += PLACES)
                none = none && is_empty(i);
            if (none)
                place(p) = other.place(p);
        }
#pragma unroll 1
        for (u32 i = 0; i < COLUMNS; ++i) {
            bool fits = place(i) == other.place(i);
            i64 sum[LEVELS];
#pragma unroll
            for (u32 l = 0; l < LEVELS; ++l) {
                const i64 a = total(i, l), b = other.total(i, l);
                sum[l] = i64(u64(a) + u64(b));
                fits = fits && ((a ^ sum[l]) & (b ^ sum[l])) >= 0;
            }
            if (!fits) {
                moved = moved || !other.is_empty(i);
                other.flush(i, wides[i]);
                continue;
            }
#pragma unroll
            for (u32 l = 0; l < LEVELS; ++l)
                total(i, l) = sum[l];
        }
        return moved;
    }
};

// A chunk's columns that their windows did not hold. Returns those that are given up, or, in a tall table, that have something in their
// superaccumulators.
template <class Form>
__device__ __noinline__ u32 spill(const ColumnTable *shared_table, u32 failed, u32 done, u32 rows,
    typename Element<typename Form::Item>::Bits mask)
{
    using T = typename Form::Item;
    using Own = Committed<Form>;
    constexpr bool OWN_WINDOWS = Own::PLACES == Own::COLUMNS;
    const ColumnTable &table = *shared_table;
    const Strip<T> strip(table);
    const Own own = {threadIdx.x};
    typename Form::Wides *const wides = Own::wides() + strip.slot * Own::COLUMNS;
    int place = own.place(0);
    u32 spilled = 0;
#pragma unroll 1
    for (u32 i = 0; i < Own::COLUMNS; ++i) {
        if ((failed >> i & 1) == 0)
            continue;
        const u64 first = strip.first + u64(done) * strip.step;
        const ColumnPart<T> part = {strip.data + i * sizeof(mask), table.stride, table.jump, first, table.inner, strip.step, rows, mask};
        const bool can_move = table.is_tall() || own.is_empty(i);
        if constexpr (OWN_WINDOWS) {
            typename Form::Chunk chunk;
            if (can_move && chunk.fits(part)) {
                if (!own.is_empty(i)) {
                    own.flush(i, wides[i]);
                    spilled |= 1u << i;
                }
                own.place(i) = chunk.place;
                own.commit(i, chunk.total);
                continue;
            }
        }
        spilled |= 1u << i;
        if (table.is_tall()) {
            Form::absorb(wides[i], part);
            if constexpr (!OWN_WINDOWS)
                place = max(place, Form::place_above(part.top()));
        }
    }
    // Upwards only, so that columns of different scales do not move it to and fro.
    if (!OWN_WINDOWS && table.is_tall() && place != own.place(0)) {
#pragma unroll 1
        for (u32 i = 0; i < Own::COLUMNS; ++i) {
            if (!own.is_empty(i)) {
                own.flush(i, wides[i]);
                spilled |= 1u << i;
            }
        }
        own.place(0) = place;
    }
    return spilled;
}

// The columns of a short table that a thread has given up, once more. Returns those whose totals are lost.
template <class Form>
__device__ __noinline__ u32 answer_again(const ColumnTable *shared_table, u32 lacks, typename Element<typename Form::Item>::Bits mask, u32 ask,
    typename Element<typename Form::Item>::Bits *out)
{
    using T = typename Form::Item;
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    const ColumnTable &table = *shared_table;
    const Strip<T> strip(table);
    // What the warp wrote of all columns is there before this.
    __syncwarp();
    // Lanes take neighbouring columns, whoever has given them up: their elements lie together.
    constexpr u32 COLUMNS = ITEMS<T>;
    const u32 lane = threadIdx.x % 32, rows = u32(table.rows), own = lane * COLUMNS;
    u32 lost = 0;
#pragma unroll 1
    for (u32 i = 0; i < COLUMNS; ++i) {
        const u32 owner = (i * 32 + lane) / COLUMNS, column = lane % COLUMNS;
        const char *const data = reinterpret_cast<const char *>(__shfl_sync(ALL_LANES, u64(strip.data), owner)) + column * sizeof(mask);
        const u64 place = __shfl_sync(ALL_LANES, strip.place, owner) + column;
        bool mine = (__shfl_sync(ALL_LANES, lacks, owner) >> column & 1) != 0;
        const ColumnPart<T> part = {data, table.stride, table.jump, 0, table.inner, 1, mine ? rows : 0, mask};
        typename Form::Apart acc;
        const auto asked = Form::asked(ask, rows);
        part.each([&](const Bits (&some)[BATCH]) {
            Elements<Bits, BATCH> all;
            memcpy(all.bits, some, sizeof(some));
            if (!acc.template take<1>(some, 0, asked))
                acc.settle(all, asked);
        });
        mine = mine && !acc.write(out, place, asked);
        // Of the columns of the i-th 32, those of a thread are side by side.
        const u32 others = __ballot_sync(ALL_LANES, mine);
        lost |= own / 32 == i ? others >> own % 32 & ((1u << COLUMNS) - 1) : 0;
    }
    __syncwarp();
    return lost;
}

// The columns that a warp's threads have given up, strip by strip.
template <class Form>
__device__ __noinline__ void absorb_lacking(const ColumnTable *shared_table, u32 lacks, typename Element<typename Form::Item>::Bits mask,
    u32 ask, typename Element<typename Form::Item>::Bits *out)
{
    using T = typename Form::Item;
    using Wides = typename Form::Wides;
    const ColumnTable &table = *shared_table;
    const Strip<T> strip(table);
    Wides *const wides = Committed<Form>::wides() + threadIdx.x / 32 * ITEMS<T>;
    const u32 lane = threadIdx.x % 32;
#pragma unroll 1
    while (const u32 waiting = __ballot_sync(ALL_LANES, lacks != 0)) {
        const u32 leader = __ffs(int(waiting)) - 1;
        const u32 columns = __shfl_sync(ALL_LANES, lacks, leader);
        const char *data = reinterpret_cast<const char *>(__shfl_sync(ALL_LANES, u64(strip.data), leader));
        const u64 place = __shfl_sync(ALL_LANES, strip.place, leader);
#pragma unroll 1
        for (u32 c = 0; c < ITEMS<T>; ++c) {
            if ((columns >> c & 1) == 0)
                continue;
            u32 *const words = reinterpret_cast<u32 *>(wides + c);
            for (u32 i = lane; i < sizeof(Wides) / 4; i += 32)
                words[i] = 0;
            __syncwarp();
            const u32 rows = (u32(table.rows) + 31 - lane) / 32;
            const ColumnPart<T> part = {data + c * sizeof(mask), table.stride, table.jump, lane, table.inner, 32, rows, mask};
            Form::absorb(wides[c], part);
        }
        __syncwarp();
        if (lane < ITEMS<T> && (columns >> lane & 1) != 0)
            out[place + lane] = Form::answer([&](int i) { return Form::entry(wides[lane], i, 0); }, ask, table.rows);
        __syncwarp();
        if (lane == leader)
            lacks = 0;
    }
}

// A tall table's tile in the end, where superaccumulators are needed.
template <class Form>
__device__ __noinline__ void finish_tile(const ColumnTable *shared_table, u32 ask, typename Element<typename Form::Item>::Bits *out)
{
    using T = typename Form::Item;
    using Own = Committed<Form>;
    const ColumnTable &table = *shared_table;
    const Strip<T> strip(table);
    typename Form::Wides *const tile = Own::wides();
    if (strip.group == 0) {
        for (u32 i = 0; i < Own::COLUMNS; ++i)
            Own{threadIdx.x}.flush(i, tile[strip.slot * Own::COLUMNS + i]);
    }
    __syncthreads();
    // Columns of the tile, and those of them that are the table's.
    const u32 width = table.width * Own::COLUMNS, before = blockIdx.y * width, there = min(table.columns - before, width);
    out += u64(blockIdx.z) * table.columns + before;
    if (gridDim.x == 1) {
        for (u32 c = threadIdx.x; c < there; c += COLUMN_THREADS)
            out[c] = Form::answer([&](int i) { return Form::entry(tile[c], i, 0); }, ask, table.rows);
        return;
    }
    u64 *const workspace = workspace_of_tile(table, width, Form::WORDS);
    u64 *const sums = workspace + 1;
    for (u32 j = threadIdx.x; j < Form::WORDS * width; j += COLUMN_THREADS) {
        if (const u64 entry = Form::entry(tile[j % width], j / width, table.rows))
            atomicAdd(&sums[j], entry);
    }
    __threadfence();
    if (!is_last_block(workspace))
        return;
    // There is room: the totals of a column's eight groups or more are longer than what its superaccumulators' counters lack.
#pragma unroll 1
    for (u32 j = threadIdx.x; j < Form::WORDS * width; j += BATCH * COLUMN_THREADS) {
        u64 some[BATCH];
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k)
            if (j + k * COLUMN_THREADS < Form::WORDS * width)
                some[k] = __ldcg(&sums[j + k * COLUMN_THREADS]);
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k) {
            if (j + k * COLUMN_THREADS < Form::WORDS * width) {
                column_shared[j + k * COLUMN_THREADS] = some[k];
                sums[j + k * COLUMN_THREADS] = 0;
            }
        }
    }
    __syncthreads();
    for (u32 c = threadIdx.x; c < there; c += COLUMN_THREADS)
        out[c] = Form::answer([&](int i) { return column_shared[i * width + c]; }, ask, table.rows);
}

// Gives `put` the answers of a thread's columns, but for those that have spilled.
template <class Columns, class T, class Put>
__device__ __forceinline__ void answer_columns(Columns &columns, const Strip<T> &strip, const ColumnTable &table, u32 ask, Put put)
{
#pragma unroll Columns::AT_ONCE
    for (u32 i = 0; i < ITEMS<T>; ++i) {
        if (i < strip.columns && columns.lacks(i))
            columns.spilled |= 1u << i;
        if (i < strip.columns && (columns.spilled >> i & 1) == 0)
            put(i, columns.answer(i, ask, table.rows));
    }
}

// Reduces columns by what takes their chunks:
//
//     COLUMNS(shared_table, short, mask)   of a table, which may be short; `mask` is what counts of an element
//     take, close                          what walk_down gives
//     hand_over(wides)                     adds what it has to superaccumulators, if the table is tall
//     spilled                              what `spill` said
//     lacks(i)                             whether a column of a short table has to be done again
//     is_ready(rows)                       whether it has the answers of so many rows, if nothing spilled
//     answer(i, ask, rows)                 the answer of a column; AT_ONCE of them are made side by side
template <class Columns>
__device__ __forceinline__ void reduce_columns(const ColumnTable &table, u32 ask, typename Columns::Bits mask, void *to)
{
    using Form = typename Columns::Form;
    using T = typename Form::Item;
    using Own = Committed<Form>;
    typename Columns::Bits *const out = static_cast<typename Columns::Bits *>(to);
    // What is seldom called finds the table here: arguments would hold registers.
    __shared__ ColumnTable shared_table;
    if (threadIdx.x == 0)
        shared_table = table;
    if (table.is_tall()) {
        u32 *const words = reinterpret_cast<u32 *>(Own::wides());
        for (u32 i = threadIdx.x; i < table.width * Own::COLUMNS * sizeof(typename Form::Wides) / 4; i += COLUMN_THREADS)
            words[i] = 0;
    }
    Own{threadIdx.x}.clear();
    __syncthreads();

    const Strip<T> strip(table);
    Columns columns(&shared_table, !table.is_tall() && table.rows <= Columns::CHUNK, mask);
    walk_down(table, strip, 0, columns);
    if (table.is_tall()) {
        typename Form::Wides *const wides = Own::wides() + strip.slot * Own::COLUMNS;
        columns.hand_over(wides);
        fold_groups<T>(table, strip, [&](u32 thread) { columns.spilled |= Own{threadIdx.x}.merge({thread}, wides); });
        const bool is_whole = gridDim.x == 1 && columns.is_ready(table.rows);
        if (!is_whole || __syncthreads_or(columns.spilled != 0) != 0)
            return finish_tile<Form>(&shared_table, ask, out);
    }
    if (!table.is_tall()) {
        constexpr u32 ROOM = warp_output_bytes(Own::COLUMNS * sizeof(typename Columns::Bits));
        const WarpOutput<typename Columns::Bits> output(out, strip.place, 1, strip.columns, Own::room() + threadIdx.x / 32 * ROOM);
        answer_columns(columns, strip, table, ask, [&](u32 i, typename Columns::Bits answer) { output.put(i, answer); });
        output.flush();
        if (__any_sync(ALL_LANES, columns.spilled != 0)) {
            const u32 lacks = answer_again<Form>(&shared_table, columns.spilled, mask, ask, out);
            if (Form::Apart::MAY_BE_LOST && __any_sync(ALL_LANES, lacks != 0))
                absorb_lacking<Form>(&shared_table, lacks, mask, ask, out);
        }
    } else if (strip.group == 0) {
        answer_columns(columns, strip, table, ask, [&](u32 i, typename Columns::Bits answer) { out[strip.place + i] = answer; });
    }
}
