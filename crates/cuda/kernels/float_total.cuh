// The exact total of floats that come in any order, in registers: an accumulator for walks that know nothing of floats. That of f32 and bf16
// is in whole_total.cuh.

#pragma once

#include "exact_answer.cuh"
#include "moving.cuh"
#include "rounded.cuh"
#include "whole_total.cuh"

// The integer and its windows.
template <class T>
struct FloatTotalOf {
    using Item = T;
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    using Wides = Superaccumulator<T>;
    static constexpr bool LONG = sizeof(Bits) == 8;
    // f16 is 40 bits long: two levels hold whatever is finite.
    static constexpr int LEVELS = LONG ? 4 : 2;
    using Window = ::Window<typename Format::Sum, LEVELS, 4>;
    using Integer = FixedPoint<LEVELS>;
    static_assert(Integer::STEP == Window::STEP, "levels are as far apart as the window's");
    // f64 are taken times 2^(PLACE - first), in windows that are always in the same place, so that they reach any element.
    static constexpr int PLACE = 90;
    static constexpr int LOWEST = Window::LOWEST, HIGHEST = LONG ? 976 : LOWEST;
    // Binades between the largest element and the window's end, at least; places are multiples of GRAIN.
    static constexpr int SLACK = 4, GRAIN = 8;
    static constexpr bool FITS = LOWEST == HIGHEST;
    static constexpr int MOST = LONG ? 8 : 16;
    static constexpr int INTEGER_WORDS = LEVELS;

    Integer total;
    i32 first = LOWEST; // the unit of the highest level

    using Asked = TotalAsked<T>;

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

    // By the upper two levels, of f64 where their anchors are numbers; of f16 there are no more.
    template <int N>
    __device__ __forceinline__ bool commit_if_near(const Bits (&bits)[N], const Asked &asked)
    {
        if constexpr (LONG) {
            using Near = ::Window<typename Format::Sum, 2, 4>;
            static_assert(N <= Near::ADDS, "adds that an anchor takes");
            const Near window(first);
            auto drift = window.open();
#pragma unroll
            for (int k = 0; k < N; ++k)
                window.add(drift, Format::value(asked.of(bits[k])));
            if (!Near::holds(drift) || first > Near::HIGHEST)
                return false;
#pragma unroll
            for (int l = 0; l < 2; ++l)
                total.total[l] += taken(drift.at[l], window.unit(l));
            return true;
        } else {
            u32 trouble = 0;
            return commit_if_held(bits, asked, trouble);
        }
    }

    template <int N>
    __device__ __forceinline__ bool commit_if_held(const Bits (&bits)[N], const Asked &asked, u32 &trouble)
    {
        static_assert(N <= Window::ADDS, "adds that an anchor takes");
        const Window window(LONG ? PLACE : first);
        auto drift = window.open();
        if constexpr (LONG) {
            const f64 power = of_bits(u64(1023 + PLACE - first) << 52);
#pragma unroll
            for (int k = 0; k < N; ++k)
                window.add(drift, mul(Format::value(asked.of(bits[k])), power));
            // Far below such windows, elements leave the format.
            if (first > PLACE) {
#pragma unroll
                for (int k = 0; k < N; ++k)
                    drift.leftover |= (bits_of(mul(Format::value(bits[k]), power)) << 1) >> 53 == 0 ? Format::magnitude(bits[k]) : 0;
            }
        } else {
            // Plain adds, which are exact.
            f64 sum = 0.0;
#pragma unroll
            for (int k = 0; k < N; ++k)
                sum = __dadd_rn(sum, f64(Format::value(asked.of(bits[k]))));
            window.add(drift, sum);
        }
        if (drift.bad >> 20 != 0)
            return false;
        if (!FITS)
            trouble |= drift.leftover << 1 != 0 ? IS_CUT : 0;
#pragma unroll
        for (int l = 0; l < LEVELS; ++l)
            total.total[l] += taken(drift.at[l], window.unit(l));
        return true;
    }
};

template <class T>
struct MovingTotal : Moving<FloatTotalOf<T>> {
    using Base = Moving<FloatTotalOf<T>>;
    using typename Base::Asked, typename Base::Bits, typename Base::Integer, typename Base::Wides, typename Base::Window;
    static constexpr int LEVELS = Base::LEVELS;
    static constexpr bool TAKES_INITIAL = true;
    static constexpr int WIDE_WORDS = Wides::WORDS;

    __device__ __forceinline__ MovingTotal() {}
    __device__ __forceinline__ MovingTotal(const Base &base) : Base(base) {}

    // Leaves the answer, and returns whether it is known.
    __device__ __forceinline__ bool write(void *out, u64 place, const Asked &asked) const
    {
        Bits &answer = static_cast<Bits *>(out)[place];
        if (this->is_lost())
            return false;
        const u64 n = asked.n - this->missing;
        if (this->is_special()) {
            answer = specials_of<T>(this->trouble).bits();
            return true;
        }
        if (n == 0 && asked.ask == MEAN) {
            answer = NOT_A_NUMBER<T>;
            return true;
        }
        // Rounding does not change the order of numbers. Of both ends beside 0, the lower one is negative, and so is its answer.
        const i64 off = this->off(asked.n);
        Integer end = this->total;
        end.total[LEVELS - 1] -= off;
        Bits below = 0, bits = 0;
#pragma unroll 1
        for (int ends = off == 0 ? 1 : 2; ends > 0; --ends) {
            below = bits;
            bits = float_answer<T>(of_fixed_point(end, this->first - Window::STEP * (LEVELS - 1)), asked.ask, n);
            end.total[LEVELS - 1] += 2 * off;
        }
        if (off != 0 && below != bits)
            return false;
        answer = bits;
        return true;
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

// f32 and bf16 have few enough bits to keep all of them.
template <class T>
struct FloatTotalFor {
    using Type = MovingTotal<T>;
};
template <>
struct FloatTotalFor<f32> {
    using Type = WholeTotal<f32>;
};
template <>
struct FloatTotalFor<bf16> {
    using Type = WholeTotal<bf16>;
};
template <class T>
using FloatTotal = typename FloatTotalFor<T>::Type;
