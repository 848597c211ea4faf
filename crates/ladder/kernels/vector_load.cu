// Wide loads: sixteen bytes a lane, and several of them on their way before the first is needed.
// elements: i32 u32 i64 u64 f16 bf16 f32 f64

#include "shuffles.cuh"

// What one load of sixteen bytes brings.
template <class X>
struct alignas(16) Vector {
    static constexpr u32 COUNT = 16 / sizeof(X);
    X item[COUNT];
};

template <class X>
__device__ __forceinline__ T add_vector(const Vector<X> &vector)
{
    T sum = value(vector.item[0]);
#pragma unroll
    for (u32 k = 1; k < Vector<X>::COUNT; ++k)
        sum += value(vector.item[k]);
    return sum;
}

// A quarter to an eighth of the load instructions, and four times sixteen bytes in flight for each thread: what hides the memory's
// latency is bytes on their way, not threads. An array need not begin or end at a multiple of sixteen bytes: the few elements before
// and behind the vectors are added one by one, by threads that go on with the vectors.
template <class X>
__device__ __forceinline__ void vector_load_of(const X *in, T *out, u64 n)
{
    constexpr u32 COUNT = Vector<X>::COUNT;
    const u64 thread = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    const u64 step = u64(gridDim.x) * blockDim.x;
    const u64 before = (0 - u64(in)) % 16 / sizeof(X);
    const u64 head = before < n ? before : n;
    const u64 vectors = (n - head) / COUNT;
    const auto *body = reinterpret_cast<const Vector<X> *>(in + head);
    T sum = thread < head ? value(in[thread]) : T(0);
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
    const u64 behind = head + vectors * COUNT + thread;
    if (behind < n)
        sum += value(in[behind]);
    sum = add_block(sum);
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}
TWO_LAUNCHES(vector_load)
