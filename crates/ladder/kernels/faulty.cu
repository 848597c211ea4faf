// The faults of the classic listings, made again: `ladder show --faulty` runs them on the interpreter, and tells what it finds. Nothing
// else does.
// elements: u32
// options: -lineinfo
//
// All have the same parameters, of which they use what they need: the elements, a partial for each block, the answer, and a counter.

#include "types.cuh"

#define FAULTY(name) extern "C" __global__ void name(T *in, T *partials, T *out, u32 *counter, u64 n)

// Whoever is past the end leaves, and the others wait at barriers without them. Partners past the end are read all the same. The
// levels are written over the input: a second run sums what the first has left.
FAULTY(faulty_neighbored)
{
    const u32 tid = threadIdx.x;
    const u64 i = u64(blockIdx.x) * blockDim.x + tid;
    T *mine = in + u64(blockIdx.x) * blockDim.x;
    if (i >= n)
        return;
    for (u32 stride = 1; stride < blockDim.x; stride *= 2) {
        if (tid % (2 * stride) == 0)
            mine[tid] += mine[tid + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = mine[0];
}

// The same with the active threads side by side.
FAULTY(faulty_neighbored_compact)
{
    const u32 tid = threadIdx.x;
    const u64 i = u64(blockIdx.x) * blockDim.x + tid;
    T *mine = in + u64(blockIdx.x) * blockDim.x;
    if (i >= n)
        return;
    for (u32 stride = 1; stride < blockDim.x; stride *= 2) {
        const u32 at = 2 * stride * tid;
        if (at < blockDim.x)
            mine[at] += mine[at + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = mine[0];
}

// Halves that are halved again: 96 threads come to 3, and the half of 3 is 1, which leaves one value out.
FAULTY(faulty_interleaved)
{
    const u32 tid = threadIdx.x;
    const u64 i = u64(blockIdx.x) * blockDim.x + tid;
    T *mine = in + u64(blockIdx.x) * blockDim.x;
    if (i >= n)
        return;
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid < half)
            mine[tid] += mine[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = mine[0];
}

// A second launch has one block, and a block at most 1024 threads: of more partials the rest is left out.
FAULTY(faulty_shared_neighbored)
{
    __shared__ T slots[1024];
    const u32 tid = threadIdx.x;
    const u64 i = u64(blockIdx.x) * blockDim.x + tid;
    slots[tid] = i < n ? in[i] : T(0);
    __syncthreads();
    for (u32 stride = 1; stride < blockDim.x; stride *= 2) {
        if (tid % (2 * stride) == 0 && tid + stride < blockDim.x)
            slots[tid] += slots[tid + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

// The first element is asked for, the second is not.
FAULTY(faulty_shared_first_add)
{
    __shared__ T slots[1024];
    const u32 tid = threadIdx.x;
    const u64 i = u64(blockIdx.x) * 2 * blockDim.x + tid;
    slots[tid] = i < n ? in[i] + in[i + blockDim.x] : T(0);
    __syncthreads();
    for (u32 stride = 1; stride < blockDim.x; stride *= 2) {
        if (tid % (2 * stride) == 0 && tid + stride < blockDim.x)
            slots[tid] += slots[tid + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

// All tiles of a thread or none: a thread whose last element is past the end adds none of the others either.
template <int K>
__device__ __forceinline__ void all_or_nothing(T *in, T *partials, u64 n)
{
    __shared__ T slots[1024];
    const u32 tid = threadIdx.x, width = blockDim.x;
    const u64 i = u64(blockIdx.x) * K * width + tid;
    T sum = 0;
    if (i + (K - 1) * width < n)
        for (int k = 0; k < K; ++k)
            sum += in[i + k * width];
    slots[tid] = sum;
    __syncthreads();
    for (u32 half = width / 2; half > 0; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

FAULTY(faulty_unroll2) { all_or_nothing<2>(in, partials, n); }
FAULTY(faulty_unroll4) { all_or_nothing<4>(in, partials, n); }
FAULTY(faulty_unroll8) { all_or_nothing<8>(in, partials, n); }
FAULTY(faulty_unroll16) { all_or_nothing<16>(in, partials, n); }

// The last warp trusts `volatile`: memory is read and written each time, but nobody says in which order lanes do it. And a block of 32
// has no element 32 places further on.
FAULTY(faulty_unroll_warps8)
{
    const u32 tid = threadIdx.x;
    T *mine = in + u64(blockIdx.x) * blockDim.x;
    for (u32 half = blockDim.x / 2; half > 32; half /= 2) {
        if (tid < half)
            mine[tid] += mine[tid + half];
        __syncthreads();
    }
    if (tid < 32) {
        volatile T *warp = mine;
        warp[tid] += warp[tid + 32];
        warp[tid] += warp[tid + 16];
        warp[tid] += warp[tid + 8];
        warp[tid] += warp[tid + 4];
        warp[tid] += warp[tid + 2];
        warp[tid] += warp[tid + 1];
    }
    if (tid == 0)
        partials[blockIdx.x] = mine[0];
}

// The same in shared memory.
FAULTY(faulty_two_pass_warp)
{
    __shared__ T slots[1024];
    const u32 tid = threadIdx.x;
    T sum = 0;
    for (u64 i = u64(blockIdx.x) * blockDim.x + tid; i < n; i += u64(gridDim.x) * blockDim.x)
        sum += in[i];
    slots[tid] = sum;
    __syncthreads();
    for (u32 half = blockDim.x / 2; half > 32; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid < 32) {
        volatile T *warp = slots;
        warp[tid] += warp[tid + 32];
        warp[tid] += warp[tid + 16];
        warp[tid] += warp[tid + 8];
        warp[tid] += warp[tid + 4];
        warp[tid] += warp[tid + 2];
        warp[tid] += warp[tid + 1];
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

// Halves in shared memory: right for powers of two, and nobody asks.
FAULTY(faulty_two_pass_shared)
{
    __shared__ T slots[1024];
    const u32 tid = threadIdx.x;
    T sum = 0;
    for (u64 i = u64(blockIdx.x) * blockDim.x + tid; i < n; i += u64(gridDim.x) * blockDim.x)
        sum += in[i];
    slots[tid] = sum;
    __syncthreads();
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

// A thread launches a child as soon as it has written its own value, and the child reads those of the whole block. What the child
// does is done here by the thread that would have launched it: it comes after that thread, and after nobody else.
FAULTY(faulty_nested_nosync)
{
    const u32 tid = threadIdx.x;
    T *mine = in + u64(blockIdx.x) * blockDim.x;
    u32 half = blockDim.x / 2;
    if (tid < half)
        mine[tid] += mine[tid + half];
    if (tid > 0)
        return;
    for (half /= 2; half > 0; half /= 2)
        for (u32 child = 0; child < half; ++child)
            mine[child] += mine[child + half];
    partials[blockIdx.x] = mine[0];
}

// The same with one child for all blocks: the first block does not know how far the others are.
FAULTY(faulty_nested_wide)
{
    const u32 tid = threadIdx.x, half = blockDim.x / 2;
    T *mine = in + u64(blockIdx.x) * blockDim.x;
    if (tid < half)
        mine[tid] += mine[tid + half];
    __syncthreads();
    if (blockIdx.x > 0 || tid > 0)
        return;
    for (u32 block = 0; block < gridDim.x; ++block) {
        T sum = 0;
        for (u32 child = 0; child < half; ++child)
            sum += in[u64(block) * blockDim.x + child];
        partials[block] = sum;
    }
}

// 31 is the number of the last lane and not a mask of all of them.
FAULTY(faulty_warp_shuffle)
{
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    T sum = i < n ? in[i] : T(0);
    for (u32 distance = 16; distance > 0; distance /= 2)
        sum += __shfl_down_sync(warpSize - 1, sum, distance);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

// The mask names all lanes, and those past the end have left.
FAULTY(faulty_warp_allreduce)
{
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    T sum = in[i];
    for (u32 bit = 16; bit > 0; bit /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, bit);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

// A minimum that fills up with 0.
FAULTY(faulty_any_op)
{
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    T least = i < n ? in[i] : T(0);
    for (u32 distance = 16; distance > 0; distance /= 2) {
        const T other = __shfl_down_sync(0xffffffff, least, distance);
        least = other < least ? other : least;
    }
    if (threadIdx.x == 0)
        partials[blockIdx.x] = least;
}

// Four elements a load from wherever the array begins; what is left behind the last four is not added.
FAULTY(faulty_vector_load)
{
    const uint4 *vectors = reinterpret_cast<const uint4 *>(in);
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    T sum = 0;
    if (i < n / 4)
        sum = vectors[i].x + vectors[i].y + vectors[i].z + vectors[i].w;
    for (u32 distance = 16; distance > 0; distance /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, distance);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

// No fence between a partial and its ticket: whoever draws the last ticket may read partials that have not arrived. And nobody sets
// the tickets back: in a second run no block is the last.
FAULTY(faulty_last_block)
{
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    T sum = i < n ? in[i] : T(0);
    for (u32 distance = 16; distance > 0; distance /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, distance);
    if (threadIdx.x > 0)
        return;
    partials[blockIdx.x] = sum;
    if (atomicAdd(counter, 1) != gridDim.x - 1)
        return;
    sum = 0;
    for (u32 block = 0; block < gridDim.x; ++block)
        sum += partials[block];
    *out = sum;
}

// A barrier of the grid in an ordinary launch: blocks that are on the device wait for blocks that get no place there.
FAULTY(faulty_grid_sync)
{
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = 1;
        __threadfence();
        atomicAdd(counter, 1);
        while (*(volatile u32 *)counter < gridDim.x) {
        }
        __threadfence();
    }
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        T sum = 0;
        for (u32 block = 0; block < gridDim.x; ++block)
            sum += partials[block];
        *out = sum;
    }
}
