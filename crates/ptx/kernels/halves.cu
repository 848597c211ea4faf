// 16-bit floating point without CUDA's headers: conversions by inline PTX, sums in f32.

__device__ __forceinline__ float from_f16(unsigned short bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

__device__ __forceinline__ unsigned short to_f16(float value)
{
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

// bf16 is the upper half of f32.
__device__ __forceinline__ float from_bf16(unsigned short bits)
{
    float value;
    asm("mov.b32 %0, {0, %1};" : "=f"(value) : "h"(bits));
    return value;
}

extern "C" __global__ void sum_f16(const unsigned short *in, unsigned short *partials, unsigned n)
{
    __shared__ float slots[1024];
    float sum = 0.0f;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += from_f16(in[i]);
    slots[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            slots[threadIdx.x] += slots[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        partials[blockIdx.x] = to_f16(slots[0]);
}

extern "C" __global__ void sum_bf16(const unsigned short *in, float *partials, unsigned n)
{
    __shared__ float slots[1024];
    float sum = 0.0f;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += from_bf16(in[i]);
    slots[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            slots[threadIdx.x] += slots[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        partials[blockIdx.x] = slots[0];
}

// Arithmetic in pairs, and every rounding that a conversion to f16 has.
extern "C" __global__ void pairs_f16(const unsigned *a, const unsigned *b, unsigned *out, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned sum, product, fused;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a[i]), "r"(b[i]));
    asm("mul.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a[i]), "r"(b[i]));
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(fused) : "r"(a[i]), "r"(b[i]), "r"(sum));
    out[4 * i] = sum;
    out[4 * i + 1] = product;
    out[4 * i + 2] = fused;
    unsigned short nearest, down;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(nearest) : "f"(__uint_as_float(a[i])));
    asm("cvt.rz.f16.f32 %0, %1;" : "=h"(down) : "f"(__uint_as_float(a[i])));
    out[4 * i + 3] = nearest | (unsigned)down << 16;
}
