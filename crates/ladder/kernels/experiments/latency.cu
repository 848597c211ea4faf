// How long one thing takes, and how many at once hide that.

#include "element.cuh"

// Each load says where the next one is: no two are ever on their way together. A walk begins where the one before ended, or it would
// only see what that one left in the caches; `walk` holds the place, and how many steps it is from the first one.
extern "C" __global__ void chase(const u32 *next, u32 *walk, u32 steps)
{
    u32 at = walk[0];
    for (u32 i = 0; i < steps; ++i)
        at = next[at];
    walk[0] = at;
    walk[1] += steps;
}

constexpr u32 NEAREST = 4096;

// The same in shared memory, which the block fills first: many threads, so that it takes no time beside the walk of one of them.
extern "C" __global__ void chase_shared(const u32 *next, u32 *walk, u32 steps)
{
    __shared__ u32 near[NEAREST];
    for (u32 i = threadIdx.x; i < NEAREST; i += blockDim.x)
        near[i] = next[i];
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    u32 at = walk[0];
    for (u32 i = 0; i < steps; ++i)
        at = near[at];
    walk[0] = at;
    walk[1] += steps;
}

// Each multiplication waits for the one before.
extern "C" __global__ void chain(f32 *out, f32 factor, f32 summand, u32 rounds)
{
    f32 x = f32(threadIdx.x);
#pragma unroll 16
    for (u32 i = 0; i < rounds; ++i)
        x = __fmaf_rn(x, factor, summand);
    out[u64(blockIdx.x) * blockDim.x + threadIdx.x] = x;
}

struct alignas(16) Vector {
    u32 item[4];
};

__device__ __forceinline__ u32 folded(const Vector &vector)
{
    return vector.item[0] ^ vector.item[1] ^ vector.item[2] ^ vector.item[3];
}

// Reads an array with K loads of 16 bytes from each thread on their way, and no more: the loop over them is not unrolled.
template <int K>
__device__ __forceinline__ void in_flight(const Vector *in, u32 *out, u64 vectors)
{
    const u64 thread = u64(blockIdx.x) * blockDim.x + threadIdx.x, step = u64(gridDim.x) * blockDim.x;
    u32 found = 0;
    u64 i = thread;
#pragma unroll 1
    for (; i + (K - 1) * step < vectors; i += K * step) {
        Vector flight[K];
#pragma unroll
        for (int k = 0; k < K; ++k)
            flight[k] = in[i + k * step];
#pragma unroll
        for (int k = 0; k < K; ++k)
            found ^= folded(flight[k]);
    }
#pragma unroll 1
    for (; i < vectors; i += step)
        found ^= folded(in[i]);
    out[thread] = found;
}

// A multiprocessor has one block, which may take all registers: else the compiler takes turns with fewer of them.
#define IN_FLIGHT(K) \
    extern "C" __global__ void __launch_bounds__(1024, 1) in_flight_##K(const Vector *in, u32 *out, u64 vectors) { in_flight<K>(in, out, vectors); }
IN_FLIGHT(1)
IN_FLIGHT(2)
IN_FLIGHT(4)
IN_FLIGHT(8)
