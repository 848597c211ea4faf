// Walks a view whose outputs lie side by side: a thread takes some of these together, a pack, as strided.cuh takes one.
//
// The last pack of a row ends with it, so that it may have outputs of the one before: these are answered twice, alike.
//
// An accumulator is one of strided.cuh that may be lost, of one output, and says how packs are taken:
//
//     PACK, THREADS, AT_ONCE    outputs of a pack; threads of a block; elements of each that are under way
//     Chunk                     what a thread has of up to 2^LOG_CHUNK elements of each
//     Kept                      what all threads have, in shared memory

#pragma once

#include "strided.cuh"

// Loads packs of which the view has all elements.
template <class Acc>
struct WholePacks {
    const Layout &layout;
    const u32 unit; // a power of two that divides their addresses, if that is not more

    template <int U>
    __device__ __forceinline__ void operator()(uint4 (&packs)[U], const char *const (&at)[U]) const
    {
        if (unit == 16)
            return load_aligned(packs, at);
        if (unit == 8)
            return load_aligned<2>(packs, at);
        if (!load_unaligned(packs, at, layout.data, layout.end))
            load_elements<typename Acc::Bits, Acc::PACK>(packs, at, Acc::PACK, 1);
    }
};

// Takes the elements of outputs by chunks whose sums are exact. A chunk that is not comes once more: without what is not finite, and if that is not
// enough, element by element. So do some chunks after it, the more the more often that happens.
template <class Acc, class Kept, class Load>
__device__ __forceinline__ void take_chunks(Kept &kept, const Layout &layout, const Places &its, const char *data, const Load &load,
    const typename Acc::Asked &asked)
{
    constexpr u32 A = Acc::PACK, CHUNK = 1 << Acc::Chunk::LOG_CHUNK, MOST = 16;
    constexpr int U = Acc::AT_ONCE;
    enum How : u32 { PLAIN, FILTERED, APART };
    const bool omits = layout.omits();
    typename Acc::Chunk chunk;
    u32 first = its.first, how = PLAIN, left = 0, next = 1;
#pragma unroll 1
    for (u32 e = its.first; e < its.last;) {
        PackBatch<U, Acc, A> batch(layout, its, e, data, layout.bytes, load);
        if (!batch.is_whole(its, e)) {
#pragma unroll
            for (int k = 1; k < U; ++k)
                batch.packs[k] = batch.is_there(its, e, k) ? batch.packs[k] : make_uint4(0, 0, 0, 0);
        }
        if (omits || how != PLAIN)
            chunk.filter(batch.packs, omits, asked);
        if (how == APART)
            kept.include_apart(batch.packs, asked);
        else
            chunk.add(batch.packs, asked);
        e += U * its.step;
        if (e - first < CHUNK * its.step && e < its.last)
            continue;
        if (how != APART && !chunk.is_exact()) {
            // To look for what is not finite costs little.
            const bool odd = how == PLAIN && chunk.has_specials();
            how = odd ? FILTERED : APART;
            left = odd ? MOST : next;
            next = min(2 * left, MOST);
            e = first;
        } else {
            kept.include(chunk);
            next = how == PLAIN ? 1 : next;
            left -= left != 0;
            how = left == 0 ? u32(PLAIN) : how;
        }
        chunk = {};
        first = e;
    }
}

// Adds what the first `lanes` lanes of every pack have to what the first one has, two by two. All threads of the block call it.
template <class Acc, class Kept>
__device__ __forceinline__ void fold_packs(Kept &kept, u32 lanes, u32 groups)
{
    constexpr u32 P = Acc::PACK;
    __syncthreads();
#pragma unroll 1
    while (lanes > 1) {
        const u32 half = (lanes + 1) / 2, count = lanes / 2 * groups;
#pragma unroll 1
        for (u32 j = threadIdx.x; j < count * P; j += Acc::THREADS) {
            const u32 i = j / count, thread = j % count;
            Acc acc = kept.of(i, thread);
            acc.merge(kept.of(i, thread + half * groups));
            kept.set(i, thread, acc);
        }
        __syncthreads();
        lanes = half;
    }
}

// Leaves what the block has of its outputs as the p-th part.
template <class Acc, class Kept>
__device__ __forceinline__ void leave_parts(const Kept &kept, const Layout &layout, u32 first, u32 count, u32 p)
{
#pragma unroll 1
    for (u32 j = threadIdx.x; j < count; j += Acc::THREADS) {
        const Acc acc = kept.of(j % Acc::PACK, j / Acc::PACK);
#pragma unroll
        for (int w = 0; w < Acc::WORDS; ++w)
            partial<Acc>(layout, first + j, p)[w] = acc.word(w);
    }
}

// Merges so many parts, of which every lane has some of its pack.
template <class Acc, class Kept>
__device__ __noinline__ void merge_parts(Kept &kept, const Layout &layout, u32 from, u32 count)
{
    const Share share(layout, Acc::THREADS);
    if (share.output < layout.outputs.len) {
#pragma unroll 1
        for (u32 i = 0; i < Acc::PACK; ++i) {
            const u32 output = share.output * Acc::PACK + i;
            Acc acc, next;
            if (share.slot < count)
                next = partial_of<Acc>(layout, output, from + share.slot);
#pragma unroll 1
            for (u32 p = share.slot; p < count; p += share.lanes) {
                const Acc one = next;
                if (p + share.lanes < count)
                    next = partial_of<Acc>(layout, output, from + p + share.lanes);
                acc.merge(one);
            }
            kept.set(i, threadIdx.x, acc);
        }
    }
    fold_packs<Acc>(kept, min(share.lanes, count), share.groups);
}

// Reduces a view of packs.
template <class Acc>
__device__ __forceinline__ void reduce_packs(const Layout &layout, const typename Acc::Asked &asked)
{
    constexpr u32 P = Acc::PACK, BYTES = P * sizeof(typename Acc::Bits);
    auto &room = shared_room<StridedRoom<Acc>>();
    auto &kept = room.slots;
    const Share share(layout, Acc::THREADS);
    const bool has_elements = share.output < layout.outputs.len;
    if (threadIdx.x == 0)
        room.lost.count = 0;
    kept.clear();
    if (has_elements) {
        const char *const data = output_at<Acc>(layout, share.output * P).data;
        const u32 low = layout.bytes | u32(u64(data)) | BYTES;
        const WholePacks<Acc> load = {layout, low & -low};
        take_chunks<Acc>(kept, layout, {share.first + share.slot, share.last, share.lanes}, data, load, asked);
        if (TAKES_INITIAL<Acc> && layout.has_initial() && share.slot == 0 && blockIdx.y == 0) {
#pragma unroll 1
            for (u32 i = 0; i < P; ++i) {
                Acc acc = kept.of(i, threadIdx.x);
                take_initial(acc, layout, share, asked);
                kept.set(i, threadIdx.x, acc);
            }
        }
    }
    fold_packs<Acc>(kept, share.lanes, share.groups);

    // Outputs of the block, pack by pack, of which there may be more than threads.
    const u32 first = layout.block() * share.groups, packs = min(share.groups, layout.outputs.len - first), count = packs * P;
    const auto find = [&](bool folds) {
        __syncthreads();
        if (room.lost.count == 0)
            return;
        if (folds)
            fold_again<Acc>(apart(layout), asked);
        else
            find_again<Acc>(apart(layout), asked);
    };
    if (gridDim.y > 1) {
#pragma unroll 1
        for (u32 j = threadIdx.x; j < count; j += Acc::THREADS) {
            Acc acc = kept.of(j % P, j / P);
            if (acc.gives_up(asked)) {
                room.lost.note(first * P + j, acc.missing, acc.is_cut() && Acc::leaves_cut(asked));
                kept.set(j % P, j / P, acc);
            }
        }
        leave_parts<Acc>(kept, layout, first * P, count, blockIdx.y);
        find(false);
        const u32 merged = merge_groups<Acc>(), group = blockIdx.y / MERGED;
        u64 *const tickets = layout.tickets + u64(blockIdx.x) * (1 + merged);
        if (merged != 0) {
            const u32 parts = min(MERGED, gridDim.y - group * MERGED);
            if (!is_last_of(tickets + 1 + group, parts))
                return;
            merge_parts<Acc>(kept, apart(layout), group * MERGED, parts);
            leave_parts<Acc>(kept, layout, first * P, count, gridDim.y + group);
        }
        const u32 parts = merged != 0 ? merged : gridDim.y;
        if (!is_last_of(tickets, parts))
            return;
        if (threadIdx.x == 0)
            room.lost.count = 0;
        merge_parts<Acc>(kept, apart(layout), merged != 0 ? gridDim.y : 0, parts);
    }
#pragma unroll 1
    for (u32 j = threadIdx.x; j < count; j += Acc::THREADS) {
        const Acc acc = kept.of(j % P, j / P);
        if (!acc.write(layout.out, output_at<Acc>(layout, first * P + j).number, asked))
            room.lost.note(first * P + j, acc.missing, acc.is_cut() && Acc::leaves_cut(asked));
    }
    find(gridDim.y > 1);
}
