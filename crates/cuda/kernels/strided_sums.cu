// Sums and means over any axes of any view.
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "float_total.cuh"
#include "strided.cuh"
#include "tally.cuh"

template <class T>
__device__ __forceinline__ void sums(const Layout &layout)
{
    if constexpr (Element<T>::FLOAT)
        reduce_view<FloatTotal<T>>(layout, {layout.ask, layout.absolute != 0, layout.n});
    else
        reduce_view<OneByOne<T, TotalOf<T>>>(layout, {layout.ask, layout.absolute != 0, layout.n, layout.overflow});
}

STRIDED(sums, (!Element<ELEMENT>::FLOAT ? 4 : sizeof(Element<ELEMENT>::Bits) == 8 ? 2 : 3))(const Layout &layout)
{
    sums<ELEMENT>(layout);
}
