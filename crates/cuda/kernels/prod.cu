// The product of all elements.
// elements: f16 bf16 f32 f64

#include "float_prod.cuh"
#include "kernel.cuh"

KERNEL_OF(prod, THREADS, TREE_BLOCKS)(const void *data, const void *others, u64 n, u64 start, u64 *scratch, u64 *out)
{
    fold_tree<FloatProd<ELEMENT>>(data, others, n, start, scratch, out);
}
