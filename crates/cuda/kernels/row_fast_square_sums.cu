// Plain sums of squares and their roots of rows of floats.
// elements: f16 bf16 f32 f64

#include "fast.cuh"
#include "row_tree.cuh"

TREE_ROWS(row_fast_square_sums)(const TreeRows &rows, void *out)
{
    fold_rows<RowFast<ELEMENT, SQUARE>>(rows, static_cast<typename Element<ELEMENT>::Bits *>(out));
}
