// No loop is left: every level is written out.
// elements: i32 u32 i64 u64 f32 f64

#include "columns.cuh"

// `unroll_warps8` with its levels one below the other; each asks whether the block is as large. All threads ask the same, so that no
// warp diverges. Blocks have 32 to 1024 threads.
extern "C" __global__ void complete_unroll8(const T *in, T *work, T *partials, u64 n)
{
    const u32 tid = threadIdx.x, width = blockDim.x;
    T *mine = work + u64(blockIdx.x) * width;
    mine[tid] = fold_columns<8>(in, n);
    __syncthreads();
    if (width >= 1024) {
        if (tid < 512)
            mine[tid] += mine[tid + 512];
        __syncthreads();
    }
    if (width >= 512) {
        if (tid < 256)
            mine[tid] += mine[tid + 256];
        __syncthreads();
    }
    if (width >= 256) {
        if (tid < 128)
            mine[tid] += mine[tid + 128];
        __syncthreads();
    }
    if (width >= 128) {
        if (tid < 64)
            mine[tid] += mine[tid + 64];
        __syncthreads();
    }
    if (width >= 64) {
        if (tid < 32)
            mine[tid] += mine[tid + 32];
        __syncthreads();
    }
    if (tid < 32) {
        if (tid < 16)
            mine[tid] += mine[tid + 16];
        __syncwarp();
        if (tid < 8)
            mine[tid] += mine[tid + 8];
        __syncwarp();
        if (tid < 4)
            mine[tid] += mine[tid + 4];
        __syncwarp();
        if (tid < 2)
            mine[tid] += mine[tid + 2];
        __syncwarp();
        if (tid < 1)
            mine[tid] += mine[tid + 1];
    }
    if (tid == 0)
        partials[blockIdx.x] = mine[0];
}

// The same with the number of threads known to the compiler, which drops the levels that the block does not have and every question
// about them. The host picks the instance. Blocks of less than a warp work, too: the mask names the lanes that there are.
template <u32 WIDTH>
__device__ __forceinline__ void complete_unroll8_static(const T *in, T *work, T *partials, u64 n)
{
    constexpr u32 LANES = WIDTH < 32 ? (1u << WIDTH % 32) - 1 : 0xffffffffu;
    const u32 tid = threadIdx.x;
    T *mine = work + u64(blockIdx.x) * WIDTH;
    mine[tid] = fold_columns<8>(in, n);
    __syncthreads();
#pragma unroll
    for (u32 half = WIDTH / 2; half >= 32; half /= 2) {
        if (tid < half)
            mine[tid] += mine[tid + half];
        __syncthreads();
    }
    if (tid < 32) {
#pragma unroll
        for (u32 half = WIDTH < 32 ? WIDTH / 2 : 16; half > 0; half /= 2) {
            if (tid < half)
                mine[tid] += mine[tid + half];
            __syncwarp(LANES);
        }
    }
    if (tid == 0)
        partials[blockIdx.x] = mine[0];
}

#define OF_WIDTH(W)                                                                                           \
    extern "C" __global__ void complete_unroll8_static_##W(const T *in, T *work, T *partials, u64 n)          \
    {                                                                                                         \
        complete_unroll8_static<W>(in, work, partials, n);                                                    \
    }
FOR_EVERY_WIDTH(OF_WIDTH)
