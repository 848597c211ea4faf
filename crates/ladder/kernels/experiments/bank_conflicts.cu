// Shared memory read in strides. It has 32 banks, each a word wide; words of one bank come one after the other.

#include "element.cuh"

constexpr u32 WORDS = 1024;

// Lanes read words that are `stride` apart, again and again, a word further each time. Wrapping around changes no bank, since the
// tile is a whole number of rows of banks. A row padded by a word is a stride of one more.
extern "C" __global__ void strided(u32 *out, u32 stride, u32 rounds)
{
    __shared__ u32 tile[WORDS];
    for (u32 i = threadIdx.x; i < WORDS; i += blockDim.x)
        tile[i] = i * 0x9e3779b1;
    __syncthreads();
    u32 found = 0, at = threadIdx.x % 32 * stride;
#pragma unroll 8
    for (u32 i = 0; i < rounds; ++i)
        found += tile[(at + i) % WORDS];
    out[u64(blockIdx.x) * blockDim.x + threadIdx.x] = found;
}
