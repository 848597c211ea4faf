// The smallest or the largest element of each column.
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "column_tally.cuh"

COLUMNS(column_extremes)(const ColumnTable &table, u32 ask, u32, void *out, u32 *)
{
    tally_columns<ELEMENT, ExtremeOf<ELEMENT>>(table, out, {ask});
}
