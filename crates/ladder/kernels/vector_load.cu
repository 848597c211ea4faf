// Wide loads: sixteen bytes a lane, and several of them on their way before the first is needed.
// elements: i32 u32 i64 u64 f16 bf16 f32 f64

#include "shuffles.cuh"
#include "vectors.cuh"

// A quarter to an eighth of the load instructions, and four times sixteen bytes in flight for each thread: what hides the memory's
// latency is bytes on their way, not threads. The ends are added by threads that go on with the vectors.
template <class X>
__device__ __forceinline__ void vector_load_of(const X *in, T *out, u64 n)
{
    const u64 thread = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    const u64 step = u64(gridDim.x) * blockDim.x;
    const Split<X> split(in, n);
    const u64 vectors = split.vectors;
    const Vector<X> *body = split.body();
    T sum = split.ends(thread);
    u64 i = thread;
    for (; i + 3 * step < vectors; i += 4 * step) {
        Vector<X> flight[4];
#pragma unroll
        for (u32 k = 0; k < 4; ++k)
            flight[k] = body[i + k * step];
#pragma unroll
        for (u32 k = 0; k < 4; ++k)
            sum += add_vector(flight[k]);
    }
    for (; i < vectors; i += step)
        sum += add_vector(body[i]);
    sum = add_block(sum);
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}
TWO_LAUNCHES(vector_load)
