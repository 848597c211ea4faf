// Exact sums of floats: windows while they certify, bins or the superaccumulator for what they do not. NaNs and infinities are counted
// beside the windows.

#pragma once

#include "narrow_bins.cuh"
#include "range.cuh"
#include "specials.cuh"
#include "ticket.cuh"

// Two tiles, the sums and a window want more registers than 512 threads leave. One block of f64 at a time: bins for more threads
// would leave too little of the L1 cache for the loads that are under way.
template <class T>
constexpr int SUM_BLOCKS = sizeof(typename Element<T>::Bits) == 8 && Element<T>::FLOAT ? 1 : BLOCKS;
template <class T>
constexpr int SUM_THREADS = Element<T>::FLOAT ? 384 : THREADS;

template <class T, bool ABSOLUTE>
struct FloatSum {
    using Item = T;
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Lane = LaneSum<T>;
    using Sums = Wide<typename Lane::Limbs>;
    using Specials = SpecialElements<T>;
    static constexpr int TILE = Lane::TILE;
    // Whether the first window holds whatever is finite.
    static constexpr bool FITS = Lane::LEVELS == 1;

    Sums &wide;
    typename Lane::Window window;
    Bins<T> bins;
    u32 patience = 1;
    bool special = false; // whether the tile that was refused last may have NaNs or infinities

    __device__ __forceinline__ FloatSum(Sums &wide) : wide(wide), window(Lane::Window::below(START)) {}

    static __device__ __forceinline__ Bits taken(Bits bits) { return ABSOLUTE ? Format::magnitude(bits) : bits; }

    __device__ __forceinline__ void one(Bits bits) { absorb<T>(wide, taken(bits)); }

    // Takes a tile if every lane of the warp certifies its part.
    template <bool FULL>
    __device__ __forceinline__ bool tile(const uint4 (&v)[TILE], u32 valid)
    {
        Lane lane(window);
        if constexpr (sizeof(Bits) == 2) {
            constexpr u32 TAKEN = ABSOLUTE ? 0x7fff7fff : ~0u;
            each_word<FULL>(v, valid, [&](u32 word) { lane.add_pair(word & TAKEN, window); });
        } else {
            each<T, FULL>(v, valid, [&](Bits bits) { lane.add(taken(bits), window); });
        }
        return commit(lane);
    }

    __device__ __forceinline__ bool commit(Lane &lane)
    {
        if (!__all_sync(ALL_LANES, lane.close(window))) {
            special = __any_sync(ALL_LANES, window.is_special(lane.drift));
            return false;
        }
        window.commit(lane.drift);
        if (++window.commits == window.COMMITS)
            window.flush(wide);
        return true;
    }

    __device__ __forceinline__ void put_away()
    {
        if (window.commits > 0)
            window.flush(wide);
    }

    // Makes the window for what is finite of a tile that was refused. Returns whether it is another one.
    __device__ __forceinline__ bool moved(const uint4 *at, u32 valid)
    {
        if constexpr (FITS)
            return false;
        uint4 v[TILE] = {};
        load(v, at, valid);
        int top = Format::UNIT;
        each<T, true>(v, TILE, [&](Bits bits) {
            if (Format::is_finite(bits))
                top = max(top, Format::top(bits));
        });
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            top = max(top, __shfl_xor_sync(ALL_LANES, top, distance));
        const int first = window.below(top + Lane::K + ROOM);
        if (first == window.first)
            return false;
        put_away();
        window.first = first;
        return true;
    }

    // Takes tiles without their NaNs and infinities, which are counted, until the window does not hold one. Returns how many.
    __device__ __forceinline__ u32 finite(const uint4 *at, u32 step, u32 tiles, u32 valid)
    {
        // What is not there is zeros, which add nothing.
        uint4 now[TILE], next[TILE] = {};
        load(next, at, valid);
        u32 done = 0;
        for (; done < tiles; ++done, at += step) {
            copy(now, next);
            if (tiles - done > 1)
                load(next, at + step);
            Specials specials;
#pragma unroll
            for (int k = 0; k < TILE; ++k)
                specials.take_out(now[k]);
            if (!tile<true>(now, TILE))
                break;
            count(specials);
        }
        return done;
    }

    __device__ __forceinline__ void count(const Specials &specials)
    {
        const SpecialCounts all = specials.counts();
        if (ABSOLUTE)
            wide.count(all.nans, all.positive + all.negative, 0);
        else
            wide.count(all.nans, all.positive, all.negative);
    }

    // Takes tiles that no window holds, and cannot fail.
    __device__ __forceinline__ void any(const uint4 *at, u32 step, u32 tiles, u32 valid)
    {
        if (!Bins<T>::there()) {
            for (; tiles > 0; --tiles, at += step)
                each_again<T>(at, valid, [&](Bits bits) { absorb<T>(wide, taken(bits)); });
            return;
        }
        if (!bins.open)
            bins.clear();
        // What is not there is zeros, which add nothing.
        uint4 now[TILE], next[TILE] = {};
        load(next, at, valid);
        for (; tiles > 0; --tiles, at += step) {
            copy(now, next);
            if (tiles > 1)
                load(next, at + step);
            bins.make_room(TILE * ITEMS<T>, wide);
            Specials specials;
#pragma unroll
            for (int k = 0; k < TILE; ++k) {
                if (specials.are_in(now[k]))
                    specials.take_out(now[k]);
                const uint4 finite[1] = {now[k]};
                if constexpr (sizeof(Bits) == 2)
                    each_word<true>(finite, 1, [&](u32 word) { bins.template add<ABSOLUTE>(word); });
                else
                    each<T, true>(finite, 1, [&](Bits bits) { bins.add(taken(bits)); });
            }
            count(specials);
        }
    }

    // Works off the refused tile at `at`, and as many of the `tiles` from there as seem to be like it. Returns how many.
    __device__ __forceinline__ u32 refused(const uint4 *at, u32 step, u64 tiles, u32 valid)
    {
        const u32 some = u32(min(tiles, u64(patience)));
        patience = min(2 * patience, LONGEST_PATIENCE);
        // Beside NaNs and infinities the window may have been right. If it was not, the tiles behind these have another one.
        u32 done = special || moved(at, valid) ? finite(at, step, some, valid) : 0;
        if constexpr (!FITS) {
            if (done == 0) {
                moved(at, valid);
                any(at, step, some, valid);
                done = some;
            }
        }
        return done;
    }

    // Takes tiles, of which the first one is in `even`, until one is refused: then `left` are left, and that one is at `at`. A
    // tile's successor is loaded meanwhile, into registers of its own; what is under way when a tile is refused will be loaded
    // once more, so that nothing stays in registers until then.
    __device__ __forceinline__ void through(uint4 (&even)[TILE], const uint4 *&at, u32 step, u64 &left)
    {
        uint4 odd[TILE];
        for (;;) {
            if (left > 1)
                load(odd, at + step);
            if (!tile<true>(even, TILE))
                return;
            at += step;
            if (--left == 0)
                return;
            if (left > 1)
                load(even, at + step);
            if (!tile<true>(odd, TILE))
                return;
            at += step;
            if (--left == 0)
                return;
        }
    }

    __device__ __forceinline__ void take(const void *data, u64 n)
    {
        const Part part = part_of<T, false, TILE>(data, n);
        const uint4 *at = part.at;
        uint4 even[TILE];
        load_before_wait(even, part, 0);
        wide.clear();
        wait_for_launch_ahead();
        __syncthreads();
        peel(data, n, *this);
        for (u64 left = part.tiles; left > 0;) {
            const u64 before = left;
            through(even, at, part.step, left);
            if (left > 0) {
                if (before - left > patience)
                    patience = 1;
                const u32 some = refused(at, part.step, left, TILE);
                left -= some;
                at += u64(some) * part.step;
                if (left > 0)
                    load(even, at);
            }
        }
        if (part.rest) {
            uint4 some[TILE];
            if (part.tiles == 0)
                copy(some, even);
            else
                load(some, at, part.valid);
            if (!tile<false>(some, part.valid))
                refused(at, part.step, 1, part.valid);
        }
        put_away();
        if constexpr (!FITS)
            bins.flush(wide);
    }
};

// Leaves the vector form of core's superaccumulator in `out`: limbs, count, NaNs, positive and negative infinities.
template <class T, bool ABSOLUTE>
__device__ __forceinline__ void float_sum(const void *data, u64 n, u64 *scratch, u64 *out)
{
    using Sums = Wide<typename Element<T>::Sum>;
    __shared__ Sums wide;
    FloatSum<T, ABSOLUTE>(wide).take(data, n);
    __syncthreads();
    add_over_grid<Sums::WORDS>([&](int i) { return wide.entry(i, n); }, scratch, out);
}
