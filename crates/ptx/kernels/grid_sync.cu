// A barrier of the whole grid by hand, as cooperative groups do it; all blocks must be resident.

__device__ void wait_for_grid(unsigned *arrived, unsigned round)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1u);
        while (*(volatile unsigned *)arrived < round * gridDim.x) {
        }
        __threadfence();
    }
    __syncthreads();
}

extern "C" __global__ void grid_sum(const int *in, int *partials, int *out, unsigned *arrived, unsigned n)
{
    __shared__ int slots[256];
    int sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    slots[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (unsigned i = 1; i < blockDim.x; i++)
            sum += slots[i];
        partials[blockIdx.x] = sum;
    }
    wait_for_grid(arrived, 1);
    // Every block folds all partials, so that each has the total.
    if (threadIdx.x == 0) {
        sum = 0;
        for (unsigned i = 0; i < gridDim.x; i++)
            sum += partials[i];
        out[blockIdx.x] = sum;
    }
}
