// The last warp folds without barriers and trusts `volatile`: right only while its lanes go in step. Blocks have 64 threads or more.

extern "C" __global__ void volatile_tail(const int *in, int *partials)
{
    __shared__ int slots[256];
    const unsigned tid = threadIdx.x;
    slots[tid] = in[blockIdx.x * blockDim.x + tid];
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 32; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid < 32) {
        volatile int *warp = slots;
        warp[tid] += warp[tid + 32]; // fault: volatile_tail
        warp[tid] += warp[tid + 16]; // fault: volatile_tail
        warp[tid] += warp[tid + 8]; // fault: volatile_tail
        warp[tid] += warp[tid + 4]; // fault: volatile_tail
        warp[tid] += warp[tid + 2]; // fault: volatile_tail
        warp[tid] += warp[tid + 1]; // fault: volatile_tail
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

extern "C" __global__ void volatile_tail_fixed(const int *in, int *partials)
{
    __shared__ int slots[256];
    const unsigned tid = threadIdx.x;
    int sum = in[blockIdx.x * blockDim.x + tid];
    slots[tid] = sum;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 32; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid < 32) {
        volatile int *warp = slots;
        sum = warp[tid];
        for (unsigned half = 32; half > 0; half /= 2) {
            sum += warp[tid + half];
            __syncwarp();
            warp[tid] = sum;
            __syncwarp();
        }
    }
    if (tid == 0)
        partials[blockIdx.x] = sum;
}
