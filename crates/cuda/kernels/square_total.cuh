// The exact total of the squares of floats, and of these themselves, that come in any order and may be as far apart as they like, for norms and
// variances: an accumulator for walks that know nothing of floats.
//
// Both are cascaded sums. What comes of a square of f64, or of plain sums of some, is up to four terms, and counts as two elements with those of
// merges.
//
// A variance is (n S2 - S1^2) / (n (n - ddof)). The numerator is another cascaded sum, of some products; what S1 and S2 are off by comes to it.
// Where that says nothing of the answer, whoever walks has to bring the elements once more, to superaccumulators. Elements that are all alike, or
// nearly, cancel, and have an answer all the same: their squares are multiples of a unit that is not far below them, so that no term is rounded.
//
// Squares of f64 may leave the format. So elements are taken times a power of two: 2^600 at first, and 2^-600 less whenever larger ones come
// than 2^440 with that. Squares add up to less than 2^960 then, which leaves room for n. Elements from 2^-420 on, and any with
// 2^600, have exact squares, and their sum's square is exact. Others lose less than 2^-1074, as do those that were taken before, which `size` says.

#pragma once

#include "cascaded_sum.cuh"
#include "plain_squares.cuh"
#include "square_answer.cuh"
#include "trouble.cuh"
#include "units.cuh"

// Both superaccumulators, as walks know them.
template <class T>
struct SquareWides : WideMoments<T> {
    __device__ __forceinline__ void clear()
    {
        this->sum.clear();
        this->squares.clear();
    }
};

// What is asked of squares.
template <class T>
struct SquaresAsked {
    using Bits = typename Element<T>::Bits;
    static constexpr Bits mask = Bits(~Bits(0));
    u32 ask;
    u64 n;
    static __device__ __forceinline__ Bits of(Bits bits) { return bits; }
    static __device__ __forceinline__ Bits fill() { return 0; }
};

// SPREAD says that the elements are summed, too.
template <class T, bool SPREAD>
struct SquareTotal {
    using Item = T;
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Asked = SquaresAsked<T>;
    using Wides = SquareWides<T>;
    static constexpr bool LONG = sizeof(Bits) == 8;
    static constexpr int LOG_MOST = LONG ? 3 : 4, MOST = 1 << LOG_MOST, SINGLES = MOST;
    static constexpr bool NUMBERED = false, SHIFTS = false, SETTLES = true, MAY_BE_LOST = true;
    static constexpr int SUM_WORDS = Wides::Sum::WORDS;
    static constexpr int WIDE_WORDS = SUM_WORDS + Wides::Squares::WORDS;
    // log2 of a power of two, and of bounds of what elements are with it.
    static constexpr int UP = 600, LARGE = 440, SMALL = -420;
    static constexpr f64 DOWN = 0x1p-600;

    // Answers of f64 want all that is known.
    using Sum = CascadedSum<LONG>;
    Sum squares, sum;
    f64 power = LONG ? 0x1p600 : 1.0;
    u32 least = ~0u; // the upper half of the smallest magnitude of f64 that is not 0, or less by one
    u32 trouble = 0;
    u32 missing = 0; // NaNs that are as if they were not there

    // Takes an element.
    __device__ __forceinline__ void include(f64 x)
    {
        if constexpr (LONG)
            squares.include_product(x, x);
        else
            squares.include(mul(x, x));
        if constexpr (SPREAD)
            sum.include(x);
    }

    // Takes plain sums that are exact.
    template <int K>
    __device__ __forceinline__ void include(const PlainSquares<T, SPREAD, K> &some)
    {
        some.give(squares, sum);
    }

    // Takes a batch by plain sums if its elements are near each other.
    template <int N>
    __device__ __forceinline__ bool include_near(const Bits (&bits)[N])
    {
        static_assert(N <= MOST, "the growth of plain sums");
        using Plain = PlainSquares<T, SPREAD, LOG_MOST>;
        typename Plain::Seen seen;
#pragma unroll
        for (int k = 0; k < N; ++k)
            seen.see(Format::magnitude(bits[k]));
        bool holds = seen.holds();
        Plain some;
        if constexpr (LONG) {
            holds = holds && seen.most < large() && seen.least >= small();
            least = min(least, seen.least);
            some.make_room(seen.most, u32(bits_of(power) >> 52));
        } else {
            some.make_room(seen.most);
        }
        if (!holds)
            return false;
#pragma unroll
        for (int k = 0; k < N; ++k)
            some.add_one(scaled(bits[k]));
        include(some);
        return true;
    }

    // An element, times the power of two.
    __device__ __forceinline__ f64 scaled(Bits bits) const
    {
        const f64 x = f64(Format::value(bits));
        return LONG ? mul(x, power) : x;
    }

    __device__ __forceinline__ void lose()
    {
        squares.lose();
        if constexpr (SPREAD)
            sum.lose();
    }

    // Takes everything times 2^-600.
    __device__ __forceinline__ void scale()
    {
        power = mul(power, DOWN);
        if (squares.is_zero())
            return;
        squares.scale(DOWN);
        squares.scale(DOWN);
        if constexpr (SPREAD)
            sum.scale(DOWN);
        lose();
    }

    // The upper half of a magnitude, and of that from which it is 2^exponent times `power`.
    static __device__ __forceinline__ u32 upper(Bits bits) { return u32(u64(bits) >> 32) & 0x7fffffff; }
    __device__ __forceinline__ u32 bound(int exponent) const { return (u32(2 * 1023 + exponent) << 20) - u32(bits_of(power) >> 32); }
    __device__ __forceinline__ u32 large() const { return min(bound(LARGE), 0x7ff00000); }
    __device__ __forceinline__ u32 small() const { return power > 1.0 ? 0 : bound(SMALL); }

    // Takes note of elements that are not finite, which become 0, and, of f64, of those that are too large or too small for the power of two.
    template <int N>
    __device__ __forceinline__ void take_note(Elements<Bits, N> &some)
    {
        u32 most = 0;
#pragma unroll
        for (int k = 0; k < N; ++k) {
            const Bits bits = some.bits[k];
            if (!Format::is_finite(bits)) {
                trouble |= Format::is_nan(bits) ? HAS_NAN : HAS_POSITIVE;
                some.bits[k] = 0;
            } else if constexpr (LONG) {
                most = max(most, upper(bits));
            }
        }
        if constexpr (LONG) {
#pragma unroll 1
            while (most >= large())
                scale();
            bool loses = false;
#pragma unroll
            for (int k = 0; k < N; ++k)
                loses = loses || upper(some.bits[k]) < small() && Format::magnitude(some.bits[k]) != 0;
            if (loses)
                lose();
        }
    }

    // Takes elements as they come.
    template <int N>
    __device__ __forceinline__ void settle(const Elements<Bits, N> &some, const Asked &)
    {
        Elements<Bits, N> finite = some;
        bool odd = false;
        const u32 smallest = small(), span = large() - smallest;
#pragma unroll
        for (int k = 0; k < N; ++k) {
            if constexpr (LONG)
                least = min(least, u32((Format::magnitude(some.bits[k]) - 1) >> 32));
            odd = odd || (LONG ? upper(some.bits[k]) - smallest >= span : !Format::is_finite(some.bits[k]));
        }
        if (odd) {
            take_note(finite);
            if (include_near(finite.bits))
                return;
        }
#pragma unroll
        for (int k = 0; k < N; ++k)
            include(scaled(finite.bits[k]));
    }

    template <int V, int N, class Number>
    __device__ __forceinline__ bool take(const Bits (&bits)[N], Number, const Asked &)
    {
        return include_near(bits);
    }

    __device__ __forceinline__ void merge(SquareTotal other)
    {
        if constexpr (LONG) {
#pragma unroll 1
            while (power > other.power)
                scale();
#pragma unroll 1
            while (other.power > power)
                other.scale();
        }
        squares.merge(other.squares);
        if constexpr (SPREAD)
            sum.merge(other.sum);
        least = min(least, other.least);
        trouble |= other.trouble;
        missing += other.missing;
    }

    static constexpr int SUMS = (SPREAD ? 2 : 1) * Sum::WORDS, WORDS = SUMS + 1;
    __device__ __forceinline__ u64 word(int w) const
    {
        if (w < SUMS)
            return bits_of(w < Sum::WORDS ? squares.word(w) : sum.word(w - Sum::WORDS));
        return u64(missing) << 32 | u32(bits_of(power) >> 52) << 8 | trouble | (LONG ? (least >> 20 & 0x7ff) << 19 : 0);
    }
    static __device__ __forceinline__ SquareTotal of_words(const u64 (&words)[WORDS])
    {
        SquareTotal all;
        all.squares = Sum::of_words(words);
        if constexpr (SPREAD)
            all.sum = Sum::of_words(words + Sum::WORDS);
        all.trouble = u32(words[SUMS]) & 0xff;
        if constexpr (LONG) {
            all.power = of_bits(u64(u32(words[SUMS]) >> 8 & 0x7ff) << 52);
            all.least = u32(words[SUMS]) >> 19 << 20;
        }
        all.missing = u32(words[SUMS] >> 32);
        return all;
    }

    // What NaNs and infinities make of the answer.
    static __device__ __forceinline__ Bits special(u32 trouble, u32 ask)
    {
        return asks_spread(ask) || (trouble & HAS_NAN) != 0 ? NOT_A_NUMBER<T> : Format::INFINITE;
    }

    // 2^52 units of elements, or of squares, that are multiples of it; 0 of a unit that leaves the format.
    __device__ __forceinline__ f64 exact(int squared) const
    {
        const int field = max(int(least >> 20), 1) - 1075 + int(bits_of(power) >> 52) - 1023, exponent = squared * field + 52;
        return LONG && exponent > -1000 ? of_bits(u64(1023 + min(exponent, 1000)) << 52) : 0.0;
    }

    // What is known of S2, or n S2 - S1^2, of n elements.
    __device__ __forceinline__ KnownSum numerator(u64 n, bool spread) const
    {
        const KnownSum s2 = squares.known(2 * n, exact(2));
        if (!SPREAD || !spread)
            return s2;
        const KnownSum s1 = sum.known(2 * n, exact(1));
        CascadedSum<true> all;
        all.include_product(f64(n), s2.hi);
        all.include_product(-s1.hi, s1.hi);
        if (s2.rest.hi != 0.0 || s1.rest.hi != 0.0) {
            all.include_product(f64(n), s2.rest.hi);
            all.include_product(mul(-2.0, s1.hi), s1.rest.hi);
            all.include_product(-s1.rest.hi, s1.rest.hi);
        }
        // What S1's rest.lo brings is rounded, and its products with other rests are left out: less than 2^-50 of it times what is here.
        all.include_product(f64(n), s2.rest.lo);
        all.include(mul(mul(-2.0, s1.hi), s1.rest.lo));
        const bool is_whole = s2.off == 0.0 && s1.off == 0.0 && s1.rest.lo == 0.0;
        KnownSum known = all.known(16, is_whole ? exact(2) : 0.0);
        const f64 magnitude = add(fabs(s1.hi), fabs(s1.rest.hi)), of_sum = add(s1.off, mul(fabs(s1.rest.lo), of_bits(u64(1023 - 50) << 52)));
        const f64 off = add(mul(f64(n), s2.off), mul(add(mul(2.0, magnitude), of_sum), of_sum));
        known.off = add(known.off, mul(off, 4.0));
        return known;
    }

    // The answer of n elements, and whether it is known: a function of its own, as it is asked for once and would hold registers.
    struct Answer {
        Bits bits;
        bool is_sure;
    };
    static __device__ __noinline__ Answer answer_of(const SquareTotal all, u32 ask, u64 n)
    {
        Answer answer = {};
        answer.is_sure = all.answer(answer.bits, ask, n);
        return answer;
    }
    __device__ __forceinline__ bool answer(Bits &answer, u32 ask, u64 n) const
    {
        if ((trouble & ~IS_LOST) != 0) {
            answer = special(trouble, ask);
            return true;
        }
        const bool spread = SPREAD && asks_spread(ask), root = asks_root(ask);
        const u64 free = spread ? freedom(ask, n) : 1, times = spread ? n : 1;
        if (free == 0) {
            answer = NOT_A_NUMBER<T>;
            return true;
        }
        const KnownSum all = numerator(n, spread);
        const f64 by = mul(f64(times), f64(free)), by_rest = fused(f64(times), f64(free), -by);
        const Double x = two_sum(all.hi, add(all.rest.hi, all.rest.lo));
        const bool is_exact = all.off == 0.0 && all.rest.lo == 0.0;
        const int exponent = LONG ? 2 * (1023 - int(bits_of(power) >> 52)) : 0;
        if (is_exact && by_rest == 0.0) {
            if (x.hi == 0.0) {
                answer = 0;
                return true;
            }
            // Sums of few digits often lie in the middle between two numbers, as do their quotients and roots, which are exact then.
            if (exponent == 0 && x.hi > of_bits(u64(1023 - 800) << 52)) {
                const f64 real = __ddiv_rn(x.hi, by);
                const Double left = two_sum(fused(-real, by, x.hi), x.lo);
                const f64 rest = __ddiv_rn(left.hi, by), its = __dsqrt_rn(real);
                const bool is_quotient = left.lo == 0.0 && fused(rest, by, -left.hi) == 0.0;
                if (is_quotient && (!root || rest == 0.0 && fused(its, its, -real) == 0.0)) {
                    answer = root ? narrow<T>(its) : nearest<T>(real, rest);
                    return true;
                }
            }
        }
        // What is not finite here is NaN there, and what is not positive cancels.
        const f64 part = is_exact ? 0.0 : __ddiv_rn(add(all.off, fabs(all.rest.lo)), x.hi);
        if (!(x.hi > 0.0) || !(part < 1.0) || (n | free) >> 53 != 0)
            return false;
        return nearest_real<T>(x, by, by_rest, exponent, root, answer, part);
    }

    // Leaves the answer, and returns whether it is known.
    __device__ __forceinline__ bool write(void *out, u64 place, const Asked &asked) const
    {
        if (is_lost())
            return false;
        const Answer its = answer_of(*this, asked.ask, asked.n - missing);
        if (its.is_sure)
            static_cast<Bits *>(out)[place] = its.bits;
        return its.is_sure;
    }

    __device__ __forceinline__ bool is_lost() const { return (trouble & IS_LOST) != 0; }
    __device__ __forceinline__ bool is_cut() const { return squares.is_cut() || SPREAD && sum.is_cut(); }
    // Whether blocks leave parts that are cut: those of squares are hardly ever lost when they are together. Then one block brings all elements, of
    // which superaccumulators take fewer than 2^29.
    static __device__ __forceinline__ bool leaves_cut(const Asked &asked) { return asked.n >> 29 == 0; }
    // Whether superaccumulators have to bring a part that others are added to. Beside infinities and NaNs, nothing else matters.
    __device__ __forceinline__ bool gives_up(const Asked &asked)
    {
        if (trouble == 0 && (!is_cut() || leaves_cut(asked)))
            return false;
        SquareTotal none;
        none.trouble = trouble != 0 ? trouble : IS_LOST;
        none.missing = missing;
        *this = none;
        return is_lost();
    }

    static __device__ __forceinline__ void absorb(Wides &wides, Bits bits, const Asked &) { wides.absorb(bits); }

    // Adds a total that is neither lost nor cut.
    __device__ __forceinline__ void deposit(Wides &wides) const
    {
        const int up = LONG ? 1023 - int(bits_of(power) >> 52) : 0;
        if constexpr (SPREAD)
            sum.deposit(wides.sum, up);
        squares.deposit(wides.squares, 2 * up);
        if ((trouble & HAS_NAN) != 0)
            wides.sum.count(Wides::Sum::NOT_A_NUMBER);
        if ((trouble & (HAS_POSITIVE | HAS_NEGATIVE)) != 0)
            wides.sum.count(Wides::Sum::POSITIVE);
    }

    static __device__ __forceinline__ u64 entry(const Wides &wides, int i)
    {
        return i < SUM_WORDS ? wides.sum.entry(i, 0) : wides.squares.entry(i - SUM_WORDS, 0);
    }
    static __device__ __forceinline__ void add_entry(Wides &wides, int i, u64 entry)
    {
        if (i < SUM_WORDS)
            wides.sum.add_entry(i, entry);
        else
            wides.squares.add_entry(i - SUM_WORDS, entry);
    }

    template <class Word>
    static __device__ __forceinline__ void write_wides(Word word, void *out, u64 place, const Asked &asked)
    {
        Bits &answer = static_cast<Bits *>(out)[place];
        constexpr int LIMBS = Wides::Sum::LIMBS;
        const bool nan = word(LIMBS + 1) != 0, infinite = word(LIMBS + 2) != 0 || word(LIMBS + 3) != 0;
        if (nan || infinite)
            answer = special(nan ? HAS_NAN : HAS_POSITIVE, asked.ask);
        else
            answer = moments_answer<T, SPREAD>([&](int i) { return i64(word(i)); }, [&](int i) { return i64(word(SUM_WORDS + i)); }, asked.ask, asked.n);
    }
};
