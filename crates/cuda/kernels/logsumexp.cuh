// The logarithm of the sum of all elements' exponentials, but for the logarithm.

#pragma once

#include "counts.cuh"
#include "float_logsumexp.cuh"
#include "integer_logsumexp.cuh"

// A thread's elements of whole tiles, in batches of eight, of four f64.
template <class T>
struct Exponentials {
    using Item = T;
    using Sum = FloatLogSumExp<T>;
    using Value = typename Sum::Value;
    static constexpr int ABREAST = ITEMS<T> == 8 ? 1 : 2;

    Sum sum;

    __device__ __forceinline__ void one(typename Sum::Bits bits)
    {
        const Value x[1] = {Element<T>::value(bits)};
        sum.take(x);
    }

    template <bool FULL>
    __device__ __forceinline__ void tile(const uint4 (&v)[VECTORS], u32, u32 valid)
    {
#pragma unroll
        for (int k = 0; k < VECTORS; k += ABREAST) {
            Value x[ABREAST * ITEMS<T>];
#pragma unroll
            for (int i = 0; i < ABREAST * ITEMS<T>; ++i) {
                const int at = k + i / ITEMS<T>;
                x[i] = Element<T>::value(FULL || at < valid ? item<T>(v[at], i % ITEMS<T>) : Sum::IDENTITY);
            }
            if (FULL || k < valid)
                sum.take(x);
        }
    }
};

// What a thread or a block leaves of them.
template <class T>
struct Exponents {
    using Sum = FloatLogSumExp<T>;
    static constexpr int WORDS = Sum::WORDS;
    u64 word[WORDS];

    __device__ __forceinline__ Exponents() : Exponents(Sum()) {}
    __device__ __forceinline__ Exponents(const Sum &sum)
    {
#pragma unroll
        for (int w = 0; w < WORDS; ++w)
            word[w] = sum.word(w);
    }
    __device__ __noinline__ void merge(const Exponents &other)
    {
        Sum sum = Sum::of_words(word);
        sum.merge(Sum::of_words(other.word));
        *this = sum;
    }
};

template <class T>
__device__ __forceinline__ void float_logsumexp(const void *data, u64 n, u64 *scratch, u64 *out)
{
    using Sum = FloatLogSumExp<T>;
    using Words = Exponents<T>;
    Sum::prepare();
    Words all;
    {
        Exponentials<T> pass;
        walk(data, n, scratch, pass);
        all = fold_block(Words(pass.sum));
    }
    if (gridDim.x > 1) {
        u64 *partials = scratch + WORKSPACE_ZEROS;
        if (threadIdx.x == 0) {
            for (int w = 0; w < Words::WORDS; ++w)
                partials[blockIdx.x * Words::WORDS + w] = all.word[w];
        }
        if (!is_last_block(scratch))
            return;
        all = Words();
        for (u32 b = threadIdx.x; b < gridDim.x; b += blockDim.x) {
            Words its;
            for (int w = 0; w < Words::WORDS; ++w)
                its.word[w] = __ldcg(&partials[b * Words::WORDS + w]);
            all.merge(its);
        }
        all = fold_block(all);
    }
    if (threadIdx.x != 0)
        return;
    Sum sum = Sum::of_words(all.word);
    sum.tidy();
    *out++ = bits_of(f64(sum.top));
#pragma unroll
    for (int c = 0; c < Sum::CELLS; ++c) {
        u64 limb[Sum::LIMBS];
        sum.limbs(c, limb);
        for (int l = 0; l < Sum::LIMBS; ++l)
            *out++ = limb[l];
    }
    out[0] = sum.nans;
    out[1] = sum.infinities;
}

template <class T>
__device__ __forceinline__ void logsumexp(const void *data, u64 n, u64 *scratch, u64 *out)
{
    if constexpr (Element<T>::FLOAT)
        float_logsumexp<T>(data, n, scratch, out);
    else
        integer_logsumexp<T>(data, n, scratch, out);
}

// Truth values are two.
template <>
__device__ __forceinline__ void logsumexp<bool>(const void *data, u64 n, u64 *scratch, u64 *out)
{
    Counts<bool> pass;
    walk(data, n, scratch, pass);
    Totals<1> nonzero;
    nonzero.word[0] = pass.nonzero;
    if (fold_grid(nonzero, scratch)) {
        const u64 ones = nonzero.word[0], zeros = n - ones, top = ones > 0;
        const u64 counts[2] = {top ? ones : zeros, top ? zeros : 0};
        const u64 length = (counts[0] > 0) + (counts[1] > 0);
        for (int w = 0; w < COUNTED_WORDS; ++w)
            out[w] = payload_word(w, length, top, [&](int d) { return d == 0 ? counts[0] : d == 1 ? counts[1] : 0; });
    }
}
