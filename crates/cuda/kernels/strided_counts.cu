// How many elements are not zero, or NaN, over any axes of any view.
// elements: u8 u16 u32 u64 f16 bf16 f32 f64

#include "strided.cuh"
#include "tally.cuh"

STRIDED(counts, 4)(const Layout &layout)
{
    reduce_view<OneByOne<ELEMENT, CountOf<ELEMENT>>>(layout, {layout.ask, layout.n});
}
