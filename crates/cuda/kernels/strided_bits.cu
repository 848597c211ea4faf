// Bitwise and, or or exclusive or over any axes of any view.
// elements: bool u8 u16 u32 u64

#include "bit_folds.cuh"
#include "strided.cuh"

STRIDED(bits, 4)(const Layout &layout)
{
    constexpr int U = sizeof(Element<ELEMENT>::Bits) < 4 ? 16 : 8;
    if (layout.ask == XOR)
        reduce_view<OneByOne<ELEMENT, BitFoldOf<ELEMENT, true>>>(layout, {layout.ask});
    else
        reduce_view<OneByOne<ELEMENT, BitFoldOf<ELEMENT, false>>>(layout, {layout.ask});
}
