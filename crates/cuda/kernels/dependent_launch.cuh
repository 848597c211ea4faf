// Launches that come to the device while the one ahead of them on the stream still runs, from compute capability 9.0 on.
//
// A launch waits until all that was written before it is there, and only then lets the next one come. So where a launch runs, the
// one ahead of it has waited: what was written before that one is there. If that one is ours and writes none of the elements, they
// are `ready`, and are read before the wait, while it comes to its end. Such reads pass by the L1 cache, where what an older
// launch has read may still be.

#pragma once

#include "element.cuh"

static __device__ __forceinline__ void wait_for_launch_ahead()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// A read that may come before the wait, and stays ahead of it.
__device__ __forceinline__ uint4 read_before_wait(const uint4 *at)
{
    uint4 v;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(__cvta_generic_to_global(at)));
    return v;
}

// A read behind the wait of what the launch ahead has left, which passes by the L1 cache, too.
__device__ __forceinline__ u64 read_left(const u64 *at)
{
    u64 word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(__cvta_generic_to_global(at)) : "memory");
    return word;
}
