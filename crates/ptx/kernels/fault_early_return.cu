// Threads beyond n leave before a barrier that the others wait at.

extern "C" __global__ void early_return(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[256];
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    slots[threadIdx.x] = 0;
    if (i >= n)
        return;
    slots[threadIdx.x] = in[i];
    __syncthreads(); // fault: early_return
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            slots[threadIdx.x] += slots[threadIdx.x + half];
        __syncthreads(); // fault: early_return
    }
    if (threadIdx.x == 0)
        partials[blockIdx.x] = slots[0];
}

extern "C" __global__ void early_return_fixed(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[256];
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    slots[threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            slots[threadIdx.x] += slots[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        partials[blockIdx.x] = slots[0];
}
