// Exact totals of floats in registers that move upwards with their windows: float_squares.cuh has their terms.
//
// A batch of elements is added to windows (window.cuh) that are made for the thread's largest ones; what the windows take in goes to
// fixed-point integers. Where a batch does not fit, the integers move upwards. What lies below their lower end is cut off: a total that is
// cut says so, and is off by less than off(n) units of its lowest levels. If both ends of that make the same answer, it is the answer.
// Elsewhere the total is lost, and whoever walks has to bring the elements once more, to superaccumulators.
//
// An integer loses less than a unit for an element, or for a batch whose sum is taken. A move upwards makes earlier losses smaller and cuts
// off less than a unit. A batch moves twice at most, and it has an element. Merging moves four times at most, and there are fewer merges
// of totals that are not 0 than elements. So n elements lose less than 7 n units.
//
// A total says how its integers lie:
//
//     LOWEST, HIGHEST, GRAIN          places of its windows; those between are multiples of GRAIN, if there is more than one
//     MOST                            elements that its windows take at once
//     first                           the place
//     is_zero, is_full, raise, add    for all of its integers, as in fixed_point.cuh; raise takes places
//     place_above(top)                where its windows hold elements below 2^top
//     commit_if_near(bits, asked)     takes a batch if that is simple, as of elements that are not far apart in windows that hold them
//     commit_if_held(bits, asked, t)  takes a batch if its windows reach up to it, and returns that; adds IS_CUT to t if some was cut off

#pragma once

#include "fixed_point.cuh"
#include "trouble.cuh"
#include "units.cuh"

template <class Total>
struct Moving : Total {
    using Item = typename Total::Item;
    using Format = Element<Item>;
    using Bits = typename Format::Bits;
    using Asked = typename Total::Asked;
    using Wides = typename Total::Wides;
    static constexpr bool FITS = Total::LOWEST == Total::HIGHEST;
    static constexpr int SINGLES = Total::MOST;
    static constexpr bool NUMBERED = false;
    static constexpr bool SETTLES = true;
    static constexpr bool MAY_BE_LOST = !FITS;
    // Batches move a level by less than 2^51 each.
    static constexpr u32 COMMITS = 512;

    u32 trouble = 0;
    u32 commits = 0;
    u32 missing = 0; // NaNs that are as if they were not there

    __device__ __forceinline__ bool is_lost() const { return (trouble & IS_LOST) != 0; }
    __device__ __forceinline__ bool is_cut() const { return (trouble & IS_CUT) != 0; }
    // What the integers of n elements may be off by.
    __device__ __forceinline__ i64 off(u64 n) const { return is_cut() ? i64(8 * n) : 0; }
    // Whether a block leaves a part that is cut: where terms are so far apart, a total of squares is of the order of the largest one, and is
    // hardly ever lost when the parts are together. Then one block brings all elements, of which superaccumulators take fewer than 2^29.
    static __device__ __forceinline__ bool leaves_cut(const Asked &asked) { return asked.n >> 29 == 0; }
    // Whether superaccumulators have to bring a block's part. A part that is lost is not cut, and of one with NaNs or infinities nothing else
    // matters.
    __device__ __forceinline__ bool gives_up(const Asked &asked)
    {
        if (is_special()) {
            Moving none;
            none.trouble = trouble & ~(IS_LOST | IS_CUT);
            none.missing = missing;
            *this = none;
        } else if (is_cut() && !leaves_cut(asked)) {
            trouble |= IS_LOST;
        }
        trouble &= is_lost() ? ~IS_CUT : ~0u;
        return is_lost();
    }
    __device__ __forceinline__ bool is_special() const { return (trouble & (HAS_NAN | HAS_POSITIVE | HAS_NEGATIVE)) != 0; }

    __device__ __forceinline__ void move_to(int place)
    {
        if (place <= this->first)
            return;
        if (!this->is_zero() && !this->raise(place - this->first))
            trouble |= IS_CUT;
        this->first = place;
    }

    // Moves the carries, and everything upwards if the highest level has no room.
    __device__ __forceinline__ void tidy()
    {
        commits = 0;
        if (!this->is_full())
            return;
        this->raise(0);
        if (this->is_full() && !FITS)
            move_to(min(this->first + Total::GRAIN, Total::HIGHEST));
        if (this->is_full())
            trouble |= IS_LOST;
    }

    // Functions of their own for what is rare: they would take registers from the loops that call them.
    static __device__ __noinline__ Moving tidied(Moving all)
    {
        all.tidy();
        return all;
    }

    // With a batch that its windows do not hold.
    template <int N>
    static __device__ __noinline__ Moving settled(Moving all, Elements<Bits, N> some, const Asked asked)
    {
        Bits most = 0;
#pragma unroll
        for (int i = 0; i < N; ++i)
            most = max(most, Format::magnitude(some.bits[i]));
        if (most >= Format::INFINITE) {
#pragma unroll
            for (int i = 0; i < N; ++i) {
                const Bits bits = some.bits[i];
                if (!Format::is_finite(bits))
                    all.trouble |= Format::is_nan(bits) ? HAS_NAN : (asked.of(bits) & Format::SIGN) != 0 ? HAS_NEGATIVE : HAS_POSITIVE;
            }
        }
        // Beside infinities and NaNs, nothing else matters.
        if (all.is_special())
            return all;
        all.move_to(Total::place_above(Format::top(most)));
        if (!all.commit_if_held(some.bits, asked, all.trouble)) {
            // Its elements are too far apart to be added to each other, but not to be added to the integers one by one.
#pragma unroll 1
            for (int i = 0; i < N; ++i) {
                const Bits one[1] = {some.bits[i]};
                if (!all.commit_if_held(one, asked, all.trouble))
                    all.trouble |= IS_LOST;
            }
        }
        // A commit for each element.
        all.tidy();
        return all;
    }

    template <int N>
    __device__ __forceinline__ void settle(const Elements<Bits, N> &some, const Asked &asked)
    {
        *this = settled(*this, some, asked);
    }

    template <int V, int N, class Number>
    __device__ __forceinline__ bool take(const Bits (&bits)[N], Number, const Asked &asked)
    {
        static_assert(N <= Total::MOST, "adds that an anchor takes");
        if (!this->commit_if_near(bits, asked))
            return false;
        if (++commits >= COMMITS)
            *this = tidied(*this);
        return true;
    }

    // Two totals that are in different places, or full.
    static __device__ __noinline__ Moving merged(Moving all, Moving other)
    {
        all.tidy();
        other.tidy();
        // Nothing says how much a total of 0 lacks but its place.
        if (!other.is_zero() || other.is_cut()) {
            if (all.is_zero() && !all.is_cut())
                all.first = other.first;
            all.move_to(other.first);
            other.move_to(all.first);
            all.add(other);
        }
        all.trouble |= other.trouble;
        all.missing += other.missing;
        all.tidy();
        return all;
    }

    __device__ __forceinline__ void merge(const Moving &other)
    {
        if (other.first == this->first && !this->is_full() && !other.is_full()) {
            this->add(other);
            trouble |= other.trouble;
            missing += other.missing;
            commits = 0;
        } else {
            *this = merged(*this, other);
        }
    }

    static constexpr int WORDS = Total::INTEGER_WORDS + 1;
    __device__ __forceinline__ u64 word(int w) const
    {
        return w < Total::INTEGER_WORDS ? u64(this->integer(w)) : u64(missing) << 32 | trouble << 16 | u16(this->first);
    }
    static __device__ __forceinline__ Moving of_words(const u64 (&words)[WORDS])
    {
        Moving all;
#pragma unroll
        for (int w = 0; w < Total::INTEGER_WORDS; ++w)
            all.integer(w) = i64(words[w]);
        // The place, trouble, and what is missing.
        all.first = i16(words[WORDS - 1]);
        all.trouble = u16(words[WORDS - 1] >> 16);
        all.missing = u32(words[WORDS - 1] >> 32);
        return all;
    }
};
