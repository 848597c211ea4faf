// The last warp apart: below 64 values a single warp is at work, and a block need not wait for it level by level.
// elements: i32 u32 i64 u64 f32 f64

#include "columns.cuh"

// `unroll8`, and the last 32 lanes go on by themselves. Lanes of a warp are threads of their own, so that they wait for each other
// with `__syncwarp`, which costs less than a barrier of the block. Blocks have 32 threads or more.
extern "C" __global__ void unroll_warps8(const T *in, T *work, T *partials, u64 n)
{
    const u32 tid = threadIdx.x, width = blockDim.x;
    T *mine = work + u64(blockIdx.x) * width;
    mine[tid] = fold_columns<8>(in, n);
    __syncthreads();
    for (u32 half = width / 2; half >= 32; half /= 2) {
        if (tid < half)
            mine[tid] += mine[tid + half];
        __syncthreads();
    }
    if (tid < 32) {
#pragma unroll
        for (u32 half = 16; half > 0; half /= 2) {
            if (tid < half)
                mine[tid] += mine[tid + half];
            __syncwarp();
        }
    }
    if (tid == 0)
        partials[blockIdx.x] = mine[0];
}

// The same levels, unrolled too, with barriers of the block: what is gained above is the barriers, not the loop.
extern "C" __global__ void unroll_warps8_barrier(const T *in, T *work, T *partials, u64 n)
{
    const u32 tid = threadIdx.x, width = blockDim.x;
    T *mine = work + u64(blockIdx.x) * width;
    mine[tid] = fold_columns<8>(in, n);
    __syncthreads();
    for (u32 half = width / 2; half >= 32; half /= 2) {
        if (tid < half)
            mine[tid] += mine[tid + half];
        __syncthreads();
    }
#pragma unroll
    for (u32 half = 16; half > 0; half /= 2) {
        if (tid < half)
            mine[tid] += mine[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = mine[0];
}
