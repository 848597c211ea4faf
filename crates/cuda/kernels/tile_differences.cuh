// Segments in tiles of what can be subtracted: sums of floats shorter than f64, whose range makes them exact, and of integers.
//
// A thread adds up its elements, and a scan over the warp says what is before each vector of the tile. A thread then takes a segment that ends in the
// tile: what is before its end, less what is before its beginning, which its neighbour has. So nothing is done for each element but an
// addition, and ends cost little, be they many or few.
//
// Infinities and NaNs are taken out of the tile. How many of each a segment has is a difference, too; where there are some, that is noted
// before the others are subtracted, in the place of the answer: what they make, or how many NaNs are omitted.

#pragma once

#include "quick_sum.cuh"
#include "segment_tiles.cuh"
#include "tally.cuh"

__device__ __forceinline__ f64 plus(f64 a, f64 b) { return __dadd_rn(a, b); }
__device__ __forceinline__ u64 plus(u64 a, u64 b) { return a + b; }
__device__ __forceinline__ f64 minus(f64 a, f64 b) { return __dsub_rn(a, b); }
__device__ __forceinline__ u64 minus(u64 a, u64 b) { return a - b; }

// Adds what the lane `distance` below has, if there is one.
__device__ __forceinline__ void add_below(f64 &sum, u32 distance)
{
    asm volatile("{ .reg .b32 low, high; .reg .pred is; .reg .f64 other; mov.b64 {low, high}, %0; shfl.sync.up.b32 low|is, low, %1, 0, -1; "
                 "shfl.sync.up.b32 high|is, high, %1, 0, -1; mov.b64 other, {low, high}; @is add.rn.f64 %0, %0, other; }"
                 : "+d"(sum)
                 : "r"(distance));
}
__device__ __forceinline__ void add_below(u64 &sum, u32 distance)
{
    const u64 other = __shfl_up_sync(ALL_LANES, sum, distance);
    sum += threadIdx.x >= distance ? other : 0;
}

// Adds a sum to another one; returns whether that is exact.
__device__ __forceinline__ bool join(f64 &sum, f64 other)
{
    const Double both = two_sum(sum, other);
    sum = both.hi;
    return both.lo == 0.0;
}
__device__ __forceinline__ bool join(u64 &sum, u64 other)
{
    sum += other;
    return true;
}

// Floats shorter than f64: plain f64 adds.
template <class T>
struct FloatTerms {
    using Item = T;
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Asked = typename FloatTotal<T>::Asked;
    using Sum = f64;
    static constexpr bool HAS_SPECIALS = true;
    static constexpr int LOG_EACH = sizeof(Bits) == 4 ? 4 : 5;
    // Of a thread, and of the tile: all sums and differences of what is seen are multiples of a unit that f64 holds (range.cuh).
    using Range = Spread<T, LOG_EACH>;
    using TileRange = Spread<T, LOG_EACH + 5>;

    static __device__ __forceinline__ f64 term(Bits bits, const Asked &) { return f64(Format::value(bits)); }
    static __device__ __forceinline__ void see(const uint4 &vector, Range &range)
    {
        const u32 words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            if constexpr (sizeof(Bits) == 2)
                range.see_pair(words[w]);
            else
                range.see(__uint_as_float(words[w]));
        }
    }
    static __device__ __forceinline__ bool hold(const Range &range)
    {
        TileRange all;
        if constexpr (Range::ASKED) {
            all.most = warp_max(range.most);
            all.least = warp_min(range.least);
        }
        return all.holds();
    }
    // Whether magnitudes are asked for, and what puts them in the place of a vector's elements.
    static __device__ __forceinline__ bool takes_magnitudes(const Asked &asked) { return Bits(~asked.mask) != 0; }
    static __device__ __forceinline__ void take_magnitudes(uint4 &vector)
    {
        const u32 mask = sizeof(Bits) == 2 ? 0x7fff7fff : 0x7fffffff;
        vector = {vector.x & mask, vector.y & mask, vector.z & mask, vector.w & mask};
    }
    static __device__ __forceinline__ void write(f64 sum, void *out, u64 place, const Asked &asked)
    {
        const Bits bits = narrow<T>(asked.ask == MEAN ? quotient(sum, asked.n) : sum);
        static_cast<Bits *>(out)[place] = asked.ask == MEAN && asked.n == 0 ? NOT_A_NUMBER<T> : bits;
    }
};

// Integers, and counts: words that wrap.
template <class T, class Tally>
struct WordTerms {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    using Asked = typename Tally::Asked;
    using Sum = u64;
    static constexpr bool HAS_SPECIALS = false;
    static_assert(Tally::WORDS == 1, "a word");
    struct Range {
        static __device__ __forceinline__ void settle() {}
        static __device__ __forceinline__ bool holds() { return true; }
    };

    static __device__ __forceinline__ u64 term(Bits bits, const Asked &asked)
    {
        Tally one;
        one.take(bits, asked);
        return one.word(0);
    }
    static __device__ __forceinline__ void see(const uint4 &, Range &) {}
    static __device__ __forceinline__ bool hold(const Range &) { return true; }
    static __device__ __forceinline__ void write(u64 sum, void *out, u64 place, const Asked &asked)
    {
        const u64 words[1] = {sum};
        Tally::of_words(words).write(out, place, asked);
    }
};

// What is not finite is counted by kind, in fields of a word that hold a segment's elements.
enum Kind : u32 { FINITE = 0, IS_NAN = 1, IS_POSITIVE = 2, IS_NEGATIVE = 3 };
constexpr int SPECIAL_BITS = 20;
// The counts of kinds, two bits each.
__device__ __forceinline__ u64 count(u64 kinds)
{
    const u64 low = kinds & 0x5555555555555555, high = kinds >> 1 & 0x5555555555555555;
    return u64(__popcll(low & ~high)) | u64(__popcll(high & ~low)) << SPECIAL_BITS | u64(__popcll(high & low)) << 2 * SPECIAL_BITS;
}
__device__ __forceinline__ bool has_special(u64 counts, u32 kind) { return (counts >> SPECIAL_BITS * (kind - 1) & ((1u << SPECIAL_BITS) - 1)) != 0; }

template <class Terms>
struct TileDifferences : TileSegments<typename Terms::Item> {
    using Item = typename Terms::Item;
    using Bits = typename Terms::Bits;
    using Sum = typename Terms::Sum;
    using Asked = typename Terms::Asked;
    using Base = TileSegments<Item>;
    using typename Base::Room, typename Base::Shape;
    using Base::all, Base::room, Base::first, Base::lane;
    static constexpr u32 VECTORS = Shape::VECTORS, V = Shape::V;
    static constexpr bool FILLS = Element<Item>::FLOAT && !Terms::HAS_SPECIALS;

    struct Own {
        // What is before each vector of a tile, and in all of them.
        u64 before[Shape::ALL + 1];
    };

    Own &own;
    Sum open = 0;         // what a thread has of the segment that is open at a tile's end,
    u64 specials = 0;     // and of its elements that are not finite
    bool apart = false;   // whether others than the first one have some
    bool expects = false; // whether the last tile had such elements

    __device__ __forceinline__ TileDifferences(const Segments &all, Room &room, Own &own, u64 first, u32 groups)
        : Base{all, room, first, groups}, own(own)
    {
    }

    __device__ __forceinline__ void begin()
    {
        open = 0;
        specials = 0;
        apart = false;
    }
    template <class Ask>
    __device__ __forceinline__ void finish(Ask)
    {
    }

    // The thread's elements up to the end of each of its vectors.
    template <class S, class Term, class See>
    static __device__ __forceinline__ void add_up(S (&upto)[VECTORS], const uint4 *stage, Term term, See see)
    {
#pragma unroll
        for (u32 w = 0; w < VECTORS; ++w) {
            const uint4 vector = stage[Shape::at(threadIdx.x, w)];
            see(vector);
            S some = term(Units<Item, int(V)>::item(vector, 0));
#pragma unroll
            for (u32 i = 1; i < V; ++i)
                some = plus(some, term(Units<Item, int(V)>::item(vector, int(i))));
            upto[w] = w == 0 ? some : plus(upto[w - 1], some);
        }
    }

    static __device__ __forceinline__ u64 word_of(f64 sum) { return bits_of(sum); }
    static __device__ __forceinline__ u64 word_of(u64 sum) { return sum; }
    static __device__ __forceinline__ void of_word(u64 word, f64 &sum) { sum = of_bits(word); }
    static __device__ __forceinline__ void of_word(u64 word, u64 &sum) { sum = word; }

    // Calls `give` with each segment that ends in the tile, and its sum. Returns whether that of the open one is exact.
    template <class S, class Term, class Give>
    static __device__ __forceinline__ bool subtract(const Room &room, Own &own, const S (&upto)[VECTORS], S &open, const uint4 *stage, Tile &tile,
        Term term, Give give)
    {
        const u32 lane = threadIdx.x;
        S sum = upto[VECTORS - 1];
#pragma unroll
        for (u32 d = 1; d < 32; d *= 2)
            add_below(sum, d);
        const S ahead = minus(sum, upto[VECTORS - 1]);
#pragma unroll
        for (u32 w = 0; w < VECTORS; ++w)
            own.before[lane * VECTORS + w] = word_of(w == 0 ? ahead : plus(ahead, upto[w - 1]));
        if (lane == 31)
            own.before[Shape::ALL] = word_of(sum);
        __syncwarp();
        bool exact = true;
        // What is before the first segment that ends here: what is open of it is before the tile.
        S last = minus(S(0), open);
        u32 here;
#pragma unroll 1
        do {
            const u32 j = tile.next + lane, end = Base::end_of(room, j, tile);
            const bool is_here = end <= Shape::ELEMENTS;
            here = __popc(__ballot_sync(ALL_LANES, is_here));
            S before = 0;
            if (is_here) {
                of_word(own.before[end / V], before);
                const uint4 vector = stage[Shape::place(min(end / V, Shape::ALL - 1))];
#pragma unroll
                for (u32 i = 0; i + 1 < V; ++i)
                    before = plus(before, i < end % V ? term(Units<Item, int(V)>::item(vector, int(i))) : S(0));
            }
            const S other = __shfl_up_sync(ALL_LANES, before, 1), from = lane == 0 ? last : other, its = minus(before, from);
            // Of an inexact difference, one of these is off (Dekker 1971).
            exact = exact && minus(before, its) == from && plus(its, from) == before;
            if (is_here)
                give(j, its);
            last = __shfl_sync(ALL_LANES, before, here - 1);
            tile.next += here;
        } while (here == 32 && Base::has_end(room, tile));
        S whole;
        of_word(own.before[Shape::ALL], whole);
        open = lane == 0 ? minus(whole, last) : S(0);
        return exact;
    }

    // The kinds of the thread's elements, two bits each; those that are not finite become 0.
    static __device__ __noinline__ u64 set_aside(uint4 *stage)
    {
        u64 kinds = 0;
#pragma unroll 1
        for (u32 w = 0; w < VECTORS; ++w) {
            constexpr u32 PER_WORD = 4 / sizeof(Bits);
            uint4 &vector = stage[Shape::at(threadIdx.x, w)];
            u32 words[4] = {vector.x, vector.y, vector.z, vector.w}, its = 0;
#pragma unroll
            for (u32 i = 0; i < V; ++i) {
                const u32 shift = i % PER_WORD * 8 * sizeof(Bits);
                const Bits bits = Bits(words[i / PER_WORD] >> shift);
                const u32 infinite = (bits & Element<Item>::SIGN) != 0 ? IS_NEGATIVE : IS_POSITIVE;
                const u32 kind = Element<Item>::is_finite(bits) ? FINITE : Element<Item>::is_nan(bits) ? IS_NAN : infinite;
                its |= kind << 2 * i;
                words[i / PER_WORD] &= kind == FINITE ? ~0u : ~(u32(Bits(~Bits(0))) << shift);
            }
            vector = {words[0], words[1], words[2], words[3]};
            kinds |= u64(its) << 2 * V * w;
        }
        return kinds;
    }

    // Notes what is not finite of segments that have elements: the answer that it makes, or how many NaNs are omitted, of which no segment that
    // is not long has as many as infinity's bits say. Returns how many the open one has.
    static __device__ __noinline__ u64 note_specials(Room &room, Own &own, u64 kinds, u64 open, Tile tile, Bits *out, bool omits)
    {
        const u32 lane = threadIdx.x;
        const u64 mine = count(kinds);
        u64 sum = mine;
#pragma unroll 1
        for (u32 d = 1; d < 32; d *= 2)
            add_below(sum, d);
        u64 *const ahead = own.before, *const kinds_of = own.before + 32;
        static_assert(Shape::ALL >= 64, "room for both");
        ahead[lane] = sum - mine;
        kinds_of[lane] = kinds;
        const u64 whole = __shfl_sync(ALL_LANES, sum, 31);
        __syncwarp();
        u64 last = -open;
        u32 here;
#pragma unroll 1
        do {
            const u32 j = tile.next + lane, end = Base::end_of(room, j, tile), thread = end / Shape::EACH;
            const bool is_here = end <= Shape::ELEMENTS;
            here = __popc(__ballot_sync(ALL_LANES, is_here));
            u64 before = whole;
            if (is_here && thread < 32)
                before = ahead[thread] + count(kinds_of[thread] & ((u64(1) << 2 * (end % Shape::EACH)) - 1));
            const u64 other = __shfl_up_sync(ALL_LANES, before, 1), its = before - (lane == 0 ? last : other);
            const Specials<Item> specials = {!omits && has_special(its, IS_NAN), has_special(its, IS_POSITIVE), has_special(its, IS_NEGATIVE)};
            if (is_here && room.bounds[j] != room.bounds[j + 1])
                out[j] = specials.any() ? specials.bits() : Bits(its);
            last = __shfl_sync(ALL_LANES, before, here - 1);
            tile.next += here;
        } while (here == 32 && Base::has_end(room, tile));
        return lane == 0 ? whole - last : 0;
    }

    template <class Ask>
    __device__ __forceinline__ bool take(uint4 *stage, Tile &tile, Ask asked_of)
    {
        const Asked asked = asked_of(0);
        void *const out = all.out;
        const auto term = [&](Bits bits) { return Terms::term(bits, asked); };
        if constexpr (Terms::HAS_SPECIALS) {
            if (Terms::takes_magnitudes(asked)) {
#pragma unroll 1
                for (u32 w = 0; w < VECTORS; ++w)
                    Terms::take_magnitudes(stage[Shape::at(lane, w)]);
            }
        }
        Sum upto[VECTORS];
        typename Terms::Range range;
        u64 kinds = 0;
        const auto see = [&](const uint4 &vector) { Terms::see(vector, range); };
        if constexpr (Terms::HAS_SPECIALS) {
#pragma unroll 1
            while (true) {
                if (expects)
                    kinds = set_aside(stage);
                range = {};
                add_up(upto, stage, term, see);
                if (!__any_sync(ALL_LANES, !is_finite(upto[VECTORS - 1])))
                    break;
                expects = true;
            }
            expects = expects && __any_sync(ALL_LANES, kinds != 0);
        } else {
            add_up(upto, stage, term, see);
        }
        range.settle();
        if (!Base::has_end(room, tile)) {
            apart = true;
            if (expects)
                specials += count(kinds);
            const bool exact = join(open, upto[VECTORS - 1]);
            return __all_sync(ALL_LANES, exact && range.holds());
        }
        bool exact = true;
        if (apart) {
#pragma unroll 1
            for (u32 d = 16; d > 0; d /= 2) {
                exact = join(open, __shfl_xor_sync(ALL_LANES, open, d)) && exact;
                specials += __shfl_xor_sync(ALL_LANES, specials, d);
            }
            if (lane != 0) {
                open = 0;
                specials = 0;
            }
            apart = false;
        }
        const bool has_specials = Terms::HAS_SPECIALS && (expects || __any_sync(ALL_LANES, specials != 0));
        if constexpr (Terms::HAS_SPECIALS) {
            if (has_specials) {
                specials = note_specials(room, own, kinds, specials, tile, static_cast<Bits *>(out) + first, all.omits());
                __syncwarp();
            }
        }
        const auto give = [&](u32 j, Sum sum) {
            Asked its = asked;
            if (its.ask != TOTAL) {
                its.n = this->len(j);
                // That of no elements is there already.
                if (its.n == 0)
                    return;
            }
            if constexpr (Terms::HAS_SPECIALS) {
                // By the thread itself.
                const u64 noted = has_specials && this->len(j) != 0 ? static_cast<const Bits *>(out)[first + j] : Bits(0);
                if (noted >= Element<Item>::INFINITE)
                    return;
                its.n -= noted;
            }
            Terms::write(sum, out, first + j, its);
        };
        exact = subtract(room, own, upto, open, stage, tile, term, give) && exact;
        return __all_sync(ALL_LANES, exact) && Terms::hold(range);
    }
};
