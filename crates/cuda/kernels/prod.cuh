// The product of all elements.

#pragma once

#include "counts.cuh"
#include "float_prod.cuh"
#include "integer_prod.cuh"

template <class T>
__device__ __forceinline__ void prod(const void *data, const void *others, u64 n, u64 start, u64 *scratch, u64 *out)
{
    if constexpr (Element<T>::FLOAT)
        fold_tree<FloatProd<T>>(data, others, n, start, scratch, out);
    else
        integer_prod<T>(data, n, scratch, out);
}

// Truth values multiply to whether all are true.
template <>
__device__ __forceinline__ void prod<bool>(const void *data, const void *, u64 n, u64, u64 *scratch, u64 *out)
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
