// As `texts.cu`, of launches from the device.
// elements: u32
// compute: 90
// options: -rdc=true -lineinfo

#include "launches.cuh"

#define TEXT(name) extern "C" __global__ void name(T *in, T *partials, u64 n)

struct Halving {
    T *values, *out;
    u32 size;
};

// A block halves its values and launches itself over the rest. At a leaf thread 0 returns, and the others wait for it at the barrier.
// And no block asks whether there was room for its launch: more launches than may be pending are lost. (The text's parent then waits
// for its child, which no device does any more: here the child begins when its parent has ended.)
extern "C" __global__ void p_nested_halving(T *values, T *out, u32 size)
{
    const u32 tid = threadIdx.x, half = size / 2;
    T *mine = values + u64(blockIdx.x) * blockDim.x;
    if (size == 2 && tid == 0) {
        out[blockIdx.x] = mine[0] + mine[1];
        return;
    }
    if (half > 1 && tid < half)
        mine[tid] += mine[tid + half];
    __syncthreads();
    if (tid == 0)
        ask_for_launch((void *)p_nested_halving, 1, half, Halving{mine, out + blockIdx.x, half});
    __syncthreads();
}

TEXT(p_nested)
{
    const u32 tid = threadIdx.x, half = blockDim.x / 2;
    T *mine = in + u64(blockIdx.x) * blockDim.x;
    if (tid < half)
        mine[tid] += mine[tid + half];
    __syncthreads();
    if (tid == 0)
        ask_for_launch((void *)p_nested_halving, 1, half, Halving{mine, partials + blockIdx.x, half});
    __syncthreads();
}
