// Clusters: blocks that are on the device together, and read each other's shared memory.
// elements: i32 u32 i64 u64 f16 bf16 f32 f64
// compute: 90

#include "grid_stride.cuh"
#include "shuffles.cuh"

// Waits for all threads of the cluster; what they wrote before can be seen behind.
__device__ __forceinline__ void wait_for_cluster()
{
    asm volatile("barrier.cluster.arrive.aligned;\n\t"
                 "barrier.cluster.wait.aligned;" ::: "memory");
}

// What another block of the cluster has where this one has `mine`.
__device__ __forceinline__ T theirs(const T *mine, u32 rank)
{
    const u32 here = (u32)__cvta_generic_to_shared(mine);
    u32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank));
    union {
        T value;
        u32 word;
        u64 words;
    } found;
    if constexpr (sizeof(T) == 4)
        asm volatile("ld.shared::cluster.b32 %0, [%1];" : "=r"(found.word) : "r"(there) : "memory");
    else
        asm volatile("ld.shared::cluster.b64 %0, [%1];" : "=l"(found.words) : "r"(there) : "memory");
    return found.value;
}

// As `last_block`, with a level between block and grid: the blocks of a cluster leave their sums in shared memory, and the first warp
// of the first block folds them there. Partials, tickets and fences are an eighth.
extern "C" __global__ void cluster(const In *in, T *partials, T *out, u32 *tickets, u64 n)
{
    __shared__ T mine;
    __shared__ bool last;
    u32 rank, blocks, id, clusters;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(id));
    asm("mov.u32 %0, %%nclusterid.x;" : "=r"(clusters));
    T sum = add_block(add_grid_stride(in, n));
    if (threadIdx.x == 0)
        mine = sum;
    wait_for_cluster();
    if (rank == 0 && threadIdx.x < 32)
        sum = add_down(threadIdx.x < blocks ? theirs(&mine, threadIdx.x) : T(0));
    // A block must not leave while another still reads its memory.
    wait_for_cluster();
    if (rank > 0)
        return;
    if (threadIdx.x == 0) {
        partials[id] = sum;
        __threadfence();
        last = atomicInc(tickets, clusters - 1) == clusters - 1;
        __threadfence();
    }
    __syncthreads();
    if (!last)
        return;
    sum = 0;
    for (u32 i = threadIdx.x; i < clusters; i += blockDim.x)
        sum += partials[i];
    sum = add_block(sum);
    if (threadIdx.x == 0)
        *out = sum;
}
