// What every kernel of the archive looks like. `NAME_ELEMENT` is launched with whole warps in gridDim.x blocks and reduces n elements
// at data, of which the first has index start; dot takes as many of the same type at others. It leaves the payload of core's
// state in out.
//
// With rows in gridDim.y, the r-th begins r * row_bytes behind data (and others) and leaves its payload r * out_words words behind
// out. Each row's blocks have their own SCRATCH_ROW words of the scratch memory; a row of one block uses none.

#pragma once

#include "load.cuh"
#include "name.cuh"
#include "ticket.cuh"

// From compute capability 9.0 on a launch may come to the device while the one ahead of it on the stream still runs: it lets the
// next one come, and waits until all that was written before it is there.
static __device__ __forceinline__ void wait_for_earlier_launches()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Begins a kernel: KERNEL(name)(data, others, n, start, scratch, out) { what a row's blocks do }
#define KERNEL(name) KERNEL_OF(name, THREADS, BLOCKS)

// The same for launches of at most `threads` threads a block, of which `blocks` fit a multiprocessor.
#define KERNEL_OF(name, threads, blocks) \
    static __device__ __forceinline__ void reduce(const void *, const void *, u64, u64, u64 *, u64 *); \
    extern "C" __global__ void __launch_bounds__(threads, blocks) NAMED(name, ELEMENT)( \
        const char *data, const char *others, u64 n, u64 start, u64 row_bytes, u64 *scratch, u64 *out, u64 out_words) \
    { \
        wait_for_earlier_launches(); \
        const u64 before = blockIdx.y * row_bytes; \
        reduce(data + before, others + before, n, start, scratch + blockIdx.y * SCRATCH_ROW, out + blockIdx.y * out_words); \
    } \
    static __device__ __forceinline__ void reduce
