// As `faulty.cu`, of launches from the device.
// elements: u32
// compute: 90
// options: -rdc=true -lineinfo

#include "launches.cuh"

struct OnePair {
    T *in, *out;
};

extern "C" __global__ void faulty_nested_fold(T *in, T *out) { *out = in[0] + in[1]; }

// Every block launches, and nobody asks whether there was room: more launches than may be pending are lost.
extern "C" __global__ void faulty_nested(T *in, T *partials, T *out, u32 *counter, u64 n)
{
    if (threadIdx.x == 0)
        ask_for_launch((void *)faulty_nested_fold, 1, 1, OnePair{in + 2 * u64(blockIdx.x), partials + blockIdx.x});
}
