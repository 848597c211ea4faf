// The exact sum.
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "float_sum.cuh"
#include "integer_sum.cuh"
#include "kernel.cuh"

EARLY_KERNEL_OF(sum, SUM_THREADS<ELEMENT>, SUM_BLOCKS<ELEMENT>)(const void *data, const void *, u64 n, u64, u64 *scratch, u64 *out)
{
    if constexpr (Element<ELEMENT>::FLOAT)
        float_sum<ELEMENT, false>(data, n, scratch, out);
    else
        integer_sum<ELEMENT, false>(data, n, scratch, out);
}
