// Sums and means over any axes of any view.
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "float_total.cuh"
#include "strided.cuh"
#include "tally.cuh"

template <class T>
struct FloatTotal : FloatTotalOf<T> {
    using Base = FloatTotalOf<T>;
    static constexpr bool NUMBERED = false;
    static constexpr bool MAY_BE_LOST = !Base::FITS;

    __device__ __forceinline__ FloatTotal() {}
    __device__ __forceinline__ FloatTotal(const Base &base) : Base(base) {}

    template <int U>
    __device__ __forceinline__ void take(typename Base::Bits (&bits)[U], const Place (&)[U], const typename Base::Asked &asked)
    {
        Base::take(bits, asked);
    }
};

template <class T>
__device__ __forceinline__ void sums(const Layout &layout)
{
    if constexpr (Element<T>::FLOAT)
        reduce_view<8, FloatTotal<T>>(layout, {layout.ask, layout.absolute != 0, layout.n});
    else
        reduce_view<(sizeof(T) < 4 ? 16 : 8), OneByOne<T, TotalOf<T>>>(layout, {layout.ask, layout.absolute != 0, layout.n, layout.overflow});
}

STRIDED(sums, (Element<ELEMENT>::FLOAT ? 3 : 4))(const Layout &layout)
{
    sums<ELEMENT>(layout);
}
