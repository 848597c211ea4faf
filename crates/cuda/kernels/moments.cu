// The exact sums of elements and of squares.
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "float_moments.cuh"
#include "integer_products.cuh"
#include "kernel.cuh"

KERNEL_OF(moments, (LADDER_THREADS<ELEMENT, 2>), (LADDER_BLOCKS<ELEMENT, 2>))
(const void *data, const void *, u64 n, u64, u64 *scratch, u64 *out)
{
    if constexpr (Element<ELEMENT>::FLOAT)
        float_moments<ELEMENT>(data, n, scratch, out);
    else
        integer_moments<ELEMENT>(data, n, scratch, out);
}
