// The same work, parted by the parity of a thread and by that of its warp.
//
// By warp, lanes stay together and each warp has one side to do. By thread, a warp has both, one after the other. A long side is a
// loop that no compiler can predicate; a short one becomes a selection, and no branch is left to diverge.

#include "element.cuh"

__device__ __forceinline__ u32 left(u32 x, u32 rounds)
{
    for (u32 i = 0; i < rounds; ++i)
        x = x * 1664525 + 1013904223;
    return x;
}

__device__ __forceinline__ u32 right(u32 x, u32 rounds)
{
    for (u32 i = 0; i < rounds; ++i)
        x = x * 22695477 + 12820163;
    return x;
}

extern "C" __global__ void long_by_thread(u32 *out, u32 rounds)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = threadIdx.x % 2 == 0 ? left(i, rounds) : right(i, rounds);
}

extern "C" __global__ void long_by_warp(u32 *out, u32 rounds)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = threadIdx.x / 32 % 2 == 0 ? left(i, rounds) : right(i, rounds);
}

extern "C" __global__ void short_by_thread(u32 *out, u32 rounds)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    u32 x = i;
    for (u32 k = 0; k < rounds; ++k) {
        if (threadIdx.x % 2 == 0)
            x = x * 1664525 + 1013904223;
        else
            x = x * 22695477 + 12820163;
    }
    out[i] = x;
}

extern "C" __global__ void short_by_warp(u32 *out, u32 rounds)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    u32 x = i;
    for (u32 k = 0; k < rounds; ++k) {
        if (threadIdx.x / 32 % 2 == 0)
            x = x * 1664525 + 1013904223;
        else
            x = x * 22695477 + 12820163;
    }
    out[i] = x;
}
