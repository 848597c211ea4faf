// Plain sums of absolute values of rows of floats.
// elements: f16 bf16 f32 f64

#include "fast.cuh"
#include "row_tree.cuh"

TREE_ROWS(row_fast_abs_sums)(const TreeRows &rows, void *out)
{
    fold_rows<RowFast<ELEMENT, ABS>>(rows, static_cast<typename Element<ELEMENT>::Bits *>(out));
}
