// Products of rows of floats.
// elements: f16 bf16 f32 f64

#include "float_prod.cuh"
#include "row_tree.cuh"

TREE_ROWS(row_prods)(const TreeRows &rows, void *out)
{
    fold_rows<FloatProd<ELEMENT>>(rows, static_cast<typename Element<ELEMENT>::Bits *>(out));
}
