// Sixteen bytes a load: four elements a thread. The array begins at a multiple of sixteen bytes, and ends anywhere.
extern "C" __global__ void sum(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[1024];
    const unsigned tid = threadIdx.x, width = blockDim.x, at = (blockIdx.x * width + tid) * 4;
    int mine = 0;
    // HOLE: an int4 where four elements are left, else one by one
    slots[tid] = mine;
    __syncthreads();
    for (unsigned half = width / 2; half > 0; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}
