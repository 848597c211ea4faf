// How many elements are not zero, and how many are NaN (which is not zero).
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "counts.cuh"
#include "kernel.cuh"
#include "ticket.cuh"

EARLY_KERNEL(counts)(const void *data, const void *, u64 n, u64, u64 *scratch, u64 *out)
{
    Counts<ELEMENT> pass;
    walk(data, n, scratch, pass);
    Totals<2> totals;
    totals.word[0] = pass.nonzero;
    totals.word[1] = pass.nans;
    totals = fold_block(totals);
    add_over_grid<2>([&](int i) { return i == 0 ? totals.word[0] : totals.word[1]; }, scratch, out + 1);
    if (blockIdx.x == 0 && threadIdx.x == 0)
        out[0] = n;
}
