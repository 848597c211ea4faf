// What a warp's lanes can tell each other without memory.

constexpr unsigned ALL = 0xffffffffu;

extern "C" __global__ void votes(const int *in, unsigned *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const int v = in[i];
    out[8 * i] = __ballot_sync(ALL, v > 0);
    out[8 * i + 1] = __all_sync(ALL, v > 0);
    out[8 * i + 2] = __any_sync(ALL, v > 0);
    out[8 * i + 3] = __uni_sync(ALL, v > 0);
    out[8 * i + 4] = __match_any_sync(ALL, v);
    int same;
    out[8 * i + 5] = __match_all_sync(ALL, (long long)v / 4, &same);
    out[8 * i + 6] = same;
    unsigned active = 0;
    if (v & 1)
        active = __activemask();
    out[8 * i + 7] = active;
}

// One atomic a warp: the lanes that are there elect a leader, which adds for all.
extern "C" __global__ void aggregated(const int *in, unsigned *count, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] > 0) {
        const unsigned mask = __activemask();
        unsigned before;
        asm("mov.u32 %0, %%lanemask_lt;" : "=r"(before));
        if (__popc(mask & before) == 0)
            atomicAdd(count, (unsigned)__popc(mask));
    }
}

extern "C" __global__ void block_votes(const int *in, int *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const int v = in[i];
    out[3 * i] = __syncthreads_count(v > 0);
    out[3 * i + 1] = __syncthreads_and(v > 0);
    out[3 * i + 2] = __syncthreads_or(v > 0);
}

// Producers arrive at a barrier and go on, consumers wait there.
extern "C" __global__ void handed_over(int *out)
{
    __shared__ int slots[32];
    if (threadIdx.x < 32) {
        slots[threadIdx.x] = (int)(threadIdx.x * threadIdx.x);
        __threadfence_block();
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else if (threadIdx.x < 64) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[threadIdx.x - 32] = slots[63 - threadIdx.x];
    }
}
