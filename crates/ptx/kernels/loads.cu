// Loads that a profiler tells apart by their sectors: with a stride, off by some elements, and in vectors.

extern "C" __global__ void strided_load(const float *in, float *out, unsigned stride)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[(unsigned long long)i * stride];
}

extern "C" __global__ void offset_load(const float *in, float *out, unsigned offset)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i + offset];
}

extern "C" __global__ void strided_store(const float *in, float *out, unsigned stride)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[(unsigned long long)i * stride] = in[i];
}

extern "C" __global__ void vector2_load(const float2 *in, float *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const float2 v = in[i];
    out[i] = v.x + v.y;
}

extern "C" __global__ void vector4_load(const float4 *in, float *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 v = in[i];
    out[i] = (v.x + v.y) + (v.z + v.w);
}

extern "C" __global__ void vector4_copy(const uint4 *in, uint4 *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}

extern "C" __global__ void byte_load(const unsigned char *in, unsigned *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}

// Through the read-only path, streaming past the caches, and back.
extern "C" __global__ void hinted_copy(const float *__restrict__ in, const double2 *wide, float *out, double2 *wide_out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    __stcs(&out[i], __ldg(&in[i]) + __ldcs(&in[i + 1]) + __ldcg(&in[i + 2]));
    const double2 v = __ldg(&wide[i]);
    __stwt(&wide_out[i], make_double2(v.y, v.x));
}
