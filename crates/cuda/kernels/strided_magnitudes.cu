// The largest absolute value over any axes of any view.
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "magnitudes.cuh"
#include "strided.cuh"

STRIDED(magnitudes, 4)(const Layout &layout)
{
    reduce_view<OneByOne<ELEMENT, MagnitudeOf<ELEMENT>>>(layout, {});
}
