// The first add of a tree looks at a second element that may lie past the end.

template <bool RIGHT>
__device__ __forceinline__ void fold(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[256];
    const unsigned i = blockIdx.x * blockDim.x * 2 + threadIdx.x;
    int sum = i < n ? in[i] : 0;
    if (!RIGHT || i + blockDim.x < n)
        sum += in[i + blockDim.x]; // fault: read_past_end
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

extern "C" __global__ void read_past_end(const int *in, int *partials, unsigned n)
{
    fold<false>(in, partials, n);
}

extern "C" __global__ void read_past_end_fixed(const int *in, int *partials, unsigned n)
{
    fold<true>(in, partials, n);
}
