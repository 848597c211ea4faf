// Where the smallest or the largest element is first, over any axes of any view.
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "positions.cuh"
#include "strided.cuh"

template <class T>
struct Position : PositionOf<T> {
    using Base = PositionOf<T>;
    using Bits = typename Base::Bits;
    static constexpr bool NUMBERED = true;
    static constexpr bool MAY_BE_LOST = false;

    __device__ __forceinline__ Position() {}
    __device__ __forceinline__ Position(const Base &base) : Base(base) {}

    template <int U>
    __device__ __forceinline__ void take(const Bits (&bits)[U], const Place (&places)[U], const typename Base::Asked &asked)
    {
#pragma unroll
        for (int k = 0; k < U; ++k)
            Base::merge(Base(Base::Rank::of(bits[k], asked), u64(places[k].number)));
    }
};

STRIDED(positions, 4)(const Layout &layout)
{
    reduce_view<8, Position<ELEMENT>>(layout, {layout.ask});
}
