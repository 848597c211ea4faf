// The fold of `warp_shuffle` for any associative operation.

#pragma once

#include "types.cuh"

template <class OP>
__device__ __forceinline__ T fold_down(T folded)
{
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2)
        folded = OP::apply(folded, __shfl_down_sync(0xffffffff, folded, distance));
    return folded;
}

// `warp_shuffle` for any operation: the same kernel, with the operation a type that the compiler sees through.
template <class OP, class X>
__device__ __forceinline__ void any_op(const X *in, T *out, u64 n)
{
    __shared__ T slots[32];
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const u64 step = u64(gridDim.x) * blockDim.x;
    T folded = OP::identity();
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
        folded = OP::apply(folded, value(in[i]));
    folded = fold_down<OP>(folded);
    if (lane == 0)
        slots[warp] = folded;
    __syncthreads();
    if (warp == 0)
        folded = fold_down<OP>(lane < blockDim.x / 32 ? slots[lane] : OP::identity());
    if (threadIdx.x == 0)
        out[blockIdx.x] = folded;
}

// The two launches of an operation.
#define OF_OP(name, OP)                                                                                                  \
    extern "C" __global__ void any_op_##name(const In *in, T *out, u64 n) { any_op<OP>(in, out, n); }                    \
    extern "C" __global__ void any_op_##name##_again(const T *in, T *out, u64 n) { any_op<OP>(in, out, n); }
