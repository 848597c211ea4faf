// The fixed tree of crates/core/src/op/tree.rs: reductions whose order of evaluation is part of their definition.
//
// Positions are cut into leaves of 4096. A leaf is 64 rows of 64 lanes: a lane adds up its column from the first row to the last, then
// lanes fold by halving. Node i of a level combines nodes 2 i and 2 i + 1 of the one below. Combining is commutative to the bit, so
// that a butterfly of shuffles folds lanes and nodes; it is not associative, so that the tree decides what is combined with what.
//
// A warp folds a *unit*: as many leaves as its lanes' vectors cover side by side. A thread's vector covers the same lanes in every
// row. Where leaves do not begin with a vector, lanes lie shifted over the threads, and the first thread's vectors straddle two
// rows: it skips what is before the leaf in its first vector and takes what is left of the leaf in one more. Butterflies do not care,
// since lanes that meet are a power of two apart, cyclically.
//
// Warps take units on their own and leave nodes where the last of 32 siblings to be done finds them; it combines them and goes on a
// level higher. Nodes of the run that have no parent in it are final: at most two of each level.

#pragma once

#include "load.cuh"
#include "ticket.cuh"

constexpr int LEAF = 4096;
constexpr int LANES = 64;
constexpr int ROWS = LEAF / LANES;

// Blocks on a multiprocessor: few warps with many rows on their way each.
constexpr int TREE_BLOCKS = 1;

// The most tasks that meet one by one; the same for the only block of a row, which meets in shared memory. Numbers of
// crates/cuda/src/engine/tree.rs.
constexpr u64 MOST_TASKS = 1 << 17;
constexpr u64 MOST_NEAR_TASKS = 256;
constexpr int NEAR_NODES = 272;
constexpr int NEAR_COUNTERS = 32;

// Children that meet at once, and how many levels of the tree that is.
constexpr int MEETING = 5;

// n positions from start on, parted into whole leaves and what lies before and behind them.
struct Run {
    u64 first;
    u64 whole;
    u64 head;
    u64 tail;

    __device__ __forceinline__ Run(u64 n, u64 start)
    {
        const u64 before = (LEAF - start % LEAF) % LEAF;
        first = start / LEAF + (start % LEAF != 0);
        head = before < n ? before : n;
        whole = (n - head) / LEAF;
        tail = (n - head) % LEAF;
    }

    // The nodes of a level that lie in it as a whole: from begin to end.
    __device__ __forceinline__ u64 begin(int level) const { return (first + (u64(1) << level) - 1) >> level; }
    __device__ __forceinline__ u64 end(int level) const { return (first + whole) >> level; }
    __device__ __forceinline__ bool holds(int level, u64 index) const { return begin(level) <= index && index < end(level); }

    // Words that the elements before and behind the leaves fill.
    template <class Bits>
    __device__ __forceinline__ u64 edge_words() const
    {
        constexpr int EACH = 8 / sizeof(Bits);
        return (head + tail + EACH - 1) / EACH;
    }

    // How many nodes without a parent come before this one: level by level, the one at the left edge first. It is odd, the right one
    // is even.
    __device__ __forceinline__ int rank(int level, u64 index) const
    {
        u64 left = first, right = first + whole;
        int before = 0;
#pragma unroll 1
        for (int below = 0; below < level; ++below) {
            before += int(left % 2 + right % 2);
            left = (left + 1) / 2;
            right /= 2;
        }
        return before + int(index % 2 == 0 ? left % 2 : 0);
    }
};

// The rows of a unit, as they come. `Op::DEPTH` rows are on their way while one is worked on, those of the next unit at the end.
template <class Op>
struct Rows {
    using T = typename Op::Item;
    using Bits = typename Element<T>::Bits;
    static constexpr bool PAIRS = Op::PAIRS;
    static constexpr int DEPTH = Op::DEPTH;
    // Threads that share a leaf.
    static constexpr int GROUP = LANES / ITEMS<T>;
    static __device__ __forceinline__ constexpr int group() { return GROUP; }
    static_assert(ROWS % DEPTH == 0, "whole rounds");

    // What brings an element's address to that of the other one.
    u64 across;
    // How many elements of a leaf's first vector lie before it.
    int skew;
    // Whether the others' vectors begin elsewhere.
    bool apart;
    // Whether this thread's vectors are the ones that straddle rows.
    bool straddles;
    // This thread's first vector of this unit and of the next one, if there are more.
    const Bits *here;
    const Bits *next;
    bool more;
    uint4 x[DEPTH];
    uint4 y[PAIRS ? DEPTH : 1];

    // For leaves that follow one another from `first` on.
    __device__ __forceinline__ Rows(const Bits *first, const void *data, const void *others)
    {
        across = u64(others) - u64(data);
        skew = int(u64(first) % 16 / sizeof(Bits));
        apart = across % 16 != 0;
        straddles = skew != 0 && threadIdx.x % GROUP == 0;
    }

    // This thread's first vector of a leaf.
    __device__ __forceinline__ const Bits *begin(const Bits *leaf) const { return leaf - skew + threadIdx.x % GROUP * ITEMS<T>; }

    __device__ __forceinline__ const Bits *other(const Bits *at) const { return reinterpret_cast<const Bits *>(u64(at) + across); }

    static __device__ __forceinline__ uint4 nothing()
    {
        constexpr u64 EACH = sizeof(Bits) == 8 ? 1 : sizeof(Bits) == 4 ? 0x0000000100000001 : 0x0001000100010001;
        constexpr u64 TWO = u64(Op::IDENTITY) * EACH;
        return make_uint4(u32(TWO), u32(TWO >> 32), u32(TWO), u32(TWO >> 32));
    }

    // Elements from to to of a vector, one by one, among items that change nothing.
    static __device__ __forceinline__ uint4 part(const Bits *at, int from, int to)
    {
        uint4 v = nothing();
#pragma unroll
        for (int i = 0; i < ITEMS<T>; ++i) {
            if (from <= i && i < to) {
                const Bits bits = __ldg(at + i);
                if constexpr (sizeof(Bits) == 8) {
                    (i == 0 ? v.x : v.z) = u32(bits);
                    (i == 0 ? v.y : v.w) = u32(u64(bits) >> 32);
                } else {
                    constexpr int EACH = 4 / sizeof(Bits), WIDTH = 8 * sizeof(Bits);
                    const int shift = WIDTH * (i % EACH);
                    u32 &word = i / EACH == 0 ? v.x : i / EACH == 1 ? v.y : i / EACH == 2 ? v.z : v.w;
                    word = word & ~(u32(Bits(~Bits(0))) << shift) | u32(bits) << shift;
                }
            }
        }
        return v;
    }

    static __device__ __forceinline__ uint4 vector(const Bits *at) { return __ldg(reinterpret_cast<const uint4 *>(at)); }

    // Asks for row k behind the one at `at`.
    __device__ __forceinline__ void fetch(int k, const Bits *at)
    {
        x[k] = vector(at + k * LANES);
        if constexpr (PAIRS)
            y[k] = apart ? part(other(at) + k * LANES, 0, ITEMS<T>) : vector(other(at) + k * LANES);
    }

    // Asks for the first row of a leaf.
    __device__ __forceinline__ void fetch_first(const Bits *at)
    {
        if (straddles) {
            x[0] = part(at, skew, ITEMS<T>);
            if constexpr (PAIRS)
                y[0] = part(other(at), skew, ITEMS<T>);
        } else {
            fetch(0, at);
        }
    }

    // Asks for the first rows of the first unit.
    __device__ __forceinline__ void prime()
    {
        fetch_first(here);
#pragma unroll
        for (int k = 1; k < DEPTH; ++k)
            fetch(k, here);
    }

    // What is left of the leaf behind the last row.
    template <class Take>
    __device__ __forceinline__ void rest(Take take)
    {
        if (skew != 0) {
            const int left = straddles ? skew : 0;
            const uint4 a = part(here + LEAF, 0, left);
            take(a, PAIRS ? part(other(here + LEAF), 0, left) : a, 0);
        }
    }

    // Calls `take` with this thread's vectors of all rows, in order, and with the number of the row among those on their way, a
    // constant. Then the first rows of the next unit are on their way or, if this one is to be passed AGAIN, its own.
    template <bool AGAIN, class Take>
    __device__ __forceinline__ void pass(Take take)
    {
        const Bits *ahead = here + DEPTH * LANES;
#pragma unroll 1
        for (int row = 0; row < ROWS; row += DEPTH) {
            const bool turn = row == ROWS - DEPTH;
            // Behind the last unit its own first rows are read once more: cheaper than a question at every load.
            if (turn)
                ahead = AGAIN || !more ? here : next;
#pragma unroll
            for (int half = 0; half < DEPTH; half += DEPTH / 2) {
#pragma unroll
                for (int k = half; k < half + DEPTH / 2; ++k)
                    take(x[k], y[PAIRS ? k : 0], k);
#pragma unroll
                for (int k = half; k < half + DEPTH / 2; ++k) {
                    if (k == 0 && turn)
                        fetch_first(ahead);
                    else
                        fetch(k, ahead);
                }
                // Keeps the compiler from putting the loads off until the other half is done.
                __syncwarp();
            }
            ahead += DEPTH * LANES;
        }
        rest(take);
    }

    // The same from memory, one row by one: short code for what is seldom done.
    template <class Take>
    __device__ __forceinline__ void once_more(Take take)
    {
#pragma unroll 1
        for (int row = 0; row < ROWS; ++row) {
            const Bits *at = here + row * LANES;
            const int from = row == 0 && straddles ? skew : 0;
            const uint4 a = from > 0 ? part(at, from, ITEMS<T>) : vector(at);
            take(a, PAIRS ? part(other(at), from, ITEMS<T>) : a, 0);
        }
        rest(take);
    }
};

// Folds what a leaf's `group` threads have by lane: `fold` takes two values and gives one, `swap` a value and gives another thread's.
template <int COUNT, class V, class Fold, class Swap>
__device__ __forceinline__ V fold_lanes(int group, V (&lane)[COUNT], Fold fold, Swap swap)
{
#pragma unroll
    for (int distance = group / 2; distance > 0; distance /= 2) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            lane[i] = fold(lane[i], swap(lane[i], distance));
    }
#pragma unroll
    for (int width = COUNT / 2; width > 0; width /= 2) {
#pragma unroll
        for (int i = 0; i < width; ++i)
            lane[i] = fold(lane[i], lane[i + width]);
    }
    return lane[0];
}

// The sum over the threads that share a leaf.
__device__ __forceinline__ u64 group_sum(int group, u32 mine)
{
#pragma unroll
    for (int distance = group / 2; distance > 0; distance /= 2)
        mine += __shfl_xor_sync(ALL_LANES, mine, distance);
    return mine;
}

template <int WORDS>
struct Node {
    u64 word[WORDS];
};

// Each lane has node `index` of `level`, as do its neighbours up to `width`, if the run holds it and the lane is in use. Climbs so
// many levels; writes nodes that have no parent. What the lane has then is its ancestor, if the run holds that.
template <class Op>
__device__ __forceinline__ void rise(Node<Op::WORDS> &node, const Run &run, int level, u64 index, int levels, int width, bool used, u64 *out)
{
    bool held = used && run.holds(level, index);
#pragma unroll 1
    for (int top = level + levels; level < top; width *= 2) {
        Node<Op::WORDS> other;
#pragma unroll
        for (int w = 0; w < Op::WORDS; ++w)
            other.word[w] = __shfl_xor_sync(ALL_LANES, node.word[w], width);
        const bool parent = used && run.holds(level + 1, index / 2);
        if (parent) {
            node = Op::combine(node, other);
        } else if (held && (threadIdx.x & width - 1) == 0) {
            u64 *place = out + run.rank(level, index) * Op::WORDS;
#pragma unroll
            for (int w = 0; w < Op::WORDS; ++w)
                place[w] = node.word[w];
        }
        held = parent;
        index /= 2;
        ++level;
    }
}

// Lane i has node (group << gather) + i of `level`, if the run holds it. The lanes make node `group` out of them and leave it where its
// siblings meet; the last one to come there goes on with them, as far up as the run goes.
template <class Op>
__device__ __forceinline__ void meet(Node<Op::WORDS> node, const Run &run, int level, int gather, u64 group, u64 *nodes, u32 *counters, u64 *out)
{
    constexpr int WORDS = Op::WORDS;
    const u32 lane = threadIdx.x % 32;
    while (true) {
        rise<Op>(node, run, level, (group << gather) + lane, gather, 1, lane < 1u << gather, out);
        level += gather;
        if (!run.holds(level, group))
            return;
        const u64 begin = run.begin(level), end = run.end(level);
        const u64 parent = group >> MEETING;
        const u64 first = max(begin, parent << MEETING), last = min(end, parent + 1 << MEETING);
        if (last - first > 1) {
            volatile u64 *siblings = nodes + (first - begin) * WORDS;
            bool late = false;
            if (lane == 0) {
#pragma unroll
                for (int w = 0; w < WORDS; ++w)
                    siblings[(group - first) * WORDS + w] = node.word[w];
                __threadfence();
                // The last one sets the counter back to 0.
                const u32 others = u32(last - first - 1);
                late = atomicInc(&counters[parent - (begin >> MEETING)], others) == others;
                __threadfence();
            }
            if (!__shfl_sync(ALL_LANES, late, 0))
                return;
            __syncwarp();
            const u64 child = (parent << MEETING) + lane;
            if (first <= child && child < last) {
#pragma unroll
                for (int w = 0; w < WORDS; ++w)
                    node.word[w] = siblings[(child - first) * WORDS + w];
            }
        } else {
#pragma unroll
            for (int w = 0; w < WORDS; ++w)
                node.word[w] = __shfl_sync(ALL_LANES, node.word[w], 0);
        }
        nodes += (end - begin) * WORDS;
        counters += (end - begin >> MEETING) + 2;
        group = parent;
        gather = MEETING;
    }
}

// The elements before and behind the whole leaves of n at items, side by side in words.
template <class Bits>
__device__ __forceinline__ void leave_edges(const Bits *items, u64 n, const Run &run, u64 *out)
{
    constexpr int EACH = 8 / sizeof(Bits);
    for (u64 i = blockIdx.x * blockDim.x + threadIdx.x; i < run.edge_words<Bits>(); i += gridDim.x * blockDim.x) {
        u64 word = 0;
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            const u64 edge = i * EACH + e;
            if (edge < run.head + run.tail)
                word |= u64(items[edge < run.head ? edge : edge + n - run.tail - run.head]) << (8 * sizeof(Bits) * e & 63);
        }
        out[i] = word;
    }
}

// Folds the whole leaves of n elements at data, of which the first has position start. Leaves in `out` the elements before and behind
// them, those of the others, and the nodes without a parent.
template <class Op>
__device__ __forceinline__ void fold_tree(const void *data, const void *others, u64 n, u64 start, u64 *scratch, u64 *out)
{
    using T = typename Op::Item;
    using Bits = typename Element<T>::Bits;
    constexpr int WORDS = Op::WORDS;
    constexpr int GROUP = Rows<Op>::GROUP;
    // The level of a unit.
    constexpr int UNIT = GROUP == 32 ? 0 : GROUP == 16 ? 1 : 2;
    const Run run(n, start);
    const Bits *items = static_cast<const Bits *>(data);
    leave_edges(items, n, run, out);
    out += run.edge_words<Bits>();
    if constexpr (Op::PAIRS) {
        leave_edges(static_cast<const Bits *>(others), n, run, out);
        out += run.edge_words<Bits>();
    }
    if (run.whole == 0)
        return;

    // A task is 2^gather units, of which a warp keeps each node in a lane; the more units, the larger, so that few meet.
    const u64 unit_begin = run.first >> UNIT, unit_end = (run.first + run.whole - 1 >> UNIT) + 1;
    const u64 most = gridDim.x == 1 ? MOST_NEAR_TASKS : MOST_TASKS;
    int gather = 0;
    while (gather < MEETING && (unit_end - 1 >> gather) - (unit_begin >> gather) >= most)
        ++gather;
    const u64 task_begin = unit_begin >> gather;
    const u64 tasks = (unit_end - 1 >> gather) + 1 - task_begin;

    __shared__ u64 near_nodes[NEAR_NODES * WORDS];
    __shared__ u32 near_counters[NEAR_COUNTERS];
    const bool near = gridDim.x == 1 && tasks <= most;
    if (near) {
        if (threadIdx.x < NEAR_COUNTERS)
            near_counters[threadIdx.x] = 0;
        __syncthreads();
    }

    const u32 warps = blockDim.x / 32, lane = threadIdx.x % 32;
    const u64 task_end = task_begin + share(tasks, blockIdx.x + 1);
    u64 task = task_begin + share(tasks, blockIdx.x) + threadIdx.x / 32;
    if (task >= task_end)
        return;
    const auto leaf_of = [&](u64 unit) { return (unit << UNIT) + lane / GROUP; };
    const Bits *first = items + run.head;
    // Units at the ends may lack leaves: their threads go along with the nearest one.
    const auto begin_of = [&](const Rows<Op> &rows, u64 unit) {
        const u64 leaf = min(max(leaf_of(unit), run.first), run.first + run.whole - 1);
        return rows.begin(first + (leaf - run.first) * LEAF);
    };
    Rows<Op> rows(first, data, others);
    u64 unit = max(task << gather, unit_begin);
    rows.here = begin_of(rows, unit);
    rows.prime();
    Node<WORDS> kept = {};
    while (true) {
        const bool done = unit + 1 == min(task + 1 << gather, unit_end);
        const u64 next_task = done ? task + warps : task;
        const u64 next_unit = done ? next_task << gather : unit + 1;
        rows.more = next_task < task_end;
        rows.next = begin_of(rows, next_unit);
        Node<WORDS> node = Op::leaf(rows);
        rise<Op>(node, run, 0, leaf_of(unit), UNIT, GROUP, true, out);
        if (lane == (unit & (u64(1) << gather) - 1))
            kept = node;
        if (done)
            meet<Op>(kept, run, UNIT, gather, task, near ? near_nodes : scratch + WORKSPACE_ZEROS, near ? near_counters : reinterpret_cast<u32 *>(scratch), out);
        if (!rows.more)
            break;
        task = next_task;
        unit = next_unit;
        rows.here = rows.next;
    }
}
