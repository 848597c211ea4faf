// What every kernel of the archive looks like. `NAME_ELEMENT` is launched with whole warps in gridDim.x blocks and reduces n elements
// at data, of which the first has index start; dot takes as many of the same type at others. It leaves the payload of core's
// state in out.
//
// With rows in gridDim.y, the r-th begins r * row_bytes behind data (and others) and leaves its payload r * out_words words behind
// out. Each row's blocks have their own SCRATCH_ROW words of the scratch memory; a row of one block uses none.
//
// `ready` says that the elements may be read before the launch ahead has ended: see dependent_launch.cuh.

#pragma once

#include "load.cuh"
#include "name.cuh"
#include "ticket.cuh"

// Begins a kernel: KERNEL(name)(data, others, n, start, scratch, out) { what a row's blocks do }
#define KERNEL(name) KERNEL_OF(name, THREADS, BLOCKS)

// The same for launches of at most `threads` threads a block, of which `blocks` fit a multiprocessor.
#define KERNEL_OF(name, threads, blocks) KERNEL_THAT(wait_for_launch_ahead(), name, threads, blocks)

// The same for kernels that wait themselves once their first reads are under way, as `walk` does. If the elements are not ready,
// that is too late.
#define DEPENDENT_KERNEL(name) DEPENDENT_KERNEL_OF(name, THREADS, BLOCKS)
#define DEPENDENT_KERNEL_OF(name, threads, blocks) \
    KERNEL_THAT(if (!ready) wait_for_launch_ahead(), name, threads, blocks)

#define KERNEL_THAT(begins, name, threads, blocks) \
    static __device__ __forceinline__ void reduce(const void *, const void *, u64, u64, u64 *, u64 *); \
    extern "C" __global__ void __launch_bounds__(threads, blocks) NAMED(name, ELEMENT)( \
        const char *data, const char *others, u64 n, u64 start, u64 row_bytes, u64 *scratch, u64 *out, u64 out_words, u32 ready) \
    { \
        begins; \
        const u64 before = blockIdx.y * row_bytes; \
        reduce(data + before, others + before, n, start, scratch + blockIdx.y * SCRATCH_ROW, out + blockIdx.y * out_words); \
    } \
    static __device__ __forceinline__ void reduce
