// Sums of squares of integers and of the elements beside them, over any axes of any view: norms, variances and deviations of integers.
//
// Both totals are integers, and nothing is rounded before the answer. Of 64 bits, LEFT_OUT is no element where that is asked for: it stands
// for those that marks leave out (choose.cu), and the others have means, too.

#pragma once

#include "product_words.cuh"
#include "strided.cuh"
#include "tally.cuh"
#include "triple.cuh"

// Elements of which scaled_answer() knows what to make.
constexpr u64 SCALED_MOST = 1 << 15;
// What stands for elements that are left out: nothing in particular, and a value that no shorter type has.
constexpr u64 LEFT_OUT = 0x5b3f26c5d17e80a5;

template <class T>
struct IntegerSquaresOf {
    using Sum = TotalOf<T>;
    using Squares = ProductWords<T>;
    static constexpr bool SIGNED = T(-1) < T(0);

    Sum sum;
    Squares squares;

    struct Asked {
        u32 ask;
        bool omits;
        u64 n;
        u32 *overflow;
        static __device__ __forceinline__ u64 fill() { return 0; }
    };

    __device__ __forceinline__ void merge(const IntegerSquaresOf &other)
    {
        sum.merge(other.sum);
        u64 carry = 0;
#pragma unroll
        for (int w = 0; w < Squares::WORDS; ++w) {
            const u64 both = squares.word[w] + other.squares.word[w];
            const u64 next = both + carry;
            carry = (both < squares.word[w]) + (next < carry);
            squares.word[w] = next;
        }
    }

    static constexpr int WORDS = Sum::WORDS + Squares::WORDS;
    __device__ __forceinline__ u64 word(int w) const { return w < Sum::WORDS ? sum.word(w) : squares.word[w < Sum::WORDS ? 0 : w - Sum::WORDS]; }
    static __device__ __forceinline__ IntegerSquaresOf of_words(const u64 *words)
    {
        IntegerSquaresOf both;
        both.sum = Sum::of_words(words);
#pragma unroll
        for (int w = 0; w < Squares::WORDS; ++w)
            both.squares.word[w] = words[Sum::WORDS + w];
        return both;
    }

    // The totals' digits; the highest of the elements' has the sign.
    using OfSum = Limbs<0, 2 * Sum::WORDS>;
    using OfSquares = Limbs<0, 2 * Squares::WORDS>;
    __device__ __forceinline__ i64 sum_limb(int i) const
    {
        const u64 word = sum.word(i / 2);
        return i % 2 == 0 ? i64(u32(word)) : i + 1 == OfSum::LIMBS ? i64(word) >> 32 : i64(word >> 32);
    }

    // The squares of fewer than 2^31 elements leave the upper half of the last word, which counts those that are left out.
    static constexpr bool COUNTS = sizeof(T) == 8;

    __device__ __forceinline__ void write(void *out, u64 place, Asked asked) const
    {
        u64 &answer = static_cast<u64 *>(out)[place];
        Squares squares = this->squares;
        if constexpr (COUNTS) {
            if (asked.omits) {
                u64 &last = squares.word[Squares::WORDS - 1];
                asked.n -= last >> 32;
                last = u32(last);
            }
            if (asked.ask == MEAN) {
                answer = asked.n == 0 ? NOT_A_NUMBER<f64> : Truncated::of_integer(sum.high, sum.low, 0).divide(asked.n).template round<f64>();
                return;
            }
        }
        if (asked.ask == TOTAL) {
            answer = squares.word[0];
            u64 above = SIGNED ? answer >> 63 : 0;
#pragma unroll
            for (int w = 1; w < Squares::WORDS; ++w)
                above |= squares.word[w];
            if (above != 0)
                atomicOr(asked.overflow, 1u);
            return;
        }
        if (asked.n <= SCALED_MOST) {
            Triple total;
            if constexpr (sizeof(T) < 4) {
                // n S2 and S1^2 are below 2^63.
                u64 &low = total.word[0] = squares.word[0], divisor = 1;
                if (asks_spread(asked.ask)) {
                    low = asked.n * low - sum.word(0) * sum.word(0);
                    divisor = asked.n * freedom(asked.ask, asked.n);
                }
                const Double real = fast_two_sum(mul(f64(u32(low >> 32)), of_bits(u64(1023 + 32) << 52)), f64(u32(low)));
                answer = divisor == 0 ? NOT_A_NUMBER<f64> : low == 0 ? 0 : real_answer(total, real, divisor, asks_root(asked.ask));
                return;
            }
#pragma unroll
            for (int w = 0; w < Squares::WORDS; ++w)
                total.word[w] = squares.word[w];
            const u64 low = sum.word(0);
            answer = scaled_answer(total, Sum::WORDS > 1 ? i64(sum.word(Sum::WORDS - 1)) : i64(low) >> 63, low, asked.ask, asked.n);
            return;
        }
        const auto square = [&](int i) { return i64(u32(squares.word[i / 2] >> 32 * (i % 2))); };
        if (!asks_spread(asked.ask)) {
            answer = exact_real<f64>(Truncated::of_limbs(OfSquares::LIMBS, 0, square), asks_root(asked.ask));
            return;
        }
        const u64 free = freedom(asked.ask, asked.n);
        Numerator numerator;
        if (free != 0)
            subtract<OfSum, OfSquares>([&](int i) { return sum_limb(i); }, square, asked.n, numerator);
        answer = free == 0 ? NOT_A_NUMBER<f64> : exact_real<f64>(numerator, 0, asked.n, free, asks_root(asked.ask));
    }
};

// The same as the walk over views takes elements.
template <class T>
struct IntegerSquares : OneByOne<T, IntegerSquaresOf<T>> {
    using Base = OneByOne<T, IntegerSquaresOf<T>>;
    using typename Base::Bits, typename Base::Asked;

    __device__ __forceinline__ IntegerSquares() {}
    __device__ __forceinline__ IntegerSquares(const IntegerSquaresOf<T> &base) : Base(base) {}

    template <int V, int N, class Number>
    __device__ __forceinline__ void take(const Bits (&bits)[N], Number, const Asked &asked)
    {
        if constexpr (sizeof(T) == 1) {
            // 16 of them and their squares are far from leaving 32 bits.
            i32 some = 0;
            u32 of_squares = 0;
#pragma unroll
            for (int k = 0; k < N; ++k) {
                const i32 x = Element<T>::key(bits[k]);
                some += x;
                of_squares += u32(x * x);
            }
            this->sum.low += u64(i64(some));
            this->squares.word[0] += of_squares;
        } else {
            const typename TotalOf<T>::Asked plain = {TOTAL, false, 0, nullptr};
#pragma unroll
            for (int k = 0; k < N; ++k) {
                const bool missing = Base::COUNTS && asked.omits && bits[k] == Bits(LEFT_OUT);
                const Bits x = missing ? 0 : bits[k];
                this->sum.take(x, plain);
                this->squares.one(x, x);
                if constexpr (Base::COUNTS)
                    this->squares.word[Base::Squares::WORDS - 1] += u64(missing) << 32;
            }
        }
    }
};
