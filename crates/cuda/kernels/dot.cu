// The exact sum of products of two arrays.
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "float_products.cuh"
#include "integer_products.cuh"
#include "kernel.cuh"

KERNEL_OF(dot, (LADDER_THREADS<ELEMENT, 2>), (LADDER_BLOCKS<ELEMENT, 2>))
(const void *data, const void *others, u64 n, u64, u64 *scratch, u64 *out)
{
    if constexpr (Element<ELEMENT>::FLOAT)
        float_products<ELEMENT, true>(data, others, n, scratch, out);
    else
        integer_products<ELEMENT, true>(data, others, n, scratch, out);
}
