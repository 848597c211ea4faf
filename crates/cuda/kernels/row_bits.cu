// Bitwise and, or or exclusive or of each short row.
// elements: bool u8 u16 u32 u64

#include "bit_folds.cuh"
#include "row_tally.cuh"

ROWS(row_bits)(ShortRows rows, u64, u32 ask, u32, u32, void *out, u32 *)
{
    if (ask == XOR)
        tally_rows<ELEMENT, BitFoldOf<ELEMENT, true>>(rows, out, {ask});
    else
        tally_rows<ELEMENT, BitFoldOf<ELEMENT, false>>(rows, out, {ask});
}
