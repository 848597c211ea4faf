// Exact sums of products of two arrays' integers, or of one's squares: as many 64-bit words as 2^64 of them need.

#pragma once

#include "integer_sum.cuh"
#include "pipeline.cuh"
#include "product_words.cuh"

// What four products of bytes add up to; 2^13 of them stay within 32 bits.
template <class T> __device__ __forceinline__ u32 add_products(u32 x, u32 y, u32 sum);
template <> __device__ __forceinline__ u32 add_products<i8>(u32 x, u32 y, u32 sum)
{
    asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(x), "r"(y));
    return sum;
}
template <> __device__ __forceinline__ u32 add_products<u8>(u32 x, u32 y, u32 sum)
{
    asm("dp4a.u32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(x), "r"(y));
    return sum;
}
template <> __device__ __forceinline__ u32 add_products<bool>(u32 x, u32 y, u32 sum)
{
    return sum + __popc(any_byte(x) & any_byte(y));
}

// A thread's sum of products.
template <class T>
struct ProductSum : ProductWords<T> {
    using Base = ProductWords<T>;
    using Base::SIGNED, Base::WORDS, Base::one, Base::word;

    __device__ __forceinline__ void take(const uint4 &x, const uint4 &y)
    {
        if constexpr (sizeof(T) == 1) {
            u32 sum = add_products<T>(x.x, y.x, 0);
            sum = add_products<T>(x.y, y.y, sum);
            sum = add_products<T>(x.z, y.z, sum);
            sum = add_products<T>(x.w, y.w, sum);
            word[0] += SIGNED ? u64(i64(i32(sum))) : sum;
        } else {
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i)
                one(item<T>(x, i), item<T>(y, i));
        }
    }

    // The words' halves, which add over 2^31 threads.
    __device__ __forceinline__ Totals<2 * WORDS> halves() const
    {
        Totals<2 * WORDS> totals;
#pragma unroll
        for (int w = 0; w < WORDS; ++w) {
            totals.word[2 * w] = word[w] & 0xffffffff;
            totals.word[2 * w + 1] = w == WORDS - 1 ? u64(i64(word[w]) >> 32) : word[w] >> 32;
        }
        return totals;
    }
};

template <class T, bool TWO>
struct IntegerProducts {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    static constexpr bool PAIRED = TWO;
    static constexpr bool REFUSES = false;
    static constexpr int TILE = TWO ? VECTORS / 2 : VECTORS;

    ProductSum<T> products;

    __device__ __forceinline__ void one(Bits x, Bits y) { products.one(x, TWO ? y : x); }
    __device__ __forceinline__ void open() {}
    __device__ __forceinline__ void take(const uint4 &x, const uint4 &y) { products.take(x, TWO ? y : x); }
    __device__ __forceinline__ bool close() { return true; }
    __device__ __forceinline__ void pause(u32) {}
};

template <class T>
struct IntegerMoments {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    static constexpr bool PAIRED = false;
    static constexpr bool REFUSES = false;
    static constexpr int TILE = VECTORS;

    IntegerSum<T, false> elements;
    ProductSum<T> squares;

    __device__ __forceinline__ void one(Bits x, Bits)
    {
        elements.one(x);
        squares.one(x, x);
    }
    __device__ __forceinline__ void open() {}
    __device__ __forceinline__ void take(const uint4 &x, const uint4 &)
    {
        elements.take(x);
        squares.take(x, x);
    }
    __device__ __forceinline__ bool close() { return true; }
    __device__ __forceinline__ void pause(u32) {}
};

// Vector forms of core's superaccumulators of integers: limbs, of which the upper ones' carries are still to move, the count of
// n elements over the grid, and three counters that stay zero.
template <int LIMBS, int N>
__device__ __forceinline__ void write_limbs(const Totals<N> &totals, u64 n, u64 *vector)
{
    for (int i = 0; i < LIMBS + 4; ++i)
        vector[i] = 0;
#pragma unroll
    for (int i = 0; i < N; ++i)
        vector[i] = totals.word[i];
    vector[LIMBS] = blockIdx.x == 0 ? n : 0;
}

template <class T, bool PAIRED>
__device__ __forceinline__ void integer_products(const void *data, const void *others, u64 n, u64 *scratch, u64 *out)
{
    constexpr int LIMBS = Element<T>::Dot::LIMBS;
    __shared__ u64 vector[LIMBS + 4];
    IntegerProducts<T, PAIRED> pass;
    pipe(data, others, n, pass);
    const auto products = fold_block(pass.products.halves());
    if (threadIdx.x == 0)
        write_limbs<LIMBS>(products, n, vector);
    __syncthreads();
    add_over_grid<LIMBS + 4>([&](int i) { return vector[i]; }, scratch, out);
}

template <class T>
__device__ __forceinline__ void integer_moments(const void *data, u64 n, u64 *scratch, u64 *out)
{
    constexpr int SUM = Element<T>::Sum::LIMBS, DOT = Element<T>::Dot::LIMBS;
    constexpr int BEFORE = SUM + 4, COUNT = BEFORE + DOT + 4;
    __shared__ u64 vector[COUNT];
    IntegerMoments<T> pass;
    pipe(data, nullptr, n, pass);
    const auto elements = fold_block(pass.elements.words());
    __syncthreads();
    const auto squares = fold_block(pass.squares.halves());
    if (threadIdx.x == 0) {
        write_limbs<SUM>(elements, n, vector);
        write_limbs<DOT>(squares, n, vector + BEFORE);
    }
    __syncthreads();
    add_over_grid<COUNT>([&](int i) { return vector[i]; }, scratch, out);
}
