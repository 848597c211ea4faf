// Sums and means of columns of floats, exact and rounded once.
//
// Each column of a strip has a lane's sum of a chunk of rows (range.cuh), which goes into a window of the thread when the chunk ends.
// A chunk that is not certified goes, element by element, into the column's superaccumulator in shared memory: in a tall table, which
// has one for each column of the tile. In a short one the column is given up, and its warp sums it in the end, in superaccumulators
// that it has for one strip.
//
// Windows' totals are in shared memory too, so that registers are left for loads.

#pragma once

#include "columns.cuh"
#include "exact_answer.cuh"
#include "narrow.cuh"
#include "range.cuh"

// Binades that a thread's window has above the first chunk.
constexpr int COLUMN_ROOM = 10;

// Where some rows of a column lie.
template <class T>
struct ColumnPart {
    const char *data; // the column's element in the table's first row
    i64 stride, jump;
    u64 first;
    u32 inner, step, rows;
    typename Element<T>::Bits mask;

    template <class Take>
    __device__ __forceinline__ void each(Take take) const
    {
        using Bits = typename Element<T>::Bits;
#pragma unroll 1
        for (u32 k = 0; k < rows; ++k)
            take(Bits(*reinterpret_cast<const Bits *>(data + row_offset(first + u64(k) * step, inner, stride, jump)) & mask));
    }

    // A power of two that the finite ones are below.
    __device__ __forceinline__ int top() const
    {
        using Format = Element<T>;
        int top = Format::UNIT;
        each([&](typename Format::Bits bits) {
            if (Format::is_finite(bits))
                top = max(top, Format::top(bits));
        });
        return top;
    }

    // Adds them to a superaccumulator, and returns their top.
    __device__ __forceinline__ int absorb(Superaccumulator<T> &wide) const
    {
        each([&](typename Element<T>::Bits bits) { ::absorb<T>(wide, bits); });
        return top();
    }

    // Whether a window that is made for them holds them; commits them to it.
    template <class Levels>
    __device__ __forceinline__ bool fits_fresh(Levels &levels) const
    {
        levels = Levels(Levels::below(top() + COLUMN_ROOM));
        auto drift = levels.open();
        each([&](typename Element<T>::Bits bits) { levels.add(drift, Element<T>::value(bits)); });
        levels.commit(drift);
        return levels.holds(drift);
    }
};


// What a thread has committed: for each column and level a total, and for each place of a window its upper level's unit. The columns of
// shorter types share one place: windows have room for many more binades than they need.
template <class T>
struct Committed {
    using Lane = LaneSum<T>;
    using Levels = typename Lane::Window;
    using Sums = Superaccumulator<T>;
    static constexpr bool LONG = sizeof(typename Element<T>::Bits) == 8;
    static constexpr u32 COLUMNS = ITEMS<T>;
    static constexpr u32 LEVELS = Lane::LEVELS;
    static constexpr u32 PLACES = LONG ? COLUMNS : 1;

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
    static __device__ __forceinline__ Sums *wides()
    {
        return reinterpret_cast<Sums *>(column_shared + (COLUMNS * LEVELS + (PLACES + 1) / 2) * COLUMN_THREADS);
    }

    __device__ __forceinline__ void clear() const
    {
#pragma unroll
        for (u32 i = 0; i < COLUMNS; ++i) {
#pragma unroll
            for (u32 l = 0; l < LEVELS; ++l)
                total(i, l) = 0;
            place(i) = Levels::below(START);
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

    __device__ __forceinline__ void commit(u32 i, const Levels &levels) const
    {
#pragma unroll
        for (u32 l = 0; l < LEVELS; ++l)
            total(i, l) += levels.total[l];
    }

    // Moves a column's totals to its superaccumulator.
    __device__ __forceinline__ void flush(u32 i, Sums &wide) const
    {
#pragma unroll 1
        for (u32 l = 0; l < LEVELS; ++l) {
            const i64 mine = total(i, l);
            if (mine != 0)
                wide.deposit(mine < 0, mine < 0 ? -u64(mine) : u64(mine), place(i) - Levels::STEP * int(l));
            total(i, l) = 0;
        }
    }

    // Adds what another thread has of the same columns; moves it to the superaccumulators where it has other units, or the sum is too
    // large. Returns whether it did that.
    __device__ __forceinline__ bool merge(const Committed &other, Sums *wides) const
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
template <class T>
__device__ __noinline__ u32 spill(const ColumnTable *shared_table, u32 failed, u32 done, u32 rows, typename Element<T>::Bits mask)
{
    using Own = Committed<T>;
    using Levels = typename Own::Levels;
    const ColumnTable &table = *shared_table;
    const Strip<T> strip(table);
    const Own own = {threadIdx.x};
    Superaccumulator<T> *const wides = Own::wides() + strip.slot * Own::COLUMNS;
    int place = own.place(0);
    u32 spilled = 0;
#pragma unroll 1
    for (u32 i = 0; i < Own::COLUMNS; ++i) {
        if ((failed >> i & 1) == 0)
            continue;
        const char *data = strip.data + i * sizeof(mask);
        const ColumnPart<T> part = {data, table.stride, table.jump, strip.first + u64(done) * strip.step, table.inner, strip.step, rows, mask};
        const bool can_move = table.is_tall() || own.is_empty(i);
        if constexpr (Own::LONG) {
            Levels levels(0);
            if (can_move && part.fits_fresh(levels)) {
                if (!own.is_empty(i)) {
                    own.flush(i, wides[i]);
                    spilled |= 1u << i;
                }
                own.place(i) = levels.first;
                own.commit(i, levels);
                continue;
            }
        }
        spilled |= 1u << i;
        if (table.is_tall()) {
            const int top = part.absorb(wides[i]);
            place = max(place, Levels::below(top + Own::Lane::K + COLUMN_ROOM));
        }
    }
    // Upwards only, so that columns of different scales do not move it to and fro.
    if (!Own::LONG && table.is_tall() && place != own.place(0)) {
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

template <class T>
struct SumColumns {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Own = Committed<T>;
    using Lane = typename Own::Lane;
    using Levels = typename Lane::Window;
    static constexpr bool LONG = Own::LONG;
    static constexpr u32 COLUMNS = Own::COLUMNS;
    static constexpr u32 CHUNK = LONG ? Levels::ADDS : 1 << Lane::K;

    const ColumnTable *const shared_table;
    const Bits mask;
    const bool alone; // whether the one chunk that there is stays as it is

    Lane lane[COLUMNS];
    int place[Own::PLACES]; // of f64's windows, as they were committed last
    bool fresh = true;      // whether the window has no place yet
    u32 spilled = 0;        // as `spill` says

    __device__ __forceinline__ SumColumns(const ColumnTable *shared_table, bool alone, Bits mask)
        : shared_table(shared_table), mask(mask), alone(alone)
    {
    }

    __device__ __forceinline__ Own own() const { return {threadIdx.x}; }

    // Opens f64's lanes for the first time, in windows that hold the first batch.
    __device__ __forceinline__ void open(const uint4 (&v)[BATCH])
    {
#pragma unroll
        for (u32 i = 0; i < COLUMNS; ++i) {
            int top = Format::UNIT;
#pragma unroll
            for (u32 k = 0; k < BATCH; ++k) {
                const Bits bits = item<T>(v[k], i);
                top = Format::is_finite(bits) ? max(top, Format::top(bits)) : top;
            }
            place[i] = Levels::below(top + COLUMN_ROOM);
            own().place(i) = place[i];
            lane[i] = Lane(Levels(place[i]));
        }
        fresh = false;
    }

    __device__ __forceinline__ void take(const uint4 (&v)[BATCH])
    {
        if constexpr (LONG) {
            if (fresh)
                open(v);
        }
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k) {
#pragma unroll
            for (u32 i = 0; i < COLUMNS; ++i)
                lane[i].add(Bits(item<T>(v[k], i) & mask), Levels(LONG ? place[i % Own::PLACES] : 0));
        }
    }

    // The first chunk that is not all zeros says where the window of shorter types is.
    __device__ __forceinline__ void find_place()
    {
        u32 most = 0;
#pragma unroll
        for (u32 i = 0; i < COLUMNS; ++i)
            most = lane[i].most < 0xff000000 ? max(most, lane[i].most) : most;
        if (most != 0) {
            own().place(0) = Levels::below(int(most >> 24) - 126 + Lane::K + COLUMN_ROOM);
            fresh = false;
        }
    }

    __device__ __forceinline__ void close(u32 done, u32 rows)
    {
        if (alone)
            return;
        if constexpr (!LONG) {
            if (Lane::RANGED && fresh)
                find_place();
        }
        u32 failed = 0;
#pragma unroll
        for (u32 i = 0; i < COLUMNS; ++i) {
            Levels levels(own().place(i));
            if (lane[i].close(levels)) {
                levels.commit(lane[i].drift);
                own().commit(i, levels);
            } else {
                failed |= 1u << i;
            }
        }
        if (failed != 0)
            spilled |= spill<T>(shared_table, failed, done, rows, mask);
#pragma unroll
        for (u32 i = 0; i < COLUMNS; ++i) {
            if constexpr (LONG)
                place[i] = own().place(i);
            lane[i] = Lane(Levels(LONG ? place[i % Own::PLACES] : 0));
        }
    }

    // NaNs and infinities make a plain sum one, and finite elements do not.
    static __device__ __forceinline__ bool is_special(f64 sum) { return !(fabs(sum) < __longlong_as_double(0x7ff0000000000000)); }

    // Whether the chunk that stays as it is has a column's sum.
    __device__ __forceinline__ bool is_sure(u32 i) const
    {
        if constexpr (!LONG)
            return !Lane::RANGED || lane[i].most - lane[i].least <= Lane::LARGEST_SPREAD || is_special(lane[i].sum);
        else
            return true;
    }

    // The answer of a column that has not spilled.
    __device__ __forceinline__ Bits answer(u32 i, u32 ask, u64 n) const
    {
        if constexpr (!LONG) {
            if (alone) {
                const f64 sum = lane[i].sum;
                if (is_special(sum))
                    return Specials<T>{sum != sum, sum > 0.0, sum < 0.0}.bits();
                return narrow<T>(ask == MEAN ? quotient(sum, n) : sum);
            }
        }
        i64 total[Own::LEVELS];
#pragma unroll
        for (u32 l = 0; l < Own::LEVELS; ++l)
            total[l] = own().total(i, l);
        return float_answer<T>(of_levels<Levels>(total, own().place(i), Own::LEVELS), ask, n);
    }
};

// The columns that a warp's threads have given up, strip by strip.
template <class T>
__device__ __noinline__ void absorb_lacking(const ColumnTable *shared_table, u32 lacks, typename Element<T>::Bits mask, u32 ask,
    typename Element<T>::Bits *out)
{
    using Sums = Superaccumulator<T>;
    const ColumnTable &table = *shared_table;
    const Strip<T> strip(table);
    Sums *const wides = Committed<T>::wides() + threadIdx.x / 32 * ITEMS<T>;
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
            Sums &wide = wides[c];
            for (int i = lane; i < Sums::LIMBS; i += 32) {
                wide.low[i] = 0;
                wide.high[i] = 0;
            }
            if (lane < 3)
                wide.specials[lane] = 0;
            __syncwarp();
            const u32 rows = (u32(table.rows) - lane + 31) / 32;
            const ColumnPart<T> part = {data + c * sizeof(mask), table.stride, table.jump, lane, table.inner, 32, rows, mask};
            if (lane < table.rows)
                part.absorb(wide);
        }
        __syncwarp();
        if (lane < ITEMS<T> && (columns >> lane & 1) != 0)
            out[place + lane] = wide_answer<T>(wides[lane], ask, table.rows);
        __syncwarp();
        if (lane == leader)
            lacks = 0;
    }
}

// A tall table's tile in the end, where superaccumulators are needed.
template <class T>
__device__ __noinline__ void finish_tile(const ColumnTable *shared_table, u32 ask, typename Element<T>::Bits *out)
{
    using Sums = Superaccumulator<T>;
    using Own = Committed<T>;
    const ColumnTable &table = *shared_table;
    const Strip<T> strip(table);
    Sums *const tile = Own::wides();
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
            out[c] = wide_answer<T>(tile[c], ask, table.rows);
        return;
    }
    u64 *const meeting = meeting_of_tile(table, width, Sums::WORDS);
    u64 *const sums = meeting + 1;
    for (u32 j = threadIdx.x; j < Sums::WORDS * width; j += COLUMN_THREADS) {
        if (const u64 entry = tile[j % width].entry(j / width, table.rows))
            atomicAdd(&sums[j], entry);
    }
    __threadfence();
    if (!is_last_block(meeting))
        return;
    for (u32 c = threadIdx.x; c < width; c += COLUMN_THREADS) {
        const auto word = [&](int i) { return __ldcg(&sums[i * width + c]); };
        const Specials<T> specials = {word(Sums::LIMBS + 1) != 0, word(Sums::LIMBS + 2) != 0, word(Sums::LIMBS + 3) != 0};
        if (c < there)
            out[c] = limbs_answer<T>([&](int i) { return i64(word(i)); }, specials, ask, table.rows);
        for (u32 i = 0; i < Sums::WORDS; ++i)
            sums[i * width + c] = 0;
    }
}

template <class T>
__device__ __forceinline__ void sum_columns(const ColumnTable &table, u32 ask, bool absolute, void *to)
{
    using Bits = typename Element<T>::Bits;
    using Sums = Superaccumulator<T>;
    using Columns = SumColumns<T>;
    using Own = Committed<T>;
    const Bits mask = Bits(absolute ? ~Element<T>::SIGN : ~Bits(0));
    Bits *const out = static_cast<Bits *>(to);
    // What is seldom called finds the table here: arguments would hold registers.
    __shared__ ColumnTable shared_table;
    if (threadIdx.x == 0)
        shared_table = table;
    if (table.is_tall()) {
        u32 *const words = reinterpret_cast<u32 *>(Own::wides());
        for (u32 i = threadIdx.x; i < table.width * Own::COLUMNS * sizeof(Sums) / 4; i += COLUMN_THREADS)
            words[i] = 0;
    }
    Own{threadIdx.x}.clear();
    __syncthreads();

    const Strip<T> strip(table);
    Columns columns(&shared_table, !Own::LONG && !table.is_tall() && table.rows <= Columns::CHUNK, mask);
    walk_down(table, strip, 0, columns);
    if (table.is_tall()) {
        Sums *const wides = Own::wides() + strip.slot * Own::COLUMNS;
        fold_groups<T>(table, strip, [&](u32 thread) { columns.spilled |= Own{threadIdx.x}.merge({thread}, wides); });
        if (gridDim.x > 1 || __syncthreads_or(columns.spilled != 0) != 0)
            return finish_tile<T>(&shared_table, ask, out);
    }
    if (strip.group == 0) {
#pragma unroll
        for (u32 i = 0; i < Own::COLUMNS; ++i) {
            if (columns.alone && !columns.is_sure(i) && i < strip.columns)
                columns.spilled |= 1u << i;
            if (i < strip.columns && (columns.spilled >> i & 1) == 0)
                out[strip.place + i] = columns.answer(i, ask, table.rows);
        }
    }
    if (!table.is_tall() && __any_sync(ALL_LANES, columns.spilled != 0))
        absorb_lacking<T>(&shared_table, columns.spilled, mask, ask, out);
}
