// Fixed trees of columns, walked down where they lie, each folded to its root and made a number: what row_tree.cuh does for rows.
//
// A leaf is 64 rows of 64 lanes (tree.cuh): a lane's elements of a column lie 64 rows of the table apart.
//
//     short tables    of one leaf, if there are very many columns or few rows: a thread for each strip, whose lanes it takes some at a
//                     time, so that sets of them fold as halving does it
//     tall tables     tiles of `width` strips; a team of GROUPS times as many threads takes a leaf of a tile, and each of them SHARE
//                     lanes. A block of a narrow tile has several teams, whose leaves follow one another
//
// A pass down a leaf says what becomes of elements:
//
//     Pass::Given       what it must know of a column
//     Pass::Lanes<N>    what a thread has of a column's lanes, N of them: `take` adds an element to one, `close` comes after no more than
//                       PERIOD elements of each
//     Pass::Part        what lanes fold to, of 16 bytes at most; `fold` folds two of them
//     Pass::ORDERED     whether it matters which elements a lane has
//     Pass::RARE        whether short code is worth more than fast code
//
// A leaf's total stays with the thread that owns the column: who walks alone, or of a team the first group. Nodes of leaves meet in the
// scratch memory, where the last of MEETING_NODES siblings goes on, a level higher.

#pragma once

#include "columns.cuh"
#include "tree.cuh"

// Numbers of crates/cuda/src/engine/column_trees.rs, as is MEETING_NODES: lanes of a column that a thread takes at once, as far apart as
// there are groups of them, and strips of a block.
constexpr u32 SHARE = 2;
constexpr u32 GROUPS = LANES / SHARE;
constexpr u32 STRIPS = COLUMN_THREADS / GROUPS;
constexpr u32 MEETING_NODES = 1 << MEETING;

// Passes that need to know nothing.
struct Nothing {};

// Takes rows of lanes in turns.
template <class T, class Pass, u32 N>
struct TreeTaker {
    static constexpr int COLUMNS = ITEMS<T>;
    static constexpr u32 CHUNK = Pass::PERIOD * N;
    static_assert(CHUNK % BATCH == 0 && BATCH % N == 0, "whole batches");

    typename Pass::template Lanes<N> column[COLUMNS];

    __device__ __forceinline__ TreeTaker(const typename Pass::Given (&given)[COLUMNS])
    {
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i)
            column[i].begin(given[i]);
    }

    __device__ __forceinline__ void take(const uint4 (&v)[BATCH])
    {
        if constexpr (Pass::RARE) {
            // A copy: the compiler keeps the rows of all passes in one place, which must not be local memory for the sake of this loop.
            struct {
                uint4 row[BATCH];
            } rows;
#pragma unroll
            for (u32 k = 0; k < BATCH; ++k)
                rows.row[k] = v[k];
#pragma unroll 1
            for (u32 first = 0; first < BATCH; first += N) {
#pragma unroll
                for (u32 k = 0; k < N; ++k)
                    take_row(k, rows.row[first + k]);
            }
        } else {
#pragma unroll
            for (u32 k = 0; k < BATCH; ++k)
                take_row(k % N, v[k]);
        }
    }

    __device__ __forceinline__ void take_row(u32 lane, const uint4 &row)
    {
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i)
            column[i].take(lane, item<T>(row, i));
    }

    __device__ __forceinline__ void close(u32, u32)
    {
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i)
            column[i].close();
    }
};

// The bits that stand for rows that there are not.
template <class Op>
__device__ __forceinline__ u64 missing_rows()
{
    const uint4 v = Rows<Op>::nothing();
    return u64(v.y) << 32 | v.x;
}

// A leaf, and what a thread has of it.
template <class Op>
struct TreeLeaf {
    using T = typename Op::Item;
    static constexpr u32 COLUMNS = ITEMS<T>;
    // Sets of lanes that a thread takes one after the other, at most: 2 to the power of this.
    static constexpr u32 LEVELS = 5;
    static_assert(GROUPS == 1 << LEVELS, "a set for each group of a team");

    const ColumnTable &table;
    const u64 leaves;
    const u32 teams;
    u32 team = 0;
    Strip<T> strip;
    bool owner = true; // of what its strip's columns fold to

    __device__ __forceinline__ TreeLeaf(const ColumnTable &table)
        : table(table), leaves((table.rows + LEAF - 1) / LEAF), teams(table.is_tall() ? STRIPS / table.width : 1)
    {
        if (table.is_tall()) {
            team = threadIdx.x / table.width / GROUPS;
            strip.slot = threadIdx.x % table.width;
            strip.group = threadIdx.x / table.width % GROUPS;
        }
    }

    // Of a tile.
    __device__ __forceinline__ u32 columns() const { return table.width * COLUMNS; }

    // At the leaves of a tile from `first` on, one for each team.
    __device__ __forceinline__ void begin(u32 tile, u64 first)
    {
        const u64 leaf = first + team;
        strip.stand(table, tile * table.width + strip.slot);
        strip.first = leaf * LEAF + strip.group;
        strip.step = GROUPS;
        const u64 end = min(table.rows, (leaf + 1) * LEAF);
        strip.rows = strip.columns != 0 && strip.first < end ? u32(end - strip.first + GROUPS - 1) / GROUPS : 0;
        owner = strip.group == 0 && leaf < leaves;
    }

    __device__ __forceinline__ bool owns(int i) const { return owner && i < strip.columns; }
    __device__ __forceinline__ bool all(bool good) const { return table.is_tall() ? __syncthreads_and(good) : good; }

    static __device__ __forceinline__ void *room()
    {
        __shared__ uint4 parts[COLUMNS * COLUMN_THREADS];
        return parts;
    }

    // What the lanes of a strip fold to that has no more rows than a batch: one for each lane.
    template <class Pass>
    __device__ __forceinline__ void take_batch(const typename Pass::Given (&given)[COLUMNS], typename Pass::Part (&part)[COLUMNS]) const
    {
        const Walker<T> walker(table, strip, missing_rows<Op>());
        Walk walk = walker.begin(strip);
        uint4 v[BATCH];
        walker.load(v, walk);
#pragma unroll (Pass::RARE ? 1 : COLUMNS)
        for (int i = 0; i < COLUMNS; ++i) {
            typename Pass::template Lanes<BATCH> lanes;
            lanes.begin(given[i]);
#pragma unroll
            for (u32 k = 0; k < BATCH; ++k)
                lanes.take(k, item<T>(v[k], i));
            part[i] = lanes.part();
        }
    }

    template <class Pass>
    __device__ __forceinline__ void take_lanes(const typename Pass::Given (&given)[COLUMNS], typename Pass::Part (&part)[COLUMNS]) const
    {
        TreeTaker<T, Pass, SHARE> taker(given);
        walk_down(table, strip, missing_rows<Op>(), taker);
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i)
            part[i] = taker.column[i].part();
    }

    // Of a table that the thread walks alone, the set-th of 2^levels sets.
    __device__ __forceinline__ void choose(u32 set, u32 levels)
    {
        const u32 rows = u32(table.rows);
        strip.step = 1u << levels;
        strip.first = __brev(set) >> 1 >> (31 - levels);
        strip.rows = strip.columns != 0 && strip.first < rows ? u32(rows - strip.first + strip.step - 1) >> levels : 0;
    }

    // Folds what the groups of a team have into the first one's.
    template <class Pass>
    __device__ __forceinline__ void fold_team(typename Pass::Part (&part)[COLUMNS]) const
    {
        using Part = typename Pass::Part;
        static_assert(sizeof(Part) <= sizeof(uint4), "room");
        Part *const mine = static_cast<Part *>(room()) + threadIdx.x;
        // Somebody may still read what was there.
        __syncthreads();
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i)
            mine[i * COLUMN_THREADS] = part[i];
#pragma unroll 1
        for (u32 half = GROUPS / 2; half > 0; half /= 2) {
            __syncthreads();
            if (strip.group < half) {
#pragma unroll
                for (int i = 0; i < COLUMNS; ++i) {
                    part[i] = Pass::fold(part[i], mine[i * COLUMN_THREADS + half * table.width]);
                    mine[i * COLUMN_THREADS] = part[i];
                }
            }
        }
    }

    // What a pass makes of the columns of a leaf, where they are owned. Who walks alone takes sets, each of every 2^levels-th lane: halving
    // folds them in the order of their reversed bits, and of each level one waits for its sibling.
    template <class Pass>
    __device__ __forceinline__ void pass(const typename Pass::Given (&given)[COLUMNS], typename Pass::Part (&part)[COLUMNS])
    {
        const bool tall = table.is_tall(), alone = Pass::ORDERED && !tall;
        const bool batches = alone && table.rows <= LANES;
        const u32 levels = !alone || table.rows <= BATCH ? 0 : batches ? 32 - __clz(int((table.rows - 1) / BATCH)) : LEVELS;
        typename Pass::Part waiting[LEVELS + 1][COLUMNS];
#pragma unroll 1
        for (u32 set = 0; set < 1u << levels; ++set) {
            if (!tall)
                choose(set, levels);
            if (batches)
                take_batch<Pass>(given, part);
            else
                take_lanes<Pass>(given, part);
            if (alone) {
                u32 level = 0;
#pragma unroll 1
                for (u32 left = set; left % 2 != 0; left /= 2, ++level) {
#pragma unroll
                    for (int i = 0; i < COLUMNS; ++i)
                        part[i] = Pass::fold(waiting[level][i], part[i]);
                }
#pragma unroll
                for (int i = 0; i < COLUMNS; ++i)
                    waiting[level][i] = part[i];
            }
        }
        if (tall)
            fold_team<Pass>(part);
    }

    // The same of a pass that needs to know nothing.
    template <class Pass>
    __device__ __forceinline__ void pass(typename Pass::Part (&part)[COLUMNS])
    {
        const Nothing nothing[COLUMNS] = {};
        pass<Pass>(nothing, part);
    }
};

// Where the leaves of a tile meet: nodes of `columns` columns each, word by word, of which those of a level lie `span` leaves apart.
template <class Op>
struct TreeWorkspace {
    static constexpr int WORDS = Op::WORDS;
    u64 *const nodes;
    const u32 columns;

    __device__ __forceinline__ u64 *at(u64 leaf, u32 place) const { return nodes + leaf * WORDS * columns + place; }

    __device__ __forceinline__ Node<WORDS> load(u64 leaf, u32 place) const
    {
        Node<WORDS> node;
#pragma unroll
        for (int w = 0; w < WORDS; ++w)
            node.word[w] = __ldcg(at(leaf, place) + w * columns);
        return node;
    }

    __device__ __forceinline__ void store(const Node<WORDS> &node, u64 leaf, u32 place) const
    {
#pragma unroll
        for (int w = 0; w < WORDS; ++w)
            at(leaf, place)[w * columns] = node.word[w];
    }

    // Folds nodes that follow one another into the first; all threads of the block, to which they must be known, call it.
    __device__ __forceinline__ void fold(u64 first, u32 count, u64 span) const
    {
#pragma unroll 1
        for (u32 half = 1; half < count; half *= 2) {
            const u32 pairs = (count + half - 1) / (2 * half);
#pragma unroll 1
            for (u32 i = threadIdx.x; i < pairs * columns; i += COLUMN_THREADS) {
                const u64 left = first + u64(i / columns) * (2 * half) * span;
                const u32 place = i % columns;
                store(Op::combine(load(left, place), load(left + half * span, place)), left, place);
            }
            __syncthreads();
        }
    }

    // Folds the leaves from `first` on that the block has, and goes on as far up as all siblings are there. Returns whether the root
    // is, in the place of the first leaf.
    __device__ __forceinline__ bool rise(u64 first, u32 teams, u64 leaves, u32 *counters) const
    {
        __syncthreads();
        fold(first, u32(min(u64(teams), leaves - first)), 1);
#pragma unroll 1
        for (u64 span = teams; span < leaves; span *= MEETING_NODES) {
            const u64 parent = first / (span * MEETING_NODES);
            first = parent * span * MEETING_NODES;
            const u32 siblings = u32(min(u64(MEETING_NODES), (leaves - first + span - 1) / span));
            if (siblings > 1) {
                __threadfence();
                if (!is_last(counters + parent, siblings))
                    return false;
                fold(first, siblings, span);
            }
            counters += (leaves + span * MEETING_NODES - 1) / (span * MEETING_NODES);
        }
        return true;
    }
};

// Makes numbers of a leaf's totals, where they are owned.
template <class Fold>
__device__ __forceinline__ void write_totals(const TreeLeaf<typename Fold::Op> &leaf, const typename Fold::Total (&total)[Fold::COLUMNS], u32 ask, typename Fold::Bits *out)
{
    using Op = typename Fold::Op;
    u32 unsure = 0;
#pragma unroll
    for (int i = 0; i < Fold::COLUMNS; ++i) {
        typename Fold::Bits number;
        if (!leaf.owns(i))
            continue;
        if (Op::quick_value(total[i].node(), ask, leaf.table.rows, number))
            out[leaf.strip.place + i] = number;
        else
            unsure |= 1u << i;
    }
    // Seldom: long code, once.
#pragma unroll 1
    while (unsure != 0) {
        const int place = __ffs(int(unsure)) - 1;
        typename Fold::Total one = total[0];
#pragma unroll
        for (int i = 1; i < Fold::COLUMNS; ++i)
            if (i == place)
                one = total[i];
        out[leaf.strip.place + place] = Op::value(one.node(), ask, leaf.table.rows);
        unsure &= unsure - 1;
    }
}

// Folds a leaf's totals with those of the other leaves of the tile, of which the block takes those from `begin` on; whoever has the root
// makes the numbers. The tile is the turn-th of this launch.
template <class Fold>
__device__ __forceinline__ void fold_leaves(TreeLeaf<typename Fold::Op> &leaf, const typename Fold::Total (&total)[Fold::COLUMNS], u32 tile, u32 turn, u64 begin, u32 counters, u32 ask, typename Fold::Bits *out)
{
    using Op = typename Fold::Op;
    const ColumnTable &table = leaf.table;
    const TreeWorkspace<Op> workspace = {table.scratch + WORKSPACE_ZEROS + turn * leaf.leaves * (Op::WORDS * leaf.columns()), leaf.columns()};
    if (leaf.owner) {
#pragma unroll
        for (int i = 0; i < Fold::COLUMNS; ++i)
            workspace.store(total[i].node(), begin + leaf.team, leaf.strip.slot * Fold::COLUMNS + i);
    }
    if (!workspace.rise(begin, leaf.teams, leaf.leaves, reinterpret_cast<u32 *>(table.scratch) + turn * counters))
        return;
    if (threadIdx.x < leaf.columns()) {
        const u32 i = threadIdx.x % Fold::COLUMNS;
        Strip<typename Op::Item> strip;
        strip.stand(table, tile * table.width + threadIdx.x / Fold::COLUMNS);
        if (i < strip.columns)
            out[strip.place + i] = Op::value(workspace.load(0, threadIdx.x), ask, table.rows);
    }
}

// Makes the numbers of the columns: of tall tables those of `count` tiles from the first one on, each of which has `counters` counters.
template <class Fold>
__device__ __forceinline__ void fold_columns(const ColumnTable &table, u32 first, u32 count, u32 counters, u32 ask, void *out)
{
    auto *const numbers = static_cast<typename Fold::Bits *>(out);
    TreeLeaf<typename Fold::Op> leaf(table);
    typename Fold::Total total[Fold::COLUMNS];
    const bool tall = table.is_tall();
    const u32 steps = tall ? u32((leaf.leaves + leaf.teams - 1) / leaf.teams) : 1;
    // Each block takes a tile's leaves of all its teams, or a strip for each thread.
#pragma unroll 1
    for (u32 unit = blockIdx.x; unit < count * steps; unit += gridDim.x) {
        const u32 turn = unit % count;
        const u64 begin = u64(unit / count) * leaf.teams;
        if (tall)
            leaf.begin(first + turn, begin);
        else
            leaf.strip.stand(table, unit * COLUMN_THREADS + threadIdx.x);
        Fold::leaf(leaf, total);
        if (leaf.leaves == 1)
            write_totals<Fold>(leaf, total, ask, numbers);
        else
            fold_leaves<Fold>(leaf, total, first + turn, turn, begin, counters, ask, numbers);
    }
}

// The r-th row of a table is as ColumnTable says; the numbers of the first table's columns go to the first places of out, and so on. Of
// some trees several numbers can be asked: `Ask`.
#define TREE_COLUMNS(name) \
    static __device__ __forceinline__ void reduce(const ColumnTable &, u32, u32, u32, u32, void *); \
    extern "C" __global__ void __launch_bounds__(COLUMN_THREADS, COLUMN_BLOCKS) NAMED(name, ELEMENT)(const char *data, u32 columns, \
        u64 rows, u32 inner, i64 stride, i64 jump, u32 tables, i64 table_stride, u32 unit, u32 width, u32 first, u32 count, \
        u32 counters, u32 ask, u64 *scratch, void *out) \
    { \
        reduce({data, columns, rows, inner, stride, jump, tables, table_stride, unit, width, scratch}, first, count, counters, ask, out); \
    } \
    static __device__ __forceinline__ void reduce
