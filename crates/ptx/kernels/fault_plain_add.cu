// Blocks that add to one place without an atomic.

template <bool RIGHT>
__device__ __forceinline__ void fold(const int *in, int *out)
{
    __shared__ int slots[256];
    slots[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            slots[threadIdx.x] += slots[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        if (RIGHT)
            atomicAdd(out, slots[0]);
        else
            *out += slots[0]; // fault: plain_add
    }
}

extern "C" __global__ void plain_add(const int *in, int *out)
{
    fold<false>(in, out);
}

extern "C" __global__ void plain_add_fixed(const int *in, int *out)
{
    fold<true>(in, out);
}
