// CUB's sum as a function that a program loads: `ladder run cub` has nvcc compile it where there is one.

#include <cstddef>
#include <cstdint>
#include <cub/cub.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// 16-bit floats are added as f32, as the rungs do.
template <class T> struct Plus {
    __host__ __device__ T operator()(T a, T b) const { return a + b; }
};

// The sum of `n` elements of E, added as T, on the default stream. Without a workspace it says how many bytes that needs.
template <class E, class T>
static cudaError_t sum(void *workspace, size_t *bytes, const void *in, void *out, uint64_t n)
{
    return cub::DeviceReduce::Reduce(
        workspace, *bytes, static_cast<const E *>(in), static_cast<T *>(out), static_cast<int64_t>(n), Plus<T>(), T(0));
}

#define SUM(name, E, T)                                                                                              \
    extern "C" int warpfold_cub_##name(void *workspace, size_t *bytes, const void *in, void *out, uint64_t n)       \
    {                                                                                                                \
        return sum<E, T>(workspace, bytes, in, out, n);                                                              \
    }

SUM(i32, uint32_t, uint32_t)
SUM(u32, uint32_t, uint32_t)
SUM(i64, uint64_t, uint64_t)
SUM(u64, uint64_t, uint64_t)
SUM(f16, __half, float)
SUM(bf16, __nv_bfloat16, float)
SUM(f32, float, float)
SUM(f64, double, double)

extern "C" const char *warpfold_cub_error(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }
