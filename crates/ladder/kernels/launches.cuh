// Launches from the device.

#pragma once

#include "types.cuh"

// The compiler knows the second function, but blanks both names out.
#undef __cudaCDP2GetParameterBufferV2
#undef __cudaCDP2LaunchDeviceV2
extern "C" __device__ void *__cudaCDP2GetParameterBufferV2(void *kernel, dim3 grid, dim3 block, u32 shared);

// Asks for a grid of a kernel behind this one; whether there was room for it. `A` is laid out as the kernel's parameters.
template <class A>
__device__ __forceinline__ bool ask_for_launch(void *kernel, u32 blocks, u32 threads, A arguments)
{
    const auto TAIL = (cudaStream_t)3;
    A *buffer = (A *)__cudaCDP2GetParameterBufferV2(kernel, dim3(blocks), dim3(threads), 0);
    if (buffer)
        *buffer = arguments;
    return buffer && __cudaCDP2LaunchDeviceV2(buffer, TAIL) == 0;
}

// Has it launched. A fold that is not launched is a wrong sum: better none.
template <class A>
__device__ __forceinline__ void launch_behind(void *kernel, u32 blocks, u32 threads, A arguments)
{
    if (!ask_for_launch(kernel, blocks, threads, arguments))
        __trap();
}
