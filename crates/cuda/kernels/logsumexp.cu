// The logarithm of the sum of all elements' exponentials, but for the logarithm.
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "counts.cuh"
#include "float_logsumexp.cuh"
#include "integer_logsumexp.cuh"
#include "kernel.cuh"

template <class T>
__device__ __forceinline__ void logsumexp(const void *data, const void *others, u64 n, u64 start, u64 *scratch, u64 *out)
{
    if constexpr (Element<T>::FLOAT) {
        FloatLogSumExp<T>::prepare();
        fold_tree<FloatLogSumExp<T>>(data, others, n, start, scratch, out);
    } else {
        integer_logsumexp<T>(data, n, scratch, out);
    }
}

// Truth values are two.
template <>
__device__ __forceinline__ void logsumexp<bool>(const void *data, const void *, u64 n, u64, u64 *scratch, u64 *out)
{
    Counts<bool> pass;
    walk(data, n, scratch, pass);
    Totals<1> nonzero;
    nonzero.word[0] = pass.nonzero;
    if (fold_grid(nonzero, scratch)) {
        const u64 ones = nonzero.word[0], zeros = n - ones, top = ones > 0;
        const u64 counts[2] = {top ? ones : zeros, top ? zeros : 0};
        const u64 length = (counts[0] > 0) + (counts[1] > 0);
        for (int w = 0; w < COUNTED_WORDS; ++w)
            out[w] = payload_word(w, length, top, [&](int d) { return d == 0 ? counts[0] : d == 1 ? counts[1] : 0; });
    }
}

KERNEL_OF(logsumexp, THREADS, (Element<ELEMENT>::FLOAT ? TREE_BLOCKS : BLOCKS))(const void *data, const void *others, u64 n, u64 start, u64 *scratch, u64 *out)
{
    logsumexp<ELEMENT>(data, others, n, start, scratch, out);
}
