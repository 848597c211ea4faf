// The anchored window (WIN): exact sums with plain f64 adds. crates/cpu/src/exact/window.rs has the argument in full.
//
// A lane starts every tile at the anchors M(l) = 1.5 * 2^(k(l) + 52), whose last bit weighs 2^k(l). A term r gives t = A + r, of
// which q = t - A fitted and r - q goes to the next level. While t stays in the anchor's binade both are exact (Fast2Sum); the
// tile's certificate is that level 0 never left it and that nothing was left over behind the last level. Deeper levels cannot
// leave theirs: k(l + 1) = k(l) - (52 - H), and with at most 2^H adds of at most 2^(k(l) - 1) each they drift by half a binade at most.
//
// A lane of a certified tile commits bits(A) - bits(M), an integer in units of 2^k(l); one that is not commits nothing.

#pragma once

#include "wide.cuh"

// Where a warp's window begins: terms below 2^START. Most data fits; other data moves it with its first tile.
constexpr int START = 10;
// Binades left above a tile that moved the window.
constexpr int ROOM = 4;

// The upper half of an anchor whose last bit weighs 2^unit. The lower half is zero: cheaper to make than to keep.
__device__ __forceinline__ int anchor(int unit) { return (unit + 52 + 1023) << 20 | 1 << 19; }

// A level that has taken in nothing.
__device__ __forceinline__ f64 level_at(int unit) { return __hiloint2double(anchor(unit), 0); }

// Adds a term to a level. Returns what goes to the next one.
__device__ __forceinline__ f64 take_in(f64 &level, f64 r)
{
    const f64 t = __dadd_rn(level, r);
    r = __dsub_rn(r, __dsub_rn(t, level));
    level = t;
    return r;
}

// The integer that a level has taken in, in its units.
__device__ __forceinline__ i64 taken(f64 level, int unit)
{
    return __double_as_longlong(level) - i64(u64(u32(anchor(unit))) << 32);
}

// Where a lane stands in a tile.
template <int LEVELS>
struct Drift {
    f64 at[LEVELS];
    u32 bad = 0;      // the upper half of what level 0 had, against its anchor's
    u64 leftover = 0; // the bits behind the last level
};

// The same window in all lanes of a warp, and each lane's committed sums. An anchor takes 2^H adds. Where terms are MULTIPLES of
// the last level's unit, by a proof that is the caller's, nothing can be left over and that is not looked for.
template <class Format, int LEVELS, int H, bool MULTIPLES = false>
struct Window {
    using Drift = ::Drift<LEVELS>;
    static constexpr int ADDS = 1 << H;
    static constexpr int STEP = 52 - H;
    // A lower window would have bits below the format's last, or, for the products of f64, would hold errors that have
    // underflowed (see products.cuh); a higher one has anchors that overflow. A single level holds the whole format.
    static constexpr int LAST = Format::LSB < -1074 ? -960 : Format::LSB;
    static constexpr int LOWEST = LAST + STEP * (LEVELS - 1);
    static constexpr int HIGHEST = LEVELS == 1 ? LOWEST : 970;
    // Commits that a total takes: each moves it by at most 2^51.
    static constexpr u32 COMMITS = 2048;

    int first; // k(0)
    u32 commits = 0;
    i64 total[LEVELS] = {};

    __device__ __forceinline__ Window(int first) : first(first) {}

    // k(0) of the window for terms below 2^top.
    static constexpr __device__ __forceinline__ int below(int top)
    {
        const int k = top + H - 51;
        return k < LOWEST ? LOWEST : k > HIGHEST ? HIGHEST : k;
    }

    // k(l)
    __device__ __forceinline__ int unit(int l) const { return first - STEP * l; }

    __device__ __forceinline__ Drift open() const
    {
        Drift drift;
#pragma unroll
        for (int l = 0; l < LEVELS; ++l)
            drift.at[l] = level_at(unit(l));
        return drift;
    }

    // Adds a term to the levels from FROM on.
    template <int FROM = 0>
    __device__ __forceinline__ void add(Drift &drift, f64 r) const
    {
#pragma unroll
        for (int l = FROM; l < LEVELS; ++l) {
            r = take_in(drift.at[l], r);
            if (l == 0)
                drift.bad |= u32(__double2hiint(drift.at[0]) ^ anchor(first));
        }
        if (!MULTIPLES)
            drift.leftover |= u64(__double_as_longlong(r));
    }

    // Whether a term may have been NaN or infinite.
    static __device__ __forceinline__ bool is_special(const Drift &drift) { return (__double2hiint(drift.at[0]) & 0x7ff00000) == 0x7ff00000; }

    static __device__ __forceinline__ bool holds(const Drift &drift)
    {
        return drift.bad >> 20 == 0 && drift.leftover << 1 == 0;
    }

    __device__ __forceinline__ void commit(const Drift &drift)
    {
#pragma unroll
        for (int l = 0; l < LEVELS; ++l)
            total[l] += taken(drift.at[l], unit(l));
    }

    // Moves the warp's totals to the block's superaccumulator. All lanes call it. Halves of totals add over the lanes without
    // overflow.
    __device__ __forceinline__ void flush(Wide<Format> &wide)
    {
        const int lane = threadIdx.x % 32;
        i64 mine = 0;
#pragma unroll
        for (int l = 0; l < LEVELS; ++l) {
            Totals<2> halves;
            halves.word[0] = u64(total[l]) & 0xffffffff;
            halves.word[1] = u64(total[l] >> 32);
            halves = fold_warp(halves);
            mine = lane / 2 != l ? mine : i64(lane % 2 == 0 ? halves.word[0] : halves.word[1]);
            total[l] = 0;
        }
        if (mine != 0)
            wide.deposit(mine < 0, mine < 0 ? -u64(mine) : u64(mine), unit(lane / 2) + 32 * (lane % 2));
        commits = 0;
    }
};
