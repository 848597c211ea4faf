// The plain sum of squares in the fixed tree.
// elements: f16 bf16 f32 f64

#include "fast.cuh"
#include "kernel.cuh"

KERNEL_OF(fast_square_sum, THREADS, TREE_BLOCKS)(const void *data, const void *others, u64 n, u64 start, u64 *scratch, u64 *out)
{
    fold_tree<Fast<ELEMENT, SQUARE>>(data, others, n, start, scratch, out);
}
