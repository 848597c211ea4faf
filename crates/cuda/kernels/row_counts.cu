// How many elements of each short row are not zero, or NaN.
// elements: u8 u16 u32 u64 f16 bf16 f32 f64

#include "row_tally.cuh"

ROWS(row_counts)(ShortRows rows, u64 n, u32 ask, u32, u32, void *out, u32 *)
{
    tally_rows<ELEMENT, CountOf<ELEMENT>>(rows, out, {ask, n});
}
