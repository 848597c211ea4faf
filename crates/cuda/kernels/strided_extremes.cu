// The smallest or the largest element over any axes of any view.
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "strided.cuh"
#include "tally.cuh"

STRIDED(extremes, 4)(const Layout &layout)
{
    reduce_view<OneByOne<ELEMENT, ExtremeOf<ELEMENT>>>(layout, {layout.ask});
}
