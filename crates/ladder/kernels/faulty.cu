// Mistakes that are often made with the techniques of later rungs, which are in none of the texts: `ladder show --faulty` runs them on
// the interpreter, and tells what it finds. Nothing else does.
// elements: u32
// options: -lineinfo
//
// All have the same parameters, of which they use what they need: the elements, a partial for each block, the answer, and a counter.

#include "types.cuh"

#define FAULTY(name) extern "C" __global__ void name(T *in, T *partials, T *out, u32 *counter, u64 n)

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

// A minimum that fills up with 0, which is the identity of sums.
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
