// Warps folded through registers. Blocks are whole warps.

constexpr unsigned ALL = 0xffffffffu;

__device__ __forceinline__ float fold_down(float value)
{
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_down_sync(ALL, value, offset);
    return value;
}

extern "C" __global__ void shuffle_down(const float *in, float *partials, unsigned n)
{
    __shared__ float warps[32];
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned lane = threadIdx.x % 32;
    float sum = fold_down(i < n ? in[i] : 0.0f);
    if (lane == 0)
        warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = fold_down(lane < blockDim.x / 32 ? warps[lane] : 0.0f);
        if (lane == 0)
            partials[blockIdx.x] = sum;
    }
}

extern "C" __global__ void shuffle_xor(const int *in, int *out, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = i < n ? in[i] : 0;
    for (int mask = 16; mask > 0; mask /= 2)
        sum += __shfl_xor_sync(ALL, sum, mask);
    out[i] = sum;
}

// An inclusive scan, with the bounds' predicate that `shfl.up` gives.
extern "C" __global__ void shuffle_scan(const int *in, int *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = in[i];
    for (int offset = 1; offset < 32; offset *= 2) {
        asm volatile("{\n\t"
                     ".reg .pred within;\n\t"
                     ".reg .b32 other;\n\t"
                     "shfl.sync.up.b32 other|within, %0, %1, 0, 0xffffffff;\n\t"
                     "@within add.s32 %0, other, %0;\n\t"
                     "}"
                     : "+r"(sum)
                     : "r"(offset));
    }
    out[i] = sum;
}

extern "C" __global__ void shuffle_f64(const double *in, double *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    double sum = in[i];
    for (int offset = 4; offset > 0; offset /= 2)
        sum += __shfl_down_sync(ALL, sum, offset, 8);
    out[i] = __shfl_sync(ALL, sum, 0, 8);
}
