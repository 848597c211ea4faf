// One launch. Each block leaves its partial and draws a ticket; the block that draws the last one adds all partials, in the order of the
// blocks, and leaves the sum in partials[0], where the host reads it. The kernel is launched again without anybody setting the tickets back.
__device__ unsigned tickets;

extern "C" __global__ void sum(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[1024];
    const unsigned tid = threadIdx.x, width = blockDim.x, i = blockIdx.x * width + tid;
    slots[tid] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned half = width / 2; half > 0; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid > 0)
        return;
    partials[blockIdx.x] = slots[0];
    __threadfence();
    if (atomicAdd(&tickets, 1) != gridDim.x - 1)
        return;
    __threadfence();
    tickets = 0;
    int sum = 0;
    for (unsigned block = 0; block < gridDim.x; ++block)
        sum += partials[block];
    partials[0] = sum;
}
