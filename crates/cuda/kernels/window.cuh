// The anchored window (WIN): exact sums with plain f64 adds. crates/cpu/src/exact/window.rs has the argument in full.
//
// A lane starts every tile at the anchors M(l) = 1.5 * 2^(k(l) + 52), whose last bit weighs 2^k(l). A term r gives t = A + r, of
// which q = t - A fitted and r - q goes to the next level. While t stays in the anchor's binade both are exact (Fast2Sum); the
// tile's certificate is that level 0 never left it and that nothing was left over behind the last level. Deeper levels cannot
// leave theirs: with at most 2^H adds they drift by half a binade at most.
//
// A lane of a certified tile commits bits(A) - bits(M), an integer in units of 2^k(l); one that is not commits nothing.

#pragma once

#include "wide.cuh"

constexpr int H = 4;
constexpr int STEP = 52 - H;

// Where a lane stands in a tile.
template <int LEVELS>
struct Drift {
    f64 at[LEVELS];
    u64 bad;
    u64 leftover;
};

// The same window in all lanes of a warp, and each lane's committed sums.
template <class T, int LEVELS>
struct Window {
    // A lower window would have bits below the format's last, and a higher one anchors that overflow; f16 fits one window whole.
    static constexpr int LOWEST = Element<T>::LSB + STEP * (LEVELS - 1);
    static constexpr int HIGHEST = LEVELS == 1 ? LOWEST : 970;
    // Commits that a total takes: each moves it by at most 2^51.
    static constexpr u32 COMMITS = 2048;

    int first; // k(0)
    u32 commits = 0;
    f64 anchor[LEVELS];
    i64 total[LEVELS] = {};

    // k(0) of the window for terms below 2^top.
    static __device__ __forceinline__ int below(int top)
    {
        const int k = top + H - 51;
        return k < LOWEST ? LOWEST : k > HIGHEST ? HIGHEST : k;
    }

    __device__ __forceinline__ void move(int k)
    {
        first = k;
#pragma unroll
        for (int l = 0; l < LEVELS; ++l)
            anchor[l] = __longlong_as_double(i64(u64(k - STEP * l + 52 + 1023) << 52 | u64(1) << 51));
    }

    __device__ __forceinline__ Drift<LEVELS> open() const
    {
        Drift<LEVELS> drift;
        drift.bad = 0;
        drift.leftover = 0;
#pragma unroll
        for (int l = 0; l < LEVELS; ++l)
            drift.at[l] = anchor[l];
        return drift;
    }

    __device__ __forceinline__ void add(Drift<LEVELS> &drift, f64 r) const
    {
#pragma unroll
        for (int l = 0; l < LEVELS; ++l) {
            const f64 t = __dadd_rn(drift.at[l], r);
            r = __dsub_rn(r, __dsub_rn(t, drift.at[l]));
            drift.at[l] = t;
            if (l == 0)
                drift.bad |= u64(__double_as_longlong(t)) ^ u64(__double_as_longlong(anchor[0]));
        }
        drift.leftover |= u64(__double_as_longlong(r));
    }

    static __device__ __forceinline__ bool holds(const Drift<LEVELS> &drift)
    {
        return drift.bad >> 52 == 0 && drift.leftover << 1 == 0;
    }

    __device__ __forceinline__ void commit(const Drift<LEVELS> &drift)
    {
#pragma unroll
        for (int l = 0; l < LEVELS; ++l)
            total[l] += __double_as_longlong(drift.at[l]) - __double_as_longlong(anchor[l]);
    }

    // Moves the warp's totals to the block's superaccumulator. All lanes call it. Halves of totals add over the lanes without
    // overflow.
    __device__ __forceinline__ void flush(Wide<T> &wide)
    {
        Totals<2 * LEVELS> halves;
#pragma unroll
        for (int l = 0; l < LEVELS; ++l) {
            halves.word[2 * l] = u64(total[l]) & 0xffffffff;
            halves.word[2 * l + 1] = u64(total[l] >> 32);
            total[l] = 0;
        }
        halves = fold_warp(halves);
        const int lane = threadIdx.x % 32;
        i64 mine = 0;
#pragma unroll
        for (int h = 0; h < 2 * LEVELS; ++h)
            mine = lane == h ? i64(halves.word[h]) : mine;
        if (mine != 0)
            wide.deposit(mine < 0, mine < 0 ? -u64(mine) : u64(mine), first - STEP * (lane / 2) + 32 * (lane % 2));
        commits = 0;
    }
};
