// A sum in two launches: each block leaves one partial, a single block folds the partials.

extern "C" __global__ void two_pass_f32(const float *in, float *partials, unsigned long long n)
{
    __shared__ float slots[1024];
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    float sum = 0.0f;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        sum += in[i];
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

extern "C" __global__ void two_pass_i32(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[1024];
    int sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
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
