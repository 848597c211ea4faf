// The largest absolute value of each short row.
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "magnitudes.cuh"
#include "row_tally.cuh"

ROWS(row_magnitudes)(ShortRows rows, u64, u32, u32, u32, void *out, u32 *)
{
    tally_rows<ELEMENT, MagnitudeOf<ELEMENT>>(rows, out, {});
}
