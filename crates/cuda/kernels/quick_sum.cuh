// Sums and means of any number of floats by plain f64 operations, which know whether they are sure.
//
// A rounded sum, and the sum of what was rounded off: both together are the exact sum as long as nothing is rounded off of the second
// one, and it is NaN from then on. The shorter types add up by eight, plainly, where the range of the eight makes that exact (range.cuh).

#pragma once

#include "few.cuh"
#include "segments.cuh"

template <class T>
struct QuickSum : FewOf<FloatTotal<T>> {
    using Base = FewOf<FloatTotal<T>>;
    using typename Base::Asked, typename Base::Bits;
    using Format = Element<T>;
    static constexpr int MOST = 8;
    static constexpr bool LONG = sizeof(Bits) == 8, MAY_BE_LOST = true;

    f64 sum = 0.0, error = 0.0;
    // NaNs that are as if they were not there: of a thread, as no word says it.
    u32 missing = 0;

    // The second sum, or NaN where it is not exact.
    static __device__ __forceinline__ f64 checked(const Double &errors, bool holds)
    {
        return holds && errors.lo == 0.0 ? errors.hi : of_bits(~u64(0) >> 1);
    }
    __device__ __forceinline__ void include(f64 x, bool holds)
    {
        const Double next = two_sum(sum, x);
        sum = next.hi;
        error = checked(two_sum(error, next.lo), holds);
    }

    template <int V, int N, class Number>
    __device__ __forceinline__ void take(const Bits (&bits)[N], Number, const Asked &asked)
    {
        static_assert(N <= MOST, "the growth of a plain sum");
        if constexpr (LONG) {
#pragma unroll
            for (int k = 0; k < N; ++k)
                include(of_bits(asked.of(bits[k])), true);
        } else {
            Spread<T, 3> spread;
            f64 some = 0.0;
#pragma unroll
            for (int k = 0; k < N; ++k)
                some = spread.added(some, Format::value(asked.of(bits[k])));
            include(some, spread.holds());
        }
    }

    // Lanes that have each other's find the same.
    __device__ __forceinline__ void merge(const QuickSum &other)
    {
        const Double next = two_sum(sum, other.sum), both = two_sum(error, other.error);
        sum = next.hi;
        error = checked(two_sum(both.hi, next.lo), both.lo == 0.0);
    }

    static constexpr int WORDS = 2;
    __device__ __forceinline__ u64 word(int w) const { return bits_of(w == 0 ? sum : error); }
    static __device__ __forceinline__ QuickSum of_words(const u64 (&words)[WORDS])
    {
        QuickSum all;
        all.sum = of_bits(words[0]);
        all.error = of_bits(words[1]);
        return all;
    }

    __device__ __forceinline__ bool answer(Bits &answer, const Asked &asked) const
    {
        const bool is_exact = error == error;
        if constexpr (LONG) {
            FloatTotal<T> all;
            all.sum = sum;
            all.error = error;
            return is_exact && all.answer(answer, asked);
        } else {
            // NaNs and infinities make the sum one, and finite elements do not.
            if (!is_finite(sum)) {
                answer = Specials<T>{sum != sum, sum > 0.0, sum < 0.0}.bits();
                return true;
            }
            const Double all = two_sum(sum, error);
            if (asked.ask != MEAN) {
                answer = narrow<T>(round_to_odd(all));
                return is_exact;
            }
            if (all.lo == 0.0) {
                answer = asked.n == 0 ? NOT_A_NUMBER<T> : narrow<T>(quotient(all.hi, asked.n));
                return is_exact;
            }
            // Off by less than 2^-52 of itself for what is in `lo`, and by 2^-53 for the division.
            const f64 q = __ddiv_rn(all.hi, f64(asked.n)), off = mul(q, of_bits(u64(1023 - 50) << 52));
            answer = narrow<T>(add(q, off));
            return is_exact && answer == narrow<T>(sub(q, off));
        }
    }

    __device__ __forceinline__ bool write(void *out, u64 place, const Asked &asked) const
    {
        Bits bits;
        const bool is_sure = answer(bits, without(asked, missing));
        if (is_sure)
            static_cast<Bits *>(out)[place] = bits;
        return is_sure;
    }
};
