// The product of all elements.

#pragma once

#include "counts.cuh"
#include "float_prod.cuh"
#include "integer_prod.cuh"

// Vectors of a thread in a tile: two loads of each take the registers that the logarithms leave.
constexpr int FACTOR_VECTORS = 2;

// A thread's elements of whole tiles, in batches of eight, of two f64.
template <class T>
struct FloatFactors {
    using Item = T;
    using Product = FloatProd<T>;
    using Bits = typename Product::Bits;
    static constexpr int ABREAST = ITEMS<T> == 4 ? 2 : 1;

    Product product;

    __device__ __forceinline__ void one(Bits bits)
    {
        const Bits x[1] = {bits};
        product.take(x);
    }

    template <bool FULL>
    __device__ __forceinline__ void tile(const uint4 (&v)[FACTOR_VECTORS], u32, u32 valid)
    {
#pragma unroll
        for (int k = 0; k < FACTOR_VECTORS; k += ABREAST) {
            Bits x[ABREAST * ITEMS<T>];
#pragma unroll
            for (int i = 0; i < ABREAST * ITEMS<T>; ++i) {
                const int at = k + i / ITEMS<T>;
                x[i] = FULL || at < valid ? item<T>(v[at], i % ITEMS<T>) : Product::IDENTITY;
            }
            if (FULL || k < valid)
                product.take(x);
        }
    }
};

// Leaves the payload: the sign, the number of finite factors that are not zero, the exponent in 128 bits, the logarithm in 192, zeros, infinities
// and NaNs.
template <class T>
__device__ __forceinline__ void float_prod(const void *data, u64 n, u64 *scratch, u64 *out)
{
    FloatProd<T>::prepare();
    FloatFactors<T> pass;
    walk<FACTOR_VECTORS>(data, n, scratch, pass);
    Factors all = pass.product.whole();
    if (!fold_grid(all, scratch))
        return;
    const u64 zeros = all.zeros(), infinities = all.infinities(), nans = all.nans();
    const auto sign_of = [](u64 word) { return u64(i64(word) >> 63); };
    out[0] = all.negative();
    out[1] = n - zeros - infinities - nans;
    out[2] = all.word[0];
    out[3] = sign_of(all.word[0]);
    out[4] = all.word[1];
    out[5] = all.word[2];
    out[6] = sign_of(all.word[2]);
    out[7] = zeros;
    out[8] = infinities;
    out[9] = nans;
}

template <class T>
__device__ __forceinline__ void prod(const void *data, u64 n, u64 *scratch, u64 *out)
{
    if constexpr (Element<T>::FLOAT)
        float_prod<T>(data, n, scratch, out);
    else
        integer_prod<T>(data, n, scratch, out);
}

// Truth values multiply to whether all are true.
template <>
__device__ __forceinline__ void prod<bool>(const void *data, u64 n, u64 *scratch, u64 *out)
{
    Counts<bool> pass;
    walk(data, n, scratch, pass);
    Totals<1> nonzero;
    nonzero.word[0] = pass.nonzero;
    if (fold_grid(nonzero, scratch)) {
        Product product;
        product.word[2] = nonzero.word[0] < n ? Product::ZERO : 0;
        leave_product(product, out);
    }
}
