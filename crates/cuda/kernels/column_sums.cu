// Sums and means of columns.
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "column_sum.cuh"
#include "column_tally.cuh"

template <class T>
__device__ __forceinline__ void sums(const ColumnTable &table, u32 ask, bool absolute, void *out, u32 *misfits)
{
    if constexpr (Element<T>::FLOAT)
        sum_columns<T>(table, ask, absolute, out);
    else
        tally_columns<T, TotalOf<T>>(table, out, {ask, absolute, table.rows, misfits});
}

COLUMNS(column_sums)(const ColumnTable &table, u32 ask, u32 absolute, void *out, u32 *misfits)
{
    sums<ELEMENT>(table, ask, absolute != 0, out, misfits);
}
