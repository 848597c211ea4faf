// The logarithm of the sum of all elements' exponentials, but for the logarithm.
// elements: f16 bf16 f32 f64

#include "float_logsumexp.cuh"
#include "kernel.cuh"

KERNEL_OF(logsumexp, THREADS, TREE_BLOCKS)(const void *data, const void *others, u64 n, u64 start, u64 *scratch, u64 *out)
{
    fold_tree<FloatLogSumExp<ELEMENT>>(data, others, n, start, scratch, out);
}
