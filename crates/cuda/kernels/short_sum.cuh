// Sums and means of up to 512 floats by plain f64 operations, which know whether they are sure: those of few.cuh, with room for more
// elements and shared by neighbouring threads.

#pragma once

#include "few.cuh"
#include "segments.cuh"

template <class T>
struct ShortSum : FewFloats<T> {
    using Base = FewFloats<T>;
    using typename Base::Asked, typename Base::Bits;
    static constexpr int MOST = 8;
    // As there, with 9 bits of growth.
    static constexpr u32 NARROW = u32(53 - (Element<T>::FRACTION + 1) - 9) << 24;
    static_assert(QUICK_ELEMENTS <= 512, "9 bits of growth");

    __device__ __forceinline__ void merge(const ShortSum &other)
    {
        this->sum = __dadd_rn(this->sum, other.sum);
        this->most = max(this->most, other.most);
        this->least = min(this->least, other.least);
    }

    static constexpr int WORDS = Base::RANGED ? 2 : 1;
    __device__ __forceinline__ u64 word(int w) const { return w == 0 ? bits_of(this->sum) : u64(this->most) << 32 | this->least; }
    static __device__ __forceinline__ ShortSum of_words(const u64 (&words)[WORDS])
    {
        ShortSum all;
        all.sum = of_bits(words[0]);
        if constexpr (Base::RANGED) {
            all.most = u32(words[1] >> 32);
            all.least = u32(words[1]);
        }
        return all;
    }

    __device__ __forceinline__ bool answer(Bits &answer, const Asked &asked) const
    {
        // NaNs and infinities need no narrow range.
        const bool sure = Base::answer(answer, asked);
        return sure && (!Base::RANGED || !is_finite(this->sum) || this->most - this->least <= NARROW);
    }
};

// Errors of f64 add up exactly, or say that they do not, whatever their number.
template <>
struct ShortSum<f64> : FewFloats<f64> {
    static constexpr int MOST = 8;

    __device__ __forceinline__ void merge(const ShortSum &other)
    {
        const Double next = two_sum(sum, other.sum);
        // In an order in which both lanes find the same.
        const Double both = two_sum(error, other.error);
        const Double left = two_sum(both.hi, next.lo);
        sum = next.hi;
        error = left.hi;
        is_exact = is_exact && other.is_exact && both.lo == 0.0 && left.lo == 0.0;
    }

    static constexpr int WORDS = 3;
    __device__ __forceinline__ u64 word(int w) const { return w == 0 ? bits_of(sum) : w == 1 ? bits_of(error) : u64(is_exact); }
    static __device__ __forceinline__ ShortSum of_words(const u64 (&words)[WORDS])
    {
        ShortSum all;
        all.sum = of_bits(words[0]);
        all.error = of_bits(words[1]);
        all.is_exact = words[2] != 0;
        return all;
    }
};
