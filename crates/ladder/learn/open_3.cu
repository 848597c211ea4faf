// The same pairs by the first threads, so that lanes do not diverge.
extern "C" __global__ void sum(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[1024];
    const unsigned tid = threadIdx.x, width = blockDim.x, i = blockIdx.x * width + tid;
    slots[tid] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned stride = 1; stride < width; stride *= 2) {
        const unsigned at = tid; // HOLE: the slot that thread tid adds to, so that active threads are side by side
        if (at % (2 * stride) == 0 && at + stride < width)
            slots[at] += slots[at + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}
