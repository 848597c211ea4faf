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
//     Pass::RARE        whether short code is better than fast code
//
// Nodes of leaves meet in the scratch memory, where the last of MEETING_NODES siblings goes on, a level higher.

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
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k) {
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i)
                column[i].take(k % N, item<T>(v[k], i));
        }
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

// A leaf of a short table: a thread walks its strip by itself.
template <class Op>
struct OwnLeaf {
    using T = typename Op::Item;
    // Columns of which the thread gets what lanes fold to.
    static constexpr int OWN = ITEMS<T>;
    // Sets of lanes, at most: 2 to the power of this.
    static constexpr u32 LEVELS = 5;
    static_assert(GROUPS == 1 << LEVELS, "a set of lanes for each group");

    const ColumnTable &table;
    Strip<T> strip;
    bool twice = false;

    __device__ __forceinline__ OwnLeaf(const ColumnTable &table) : table(table) {}

    __device__ __forceinline__ bool owns(int i) const { return i < strip.columns; }
    __device__ __forceinline__ bool all(bool good) const { return good; }

    template <class Value>
    __device__ __forceinline__ void tell(const Value (&mine)[OWN], Value (&told)[OWN]) const
    {
#pragma unroll
        for (int i = 0; i < OWN; ++i)
            told[i] = mine[i];
    }

    // What the lanes of a strip fold to that has no more rows than a batch: one for each lane.
    template <class Pass>
    __device__ __forceinline__ void take_batch(const typename Pass::Given (&given)[OWN], typename Pass::Part (&part)[OWN]) const
    {
        const Walker<T> walker(table, strip, missing_rows<Op>());
        Walk walk = walker.begin(strip);
        uint4 v[BATCH];
        walker.load(v, walk);
#pragma unroll
        for (int i = 0; i < OWN; ++i) {
            typename Pass::template Lanes<BATCH> lanes;
            lanes.begin(given[i]);
#pragma unroll
            for (u32 k = 0; k < BATCH; ++k)
                lanes.take(k, item<T>(v[k], i));
            part[i] = lanes.part();
        }
    }

    template <class Pass>
    __device__ __forceinline__ void take_lanes(const typename Pass::Given (&given)[OWN], typename Pass::Part (&part)[OWN]) const
    {
        TreeTaker<T, Pass, SHARE> taker(given);
        walk_down(table, strip, missing_rows<Op>(), taker);
#pragma unroll
        for (int i = 0; i < OWN; ++i)
            part[i] = taker.column[i].part();
    }

    // A set is every 2^levels-th lane. Halving folds sets in the order of their reversed bits: of each level one waits for its sibling.
    template <class Pass>
    __device__ __forceinline__ void pass(const typename Pass::Given (&given)[OWN], typename Pass::Part (&part)[OWN])
    {
        const u32 rows = u32(table.rows);
        const bool batches = !Pass::RARE && rows <= LANES;
        const u32 levels = !batches ? LEVELS : rows <= BATCH ? 0 : 32 - __clz(int((rows - 1) / BATCH));
        strip.step = 1u << levels;
        typename Pass::Part waiting[LEVELS + 1][OWN];
#pragma unroll 1
        for (u32 set = 0; set < strip.step; ++set) {
            strip.first = __brev(set) >> 1 >> (31 - levels);
            strip.rows = strip.first < rows ? u32(rows - strip.first + strip.step - 1) >> levels : 0;
            if (batches)
                take_batch<Pass>(given, part);
            else
                take_lanes<Pass>(given, part);
            u32 level = 0;
#pragma unroll 1
            for (u32 left = set; left % 2 != 0; left /= 2, ++level) {
#pragma unroll
                for (int i = 0; i < OWN; ++i)
                    part[i] = Pass::fold(waiting[level][i], part[i]);
            }
#pragma unroll
            for (int i = 0; i < OWN; ++i)
                waiting[level][i] = part[i];
        }
    }
};

// A leaf of a tall table, and who of a block has which part of it.
template <class Op>
struct TeamLeaf {
    using T = typename Op::Item;
    static constexpr u32 COLUMNS = ITEMS<T>;
    static constexpr int OWN = 1;

    const ColumnTable &table;
    const u32 width;
    const u32 teams;
    const u64 leaves;
    Strip<T> strip;
    bool twice = false;
    // Whether there is a leaf of a column for the thread to own, and the column's place among the outputs.
    bool counts = false;
    u64 place = 0;

    __device__ __forceinline__ TeamLeaf(const ColumnTable &table)
        : table(table), width(table.width), teams(STRIPS / table.width), leaves((table.rows + LEAF - 1) / LEAF)
    {
        strip.slot = threadIdx.x % width;
        strip.group = threadIdx.x / width % GROUPS;
        strip.step = GROUPS;
    }

    __device__ __forceinline__ u32 team() const { return threadIdx.x / width / GROUPS; }

    // The first threads own the columns of all teams' leaves; of a team, the first columns of all strips are ahead of the second ones.
    __device__ __forceinline__ u32 columns() const { return width * COLUMNS; }
    __device__ __forceinline__ u32 own_team() const { return threadIdx.x / columns(); }
    __device__ __forceinline__ u32 own_place() const { return threadIdx.x % columns(); }

    // At the leaves of a tile from `first` on, one for each team.
    __device__ __forceinline__ void begin(u32 tile, u64 first)
    {
        const u64 leaf = first + team();
        strip.stand(table, tile * width + strip.slot);
        strip.first = leaf * LEAF + strip.group;
        const u64 end = min(table.rows, (leaf + 1) * LEAF);
        strip.rows = strip.columns != 0 && strip.first < end ? u32(end - strip.first + GROUPS - 1) / GROUPS : 0;
        Strip<T> own;
        own.stand(table, tile * width + own_place() % width);
        counts = own_team() < teams && first + own_team() < leaves && own_place() / width < own.columns;
        place = own.place + own_place() / width;
    }

    __device__ __forceinline__ bool owns(int) const { return counts; }
    __device__ __forceinline__ bool all(bool good) const { return __syncthreads_and(good); }

    static __device__ __forceinline__ void *room()
    {
        __shared__ uint4 parts[COLUMNS * COLUMN_THREADS];
        return parts;
    }

    // What a thread knows of the column that it owns, told to all that have the column.
    template <class Value>
    __device__ __forceinline__ void tell(const Value (&mine)[OWN], Value (&told)[COLUMNS]) const
    {
        Value *const values = static_cast<Value *>(room());
        __syncthreads();
        if (own_team() < teams)
            values[threadIdx.x] = mine[0];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i)
            told[i] = values[(team() * COLUMNS + i) * width + strip.slot];
    }

    template <class Pass>
    __device__ __forceinline__ void pass(const typename Pass::Given (&given)[COLUMNS], typename Pass::Part (&part)[OWN])
    {
        using Part = typename Pass::Part;
        static_assert(sizeof(Part) <= sizeof(uint4), "room");
        TreeTaker<T, Pass, SHARE> taker(given);
        walk_down(table, strip, missing_rows<Op>(), taker);
        Part *const parts = static_cast<Part *>(room());
        // Somebody may still read what was there.
        __syncthreads();
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i)
            parts[i * COLUMN_THREADS + threadIdx.x] = taker.column[i].part();
        __syncthreads();
        if (own_team() >= teams)
            return;
        const Part *const first = parts + own_place() / width * COLUMN_THREADS + own_team() * GROUPS * width + own_place() % width;
        Part group[GROUPS / 2];
#pragma unroll
        for (u32 g = 0; g < GROUPS / 2; ++g)
            group[g] = Pass::fold(first[g * width], first[(g + GROUPS / 2) * width]);
#pragma unroll
        for (u32 half = GROUPS / 4; half > 0; half /= 2) {
#pragma unroll
            for (u32 g = 0; g < half; ++g)
                group[g] = Pass::fold(group[g], group[g + half]);
        }
        part[0] = group[0];
    }
};

// Where the leaves of a tile meet: nodes of `columns` columns each, word by word, of which those of a level lie `span` leaves apart.
template <class Op>
struct TreeMeeting {
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

// Makes the numbers of the columns of `count` tiles from the first one on. Each has `counters` counters.
template <class Fold>
__device__ __forceinline__ void fold_tall_columns(const ColumnTable &table, u32 first, u32 count, u32 counters, typename Element<typename Fold::Op::Item>::Bits *out)
{
    using Op = typename Fold::Op;
    TeamLeaf<Op> leaf(table);
    const u32 steps = u32((leaf.leaves + leaf.teams - 1) / leaf.teams);
#pragma unroll 1
    for (u32 unit = blockIdx.x; unit < count * steps; unit += gridDim.x) {
        const u32 tile = unit % count;
        const u64 begin = u64(unit / count) * leaf.teams;
        leaf.begin(first + tile, begin);
        Node<Op::WORDS> node[1];
        Fold::leaf(leaf, node);
        bool mine = leaf.counts && leaf.own_team() == 0;
        if (leaf.leaves > 1) {
            const TreeMeeting<Op> meeting = {table.scratch + MEETING_ZEROS + tile * leaf.leaves * (Op::WORDS * leaf.columns()), leaf.columns()};
            if (leaf.own_team() < leaf.teams && begin + leaf.own_team() < leaf.leaves)
                meeting.store(node[0], begin + leaf.own_team(), leaf.own_place());
            mine &= meeting.rise(begin, leaf.teams, leaf.leaves, reinterpret_cast<u32 *>(table.scratch) + tile * counters);
            if (mine)
                node[0] = meeting.load(0, leaf.own_place());
        }
        if (mine)
            out[leaf.place] = Op::value(node[0]);
    }
}

// Makes the numbers of the columns of all strips.
template <class Fold>
__device__ __forceinline__ void fold_short_columns(const ColumnTable &table, typename Element<typename Fold::Op::Item>::Bits *out)
{
    using Op = typename Fold::Op;
    OwnLeaf<Op> leaf(table);
#pragma unroll 1
    for (u32 strip = blockIdx.x * COLUMN_THREADS + threadIdx.x;; strip += gridDim.x * COLUMN_THREADS) {
        leaf.strip.stand(table, strip);
        if (leaf.strip.columns == 0)
            return;
        Node<Op::WORDS> node[OwnLeaf<Op>::OWN];
        Fold::leaf(leaf, node);
#pragma unroll
        for (int i = 0; i < OwnLeaf<Op>::OWN; ++i)
            if (leaf.owns(i))
                out[leaf.strip.place + i] = Op::value(node[i]);
    }
}

template <class Fold>
__device__ __forceinline__ void fold_columns(const ColumnTable &table, u32 first, u32 count, u32 counters, void *out)
{
    auto *const numbers = static_cast<typename Element<typename Fold::Op::Item>::Bits *>(out);
    if (table.is_tall())
        fold_tall_columns<Fold>(table, first, count, counters, numbers);
    else
        fold_short_columns<Fold>(table, numbers);
}

// The r-th row of a table is as ColumnTable says; the numbers of the first table's columns go to the first places of out, and so on.
#define TREE_COLUMNS(name) \
    static __device__ __forceinline__ void reduce(const ColumnTable &, u32, u32, u32, void *); \
    extern "C" __global__ void __launch_bounds__(COLUMN_THREADS, COLUMN_BLOCKS) NAMED(name, ELEMENT)(const char *data, u32 columns, \
        u64 rows, u32 inner, i64 stride, i64 jump, u32 tables, i64 table_stride, u32 unit, u32 width, u32 first, u32 count, \
        u32 counters, u64 *scratch, void *out) \
    { \
        reduce({data, columns, rows, inner, stride, jump, tables, table_stride, unit, width, scratch}, first, count, counters, out); \
    } \
    static __device__ __forceinline__ void reduce
