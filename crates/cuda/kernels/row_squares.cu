// Sums of squares, norms, variances and standard deviations of short rows.
// elements: f16 bf16 f32 f64

#include "row_squares.cuh"

ROWS_OF(row_squares, SQUARE_BLOCKS)(ShortRows rows, u64 n, u32 ask, u32, u32, void *out, u32 *)
{
    square_rows<ELEMENT>(rows, n, ask, out);
}
