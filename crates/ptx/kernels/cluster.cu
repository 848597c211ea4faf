// compute: 90
// Blocks of a cluster fold through each other's shared memory.

__device__ __forceinline__ unsigned rank_in_cluster()
{
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ void wait_for_cluster()
{
    asm volatile("barrier.cluster.arrive.aligned;\n\t"
                 "barrier.cluster.wait.aligned;" ::: "memory");
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_sum(const int *in, int *out, unsigned n)
{
    __shared__ int total;
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    atomicAdd(&total, i < n ? in[i] : 0);
    wait_for_cluster();
    if (threadIdx.x == 0) {
        const unsigned other = rank_in_cluster() ^ 1;
        unsigned here = (unsigned)__cvta_generic_to_shared(&total), there;
        int theirs;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(other));
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(theirs) : "r"(there) : "memory");
        out[blockIdx.x] = total + theirs;
    }
    // A block must not end while another still reads its memory.
    wait_for_cluster();
}

// What the cluster's registers say.
extern "C" __global__ void cluster_shape(unsigned *out)
{
    unsigned id, count, rank, blocks, explicitly;
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(id));
    asm("mov.u32 %0, %%nclusterid.x;" : "=r"(count));
    asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    asm("{\n\t.reg .pred p;\n\tmov.pred p, %%is_explicit_cluster;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(explicitly));
    if (threadIdx.x == 0) {
        out[5 * blockIdx.x] = id;
        out[5 * blockIdx.x + 1] = count;
        out[5 * blockIdx.x + 2] = rank;
        out[5 * blockIdx.x + 3] = blocks;
        out[5 * blockIdx.x + 4] = explicitly;
    }
}
