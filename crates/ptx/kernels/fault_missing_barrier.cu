// The tree without its last barrier: a warp reads what another has not yet written.

template <bool RIGHT>
__device__ __forceinline__ void fold(const int *in, int *partials)
{
    __shared__ int slots[256];
    slots[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            slots[threadIdx.x] += slots[threadIdx.x + half]; // fault: missing_barrier
        if (RIGHT)
            __syncthreads();
    }
    if (threadIdx.x == 0)
        partials[blockIdx.x] = slots[0];
}

extern "C" __global__ void missing_barrier(const int *in, int *partials)
{
    fold<false>(in, partials);
}

extern "C" __global__ void missing_barrier_fixed(const int *in, int *partials)
{
    fold<true>(in, partials);
}
