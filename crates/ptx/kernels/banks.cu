// Shared memory with strides of 1 to 32 words: as many lanes meet in a bank as the stride and 32 have in common.

extern "C" __global__ void bank_load(float *out, unsigned stride)
{
    __shared__ float slots[1024];
    for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x)
        slots[i] = (float)i;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = slots[threadIdx.x * stride % 1024];
}

extern "C" __global__ void bank_store(float *out, unsigned stride)
{
    __shared__ float slots[1024];
    // Multiples of an odd stride modulo 1024 are all different. Those of a power of two come round again, so each round is
    // shifted by one; no round ends within a warp while the power is at most 32.
    const unsigned power = stride & (0u - stride);
    const unsigned place = (threadIdx.x * stride + threadIdx.x * power / 1024) % 1024;
    slots[place] = (float)threadIdx.x;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = slots[place];
}

extern "C" __global__ void bank_load_f64(double *out, unsigned stride)
{
    __shared__ double slots[1024];
    for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x)
        slots[i] = (double)i;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = slots[threadIdx.x * stride % 1024];
}

extern "C" __global__ void bank_load_vector4(float *out, unsigned stride)
{
    __shared__ float4 slots[1024];
    for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x)
        slots[i] = make_float4(i, i, i, i);
    __syncthreads();
    const float4 v = slots[threadIdx.x * stride % 1024];
    out[blockIdx.x * blockDim.x + threadIdx.x] = v.x + v.y + v.z + v.w;
}
