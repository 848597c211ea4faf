// Two launches of one kernel: as many blocks as the device runs at once leave one partial each, and a single block folds the partials.
// elements: i32 u32 i64 u64 f16 bf16 f32 f64

#include "grid_stride.cuh"

extern __shared__ T slots[];

// Each thread adds in a register on its way through the array: however long it is, there are no more blocks, barriers and partials
// than the device needs to be busy. Then a fold in shared memory. Blocks are powers of two.
template <class X>
__device__ __forceinline__ void two_pass_shared_of(const X *in, T *out, u64 n)
{
    const u32 tid = threadIdx.x;
    slots[tid] = add_grid_stride(in, n);
    __syncthreads();
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        out[blockIdx.x] = slots[0];
}
TWO_LAUNCHES(two_pass_shared)

// The same without the block's barriers in the last warp, whose lanes wait for each other alone. Blocks have 32 threads or more.
template <class X>
__device__ __forceinline__ void two_pass_warp_of(const X *in, T *out, u64 n)
{
    const u32 tid = threadIdx.x;
    slots[tid] = add_grid_stride(in, n);
    __syncthreads();
    for (u32 half = blockDim.x / 2; half >= 32; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid < 32) {
#pragma unroll
        for (u32 half = 16; half > 0; half /= 2) {
            if (tid < half)
                slots[tid] += slots[tid + half];
            __syncwarp();
        }
    }
    if (tid == 0)
        out[blockIdx.x] = slots[0];
}
TWO_LAUNCHES(two_pass_warp)

// The same for a number of threads that the compiler knows: no loop, no level too many. The host picks one of eleven instances.
template <u32 WIDTH, class X>
__device__ __forceinline__ void two_pass_static(const X *in, T *out, u64 n)
{
    constexpr u32 LANES = WIDTH < 32 ? (1u << WIDTH % 32) - 1 : 0xffffffffu;
    const u32 tid = threadIdx.x;
    slots[tid] = add_grid_stride(in, n);
    __syncthreads();
#pragma unroll
    for (u32 half = WIDTH / 2; half >= 32; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid < 32) {
#pragma unroll
        for (u32 half = WIDTH < 32 ? WIDTH / 2 : 16; half > 0; half /= 2) {
            if (tid < half)
                slots[tid] += slots[tid + half];
            __syncwarp(LANES);
        }
    }
    if (tid == 0)
        out[blockIdx.x] = slots[0];
}

#define OF_WIDTH(W)                                                                                                               \
    extern "C" __global__ void two_pass_static_##W(const In *in, T *out, u64 n) { two_pass_static<W>(in, out, n); }               \
    extern "C" __global__ void two_pass_static_##W##_again(const T *in, T *out, u64 n) { two_pass_static<W>(in, out, n); }
FOR_EVERY_WIDTH(OF_WIDTH)
