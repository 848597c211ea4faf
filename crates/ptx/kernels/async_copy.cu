// compute: 90
// cp.async: two buffers in shared memory, one filled while the other is folded.

__device__ __forceinline__ void copy16(void *shared, const void *global, unsigned bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(shared)), "l"(global), "r"(bytes)
                 : "memory");
}

// WAIT: whether copies are awaited before they are read.
template <bool WAIT>
__device__ __forceinline__ void staged(const float4 *in, float *out, unsigned tiles)
{
    __shared__ float4 buffer[2][128];
    float sum = 0.0f;
    copy16(&buffer[0][threadIdx.x], &in[threadIdx.x], tiles > 0 ? 16 : 0);
    asm volatile("cp.async.commit_group;" ::: "memory");
    for (unsigned t = 0; t < tiles; t++) {
        if (t + 1 < tiles)
            copy16(&buffer[(t + 1) % 2][threadIdx.x], &in[(t + 1) * blockDim.x + threadIdx.x], 16);
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (WAIT)
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        const float4 v = buffer[t % 2][threadIdx.x]; // fault: async_sum_unawaited
        sum += (v.x + v.y) + (v.z + v.w);
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[threadIdx.x] = sum;
}

extern "C" __global__ void async_sum(const float4 *in, float *out, unsigned tiles)
{
    staged<true>(in, out, tiles);
}

extern "C" __global__ void async_sum_unawaited(const float4 *in, float *out, unsigned tiles)
{
    staged<false>(in, out, tiles);
}

// The whole block waits for everybody's copies at an mbarrier.
extern "C" __global__ void async_mbarrier(const int *in, int *out)
{
    __shared__ int tile[128];
    __shared__ unsigned long long arrived;
    const unsigned barrier = (unsigned)__cvta_generic_to_shared(&arrived);
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(blockDim.x) : "memory");
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((unsigned)__cvta_generic_to_shared(&tile[threadIdx.x])), "l"(&in[threadIdx.x])
                 : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
    asm volatile("{\n\t"
                 ".reg .pred done;\n\t"
                 "again:\n\t"
                 "mbarrier.test_wait.parity.shared.b64 done, [%0], 0;\n\t"
                 "@!done bra again;\n\t"
                 "}" ::"r"(barrier)
                 : "memory");
    out[threadIdx.x] = tile[(threadIdx.x + 1) % blockDim.x];
}
