// Variances and standard deviations of columns.
// elements: f16 bf16 f32 f64

#include "column_squares.cuh"

COLUMNS(column_variances)(const ColumnTable &table, u32 ask, u32, void *out, u32 *)
{
    square_columns<ELEMENT, true>(table, ask, out);
}
