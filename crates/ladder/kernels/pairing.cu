// Which thread adds what: a block folds its tile of global memory, one element a thread, in log2(threads) levels.
// elements: i32 u32 i64 u64 f32 f64
//
// The first level reads `in` and writes `work`, so that the input is still there for another run. Nobody leaves before a barrier that
// others wait at: whoever has nothing to add goes along.

#include "types.cuh"

// Each element's partner is its neighbour: at distance 1, then 2, 4, ... Every second thread is active, then every fourth: a warp
// runs all levels although most of its lanes idle, and the remainder `%` is slow.
extern "C" __global__ void neighbored(const T *in, T *work, T *partials, u64 n)
{
    const u32 tid = threadIdx.x, width = blockDim.x, length = tile_length(n, width);
    const T *tile = in + u64(blockIdx.x) * width;
    T *mine = work + u64(blockIdx.x) * width;
    if (tid % 2 == 0 && tid < length)
        mine[tid] = tid + 1 < length ? tile[tid] + tile[tid + 1] : tile[tid];
    __syncthreads();
    for (u32 stride = 2; stride < width; stride *= 2) {
        if (tid % (2 * stride) == 0 && tid + stride < length)
            mine[tid] += mine[tid + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = length > 0 ? mine[0] : T(0);
}

// The same pairs, but the first threads do the work: thread t takes the pair that begins at 2 * stride * t. Warps are either busy or
// done, so that half of them, then three quarters, issue nothing. The accesses of a warp are as far apart as before.
extern "C" __global__ void neighbored_compact(const T *in, T *work, T *partials, u64 n)
{
    const u32 tid = threadIdx.x, width = blockDim.x, length = tile_length(n, width);
    const T *tile = in + u64(blockIdx.x) * width;
    T *mine = work + u64(blockIdx.x) * width;
    u32 at = 2 * tid;
    if (at < length)
        mine[at] = at + 1 < length ? tile[at] + tile[at + 1] : tile[at];
    __syncthreads();
    for (u32 stride = 2; stride < width; stride *= 2) {
        at = 2 * stride * tid;
        if (at + stride < length)
            mine[at] += mine[at + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = length > 0 ? mine[0] : T(0);
}

// The partner is half a tile away, then a quarter: the first threads do the work, and the lanes of a warp touch neighbouring elements,
// which are few sectors instead of many.
extern "C" __global__ void interleaved(const T *in, T *work, T *partials, u64 n)
{
    const u32 tid = threadIdx.x, width = blockDim.x, length = tile_length(n, width);
    const T *tile = in + u64(blockIdx.x) * width;
    T *mine = work + u64(blockIdx.x) * width;
    u32 half = width / 2;
    if (tid < half && tid < length)
        mine[tid] = tid + half < length ? tile[tid] + tile[tid + half] : tile[tid];
    __syncthreads();
    for (half /= 2; half > 0; half /= 2) {
        if (tid < half && tid + half < length)
            mine[tid] += mine[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = length > 0 ? mine[0] : T(0);
}
