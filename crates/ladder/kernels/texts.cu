// The texts' listings, in words of our own: `ladder show --faulty` runs them on the interpreter, and tells what it finds. Nothing else
// does. The first letter is the text's. Guards, loops, barriers, masks and memory are as printed, but for the repairs that
// `src/faulty/printed.rs` lists. What the host code does is in `src/faulty/listings.rs`.
// elements: u32
// options: -lineinfo
//
// All have the same parameters: the elements, a partial for each block, the number of elements.

#include "types.cuh"

#define TEXT(name) extern "C" __global__ void name(T *in, T *partials, u64 n)

// As many slots as the launch gives a block: its threads.
extern __shared__ T dynamic_slots[];

// Threads past the end leave, and the others wait at barriers without them. Partners past the end are read all the same. The levels
// are written over the input: a second run sums what the first has left.
TEXT(p_neighbored)
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
TEXT(p_neighbored_compact)
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
TEXT(p_interleaved)
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

// The levels of a block, in place in global memory.
__device__ __forceinline__ void fold_in_place(T *mine, T *partials)
{
    const u32 tid = threadIdx.x;
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid < half)
            mine[tid] += mine[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = mine[0];
}

// All K tiles are folded onto the first one, in the input itself. One test guards all of them: where it fails, the thread keeps its
// element of the first tile, and the others are forgotten.
template <int K>
__device__ __forceinline__ void p_unroll(T *in, T *partials, u64 n)
{
    const u32 tid = threadIdx.x, width = blockDim.x;
    const u64 i = u64(blockIdx.x) * K * width + tid;
    T *mine = in + u64(blockIdx.x) * K * width;
    if (i + (K - 1) * width < n) {
        T sum = 0;
        for (int k = 0; k < K; ++k)
            sum += in[i + k * width];
        in[i] = sum;
    }
    __syncthreads();
    fold_in_place(mine, partials);
}

TEXT(p_unroll2) { p_unroll<2>(in, partials, n); }
TEXT(p_unroll8) { p_unroll<8>(in, partials, n); }
TEXT(p_unroll16) { p_unroll<16>(in, partials, n); }

// Eight tiles by a pointer that steps, behind the same test.
TEXT(p_unroll8_loop)
{
    const u32 tid = threadIdx.x, width = blockDim.x;
    const u64 i = u64(blockIdx.x) * 8 * width + tid;
    T *mine = in + u64(blockIdx.x) * 8 * width;
    if (i + 7 * width < n) {
        T sum = 0;
        const T *at = in + i;
        for (int k = 0; k < 8; ++k) {
            sum += *at;
            at += width;
        }
        in[i] = sum;
    }
    __syncthreads();
    fold_in_place(mine, partials);
}

// Eight tiles onto the first one, behind one test.
__device__ __forceinline__ T *fold_eight(T *in, u64 n)
{
    const u32 width = blockDim.x;
    const u64 i = u64(blockIdx.x) * 8 * width + threadIdx.x;
    if (i + 7 * width < n)
        in[i] = in[i] + in[i + width] + in[i + 2 * width] + in[i + 3 * width] + in[i + 4 * width] + in[i + 5 * width] + in[i + 6 * width] + in[i + 7 * width];
    __syncthreads();
    return in + u64(blockIdx.x) * 8 * width;
}

// The last warp trusts `volatile`: memory is read and written each time, but nothing says in which order lanes do it. Nothing asks how
// many threads there are: in a block of 32 the first step adds another tile.
__device__ __forceinline__ void fold_volatile(volatile T *warp)
{
    const u32 tid = threadIdx.x;
    warp[tid] += warp[tid + 32];
    warp[tid] += warp[tid + 16];
    warp[tid] += warp[tid + 8];
    warp[tid] += warp[tid + 4];
    warp[tid] += warp[tid + 2];
    warp[tid] += warp[tid + 1];
}

TEXT(p_unroll_warps8)
{
    const u32 tid = threadIdx.x;
    T *mine = fold_eight(in, n);
    for (u32 half = blockDim.x / 2; half > 32; half /= 2) {
        if (tid < half)
            mine[tid] += mine[tid + half];
        __syncthreads();
    }
    if (tid < 32)
        fold_volatile(mine);
    if (tid == 0)
        partials[blockIdx.x] = mine[0];
}

// The last six levels with barriers of the block, and all 32 lanes of the first warp at each of them, as the exercise asks: lane t
// reads element t + 16 while lane t + 16 writes it.
TEXT(p_unroll_warps8_barrier)
{
    const u32 tid = threadIdx.x;
    T *mine = fold_eight(in, n);
    for (u32 half = blockDim.x / 2; half > 32; half /= 2) {
        if (tid < half)
            mine[tid] += mine[tid + half];
        __syncthreads();
    }
#pragma unroll
    for (u32 half = 32; half > 0; half /= 2) {
        if (tid < 32)
            mine[tid] += mine[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = mine[0];
}

// Every level written out, as far as `volatile`.
TEXT(p_complete_unroll8)
{
    const u32 tid = threadIdx.x, width = blockDim.x;
    T *mine = fold_eight(in, n);
    if (width >= 1024 && tid < 512)
        mine[tid] += mine[tid + 512];
    __syncthreads();
    if (width >= 512 && tid < 256)
        mine[tid] += mine[tid + 256];
    __syncthreads();
    if (width >= 256 && tid < 128)
        mine[tid] += mine[tid + 128];
    __syncthreads();
    if (width >= 128 && tid < 64)
        mine[tid] += mine[tid + 64];
    __syncthreads();
    if (tid < 32)
        fold_volatile(mine);
    if (tid == 0)
        partials[blockIdx.x] = mine[0];
}

// The same for a number of threads that the compiler knows.
template <u32 WIDTH>
__device__ __forceinline__ void p_complete_unroll8_static(T *in, T *partials, u64 n)
{
    const u32 tid = threadIdx.x;
    T *mine = fold_eight(in, n);
    if (WIDTH >= 1024 && tid < 512)
        mine[tid] += mine[tid + 512];
    __syncthreads();
    if (WIDTH >= 512 && tid < 256)
        mine[tid] += mine[tid + 256];
    __syncthreads();
    if (WIDTH >= 256 && tid < 128)
        mine[tid] += mine[tid + 128];
    __syncthreads();
    if (WIDTH >= 128 && tid < 64)
        mine[tid] += mine[tid + 64];
    __syncthreads();
    if (tid < 32)
        fold_volatile(mine);
    if (tid == 0)
        partials[blockIdx.x] = mine[0];
}

TEXT(p_complete_unroll8_static_128) { p_complete_unroll8_static<128>(in, partials, n); }

// A thread launches a child as soon as it has written its own value, and the child reads those of the whole block. What the child
// does is done here by the thread that would have launched it: it comes after that thread, and after no other.
TEXT(p_nested_nosync)
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

// One child a level for all blocks, which the first thread of the first block launches when it has written its own value; the child reads
// those of all blocks. A block has half as many threads as its tile has elements. As above, the thread that would have launched the
// children does what they do.
TEXT(p_nested_wide)
{
    const u32 tid = threadIdx.x, size = 2 * blockDim.x;
    T *mine = in + u64(blockIdx.x) * size;
    mine[tid] += mine[tid + blockDim.x];
    if (blockIdx.x > 0 || tid > 0)
        return;
    for (u32 half = blockDim.x / 2; half > 0; half /= 2)
        for (u32 block = 0; block < gridDim.x; ++block)
            for (u32 child = 0; child < half; ++child) {
                T *tile = in + u64(block) * size;
                if (half > 1)
                    tile[child] += tile[child + half];
                else
                    partials[block] = tile[0] + tile[1];
            }
}

// The first version of the series: in global memory, without a test of the end of the array and without a return.
TEXT(f_neighbored)
{
    const u32 tid = threadIdx.x;
    T *mine = in + u64(blockIdx.x) * blockDim.x;
    for (u32 stride = 1; stride < blockDim.x; stride *= 2) {
        if (tid % (2 * stride) == 0)
            mine[tid] += mine[tid + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = mine[0];
}

// Partners are added without a test that there is one: a block whose number of threads is no power of two reads slots that no thread
// wrote. The second launch has one block of as many threads as there are partials.
TEXT(f_shared_neighbored)
{
    __shared__ T slots[1024];
    const u32 tid = threadIdx.x;
    const u64 i = u64(blockIdx.x) * blockDim.x + tid;
    slots[tid] = i < n ? in[i] : T(0);
    __syncthreads();
    for (u32 stride = 1; stride < blockDim.x; stride *= 2) {
        if (tid % (2 * stride) == 0)
            slots[tid] += slots[tid + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

// Two elements a thread. The first one is tested, the second one is not. The test is of the array's length, which the text has as a
// constant: a second launch asks for it, too, and not for the number of partials.
TEXT(f_shared_first_add)
{
    __shared__ T slots[1024];
    const u32 tid = threadIdx.x;
    const u64 i = u64(blockIdx.x) * 2 * blockDim.x + tid;
    slots[tid] = i < n ? in[i] + in[i + blockDim.x] : T(0);
    __syncthreads();
    for (u32 stride = 1; stride < blockDim.x; stride *= 2) {
        if (tid % (2 * stride) == 0)
            slots[tid] += slots[tid + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

// The levels of a block in shared memory: right for powers of two, and nothing asks for them.
__device__ __forceinline__ void fold_shared(T *slots, T *partials)
{
    const u32 tid = threadIdx.x;
    __syncthreads();
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

// An element a thread. The second launch has one block of as many threads as there are partials: 25 come to 12 and one that is left
// out, 12 to 6 and 3, and 3 to 1 and another one that is left out.
TEXT(s_block_sum)
{
    __shared__ T slots[1024];
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    slots[threadIdx.x] = i < n ? in[i] : T(0);
    fold_shared(slots, partials);
}

// What a thread finds in steps of the whole grid.
__device__ __forceinline__ T add_in_steps(const T *in, u64 n)
{
    T sum = 0;
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += u64(gridDim.x) * blockDim.x)
        sum += in[i];
    return sum;
}

TEXT(h_two_pass_shared)
{
    dynamic_slots[threadIdx.x] = add_in_steps(in, n);
    fold_shared(dynamic_slots, partials);
}

// The loop as printed: its step compares where it should shift, so that nothing changes.
__device__ __forceinline__ void fold_for_ever(T *slots, u32 least)
{
    const u32 tid = threadIdx.x;
    __syncthreads();
    for (u32 half = blockDim.x / 2; half > least; (void)(half >= 1)) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
}

TEXT(h_two_pass_shared_as_printed)
{
    dynamic_slots[threadIdx.x] = add_in_steps(in, n);
    fold_for_ever(dynamic_slots, 0);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = dynamic_slots[0];
}

// The last warp trusts `volatile`, in shared memory. The first step asks for more than 32 threads; the second one does not, and a block
// of 32 or fewer reads past its slots.
__device__ __forceinline__ void fold_last_warp(volatile T *warp, T *partials)
{
    const u32 tid = threadIdx.x;
    if (tid < 32) {
        if (blockDim.x > 32)
            warp[tid] += warp[tid + 32];
        warp[tid] += warp[tid + 16];
        warp[tid] += warp[tid + 8];
        warp[tid] += warp[tid + 4];
        warp[tid] += warp[tid + 2];
        warp[tid] += warp[tid + 1];
    }
    if (tid == 0)
        partials[blockIdx.x] = warp[0];
}

TEXT(h_two_pass_warp)
{
    const u32 tid = threadIdx.x;
    dynamic_slots[tid] = add_in_steps(in, n);
    __syncthreads();
    for (u32 half = blockDim.x / 2; half > 32; half /= 2) {
        if (tid < half)
            dynamic_slots[tid] += dynamic_slots[tid + half];
        __syncthreads();
    }
    fold_last_warp(dynamic_slots, partials);
}

TEXT(h_two_pass_warp_as_printed)
{
    dynamic_slots[threadIdx.x] = add_in_steps(in, n);
    fold_for_ever(dynamic_slots, 32);
    fold_last_warp(dynamic_slots, partials);
}

// Every level written out, for a number of threads that the compiler knows. Each step of the last warp asks whether the block is large
// enough to have two halves of that size; 32 lanes take the step all the same.
template <u32 WIDTH>
__device__ __forceinline__ void h_two_pass_static(const T *in, T *partials, u64 n)
{
    T *slots = dynamic_slots;
    const u32 tid = threadIdx.x;
    slots[tid] = add_in_steps(in, n);
    __syncthreads();
    if (WIDTH >= 1024) {
        if (tid < 512)
            slots[tid] += slots[tid + 512];
        __syncthreads();
    }
    if (WIDTH >= 512) {
        if (tid < 256)
            slots[tid] += slots[tid + 256];
        __syncthreads();
    }
    if (WIDTH >= 256) {
        if (tid < 128)
            slots[tid] += slots[tid + 128];
        __syncthreads();
    }
    if (WIDTH >= 128) {
        if (tid < 64)
            slots[tid] += slots[tid + 64];
        __syncthreads();
    }
    if (tid < 32) {
        volatile T *warp = slots;
        if (WIDTH >= 64)
            warp[tid] += warp[tid + 32];
        if (WIDTH >= 32)
            warp[tid] += warp[tid + 16];
        if (WIDTH >= 16)
            warp[tid] += warp[tid + 8];
        if (WIDTH >= 8)
            warp[tid] += warp[tid + 4];
        if (WIDTH >= 4)
            warp[tid] += warp[tid + 2];
        if (WIDTH >= 2)
            warp[tid] += warp[tid + 1];
        if (tid == 0)
            partials[blockIdx.x] = warp[0];
    }
}

TEXT(h_two_pass_static_128) { h_two_pass_static<128>(in, partials, n); }
TEXT(h_two_pass_static_32) { h_two_pass_static<32>(in, partials, n); }

// A warp's sum in its lane 0. The mask names the lanes that take part.
__device__ __forceinline__ T w_fold_warp(T sum, u32 mask)
{
    for (u32 distance = 16; distance > 0; distance /= 2)
        sum += __shfl_down_sync(mask, sum, distance);
    return sum;
}

// Both launches go through what they read in steps of their grid, so that any number of partials is added.
__device__ __forceinline__ void w_fold_grid(const T *in, T *partials, u64 n, u32 mask)
{
    __shared__ T slots[32];
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    T sum = w_fold_warp(add_in_steps(in, n), mask);
    if (lane == 0)
        slots[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = w_fold_warp(lane < blockDim.x / 32 ? slots[lane] : T(0), mask);
        if (lane == 0)
            partials[blockIdx.x] = sum;
    }
}

// 31 is the number of the last lane and not a mask of all of them.
TEXT(w_warp_shuffle) { w_fold_grid(in, partials, n, warpSize - 1); }

// With a right mask: what is left is `blockDim.x / 32`, which forgets the last warp of a block that is not whole warps.
TEXT(w_warp_shuffle_of_all_lanes) { w_fold_grid(in, partials, n, 0xffffffff); }

// The exchange with the same mask. The text has the function alone; the kernel around it is ours.
TEXT(w_warp_allreduce)
{
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    T sum = i < n ? in[i] : T(0);
    for (u32 bit = warpSize / 2; bit > 0; bit /= 2)
        sum += __shfl_xor_sync(warpSize - 1, sum, bit);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}
