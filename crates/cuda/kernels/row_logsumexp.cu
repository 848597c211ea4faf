// The logarithms of the sums of rows' exponentials.
// elements: f16 bf16 f32 f64

#include "float_logsumexp.cuh"
#include "row_tree.cuh"

TREE_ROWS(row_logsumexp)(const TreeRows &rows, void *out)
{
    FloatLogSumExp<ELEMENT>::prepare();
    fold_rows<FloatLogSumExp<ELEMENT>>(rows, static_cast<typename Element<ELEMENT>::Bits *>(out));
}
