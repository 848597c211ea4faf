// What each lane of a warp gets from a shuffle.
// elements: i32 u32 i64 u64 f32 f64 f16x2

#include "element.cuh"

// Two 16-bit floats in one register, which travel together.
struct f16x2 {
    u32 bits;
};

enum Mode : u32 { INDEX, UP, DOWN, XOR };

template <class E>
__device__ __forceinline__ E shuffle(E x, Mode mode, u32 argument, u32 width)
{
    // Both words of a wide element travel; `int(argument)` and the rest are as the language has them.
    switch (mode) {
    case INDEX: return __shfl_sync(0xffffffff, x, int(argument), int(width));
    case UP: return __shfl_up_sync(0xffffffff, x, argument, int(width));
    case DOWN: return __shfl_down_sync(0xffffffff, x, argument, int(width));
    default: return __shfl_xor_sync(0xffffffff, x, int(argument), int(width));
    }
}

__device__ __forceinline__ f16x2 shuffle(f16x2 x, Mode mode, u32 argument, u32 width)
{
    return {shuffle(x.bits, mode, argument, width)};
}

// A warp for each question: the mode, the argument, the width.
extern "C" __global__ void lanes(const ELEMENT *in, ELEMENT *out, const u32 *questions)
{
    const u32 *question = questions + 3 * blockIdx.x;
    out[32 * blockIdx.x + threadIdx.x] = shuffle(in[threadIdx.x], Mode(question[0]), question[1], question[2]);
}
