// Segments in tiles of anything that threads can put together: extremes, totals of 64 bits, and sums of f64, which may be unsure.
//
// Each thread has a bit for each of its elements that says whether it is the last one of its segment:
//
//     thread     0               1               2               3
//     elements   . . . . . . .|. . . . . . . . . . . . . .|. .|. . . . . .
//     it has     a part, a tail  a tail          a part, a whole one, a tail ...
//
// What ends in a thread is left in a slot, and what is still open there, the tail, is merged over the threads behind it, up to the next
// end; there it is added to what that thread left. What is open at the tile's end is carried to the next one. After the last tile the
// slots are answers.

#pragma once

#include "segment_tiles.cuh"
#include "tally.cuh"

// The sum of the words of this lane and those below.
__device__ __forceinline__ u32 sum_up_to(u32 word)
{
#pragma unroll
    for (u32 d = 1; d < 32; d *= 2) {
        // Where there is no lane that far below, nothing is added.
        asm volatile("{ .reg .u32 other; .reg .pred is; shfl.sync.up.b32 other|is, %0, %1, 0, -1; @is add.u32 %0, %0, other; }" : "+r"(word) : "r"(d));
    }
    return word;
}

// Acc is an accumulator of segments.cuh of a word or two.
template <class Acc>
struct TileParts : TileSegments<typename Acc::Item> {
    using Item = typename Acc::Item;
    using Bits = typename Acc::Bits;
    using Asked = typename Acc::Asked;
    using Base = TileSegments<Item>;
    using typename Base::Room, typename Base::Shape;
    using Base::all, Base::room, Base::first, Base::groups, Base::lane, Base::unsure;
    // Extremes know NaNs by their ranks.
    static constexpr bool FILLS = Element<Item>::FLOAT && Acc::MAY_BE_LOST;

    struct Own {
        u64 slots[TILE_GROUPS][Acc::WORDS];
        u32 marks[Shape::ELEMENTS / 32];
    };

    Own &own;
    Acc open;           // what is open at a tile's end: the same in all threads,
    bool apart = false; // or what each of them has of it
    u32 rank = 0;       // slots that are filled

    __device__ __forceinline__ TileParts(const Segments &all, Room &room, Own &own, u64 first, u32 groups)
        : Base{all, room, first, groups}, own(own)
    {
    }

    __device__ __forceinline__ void begin() { open = Acc(), apart = false; }

    static __device__ __forceinline__ void include(Acc &acc, Bits bits, const Asked &asked)
    {
        const Bits one[1] = {bits};
        acc.template take<1>(one, [](int, int) { return u64(0); }, asked);
    }
    __device__ __forceinline__ Acc slot(u32 at) const { return Acc(Acc::of_words(own.slots[at])); }
    __device__ __forceinline__ void leave(u32 at, const Acc &acc)
    {
#pragma unroll
        for (int w = 0; w < Acc::WORDS; ++w)
            own.slots[at][w] = acc.word(w);
    }

    // Sets the bits of elements that are the last ones of their segments. Empty ones end where the one before them does, or before all elements.
    __device__ __forceinline__ void mark(Tile &tile)
    {
        if (lane < Shape::ELEMENTS / 32)
            own.marks[lane] = 0;
        __syncwarp();
        u32 here;
#pragma unroll 1
        do {
            const u32 end = Base::end_of(room, tile.next + lane, tile);
            const bool is_here = end <= Shape::ELEMENTS;
            if (is_here && end > tile.from)
                atomicOr(&own.marks[(end - 1) / 32], 1u << (end - 1) % 32);
            here = __popc(__ballot_sync(ALL_LANES, is_here));
            tile.next += here;
        } while (here == 32);
        __syncwarp();
    }

    template <class Ask>
    __device__ __forceinline__ bool take(const uint4 *stage, Tile &tile, Ask asked_of)
    {
        const Asked asked = asked_of(0);
        if (!Base::has_end(room, tile)) {
            if (!apart && lane != 0)
                open = Acc();
            apart = true;
#pragma unroll
            for (u32 w = 0; w < Shape::VECTORS; ++w) {
                const uint4 vector = stage[Shape::at(lane, w)];
#pragma unroll
                for (u32 i = 0; i < Shape::V; ++i)
                    include(open, Units<Item, int(Shape::V)>::item(vector, int(i)), asked);
            }
            return true;
        }
        mark(tile);
        if (apart)
            fold_neighbours(open, 32);
        apart = false;
        const u32 bit = lane * Shape::EACH;
        const u32 ends = Shape::EACH == 32 ? own.marks[lane] : own.marks[bit / 32] >> bit % 32 & ((1u << Shape::EACH % 32) - 1);
        // Slots of the threads before.
        const u32 count = __popc(ends), upto = sum_up_to(count), mine = rank + upto - count;
        rank += __shfl_sync(ALL_LANES, upto, 31);
        Acc part;
        u32 to = mine;
#pragma unroll
        for (u32 w = 0; w < Shape::VECTORS; ++w) {
            const uint4 vector = stage[Shape::at(lane, w)];
#pragma unroll
            for (u32 i = 0; i < Shape::V; ++i) {
                include(part, Units<Item, int(Shape::V)>::item(vector, int(i)), asked);
                if (ends >> (w * Shape::V + i) & 1) {
                    leave(to++, part);
                    part = Acc();
                }
            }
        }
        const u32 enders = __ballot_sync(ALL_LANES, ends != 0);
        put_together(part, enders, mine);
        // What was open before goes to the first that ends.
        if (lane == __ffs(enders) - 1) {
            Acc head = slot(mine);
            head.merge(open);
            leave(mine, head);
        }
        u64 words[Acc::WORDS];
#pragma unroll
        for (int w = 0; w < Acc::WORDS; ++w)
            words[w] = __shfl_sync(ALL_LANES, part.word(w), 31);
        open = Acc(Acc::of_words(words));
        return true;
    }

    static __device__ __forceinline__ Acc from_below(const Acc &acc, u32 distance)
    {
        u64 words[Acc::WORDS];
#pragma unroll
        for (int w = 0; w < Acc::WORDS; ++w)
            words[w] = __shfl_up_sync(ALL_LANES, acc.word(w), distance);
        return Acc(Acc::of_words(words));
    }

    // Adds tails to what they are open to: those of the threads behind, up to the next one in which something ends, and there to what ends
    // first, in slot `mine`.
    __device__ __forceinline__ void put_together(Acc &part, u32 enders, u32 mine)
    {
        const u32 below = enders & ~0u >> (31 - lane), distance = lane - (below != 0 ? 31 - __clz(below) : 0);
        const u32 farthest = warp_max(distance);
#pragma unroll 1
        for (u32 d = 1; d <= farthest; d *= 2) {
            const Acc other = from_below(part, d);
            part.merge(distance >= d ? other : Acc());
        }
        const Acc tail = from_below(part, 1);
        if ((enders >> lane & 1) != 0 && lane != 0) {
            Acc head = slot(mine);
            head.merge(tail);
            leave(mine, head);
        }
    }

    // Writes the answer of the thread's segment j, if it is here, of what a slot has. Those that are not sure are noted.
    template <class Ask>
    __device__ __forceinline__ void write(u32 j, bool is_here, u32 at, Ask asked_of)
    {
        bool is_sure = true;
        if (is_here) {
            Acc acc = slot(at);
            is_sure = write_if_known(acc, all.out, first + j, asked_of(this->len(j)));
        }
        const u32 others = __ballot_sync(ALL_LANES, !is_sure);
        if (others == 0)
            return;
#pragma unroll
        for (u32 k = 0; k < 32 >> LOG_SOME; ++k) {
            if ((others >> (k << LOG_SOME) & ((1u << (1 << LOG_SOME)) - 1)) != 0)
                unsure |= 1u << ((j - lane >> LOG_SOME) + k);
        }
    }

    // Slots are those of segments that have elements and are for here, in their order.
    template <class Ask>
    __device__ __forceinline__ void finish(Ask asked_of)
    {
        u32 before = 0;
#pragma unroll 1
        for (u32 j = lane; j - lane < groups; j += 32) {
            const bool is_here = j < groups && this->len(j) != 0 && (room.aside[j / 32] >> j % 32 & 1) == 0;
            const u32 some = __ballot_sync(ALL_LANES, is_here);
            write(j, is_here, before + __popc(some & ((1u << lane) - 1)), asked_of);
            before += __popc(some);
        }
    }
};
