// A barrier is missing: right where lanes are in step and a block is one warp.
// elements: i32
extern "C" __global__ void sum(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[1024];
    const unsigned tid = threadIdx.x, i = blockIdx.x * blockDim.x + tid;
    slots[tid] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2)
        if (tid < half)
            slots[tid] += slots[tid + half];
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}
