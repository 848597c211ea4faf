// The exact total of floats that come in any order, in registers: an accumulator for walks that know nothing of floats.
//
// A batch of elements is added to a window (window.cuh) that is made for the thread's largest ones; what the window takes in goes to a
// fixed-point integer. Where a batch does not fit, the integer moves upwards with its window. If bits would leave its lower end the total is
// lost, and whoever walks has to bring the elements once more, to superaccumulators.

#pragma once

#include "exact_answer.cuh"
#include "fixed_point.cuh"

// What is wrong with a total of floats.
enum Trouble : u32 {
    HAS_NAN = 1,
    HAS_POSITIVE = 2,
    HAS_NEGATIVE = 4,
    IS_LOST = 8,
};

// The trouble that an element makes which is not finite.
template <class T>
__device__ __forceinline__ u32 trouble_of(typename Element<T>::Bits bits)
{
    if (Element<T>::is_nan(bits))
        return HAS_NAN;
    return (bits & Element<T>::SIGN) != 0 ? HAS_NEGATIVE : HAS_POSITIVE;
}

template <class T>
__device__ __forceinline__ Specials<T> specials_of(u32 trouble)
{
    return {(trouble & HAS_NAN) != 0, (trouble & HAS_POSITIVE) != 0, (trouble & HAS_NEGATIVE) != 0};
}

template <class T>
struct FloatTotalOf {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    static constexpr bool LONG = sizeof(Bits) == 8;
    // f16 is 40 bits long: two levels hold whatever is finite.
    static constexpr bool FITS = Format::Sum::LIMBS == 2;
    static constexpr int LEVELS = LONG ? 4 : FITS ? 2 : 3;
    using Window = ::Window<typename Format::Sum, LEVELS, 4>;
    using Total = FixedPoint<LEVELS>;
    static_assert(Total::STEP == Window::STEP, "levels are as far apart as the window's");
    using Wides = Superaccumulator<T>;
    static constexpr int WIDE_WORDS = Wides::WORDS;
    // Binades between the largest element and the window's end, at least; places are multiples of this.
    static constexpr int SLACK = 4, GRAIN = 8;
    // Batches move a level by less than 2^51 each.
    static constexpr u32 COMMITS = 512;

    Total total;
    i32 first = Window::LOWEST; // the unit of the highest level
    u32 trouble = 0;
    u32 commits = 0;

    struct Asked {
        u32 ask;
        Bits mask; // all bits, or all but the sign
        u64 n;
        __device__ __forceinline__ Asked(u32 ask, bool absolute, u64 n) : ask(ask), mask(absolute ? Bits(Format::SIGN - 1) : Bits(~Bits(0))), n(n) {}
        static __device__ __forceinline__ Bits fill() { return 0; }
    };

    // Where a window holds elements below 2^top.
    static __device__ __forceinline__ int place_above(int top)
    {
        const int place = (Window::below(top + SLACK) + GRAIN - 1) & -GRAIN;
        return min(max(place, Window::LOWEST), Window::HIGHEST);
    }

    __device__ __forceinline__ bool is_lost() const { return (trouble & IS_LOST) != 0; }

    // Moves the carries, and everything upwards if the highest level has no room.
    __device__ __forceinline__ void tidy()
    {
        commits = 0;
        if (!total.is_full())
            return;
        total.raise(0);
        if (total.is_full() && !FITS)
            move_to(min(first + GRAIN, Window::HIGHEST));
        if (total.is_full())
            trouble |= IS_LOST;
    }

    __device__ __forceinline__ void move_to(int place)
    {
        if (place <= first)
            return;
        if (!total.is_zero() && !total.raise(place - first))
            trouble |= IS_LOST;
        first = place;
    }

    __device__ __forceinline__ void commit(const typename Window::Drift &drift)
    {
#pragma unroll
        for (int l = 0; l < LEVELS; ++l)
            total.total[l] += taken(drift.at[l], first - Window::STEP * l);
    }

    // Takes a batch that the window does not hold.
    template <int U>
    __device__ __forceinline__ void settle(const Bits (&bits)[U])
    {
        int top = Format::UNIT;
#pragma unroll
        for (int k = 0; k < U; ++k) {
            if (Format::is_finite(bits[k]))
                top = max(top, Format::top(bits[k]));
            else
                trouble |= trouble_of<T>(bits[k]);
        }
        move_to(place_above(top));
        const Window window(first);
#pragma unroll
        for (int k = 0; k < U; ++k) {
            if (Format::is_finite(bits[k])) {
                auto drift = window.open();
                window.add(drift, f64(Format::value(bits[k])));
                if (Window::holds(drift))
                    commit(drift);
                else
                    trouble |= IS_LOST;
            }
        }
        // A commit for each element.
        tidy();
    }

    template <int U>
    __device__ __forceinline__ void take(Bits (&bits)[U], const Asked &asked)
    {
        static_assert(U <= Window::ADDS, "adds that an anchor takes");
        const Window window(first);
        auto drift = window.open();
        bool holds = true;
        if constexpr (LONG) {
#pragma unroll
            for (int k = 0; k < U; ++k) {
                bits[k] &= asked.mask;
                window.add(drift, Format::value(bits[k]));
            }
        } else {
            // Plain adds, which the range of the batch makes exact: range.cuh.
            constexpr int GROWTH = U <= 8 ? 3 : 4;
            constexpr u32 SPREAD = u32(53 - (Format::FRACTION + 1) - GROWTH) << 24;
            f64 sum = 0.0;
            u32 most = 0, least = ~0u;
#pragma unroll
            for (int k = 0; k < U; ++k) {
                bits[k] &= asked.mask;
                const f32 x = Format::value(bits[k]);
                if constexpr (!FITS) {
                    const u32 doubled = __float_as_uint(x) << 1;
                    most = max(most, doubled);
                    least = min(least, doubled - 1);
                }
                sum = __dadd_rn(sum, f64(x));
            }
            window.add(drift, sum);
            holds = FITS || most - least <= SPREAD;
        }
        if (holds && Window::holds(drift))
            commit(drift);
        else
            settle(bits);
        if (++commits >= COMMITS)
            tidy();
    }

    __device__ __forceinline__ void merge(const FloatTotalOf &with)
    {
        FloatTotalOf other = with;
        trouble |= other.trouble;
        if (other.total.is_zero())
            return;
        if (total.is_zero())
            first = other.first;
        move_to(other.first);
        other.move_to(first);
        trouble |= other.trouble;
        total.add(other.total);
        tidy();
    }

    static constexpr int WORDS = LEVELS + 1;
    __device__ __forceinline__ u64 word(int w) const { return w < LEVELS ? u64(total.total[w < LEVELS ? w : 0]) : u64(trouble) << 32 | u32(first); }
    static __device__ __forceinline__ FloatTotalOf of_words(const u64 (&words)[WORDS])
    {
        FloatTotalOf all;
#pragma unroll
        for (int l = 0; l < LEVELS; ++l)
            all.total.total[l] = i64(words[l]);
        all.first = i32(u32(words[LEVELS]));
        all.trouble = u32(words[LEVELS] >> 32);
        return all;
    }

    __device__ __forceinline__ void write(void *out, u64 place, const Asked &asked) const
    {
        const Specials<T> specials = specials_of<T>(trouble);
        Bits answer;
        if (specials.any()) {
            answer = specials.bits();
        } else {
            u32 digit[Total::DIGITS];
            total.digits(digit);
            const auto limb = [&](int i) { return i + 1 < Total::DIGITS ? i64(digit[i]) : i64(i32(digit[i])); };
            answer = float_answer<T>(Truncated::of_limbs(Total::DIGITS, first - Window::STEP * (LEVELS - 1), limb), asked.ask, asked.n);
        }
        static_cast<Bits *>(out)[place] = answer;
    }

    // What superaccumulators do for a lost total.
    static __device__ __forceinline__ void absorb(Wides &wides, Bits bits, const Asked &asked) { ::absorb<T>(wides, Bits(bits & asked.mask)); }

    // Adds a total that is not lost.
    __device__ __forceinline__ void deposit(Wides &wides) const
    {
#pragma unroll
        for (int l = 0; l < LEVELS; ++l) {
            const i64 some = total.total[l];
            if (some != 0)
                wides.deposit(some < 0, some < 0 ? -u64(some) : u64(some), first - Window::STEP * l);
        }
        if ((trouble & HAS_NAN) != 0)
            wides.count(Wides::NOT_A_NUMBER);
        if ((trouble & HAS_POSITIVE) != 0)
            wides.count(Wides::POSITIVE);
        if ((trouble & HAS_NEGATIVE) != 0)
            wides.count(Wides::NEGATIVE);
    }

    static __device__ __forceinline__ u64 entry(const Wides &wides, int i) { return wides.entry(i, 0); }

    // Writes the answer of superaccumulators of which `word` says the vector form.
    template <class Word>
    static __device__ __forceinline__ void write_wides(Word word, void *out, u64 place, const Asked &asked)
    {
        static_cast<Bits *>(out)[place] = words_answer<T>(word, asked.ask, asked.n);
    }
};
