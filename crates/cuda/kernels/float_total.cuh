// The exact total of floats that come in any order, in registers: an accumulator for walks that know nothing of floats.

#pragma once

#include "exact_answer.cuh"
#include "moving.cuh"
#include "spread.cuh"

// The integer and its windows.
template <class T>
struct FloatTotalOf {
    using Item = T;
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Wides = Superaccumulator<T>;
    static constexpr bool LONG = sizeof(Bits) == 8;
    // f16 is 40 bits long: two levels hold whatever is finite.
    static constexpr bool RANGED = Format::Sum::LIMBS > 2;
    static constexpr int LEVELS = LONG ? 4 : RANGED ? 3 : 2;
    using Window = ::Window<typename Format::Sum, LEVELS, 4>;
    using Integer = FixedPoint<LEVELS>;
    static_assert(Integer::STEP == Window::STEP, "levels are as far apart as the window's");
    static constexpr int LOWEST = Window::LOWEST, HIGHEST = RANGED ? Window::HIGHEST : LOWEST;
    // Binades between the largest element and the window's end, at least; places are multiples of GRAIN.
    static constexpr int SLACK = 4, GRAIN = 8;
    static constexpr int MOST = sizeof(Bits) == 2 ? 16 : 8;
    static constexpr int INTEGER_WORDS = LEVELS;

    Integer total;
    i32 first = LOWEST; // the unit of the highest level

    struct Asked {
        u32 ask;
        Bits mask; // all bits, or all but the sign
        u64 n;
        __device__ __forceinline__ Asked(u32 ask, bool absolute, u64 n) : ask(ask), mask(absolute ? Bits(Format::SIGN - 1) : Bits(~Bits(0))), n(n) {}
        __device__ __forceinline__ Bits of(Bits bits) const { return bits & mask; }
        static __device__ __forceinline__ Bits fill() { return 0; }
    };

    __device__ __forceinline__ bool is_zero() const { return total.is_zero(); }
    __device__ __forceinline__ bool is_full() const { return total.is_full(); }
    __device__ __forceinline__ bool raise(int up) { return total.raise(up); }
    __device__ __forceinline__ void add(const FloatTotalOf &other) { total.add(other.total); }
    __device__ __forceinline__ i64 integer(int w) const { return total.total[w]; }
    __device__ __forceinline__ i64 &integer(int w) { return total.total[w]; }

    static __device__ __forceinline__ int place_above(int top)
    {
        const int place = (Window::below(top + SLACK) + GRAIN - 1) & -GRAIN;
        return min(max(place, LOWEST), HIGHEST);
    }

    template <int N>
    __device__ __forceinline__ bool commit_if_held(const Bits (&bits)[N], const Asked &asked)
    {
        static_assert(N <= Window::ADDS, "adds that an anchor takes");
        const Window window(first);
        auto drift = window.open();
        bool holds = true;
        if constexpr (LONG) {
#pragma unroll
            for (int k = 0; k < N; ++k)
                window.add(drift, Format::value(asked.of(bits[k])));
        } else {
            // Plain adds, which the range of the batch makes exact.
            Spread<T, N <= 8 ? 3 : 4> spread;
            f64 sum = 0.0;
#pragma unroll
            for (int k = 0; k < N; ++k)
                sum = spread.added(sum, Format::value(asked.of(bits[k])));
            window.add(drift, sum);
            holds = spread.holds();
        }
        if (!holds || !Window::holds(drift))
            return false;
#pragma unroll
        for (int l = 0; l < LEVELS; ++l)
            total.total[l] += taken(drift.at[l], first - Window::STEP * l);
        return true;
    }
};

template <class T>
struct FloatTotal : Moving<FloatTotalOf<T>> {
    using Base = Moving<FloatTotalOf<T>>;
    using typename Base::Asked, typename Base::Bits, typename Base::Integer, typename Base::Wides, typename Base::Window;
    static constexpr int LEVELS = Base::LEVELS;
    static constexpr int WIDE_WORDS = Wides::WORDS;

    __device__ __forceinline__ FloatTotal() {}
    __device__ __forceinline__ FloatTotal(const Base &base) : Base(base) {}

    __device__ __forceinline__ void write(void *out, u64 place, const Asked &asked) const
    {
        Bits answer;
        const u64 n = asked.n - this->missing;
        if (this->is_special()) {
            const Specials<T> specials = {(this->trouble & HAS_NAN) != 0, (this->trouble & HAS_POSITIVE) != 0, (this->trouble & HAS_NEGATIVE) != 0};
            answer = specials.bits();
        } else {
            const int unit = this->first - Window::STEP * (LEVELS - 1);
            answer = n == 0 && asked.ask == MEAN ? NOT_A_NUMBER<T> : float_answer<T>(of_fixed_point(this->total, unit), asked.ask, n);
        }
        static_cast<Bits *>(out)[place] = answer;
    }

    // What superaccumulators do for a lost total.
    static __device__ __forceinline__ void absorb(Wides &wides, Bits bits, const Asked &asked) { ::absorb<T>(wides, asked.of(bits)); }

    // Adds a total that is not lost.
    __device__ __forceinline__ void deposit(Wides &wides) const
    {
#pragma unroll
        for (int l = 0; l < LEVELS; ++l) {
            const i64 some = this->total.total[l];
            if (some != 0)
                wides.deposit(some < 0, some < 0 ? -u64(some) : u64(some), this->first - Window::STEP * l);
        }
        if ((this->trouble & HAS_NAN) != 0)
            wides.count(Wides::NOT_A_NUMBER);
        if ((this->trouble & HAS_POSITIVE) != 0)
            wides.count(Wides::POSITIVE);
        if ((this->trouble & HAS_NEGATIVE) != 0)
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
