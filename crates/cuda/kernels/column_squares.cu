// Sums of squares and norms of columns.
// elements: f16 bf16 f32 f64

#include "column_squares.cuh"

COLUMNS(column_squares)(const ColumnTable &table, u32 ask, u32, void *out, u32 *)
{
    square_columns<ELEMENT, false>(table, ask, out);
}
