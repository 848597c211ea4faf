// More elements a thread: before the fold in global memory each thread adds some on its own.
// elements: i32 u32 i64 u64 f32 f64

#include "columns.cuh"

// K tiles a block: a K-th of the blocks, of the barriers and of the writes, and K loads in flight. Then as `interleaved`.
template <int K>
__device__ __forceinline__ void unroll(const T *in, T *work, T *partials, u64 n)
{
    const u32 tid = threadIdx.x, width = blockDim.x;
    T *mine = work + u64(blockIdx.x) * width;
    mine[tid] = fold_columns<K>(in, n);
    __syncthreads();
    for (u32 half = width / 2; half > 0; half /= 2) {
        if (tid < half)
            mine[tid] += mine[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = mine[0];
}

extern "C" __global__ void unroll2(const T *in, T *work, T *partials, u64 n) { unroll<2>(in, work, partials, n); }
extern "C" __global__ void unroll4(const T *in, T *work, T *partials, u64 n) { unroll<4>(in, work, partials, n); }
extern "C" __global__ void unroll8(const T *in, T *work, T *partials, u64 n) { unroll<8>(in, work, partials, n); }
extern "C" __global__ void unroll16(const T *in, T *work, T *partials, u64 n) { unroll<16>(in, work, partials, n); }

// The levels of `interleaved`, over what each thread of a block has added.
__device__ __forceinline__ void fold_work(T *mine, T *partials, T sum)
{
    const u32 tid = threadIdx.x;
    mine[tid] = sum;
    __syncthreads();
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid < half)
            mine[tid] += mine[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = mine[0];
}

// `unroll8` with the columns as a loop that steps a pointer. Where all eight tiles are there the compiler knows how often it runs, and
// writes eight loads one below the other: the source has a loop, the machine has none. A ragged block takes its elements one by one.
extern "C" __global__ void unroll8_loop(const T *in, T *work, T *partials, u64 n)
{
    const u32 width = blockDim.x;
    const u64 begin = u64(blockIdx.x) * 8 * width;
    const T *at = in + begin + threadIdx.x;
    T sum = 0;
    if (begin + 8 * width <= n) {
        for (int k = 0; k < 8; ++k) {
            sum += *at;
            at += width;
        }
    } else {
        const T *end = in + begin + tile_length(n, 8 * width);
#pragma unroll 1
        for (; at < end; at += width)
            sum += *at;
    }
    fold_work(work + u64(blockIdx.x) * width, partials, sum);
}

// The same loop, which the compiler is forbidden to unroll: each load is added before the next one leaves.
extern "C" __global__ void unroll8_rolled(const T *in, T *work, T *partials, u64 n)
{
    const u32 width = blockDim.x;
    const T *tiles = in + u64(blockIdx.x) * 8 * width;
    const T *end = tiles + tile_length(n, 8 * width);
    T sum = 0;
#pragma unroll 1
    for (const T *at = tiles + threadIdx.x; at < end; at += width)
        sum += *at;
    fold_work(work + u64(blockIdx.x) * width, partials, sum);
}
