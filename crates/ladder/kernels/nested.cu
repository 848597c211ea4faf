// Kernels that launch kernels: each level of the fold is a grid of its own, which the one before has asked for.
// elements: i32 u32 i64 u64 f32 f64
// compute: 90
// options: -rdc=true
//
// A kernel never sees what its children have written: no device waits for them since CUDA 12. So nobody waits: a tail launch begins
// when the grid that asked for it has ended, and sees all that it wrote. Only so many launches may be pending, which is why no more
// than 512 blocks are at work.

#include "grid_stride.cuh"
#include "launches.cuh"

struct OneTile {
    T *values, *out;
};

// A level of one block's tile, and the next one behind it.
extern "C" __global__ void nested_fold(T *values, T *out)
{
    const u32 tid = threadIdx.x, half = blockDim.x;
    values[tid] += values[tid + half];
    __syncthreads();
    if (tid == 0) {
        if (half == 1)
            *out = values[0];
        else
            launch_behind((void *)nested_fold, 1, half / 2, OneTile{values, out});
    }
}

// Each block's first thread launches the next halving of its own tile: a launch for each block and each level.
extern "C" __global__ void nested(const T *in, T *work, T *partials, u64 n)
{
    const u32 tid = threadIdx.x, width = blockDim.x;
    T *mine = work + u64(blockIdx.x) * width;
    mine[tid] = add_grid_stride(in, n);
    __syncthreads();
    if (tid == 0)
        launch_behind((void *)nested_fold, 1, width / 2, OneTile{mine, partials + blockIdx.x});
}

// The same without barriers. They are not needed here, and for one reason alone: the launch waits for the whole grid. A child that
// began at once would read what other threads of the block have not written.
extern "C" __global__ void nested_nosync_fold(T *values, T *out)
{
    const u32 tid = threadIdx.x, half = blockDim.x;
    values[tid] += values[tid + half];
    if (tid == 0) {
        if (half == 1)
            *out = values[0];
        else
            launch_behind((void *)nested_nosync_fold, 1, half / 2, OneTile{values, out});
    }
}

extern "C" __global__ void nested_nosync(const T *in, T *work, T *partials, u64 n)
{
    const u32 tid = threadIdx.x, width = blockDim.x;
    T *mine = work + u64(blockIdx.x) * width;
    mine[tid] = add_grid_stride(in, n);
    if (tid == 0)
        launch_behind((void *)nested_nosync_fold, 1, width / 2, OneTile{mine, partials + blockIdx.x});
}

struct AllTiles {
    T *work, *partials;
    u32 width;
};

// A level of all tiles, which are `width` apart.
extern "C" __global__ void nested_wide_fold(T *work, T *partials, u32 width)
{
    const u32 tid = threadIdx.x, half = blockDim.x;
    T *mine = work + u64(blockIdx.x) * width;
    mine[tid] += mine[tid + half];
    if (tid > 0)
        return;
    if (half == 1)
        partials[blockIdx.x] = mine[0];
    else if (blockIdx.x == 0)
        launch_behind((void *)nested_wide_fold, gridDim.x, half / 2, AllTiles{work, partials, width});
}

// The first block launches a level for all of them: as many launches as levels, however many blocks there are.
extern "C" __global__ void nested_wide(const T *in, T *work, T *partials, u64 n)
{
    const u32 tid = threadIdx.x, width = blockDim.x;
    work[u64(blockIdx.x) * width + tid] = add_grid_stride(in, n);
    if (tid == 0 && blockIdx.x == 0)
        launch_behind((void *)nested_wide_fold, gridDim.x, width / 2, AllTiles{work, partials, width});
}
