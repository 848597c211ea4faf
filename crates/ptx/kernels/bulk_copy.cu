// compute: 90
// cp.async.bulk: one thread asks for a tile, the block waits at an mbarrier that counts its bytes.

extern "C" __global__ void bulk_sum(const int *in, int *out, unsigned tiles)
{
    __shared__ alignas(128) int tile[256];
    __shared__ alignas(8) unsigned long long arrived;
    const unsigned barrier = (unsigned)__cvta_generic_to_shared(&arrived);
    const unsigned place = (unsigned)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();
    int sum = 0;
    for (unsigned t = 0; t < tiles; t++) {
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"((unsigned)sizeof tile) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(place),
                         "l"(in + t * 256), "r"((unsigned)sizeof tile), "r"(barrier)
                         : "memory");
        }
        asm volatile("{\n\t"
                     ".reg .pred done;\n\t"
                     "again:\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
                     "@done bra over;\n\t"
                     "bra again;\n\t"
                     "over:\n\t"
                     "}" ::"r"(barrier), "r"(t % 2)
                     : "memory");
        for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
            sum += tile[i];
        // Nobody may still read when the next tile comes.
        __syncthreads();
    }
    out[threadIdx.x] = sum;
    if (threadIdx.x == 0)
        asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

// Out of shared memory again.
extern "C" __global__ void bulk_fill(int *out, int value)
{
    __shared__ alignas(128) int tile[256];
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
        tile[i] = value + (int)i;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + blockIdx.x * 256),
                     "r"((unsigned)__cvta_generic_to_shared(tile)), "r"((unsigned)sizeof tile)
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
