// compute: 90
// Folding a warp in one instruction, and electing a lane.

constexpr unsigned ALL = 0xffffffffu;

extern "C" __global__ void redux(const int *in, int *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[6 * i] = __reduce_add_sync(ALL, in[i]);
    out[6 * i + 1] = __reduce_min_sync(ALL, in[i]);
    out[6 * i + 2] = (int)__reduce_max_sync(ALL, (unsigned)in[i]);
    out[6 * i + 3] = (int)__reduce_and_sync(ALL, (unsigned)in[i]);
    out[6 * i + 4] = (int)__reduce_or_sync(ALL, (unsigned)in[i]);
    out[6 * i + 5] = (int)__reduce_xor_sync(ALL, (unsigned)in[i]);
}

extern "C" __global__ void elected(unsigned *out)
{
    unsigned lane, chosen;
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "elect.sync %0|p, 0xffffffff;\n\t"
                 "selp.u32 %1, 1, 0, p;\n\t"
                 "}"
                 : "=r"(lane), "=r"(chosen));
    out[2 * threadIdx.x] = lane;
    out[2 * threadIdx.x + 1] = chosen;
}

// Waits for the grid before it, if the launch lets them overlap.
extern "C" __global__ void dependent(const int *in, int *out)
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
    out[threadIdx.x] = in[threadIdx.x] + 1;
    asm volatile("griddepcontrol.launch_dependents;");
}
