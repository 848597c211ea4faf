// The exact total of floats that come in any order and may be as far apart as they like, in registers: an accumulator for walks that know
// nothing of floats.
//
// It is a cascaded sum: nearly every answer is known, whatever the elements are. It is not where they cancel to far less than themselves: whoever walks has to
// bring them once more then, to superaccumulators.
//
// Sums of elements below 2^960 stay in the format of f64. With a larger one, everything is taken times 2^-100 from then on. What that loses
// of anything is below 2^-1074, and no more than a loss for each element and merge, which `size` says then.

#pragma once

#include "cascaded_sum.cuh"
#include "exact_answer.cuh"
#include "spread.cuh"
#include "trouble.cuh"
#include "units.cuh"

template <class T>
struct FloatTotal : CascadedSum<true> {
    using Sum = CascadedSum<true>;
    using Item = T;
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Asked = TotalAsked<T>;
    using Wides = Superaccumulator<T>;
    static constexpr bool LONG = sizeof(Bits) == 8;
    // Of elements that have to be seen there is room for eight.
    static constexpr int LOG_MOST = LONG || Spread<T, 0>::ASKED ? 3 : 4, MOST = 1 << LOG_MOST, SINGLES = sizeof(Bits) == 2 ? 16 : 8;
    static constexpr bool NUMBERED = false, SHIFTS = false, SETTLES = true, MAY_BE_LOST = true, TAKES_INITIAL = true;
    static constexpr int WIDE_WORDS = Wides::WORDS;
    // Small sums are taken times 2^SMALL, and of large elements times 2^-DOWN.
    static constexpr int SMALL = 512, DOWN = 100;
    // The upper half of 2^960.
    static constexpr u32 LARGE = u32(1023 + 960) << 20;

    f64 power = 1.0; // of two, which f64 are taken times
    u32 trouble = 0;
    u32 missing = 0; // NaNs that are as if they were not there

    // Takes a batch as one term if its elements are so near each other that plain adds are exact (range.cuh).
    template <int N>
    __device__ __forceinline__ bool include_near(const Bits (&bits)[N], const Asked &asked)
    {
        static_assert(N <= MOST, "the growth of a plain sum");
        Spread<T, LOG_MOST> spread;
        f64 some = 0.0;
#pragma unroll
        for (int k = 0; k < N; ++k)
            some = spread.added(some, Format::value(asked.of(bits[k])));
        if (!spread.holds() || !is_finite(some))
            return false;
        include(some);
        return true;
    }

    // Takes everything times 2^-DOWN.
    __device__ __forceinline__ void scale()
    {
        power = of_bits(u64(1023 - DOWN) << 52);
        Sum::scale(power);
        lose();
    }

    // Whether an element is not finite, or of f64 too large for what there is.
    static __device__ __forceinline__ bool is_odd(Bits bits)
    {
        if constexpr (LONG)
            return (u32(bits >> 32) & 0x7fffffff) >= LARGE;
        else
            return !Format::is_finite(bits);
    }

    // What an element is that is not finite.
    static __device__ __forceinline__ u32 trouble_of(Bits bits, const Asked &asked)
    {
        return Format::is_nan(bits) ? HAS_NAN : (asked.of(bits) & Format::SIGN) != 0 ? HAS_NEGATIVE : HAS_POSITIVE;
    }

    // Takes elements as they come, beside infinities and NaNs, of which is noted what they are.
    template <int N>
    __device__ __forceinline__ void settle(const Elements<Bits, N> &some, const Asked &asked)
    {
        bool odd = false;
#pragma unroll
        for (int k = 0; k < N; ++k)
            odd = odd || is_odd(some.bits[k]);
        Elements<Bits, N> finite = some;
        if (odd) {
            bool large = false;
#pragma unroll
            for (int k = 0; k < N; ++k) {
                const Bits bits = some.bits[k];
                if (Format::is_finite(bits)) {
                    large = large || is_odd(bits);
                    continue;
                }
                trouble |= trouble_of(bits, asked);
                finite.bits[k] = 0;
            }
            if constexpr (LONG) {
                if (large && power == 1.0)
                    scale();
            } else {
                if (include_near(finite.bits, asked))
                    return;
            }
        }
#pragma unroll
        for (int k = 0; k < N; ++k) {
            const f64 x = f64(Format::value(asked.of(finite.bits[k])));
            include(LONG ? mul(x, power) : x);
        }
    }

    template <int V, int N, class Number>
    __device__ __forceinline__ bool take(const Bits (&bits)[N], Number, const Asked &asked)
    {
        if constexpr (LONG) {
            Elements<Bits, N> some;
            memcpy(some.bits, bits, sizeof(some.bits));
            settle(some, asked);
            return true;
        } else {
            return include_near(bits, asked);
        }
    }

    __device__ __forceinline__ void merge(FloatTotal other)
    {
        if (LONG && power != other.power) {
            if (power == 1.0)
                scale();
            else
                other.scale();
        }
        Sum::merge(other);
        trouble |= other.trouble;
        missing += other.missing;
    }

    static constexpr int SUMS = Sum::WORDS, WORDS = SUMS + 1;
    __device__ __forceinline__ u64 word(int w) const
    {
        return w < SUMS ? bits_of(Sum::word(w)) : u64(missing) << 32 | u32(LONG && power != 1.0) << 16 | trouble;
    }
    static __device__ __forceinline__ FloatTotal of_words(const u64 (&words)[WORDS])
    {
        FloatTotal all;
        static_cast<Sum &>(all) = Sum::of_words(words);
        all.trouble = u32(words[SUMS]) & 0xffff;
        all.power = LONG && u32(words[SUMS]) >> 16 != 0 ? of_bits(u64(1023 - DOWN) << 52) : 1.0;
        all.missing = u32(words[SUMS] >> 32);
        return all;
    }

    // Whether the answer of elements of which n count is known. Rounding does not change the order of numbers. Sums of a few elements often lie
    // in the middle between two numbers but for far smaller ones, which rest.lo says (Boldo and Melquiond 2008).
    __device__ __forceinline__ bool answer(Bits &answer, const Asked &asked) const
    {
        if constexpr (LONG) {
            if (power != 1.0 && trouble == 0) {
                const Answer large = large_answer(*this, asked);
                answer = large.bits;
                return large.is_sure;
            }
        }
        return own_answer(answer, asked);
    }

    // The same of what is taken times 2^-DOWN: digits are those of the number, unless it is small. A function of its own for what is rare.
    struct Answer {
        Bits bits;
        bool is_sure;
    };
    static __device__ __noinline__ Answer large_answer(const FloatTotal all, const Asked asked)
    {
        Bits bits = 0;
        const bool is_sure = all.own_answer(bits, asked);
        const f64 number = of_bits(bits);
        return {bits_of(mul(number, of_bits(u64(1023 + DOWN) << 52))), is_sure && !(fabs(number) < of_bits(u64(1023 - 900) << 52))};
    }

    __device__ __forceinline__ bool own_answer(Bits &answer, const Asked &asked) const
    {
        if (trouble != 0) {
            answer = specials_of<T>(trouble).bits();
            return true;
        }
        const u64 n = asked.n;
        if (n == 0 && asked.ask == MEAN) {
            answer = NOT_A_NUMBER<T>;
            return true;
        }
        // There may be an initial element beside them.
        const KnownSum all = known(n + 1);
        const Double rest = all.rest;
        const f64 off = all.off;
        const f64 real = add(all.hi, rest.hi);
        // What is not finite here is NaN there.
        if (!is_finite(real) || !is_finite(off))
            return false;
        f64 part = 1.0;
        if (asked.ask == MEAN && real != 0.0) {
            // Quotients by a power of two are exact far from the lower end of what f64 has.
            if ((n & (n - 1)) != 0 || fabs(real) < of_bits(u64(1023 - 800) << 52))
                return mean(answer, {all.hi, rest.hi}, add(off, mul(fabs(rest.lo), 2.0)), asked);
            part = __drcp_rn(f64(n));
        }
        const auto nearest_to = [&](f64 off) {
            return nearest<T>(mul(all.hi, part), mul(round_to_odd(two_sum(rest.hi, add(rest.lo, off))), part));
        };
        answer = nearest_to(off);
        return answer == nearest_to(-off);
    }

    __device__ __forceinline__ bool mean(Bits &answer, Double all, f64 off, const Asked &asked) const
    {
        // A quotient of sums that cancelled is left to others.
        if (!(off <= mul(fabs(all.hi), of_bits(u64(1023 - 93) << 52))))
            return false;
        if (off != 0.0)
            all = fast_two_sum(all.hi, all.lo);
        if constexpr (!LONG) {
            if (off == 0.0 && all.lo == 0.0) {
                answer = narrow<T>(quotient(all.hi, asked.n));
                return true;
            }
        }
        // Far from the lower end of what f64 has: the rests below stay in it.
        const bool is_small = LONG && fabs(all.hi) < of_bits(u64(1023 - 800) << 52);
        const f64 up = is_small ? of_bits(u64(1023 + SMALL) << 52) : 1.0;
        all = {mul(all.hi, up), mul(all.lo, up)};
        // The quotient by a reciprocal is off by less than two units, so that what is left of it is exact; that of the rest is rounded once where
        // it is no quotient of numbers (Markstein 1990).
        const f64 n = f64(asked.n), part = __drcp_rn(n);
        const f64 q = mul(all.hi, part);
        const Double left = two_sum(fused(-q, n, all.hi), all.lo);
        const f64 about = mul(left.hi, part), rest = fused(fused(-about, n, left.hi), part, about);
        if constexpr (LONG) {
            // The quotient is q + rest then, also where that is the middle between two numbers.
            const bool is_exact = off == 0.0 && left.lo == 0.0 && fused(-rest, n, left.hi) == 0.0;
            if (is_small) {
                const bool is_sure = rounded_at({fabs(q), q < 0.0 ? -rest : rest}, -SMALL, is_exact, false, answer);
                answer |= q < 0.0 ? Format::SIGN : 0;
                return is_sure;
            }
            const bool is_sure = rounded({q, rest}, answer);
            answer = is_exact ? bits_of(add(q, rest)) : answer;
            return is_sure || is_exact;
        } else {
            const f64 beside = mul(fabs(q), of_bits(u64(1023 - 90) << 52));
            answer = nearest<T>(q, add(rest, beside));
            return answer == nearest<T>(q, sub(rest, beside));
        }
    }

    // Leaves the answer, and returns whether it is known.
    __device__ __forceinline__ bool write(void *out, u64 place, const Asked &asked) const
    {
        Asked its = asked;
        its.n -= missing;
        Bits bits = 0;
        if (is_lost() || !answer(bits, its))
            return false;
        static_cast<Bits *>(out)[place] = bits;
        return true;
    }

    __device__ __forceinline__ bool is_lost() const { return (trouble & IS_LOST) != 0; }
    // Whether blocks leave parts that are cut. For a total that is lost only when the parts are together, one block has to bring all elements, of
    // which superaccumulators take fewer than 2^29.
    static __device__ __forceinline__ bool leaves_cut(const Asked &asked) { return asked.n >> 29 == 0; }
    // Elements that one block brings in little more time than all of them do.
    static constexpr u64 FEW = 1 << 17;
    // Whether superaccumulators have to bring a part that others are added to: a cut part of too many elements, or of many where it is not
    // certain to be large beside what it lacks. Beside infinities and NaNs, nothing else matters.
    __device__ __forceinline__ bool gives_up(const Asked &asked)
    {
        const bool is_large = asked.n <= FEW || size <= mul(fabs(add(sum, error)), of_bits(u64(1023 - 72) << 52));
        if (trouble == 0 && (!is_cut() || leaves_cut(asked) && is_large))
            return false;
        FloatTotal none;
        none.trouble = trouble != 0 ? trouble : IS_LOST;
        none.missing = missing;
        *this = none;
        return is_lost();
    }

    // What superaccumulators do for a lost total.
    static __device__ __forceinline__ void absorb(Wides &wides, Bits bits, const Asked &asked) { ::absorb<T>(wides, asked.of(bits)); }

    // Adds a total that is neither lost nor cut.
    __device__ __forceinline__ void deposit(Wides &wides) const
    {
        Sum::deposit(wides);
        if ((trouble & HAS_NAN) != 0)
            wides.count(Wides::NOT_A_NUMBER);
        if ((trouble & HAS_POSITIVE) != 0)
            wides.count(Wides::POSITIVE);
        if ((trouble & HAS_NEGATIVE) != 0)
            wides.count(Wides::NEGATIVE);
    }

    static __device__ __forceinline__ u64 entry(const Wides &wides, int i) { return wides.entry(i, 0); }
    static __device__ __forceinline__ void add_entry(Wides &wides, int i, u64 entry) { wides.add_entry(i, entry); }

    // Writes the answer of superaccumulators of which `word` says the vector form.
    template <class Word>
    static __device__ __forceinline__ void write_wides(Word word, void *out, u64 place, const Asked &asked)
    {
        static_cast<Bits *>(out)[place] = words_answer<T>(word, asked.ask, asked.n);
    }
};
