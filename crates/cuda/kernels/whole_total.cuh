// The exact total of f32 or bf16 that come in any order, which is never lost: an integer that has all bits of the format.
//
// A thread's batches go to a window of a few levels (window.cuh), in front of the integer. Its levels are some of the integer's, so that what
// it has taken in only has to be added there when it moves to others. What the window does not hold is rare, or far apart: the integer's own
// levels, all of them, take that.

#pragma once

#include "exact_answer.cuh"
#include "rounded.cuh"
#include "spread.cuh"
#include "trouble.cuh"
#include "units.cuh"
#include "whole_window.cuh"

// What threads merge, and answer.
template <class T>
struct WholeParts {
    using Bits = typename Element<T>::Bits;
    using Asked = TotalAsked<T>;
    static constexpr bool MAY_BE_LOST = false;
    // The highest level takes carries only.
    static constexpr int LEVELS = WholeSum<T>::LEVELS + 1, WORDS = LEVELS + 1;
    using Integer = FixedPoint<LEVELS>;

    Integer total;
    u32 trouble = 0;
    u32 missing = 0; // NaNs that are as if they were not there

    // Whether a level is beyond 2^60.
    __device__ __forceinline__ bool is_full() const
    {
        u32 some = 0;
#pragma unroll
        for (int l = 0; l < LEVELS; ++l)
            some |= u32(i32(total.total[l] >> 32) ^ i32(total.total[l] >> 63));
        return some >> 28 != 0;
    }

    // A function of its own for what is rare.
    static __device__ __noinline__ Integer tidied(Integer all)
    {
        all.raise(0);
        return all;
    }

    __device__ __forceinline__ void merge(const WholeParts &other)
    {
        Integer next = other.total;
        // Once tidied, levels take many others.
        if (is_full() || other.is_full()) {
            total = tidied(total);
            next = tidied(next);
        }
        total.add(next);
        trouble |= other.trouble;
        missing += other.missing;
    }

    __device__ __forceinline__ u64 word(int w) const { return w < LEVELS ? u64(total.total[w < LEVELS ? w : 0]) : u64(missing) << 32 | trouble; }
    static __device__ __forceinline__ WholeParts of_words(const u64 (&words)[WORDS])
    {
        WholeParts all;
#pragma unroll
        for (int l = 0; l < LEVELS; ++l)
            all.total.total[l] = i64(words[l]);
        all.trouble = u32(words[LEVELS]);
        all.missing = u32(words[LEVELS] >> 32);
        return all;
    }

    // The answer of a finite total, in units of 2^unit, beside the trouble.
    template <int L>
    static __device__ __forceinline__ Bits answer(const FixedPoint<L> &total, int unit, u32 trouble, u32 missing, const Asked &asked)
    {
        const u64 n = asked.n - missing;
        if (trouble != 0)
            return specials_of<T>(trouble).bits();
        if (n == 0 && asked.ask == MEAN)
            return NOT_A_NUMBER<T>;
        return float_answer<T>(of_fixed_point(total, unit), asked.ask, n);
    }

    // Leaves the answer, which is known.
    __device__ __forceinline__ bool write(void *out, u64 place, const Asked &asked) const
    {
        static_cast<Bits *>(out)[place] = answer(total, WholeSum<T>::Levels::LAST, trouble, missing, asked);
        return true;
    }
};

template <class T>
struct WholeTotal {
    using Item = T;
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Asked = TotalAsked<T>;
    using Parts = WholeParts<T>;
    using Integer = typename Parts::Integer;
    using Whole = typename WholeSum<T>::Levels;
    static constexpr int NEAR = 3, WORDS = Parts::WORDS;
    using Window = ::Window<typename Format::Sum, NEAR, 4>;
    static_assert(Integer::STEP == Window::STEP, "levels are as far apart as the window's");
    static constexpr int MOST = sizeof(Bits) == 2 ? 16 : 8, SINGLES = MOST;
    static constexpr bool NUMBERED = false, SETTLES = true, MAY_BE_LOST = false, TAKES_INITIAL = true;
    // Batches move a level by less than 2^51 each.
    static constexpr u32 COMMITS = 512;

    // What is in front of the integer.
    struct Front {
        i64 at[NEAR] = {};
        i32 first = Window::LOWEST; // the unit of the highest level
        u32 trouble = 0;
        u32 commits = 0;
    };

    Integer behind;
    Front front;
    u32 missing = 0;

    __device__ __forceinline__ WholeTotal() {}
    __device__ __forceinline__ WholeTotal(const Parts &parts) : behind(parts.total), missing(parts.missing) { front.trouble = parts.trouble; }

    static __device__ __forceinline__ void add_front(Integer &all, const Front &front)
    {
#pragma unroll
        for (int l = 1; l < Parts::LEVELS; ++l) {
#pragma unroll
            for (int w = 0; w < NEAR; ++w)
                all.total[l] += Whole::LOWEST - Window::STEP * (l - 1 - w) == front.first ? front.at[w] : 0;
        }
    }

    __device__ __forceinline__ Parts parts() const
    {
        Parts all;
        all.total = behind;
        add_front(all.total, front);
        all.trouble = front.trouble;
        all.missing = missing;
        return all;
    }

    // Where the window holds elements below 2^top, and as far below as it can.
    static __device__ __forceinline__ int place_above(int top)
    {
        // Binades between the largest element and the window's end, at least.
        constexpr int SLACK = 4;
        const int level = (Whole::LOWEST - (top + SLACK - Window::STEP + 1)) / Window::STEP;
        return Whole::LOWEST - Window::STEP * min(max(level, 0), Parts::LEVELS - 1 - NEAR);
    }

    // What is rare, as functions of their own: they would take registers from the loops that call them.
    static __device__ __noinline__ Front emptied(Integer &behind, Front front)
    {
        add_front(behind, front);
        behind.raise(0);
        Front empty;
        empty.first = front.first;
        empty.trouble = front.trouble;
        return empty;
    }

    // Sees to infinities and NaNs, beside which nothing else counts, and moves a window that has taken nothing in to the batch. `holds` says
    // whether the batch is taken.
    struct Moved {
        Front front;
        bool holds;
    };
    template <int N>
    static __device__ __noinline__ Moved moved(Front front, Elements<Bits, N> some, const Asked asked)
    {
        const Bits most = most_of(some);
        if (most >= Format::INFINITE) {
#pragma unroll
            for (int i = 0; i < N; ++i) {
                if (!Format::is_finite(some.bits[i]))
                    front.trouble |= Format::is_nan(some.bits[i]) ? HAS_NAN : (asked.of(some.bits[i]) & Format::SIGN) != 0 ? HAS_NEGATIVE : HAS_POSITIVE;
            }
        }
        if (front.trouble != 0)
            return {front, true};
        if (front.commits != 0)
            return {front, false};
        front.first = place_above(Format::top(most));
        const bool holds = commit_if_held(front, some.bits, asked);
        return {front, holds};
    }

    // Takes a batch that is finite after the window has moved to it, or in all levels if it is far apart.
    template <int N>
    static __device__ __noinline__ Front settled(Integer &behind, Front front, Elements<Bits, N> some, const Asked asked)
    {
        const int place = place_above(Format::top(most_of(some)));
        if (place != front.first) {
            front = emptied(behind, front);
            front.first = place;
            if (commit_if_held(front, some.bits, asked))
                return front;
        }
        const Whole window(Whole::LOWEST);
        auto drift = window.open();
#pragma unroll
        for (int i = 0; i < N; ++i)
            window.add(drift, f64(Format::value(asked.of(some.bits[i]))));
#pragma unroll
        for (int l = 0; l < Parts::LEVELS - 1; ++l)
            behind.total[l + 1] += taken(drift.at[l], window.unit(l));
        if (++front.commits >= COMMITS)
            front = emptied(behind, front);
        return front;
    }

    template <int N>
    static __device__ __forceinline__ Bits most_of(const Elements<Bits, N> &some)
    {
        Bits most = 0;
#pragma unroll
        for (int i = 0; i < N; ++i)
            most = max(most, Format::magnitude(some.bits[i]));
        return most;
    }

    // Takes a batch that the window does not hold.
    template <int N>
    __device__ __forceinline__ void settle(const Elements<Bits, N> &some, const Asked &asked)
    {
        const Moved first = moved(front, some, asked);
        front = first.front;
        if (first.holds)
            return;
        // The integer stays in registers, as only a copy has an address.
        Integer all = behind;
        front = settled(all, front, some, asked);
        behind = all;
    }

    // Takes a batch if the window holds it.
    template <int N>
    static __device__ __forceinline__ bool commit_if_held(Front &front, const Bits (&bits)[N], const Asked &asked)
    {
        static_assert(N <= MOST && N <= Window::ADDS, "adds that an anchor takes");
        // Plain adds, which the range of the batch makes exact.
        Spread<T, N <= 8 ? 3 : 4> spread;
        f64 sum = 0.0;
#pragma unroll
        for (int k = 0; k < N; ++k)
            sum = spread.added(sum, Format::value(asked.of(bits[k])));
        const Window window(front.first);
        auto drift = window.open();
        window.add(drift, sum);
        if (!spread.holds() || !Window::holds(drift))
            return false;
#pragma unroll
        for (int w = 0; w < NEAR; ++w)
            front.at[w] += taken(drift.at[w], window.unit(w));
        ++front.commits;
        return true;
    }

    template <int V, int N, class Number>
    __device__ __forceinline__ bool take(const Bits (&bits)[N], Number, const Asked &asked)
    {
        if (!commit_if_held(front, bits, asked))
            return false;
        if (front.commits >= COMMITS) {
            Integer all = behind;
            front = emptied(all, front);
            behind = all;
        }
        return true;
    }

    // Folds what the lanes of a warp have while only their windows have anything, in the same place: a lane d apart has another of the same
    // output for each distance that `next` gives, until that is 0. Returns whether it has; all lanes of the warp call it.
    template <class Next>
    __device__ __forceinline__ bool fold_fronts(Next next)
    {
        const bool takes = front.commits != 0;
        const u32 all = __ballot_sync(ALL_LANES, takes);
        const i32 first = __shfl_sync(ALL_LANES, front.first, all == 0 ? 0 : __ffs(int(all)) - 1);
        // 32 lanes of so many batches stay below 2^63.
        if (!__all_sync(ALL_LANES, (!takes || front.first == first && front.commits < COMMITS / 4) && behind.is_zero()))
            return false;
        front.first = first;
        while (const u32 d = next()) {
#pragma unroll
            for (int w = 0; w < NEAR; ++w)
                front.at[w] += __shfl_xor_sync(ALL_LANES, front.at[w], d);
            front.trouble |= __shfl_xor_sync(ALL_LANES, front.trouble, d);
            missing += __shfl_xor_sync(ALL_LANES, missing, d);
        }
        return true;
    }

    __device__ __forceinline__ void merge(const WholeTotal &other)
    {
        Parts all = parts();
        all.merge(other.parts());
        *this = WholeTotal(all);
    }
    __device__ __forceinline__ u64 word(int w) const { return parts().word(w); }
    static __device__ __forceinline__ WholeTotal of_words(const u64 (&words)[WORDS]) { return Parts::of_words(words); }

    static __device__ __noinline__ bool write_parts(const Parts all, void *out, u64 place, const Asked asked) { return all.write(out, place, asked); }
    __device__ __forceinline__ bool write(void *out, u64 place, const Asked &asked) const
    {
        if (!behind.is_zero())
            return write_parts(parts(), out, place, asked);
        FixedPoint<NEAR> near;
#pragma unroll
        for (int w = 0; w < NEAR; ++w)
            near.total[w] = front.at[w];
        static_cast<Bits *>(out)[place] = Parts::answer(near, front.first - Window::STEP * (NEAR - 1), front.trouble, missing, asked);
        return true;
    }
};
