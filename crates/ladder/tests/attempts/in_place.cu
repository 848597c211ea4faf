// Folds its input away: right the first time.
// elements: i32
extern "C" __global__ void sum(int *in, int *partials, unsigned long long n)
{
    const unsigned tid = threadIdx.x;
    const unsigned long long begin = (unsigned long long)blockIdx.x * blockDim.x;
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid < half && begin + tid + half < n)
            in[begin + tid] += in[begin + tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = begin < n ? in[begin] : 0;
}
