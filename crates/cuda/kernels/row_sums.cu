// Sums and means of short rows.
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "row_sum.cuh"
#include "row_tally.cuh"

template <class T>
__device__ __forceinline__ void sums(const ShortRows &rows, u64 n, u32 ask, u32 absolute, u32 spread, void *out, u32 *misfits)
{
    if constexpr (Element<T>::FLOAT)
        sum_rows<T>(rows, n, ask, absolute, spread, out);
    else
        tally_rows<T, TotalOf<T>>(rows, out, {ask, absolute != 0, n, misfits});
}

ROWS(row_sums)(ShortRows rows, u64 n, u32 ask, u32 absolute, u32 spread, void *out, u32 *misfits)
{
    sums<ELEMENT>(rows, n, ask, absolute, spread, out, misfits);
}
