// Two numbers of each output become one: what they are apart, as a range is of its ends, or the lesser, the greater or the total of both.
// The second may be one for all, an initial value.
// elements: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64

#include "finish_plain.cuh"

template <class T>
__device__ __forceinline__ void pair(typename Element<T>::Bits first, typename Element<T>::Bits second, void *out, u32 i, u32 ask, u32 *overflow)
{
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    const auto one = Format::key(first), other = Format::key(second);
    if (ask == RANGE)
        return write(out, i, difference<T>(other, one));
    Bits bits = (other < one) == (ask == LEAST) ? second : first;
    if constexpr (Format::FLOAT) {
        if (Format::is_nan(first) || Format::is_nan(second))
            bits = NOT_A_NUMBER<T>;
    } else if constexpr (sizeof(Bits) == 8) {
        // Totals of integers have 64 bits.
        if (ask == TOTAL) {
            bits = first + second;
            if (T(-1) < T(0) ? i64((first ^ bits) & (second ^ bits)) < 0 : bits < first)
                atomicOr(overflow, 1u);
        }
    }
    write(out, i, bits);
}

extern "C" __global__ void __launch_bounds__(FINISH_THREADS) NAMED(pair, ELEMENT)(const Element<ELEMENT>::Bits *first,
    const Element<ELEMENT>::Bits *second, u64 initial, void *out, u32 count, u32 ask, u32 *overflow)
{
    const u32 i = blockIdx.x * FINISH_THREADS + threadIdx.x;
    if (i < count)
        pair<ELEMENT>(first[i], second != nullptr ? second[i] : Element<ELEMENT>::Bits(initial), out, i, ask, overflow);
}
