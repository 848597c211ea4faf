// Loads side by side, not quite side by side, and apart.

#include "element.cuh"

// What element `i` is.
__device__ __forceinline__ u32 mixed(u64 i)
{
    const u32 x = u32(i) * 0x9e3779b1;
    return x ^ x >> 15;
}

extern "C" __global__ void fill(u32 *out, u64 n)
{
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += u64(gridDim.x) * blockDim.x)
        out[i] = mixed(i);
}

// `n` elements, the first at `offset` and each `stride` after the one before; a thread leaves the exclusive-or of its own. Eight
// loads of a thread are on their way at once, so that it is not latency that is measured.
extern "C" __global__ void read(const u32 *in, u32 *out, u64 n, u64 stride, u64 offset)
{
    const u64 thread = u64(blockIdx.x) * blockDim.x + threadIdx.x, step = u64(gridDim.x) * blockDim.x;
    u32 found = 0;
#pragma unroll 1
    for (u64 i = thread; i < n; i += 8 * step) {
        u32 flight[8];
#pragma unroll
        for (int k = 0; k < 8; ++k)
            flight[k] = i + k * step < n ? in[offset + (i + k * step) * stride] : 0;
#pragma unroll
        for (int k = 0; k < 8; ++k)
            found ^= flight[k];
    }
    out[thread] = found;
}
