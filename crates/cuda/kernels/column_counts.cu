// How many elements of each column are not zero, or NaN.
// elements: u8 u16 u32 u64 f16 bf16 f32 f64

#include "column_tally.cuh"

COLUMNS(column_counts)(const ColumnTable &table, u32 ask, u32, void *out, u32 *)
{
    tally_columns<ELEMENT, CountOf<ELEMENT>>(table, out, {ask, table.rows});
}
