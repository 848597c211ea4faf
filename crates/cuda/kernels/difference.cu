// How far two ends are apart: the range of each output, of its smallest and its largest element.
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "finish_plain.cuh"

extern "C" __global__ void __launch_bounds__(FINISH_THREADS) NAMED(difference, ELEMENT)(const Element<ELEMENT>::Bits *least,
    const Element<ELEMENT>::Bits *greatest, void *out, u32 count)
{
    using Format = Element<ELEMENT>;
    const u32 i = blockIdx.x * FINISH_THREADS + threadIdx.x;
    if (i < count)
        write(out, i, difference<ELEMENT>(Format::key(greatest[i]), Format::key(least[i])));
}
