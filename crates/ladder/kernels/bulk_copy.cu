// Bulk copies: one thread asks for a whole tile, which comes to shared memory on its own.
// elements: i32 u32 i64 u64 f16 bf16 f32 f64
// compute: 90

#include "shuffles.cuh"
#include "vectors.cuh"

constexpr u32 STAGES = 4;

// A place in shared memory, as instructions name it.
__device__ __forceinline__ u32 place(const void *p) { return (u32)__cvta_generic_to_shared(p); }

// Begins to copy `bytes` bytes, a multiple of sixteen as both addresses are; the barrier's phase ends when all have come.
__device__ __forceinline__ void begin_copy(void *to, const void *from, u32 bytes, u64 *arrived)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(place(arrived)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(place(to)),
                 "l"(from), "r"(bytes), "r"(place(arrived))
                 : "memory");
}

// Waits until the phase of this parity has ended.
__device__ __forceinline__ void wait_for_copy(u64 *arrived, u32 parity)
{
    asm volatile("{\n\t"
                 ".reg .pred done;\n\t"
                 "again:\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
                 "@done bra over;\n\t"
                 "bra again;\n\t"
                 "over:\n\t"
                 "}" ::"r"(place(arrived)),
                 "r"(parity)
                 : "memory");
}

// As `vector_load`, but nobody holds registers for what is on its way: the first thread has tiles of sixteen bytes a thread copied
// into four stages, and asks for the next one as soon as all have read a stage. What is left behind the whole tiles, and the ends,
// are loaded as ever.
template <class X>
__device__ __forceinline__ void bulk_copy_of(const X *in, T *out, u64 n)
{
    extern __shared__ __align__(128) char shared[];
    __shared__ alignas(8) u64 arrived[STAGES];
    const u32 tid = threadIdx.x, width = blockDim.x;
    const u64 thread = u64(blockIdx.x) * width + tid;
    const Split<X> split(in, n);
    const Vector<X> *body = split.body();
    Vector<X> *stages = reinterpret_cast<Vector<X> *>(shared);
    const u64 tiles = split.vectors / width;
    const auto begin = [&](u64 tile, u32 stage) {
        begin_copy(stages + stage * width, body + tile * width, width * 16, &arrived[stage]);
    };
    if (tid == 0) {
        for (u32 stage = 0; stage < STAGES; ++stage)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(place(&arrived[stage])) : "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
        for (u32 stage = 0; stage < STAGES; ++stage) {
            const u64 tile = blockIdx.x + u64(stage) * gridDim.x;
            if (tile < tiles)
                begin(tile, stage);
        }
    }
    __syncthreads();
    T sum = split.ends(thread);
    u32 stage = 0, parity = 0;
    for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        wait_for_copy(&arrived[stage], parity);
        sum += add_vector(stages[stage * width + tid]);
        // Nobody may still read when the next tile comes.
        __syncthreads();
        const u64 next = tile + u64(STAGES) * gridDim.x;
        if (tid == 0 && next < tiles)
            begin(next, stage);
        stage = (stage + 1) % STAGES;
        parity ^= stage == 0;
    }
    const u64 rest = tiles * width + thread;
    if (rest < split.vectors)
        sum += add_vector(body[rest]);
    sum = add_block(sum);
    if (tid == 0)
        out[blockIdx.x] = sum;
}
TWO_LAUNCHES(bulk_copy)
