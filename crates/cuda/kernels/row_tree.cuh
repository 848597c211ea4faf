// Fixed trees of rows, each folded to its root and made a number where it lies: 1 to 32 neighbouring lanes share a row, one leaf after
// the other. A warp takes a tile of up to 32 rows in turns, keeps each root in a lane, and the lanes make the numbers side by side.
//
// Lanes of a leaf are dealt out as in tree.cuh: shifted over the threads where rows do not begin with a vector. A row of few elements
// has no more threads than its vectors: what would be folded in from the others changes nothing.

#pragma once

#include "name.cuh"
#include "tree.cuh"

// Numbers of crates/cuda/src/engine/row_trees.rs.
constexpr int ROW_THREADS = 128;
constexpr int ROW_BLOCKS = 4;

// Levels above the leaves of the longest row.
constexpr int MOST_LEVELS = 20;

struct TreeRows {
    const char *data; // the first row
    u64 count;
    i64 stride; // bytes from row to row
    u64 n;      // elements of a row
    u32 shift;  // the lanes of a row are 2 to the power of this
    u32 slack;  // elements that a row's first vector may have before it, at most
    u32 tile;   // rows of a warp, a power of two
    u64 step;   // from a number to the next
    u32 ask;    // which number

    __device__ __forceinline__ u32 lane() const { return threadIdx.x % 32; }
    __device__ __forceinline__ u32 lanes() const { return 1u << shift; }
    __device__ __forceinline__ u32 slot() const { return lane() & (lanes() - 1); }
    __device__ __forceinline__ u32 group() const { return lane() >> shift; }
    __device__ __forceinline__ u32 groups() const { return 32u >> shift; }
    __device__ __forceinline__ u64 first() const { return (u64(blockIdx.x) * (ROW_THREADS / 32) + threadIdx.x / 32) * tile; }
};

// A leaf, or what there is of it, as a thread reads it.
template <class Bits>
struct LeafPart {
    const Bits *at; // the thread's first vector
    int first;      // of which the first item has this index in the leaf: below 0 before it
    int count;      // elements of the leaf
};

// The leaves of rows, as they come: what `Rows` is to leaves that follow one another.
template <class Op>
struct RowLeaves {
    using T = typename Op::Item;
    using Bits = typename Element<T>::Bits;
    using Part = LeafPart<Bits>;
    static constexpr int DEPTH = Op::DEPTH;

    const int threads;
    // Vectors of a thread in this leaf: the same for all threads of the warp, some of which may find nothing there.
    int vectors;
    Part here, next;
    uint4 x[DEPTH];

    __device__ __forceinline__ RowLeaves(u32 threads) : threads(int(threads)) {}

    __device__ __forceinline__ int group() const { return threads; }

    // A thread's k-th vector, with items that change nothing in the place of those that are not the leaf's.
    static __device__ __forceinline__ uint4 load(const Part &part, int k)
    {
        const int first = part.first + k * LANES, left = part.count - first;
        const Bits *at = part.at + k * LANES;
        if (first >= 0 && left >= ITEMS<T>)
            return Rows<Op>::vector(at);
        if (first + ITEMS<T> <= 0 || left <= 0)
            return Rows<Op>::nothing();
        return Rows<Op>::part(at, max(-first, 0), min(left, ITEMS<T>));
    }

    __device__ __forceinline__ void prime()
    {
#pragma unroll
        for (int k = 0; k < DEPTH; ++k)
            x[k] = load(here, k);
    }

    template <bool AGAIN, class Take>
    __device__ __forceinline__ void pass(Take take)
    {
#pragma unroll 1
        for (int row = 0; row < vectors; row += DEPTH) {
            const bool turn = row + DEPTH >= vectors;
            const bool on = turn && !AGAIN;
            const Part ahead = {on ? next.at : here.at, on ? next.first : here.first, on ? next.count : here.count};
            const int to = turn ? 0 : row + DEPTH;
#pragma unroll
            for (int k = 0; k < DEPTH; ++k) {
                if (row + k < vectors)
                    take(x[k], x[k], k);
                x[k] = load(ahead, to + k);
            }
        }
    }

    template <class Take>
    __device__ __forceinline__ void once_more(Take take)
    {
#pragma unroll 1
        for (int k = 0; k < vectors; ++k) {
            const uint4 v = load(here, k);
            take(v, v, 0);
        }
    }
};

// Writes the number of the r-th row, what `Op::value` makes of its root, of what is asked and of how many elements there are, to out[r * step].
template <class Op>
__device__ __forceinline__ void fold_rows(const TreeRows &rows, typename Element<typename Op::Item>::Bits *out)
{
    using T = typename Op::Item;
    using Bits = typename Element<T>::Bits;
    using Part = LeafPart<Bits>;
    constexpr int WORDS = Op::WORDS;
    const u64 first = rows.first();
    if (first >= rows.count)
        return;
    const u32 turns = rows.tile >> (5 - rows.shift);
    const u64 leaves = (rows.n + LEAF - 1) / LEAF;
    const auto length = [&](u64 leaf) { return int(min(rows.n - leaf * LEAF, u64(LEAF))); };
    const auto part_of = [&](u32 turn, u64 leaf) {
        const u64 row = first + turn * rows.groups() + rows.group();
        const Bits *const at = reinterpret_cast<const Bits *>(rows.data + i64(row) * rows.stride) + leaf * LEAF;
        const int skew = int(u64(at) % 16 / sizeof(Bits));
        const int place = int(rows.slot()) * ITEMS<T> - skew;
        return Part{at + place, place, turn < turns && row < rows.count ? length(leaf) : 0};
    };

    RowLeaves<Op> leaf_rows(rows.lanes());
    leaf_rows.here = part_of(0, 0);
    leaf_rows.prime();
    // Of each level a node whose right sibling is still to come, where a leaf's number has that bit: of all rows that the block folds
    // at once. Rows of several leaves have all their threads.
    constexpr u32 GROUP = Rows<Op>::GROUP;
    __shared__ u64 shared[MOST_LEVELS][WORDS][ROW_THREADS / GROUP];
    const auto waiting = [&](int level, int w) -> u64 & { return shared[level][w][threadIdx.x / GROUP]; };
    Node<WORDS> mine = {};
    u64 leaf = 0;
#pragma unroll 1
    for (u32 turn = 0; turn < turns;) {
        const bool last = leaf + 1 == leaves;
        const u32 next_turn = last ? turn + 1 : turn;
        const u64 next_leaf = last ? 0 : leaf + 1;
        leaf_rows.next = part_of(next_turn, next_leaf);
        leaf_rows.vectors = (length(leaf) + int(rows.slack) + LANES - 1) / LANES;
        Node<WORDS> node = Op::leaf(leaf_rows);
        // The last one meets all that wait.
        int level = 0;
#pragma unroll 1
        for (u64 left = leaf; last ? left != 0 : left % 2 != 0; left >>= 1, ++level) {
            if (left % 2 != 0) {
                Node<WORDS> before;
#pragma unroll
                for (int w = 0; w < WORDS; ++w)
                    before.word[w] = waiting(level, w);
                node = Op::combine(before, node);
            }
        }
        if (last) {
            const u32 source = (rows.lane() & (rows.groups() - 1)) << rows.shift;
            const bool kept = rows.lane() / rows.groups() == turn;
#pragma unroll
            for (int w = 0; w < WORDS; ++w) {
                const u64 word = __shfl_sync(ALL_LANES, node.word[w], int(source));
                mine.word[w] = kept ? word : mine.word[w];
            }
        } else {
            __syncwarp();
            if (rows.slot() == 0) {
#pragma unroll
                for (int w = 0; w < WORDS; ++w)
                    waiting(level, w) = node.word[w];
            }
            __syncwarp();
        }
        leaf_rows.here = leaf_rows.next;
        turn = next_turn;
        leaf = next_leaf;
    }
    const u64 row = first + rows.lane();
    if (rows.lane() < rows.tile && row < rows.count)
        out[row * rows.step] = Op::value(mine, rows.ask, rows.n);
}

// The r-th of `count` rows of n elements is r * stride bytes behind data; its number goes r * step numbers behind out. Of some trees several
// numbers can be asked: `Ask`.
#define TREE_ROWS(name) \
    static __device__ __forceinline__ void reduce(const TreeRows &, void *); \
    extern "C" __global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS) NAMED(name, ELEMENT)(const char *data, u64 count, \
        i64 stride, u64 n, u32 shift, u32 slack, u32 tile, void *out, u64 step, u32 ask) \
    { \
        reduce({data, count, stride, n, shift, slack, tile, step, ask}, out); \
    } \
    static __device__ __forceinline__ void reduce
