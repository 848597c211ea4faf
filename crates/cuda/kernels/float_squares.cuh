// Exact totals of squares of floats, and of the elements beside them, that come in any order, for norms and variances.
//
// One place says where both integers are. With the lowest level of the elements' at 2^u, that of the squares' is at 2^(2 u), so that the
// variance is n S2 - S1^2 in units of 2^(2 u), and whatever the elements' window holds has a square that the squares' window holds.

#pragma once

#include "float_total.cuh"
#include "moving.cuh"
#include "square_lanes.cuh"
#include "triple.cuh"

// The levels of a window that takes terms one by one: window.cuh. Most terms are done after HOT levels.
template <int LEVELS, int HOT>
struct Levels {
    f64 at[LEVELS];
    u32 bad = 0;
    u64 leftover = 0;
    int first;

    __device__ __forceinline__ Levels(int first) : first(first)
    {
#pragma unroll
        for (int l = 0; l < LEVELS; ++l)
            at[l] = level_at(first - 48 * l);
    }

    template <int FROM = 0>
    __device__ __forceinline__ void add(f64 r)
    {
        constexpr int COLD = FROM + HOT < LEVELS ? FROM + HOT : LEVELS;
#pragma unroll
        for (int l = FROM; l < COLD; ++l) {
            r = take_in(at[l], r);
            if (l == 0)
                bad |= u32(__double2hiint(at[0]) ^ anchor(first));
        }
        if (COLD < LEVELS && r != 0.0) {
#pragma unroll
            for (int l = COLD; l < LEVELS; ++l)
                r = take_in(at[l], r);
        }
        leftover |= u64(__double_as_longlong(r));
    }

    __device__ __forceinline__ bool reaches() const { return bad >> 20 == 0; }

    __device__ __forceinline__ void commit(FixedPoint<LEVELS> &to) const
    {
#pragma unroll
        for (int l = 0; l < LEVELS; ++l)
            to.total[l] += taken(at[l], first - 48 * l);
    }
};

// Where the windows of a type may be, and how many levels they have.
template <class T>
struct SquarePlaces {
    static constexpr int SUM = 2, SQUARE = 4;
    static constexpr int LOWEST = Element<T>::Sum::LSB + 48, HIGHEST = 96;
    static constexpr __device__ __forceinline__ int square(int first) { return 2 * first + 48; }
};
// All elements are multiples of 2^-24 below 2^16.
template <>
struct SquarePlaces<f16> {
    static constexpr int SUM = 2, SQUARE = 2;
    static constexpr int LOWEST = 24, HIGHEST = 24;
    static constexpr __device__ __forceinline__ int square(int) { return 0; }
};
// Elements are taken times 2^-place, in windows that are always in place 0, so that products neither overflow nor lose their errors.
template <>
struct SquarePlaces<f64> {
    static constexpr int SUM = 3, SQUARE = 6;
    static constexpr int LOWEST = -1074 + 48 * (SUM - 1), HIGHEST = 976;
    static constexpr __device__ __forceinline__ int square(int first) { return 2 * first + 48; }
};

// Both superaccumulators, as walks know them.
template <class T>
struct SquareWides : WideMoments<T> {
    using Sum = typename WideMoments<T>::Sum;
    using Squares = typename WideMoments<T>::Squares;

    __device__ __forceinline__ void clear()
    {
        this->sum.clear();
        this->squares.clear();
    }
};

// The integers and their windows. SPREAD says that the elements are summed, too.
template <class T, bool SPREAD>
struct FloatSquaresOf {
    using Item = T;
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Places = SquarePlaces<T>;
    using Wides = SquareWides<T>;
    static constexpr bool LONG = sizeof(Bits) == 8;
    using OfSum = FixedPoint<Places::SUM>;
    using OfSquares = FixedPoint<Places::SQUARE>;
    static constexpr int LOWEST = Places::LOWEST, HIGHEST = Places::HIGHEST;
    // Elements may be so much larger than those that windows were made for. Windows of threads that are merged should be in the same place.
    static constexpr int SLACK = 4, GRAIN = LONG ? 8 : 4;
    // Terms of a batch that an anchor takes, less the errors of products.
    static constexpr int MOST = 8;
    static constexpr int SUMMED = SPREAD ? Places::SUM : 0;
    static constexpr int INTEGER_WORDS = Places::SQUARE + SUMMED;

    OfSum sum;
    OfSquares squares;
    i32 first = LOWEST;

    struct Asked {
        u32 ask;
        u64 n;
        static __device__ __forceinline__ Bits of(Bits bits) { return bits; }
        static __device__ __forceinline__ Bits fill() { return 0; }
    };

    // Of terms below 2^top the sum of 16 is below 2^(first + 51), where the highest level stays in its binade; of squares likewise.
    static __device__ __forceinline__ int place_above(int top)
    {
        const int place = (top + SLACK - 47 + GRAIN - 1) & -GRAIN;
        return min(max(place, LOWEST), HIGHEST);
    }

    __device__ __forceinline__ int lowest() const { return first - 48 * (Places::SUM - 1); }
    __device__ __forceinline__ bool is_zero() const { return squares.is_zero() && (!SPREAD || sum.is_zero()); }
    __device__ __forceinline__ bool is_full() const { return squares.is_full() || SPREAD && sum.is_full(); }
    __device__ __forceinline__ bool raise(int up)
    {
        const bool whole = !SPREAD || sum.raise(up), both = squares.raise(2 * up);
        return whole && both;
    }
    __device__ __forceinline__ void add(const FloatSquaresOf &other)
    {
        if constexpr (SPREAD)
            sum.add(other.sum);
        squares.add(other.squares);
    }
    __device__ __forceinline__ i64 integer(int w) const { return w < Places::SQUARE ? squares.total[w < Places::SQUARE ? w : 0] : sum.total[w < Places::SQUARE ? 0 : w - Places::SQUARE]; }
    __device__ __forceinline__ i64 &integer(int w) { return w < Places::SQUARE ? squares.total[w < Places::SQUARE ? w : 0] : sum.total[w < Places::SQUARE ? 0 : w - Places::SQUARE]; }

    // Windows over a batch.
    struct Batch {
        Levels<Places::SUM, Places::SUM> sum;
        Levels<Places::SQUARE, 2> squares;

        __device__ __forceinline__ Batch(int first) : sum(first), squares(Places::square(first)) {}

        // Adds the square of an element whose bits these are, or of that times a power of two.
        __device__ __forceinline__ void add_square(f64 x, Bits bits)
        {
            const f64 square = __dmul_rn(x, x);
            squares.add(square);
            if constexpr (LONG) {
                squares.template add<1>(__fma_rn(x, x, -square));
                // Zero, or so small that it is left over anyway.
                if (__double2hiint(square) << 1 == 0)
                    squares.leftover |= Format::magnitude(bits);
            }
        }

        __device__ __forceinline__ bool reaches() const { return squares.reaches() && (!SPREAD || sum.reaches()); }
        __device__ __forceinline__ bool is_cut() const { return (squares.leftover | (SPREAD ? sum.leftover : 0)) << 1 != 0; }
    };

    __device__ __forceinline__ void commit(const Batch &batch)
    {
        if constexpr (SPREAD)
            batch.sum.commit(sum);
        batch.squares.commit(squares);
    }

    // By a lane's window, which is one of the upper levels' (square_lanes.cuh).
    template <int N>
    __device__ __forceinline__ bool commit_if_near(const Bits (&bits)[N], const Asked &)
    {
        using Lane = SquareLane<T, SPREAD>;
        static_assert(N <= MOST && N <= int(SQUARE_CHUNK), "adds that an anchor takes");
        const int place = Places::square(first);
        Lane lane;
        lane.open(place);
#pragma unroll
        for (int k = 0; k < N; ++k)
            lane.add(bits[k]);
        if (!lane.holds(place))
            return false;
        i64 total[Lane::LEVELS];
        lane.totals(place, total);
        if constexpr (LONG) {
            if (place < Lane::LOWEST || place > Lane::HIGHEST)
                return false;
            // The errors' levels are 52 below the squares', four more than a step; the elements' are 1 above their own.
            squares.total[0] += total[0];
            squares.total[1] += total[1] + (total[2] >> 4);
            squares.total[2] += ((total[2] & 15) << 44) + (total[3] >> 4);
            squares.total[3] += (total[3] & 15) << 44;
            if constexpr (SPREAD) {
                sum.total[0] += total[4] * 2;
                sum.total[1] += total[5] * 2;
            }
        } else {
            squares.total[0] += total[0];
            squares.total[1] += total[1];
            if constexpr (SPREAD)
                sum.total[Places::SQUARE == 2 ? 1 : 0] += total[2];
        }
        return true;
    }

    template <int N>
    __device__ __forceinline__ bool commit_if_held(const Bits (&bits)[N], const Asked &, u32 &trouble)
    {
        static_assert(N <= MOST, "adds that an anchor takes");
        Batch batch(LONG ? 0 : first);
        const f64 power = LONG ? of_bits(u64(1023 - first) << 52) : 1.0;
#pragma unroll
        for (int k = 0; k < N; ++k) {
            f64 x = Format::value(bits[k]);
            if constexpr (LONG)
                x = mul(x, power);
            batch.add_square(x, bits[k]);
            if constexpr (SPREAD)
                batch.sum.add(x);
        }
        if (!batch.reaches())
            return false;
        trouble |= batch.is_cut() ? IS_CUT : 0;
        commit(batch);
        return true;
    }
};

template <class T, bool SPREAD>
struct FloatSquares : Moving<FloatSquaresOf<T, SPREAD>> {
    using Base = Moving<FloatSquaresOf<T, SPREAD>>;
    using typename Base::Asked, typename Base::Bits, typename Base::Format, typename Base::OfSquares, typename Base::OfSum, typename Base::Places, typename Base::Wides;
    static constexpr bool LONG = Base::LONG;
    static constexpr int SUM_WORDS = Wides::Sum::WORDS;
    static constexpr int WIDE_WORDS = SUM_WORDS + Wides::Squares::WORDS;

    __device__ __forceinline__ FloatSquares() {}
    __device__ __forceinline__ FloatSquares(const Base &base) : Base(base) {}

    // What NaNs and infinities make of the answer.
    static __device__ __forceinline__ Bits special(u32 trouble, u32 ask)
    {
        return asks_spread(ask) || (trouble & HAS_NAN) != 0 ? NOT_A_NUMBER<T> : Format::INFINITE;
    }

    // Answers from the leading words of totals that are off by less than `off` units of their lowest levels, of no more elements than this.
    // Returns whether the answer is sure.
    static constexpr u64 QUICK = LONG ? MOST_SCALED_LONG : MOST_SCALED;
    __device__ __forceinline__ bool quick(Bits &answer, u32 ask, u64 n, i64 off) const
    {
        if constexpr (!LONG) {
            // Most totals are in the upper two levels of squares and in a word of elements.
            const Joined<48> squares(this->squares.total);
            i64 rest = 0, sum = this->sum.total[0];
#pragma unroll
            for (int l = 2; l < Places::SQUARE; ++l)
                rest |= this->squares.total[l];
            if constexpr (Places::SQUARE == 2) {
                const i64 above = sum + (this->sum.total[1] >> 48);
                rest |= above << 48 >> 48 ^ above;
                sum = i64((u64(sum) << 48) + u64(this->sum.total[1]));
            } else {
                rest |= this->sum.total[1];
            }
            // n S2 is below 2^126.
            if (off == 0 && rest == 0 && squares.high >> (__clzll(i64(n)) - 2) == 0) {
                answer = scaled_answer<T>(u64(squares.high), squares.low, sum, Places::SQUARE == 2 ? this->lowest() : this->first, ask, n);
                return true;
            }
        }
        constexpr int MOST = LONG ? 180 : 126;
        u32 digit[OfSquares::DIGITS];
        this->squares.digits(digit);
        int width = 0;
#pragma unroll
        for (int i = 0; i < OfSquares::DIGITS; ++i)
            width = digit[i] != 0 ? 32 * i + 32 - __clz(int(digit[i])) : width;
        // n S2 and S1^2 are below 2^MOST then.
        const int up = max(0, (width + 64 - __clzll(i64(n)) - MOST + 1) / 2);
        OfSum s = this->sum;
        OfSquares q = this->squares;
        const bool both = s.raise(up), whole = q.raise(2 * up);
        const Off by = {f64(off) * of_bits(u64(1023 - 2 * up) << 52) + (whole ? 0.0 : 1.0), f64(off) * of_bits(u64(1023 - up) << 52) + (both ? 0.0 : 1.0)};
        u32 of_sum[OfSum::DIGITS];
        s.digits(of_sum);
        q.digits(digit);
        const u64 low = u64(of_sum[1]) << 32 | of_sum[0];
        const int exponent = this->lowest() + up;
        if constexpr (LONG) {
            Triple total;
#pragma unroll
            for (int w = 0; w < 3; ++w)
                total.word[w] = u64(digit[2 * w + 1]) << 32 | digit[2 * w];
            return scaled_answer(total, i64(u64(of_sum[3]) << 32 | of_sum[2]), low, by, exponent, ask, n, answer);
        } else {
            return scaled_answer<T>(u64(digit[3]) << 32 | digit[2], u64(digit[1]) << 32 | digit[0], i64(low), by, exponent, ask, n, answer);
        }
    }

    // Leaves the answer, and returns whether it is known.
    __device__ __forceinline__ bool write(void *out, u64 place, const Asked &asked) const
    {
        Bits &answer = static_cast<Bits *>(out)[place];
        if (this->is_lost())
            return false;
        if (this->is_special()) {
            answer = special(this->trouble, asked.ask);
            return true;
        }
        const u64 n = asked.n - this->missing;
        const i64 off = this->off(asked.n);
        if (n <= QUICK && quick(answer, asked.ask, n, off))
            return true;
        // n S2 - S1^2 is least where S2 is least and S1 farthest from 0, and greatest where they are not. Quotients, roots and rounding do not
        // change the order.
        OfSum s = this->sum;
        OfSquares q = this->squares;
        const i64 away = s.is_negative() ? -off : off;
        s.total[Places::SUM - 1] += away;
        q.total[Places::SQUARE - 1] -= off;
        if (q.is_negative())
            return false;
        Bits below = 0, bits = 0;
#pragma unroll 1
        for (int ends = off == 0 ? 1 : 2; ends > 0; --ends) {
            below = bits;
            bits = moments_answer<T, SPREAD>(s, q, this->lowest(), asked.ask, n);
            s.total[Places::SUM - 1] -= 2 * away;
            if (s.is_negative() != (away < 0))
                s = {};
            q.total[Places::SQUARE - 1] += 2 * off;
        }
        if (off != 0 && below != bits)
            return false;
        answer = bits;
        return true;
    }

    static __device__ __forceinline__ void absorb(Wides &wides, Bits bits, const Asked &) { wides.absorb(bits); }

    __device__ __forceinline__ void deposit(Wides &wides) const
    {
#pragma unroll
        for (int l = 0; l < Base::SUMMED; ++l) {
            const i64 some = this->sum.total[l];
            if (some != 0)
                wides.sum.deposit(some < 0, some < 0 ? -u64(some) : u64(some), this->first - 48 * l);
        }
#pragma unroll
        for (int l = 0; l < Places::SQUARE; ++l) {
            const i64 some = this->squares.total[l];
            if (some != 0)
                wides.squares.deposit(some < 0, some < 0 ? -u64(some) : u64(some), Places::square(this->first) - 48 * l);
        }
        if ((this->trouble & HAS_NAN) != 0)
            wides.sum.count(Wides::Sum::NOT_A_NUMBER);
        if ((this->trouble & (HAS_POSITIVE | HAS_NEGATIVE)) != 0)
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
