// Rungs that are wrong on purpose, under the names of right ones: what the checks must find.
// elements: i32

// Drops a tile that is not whole, as all-or-nothing guards do.
extern "C" __global__ void neighbored(const unsigned *in, unsigned *work, unsigned *partials, unsigned long long n)
{
    const unsigned tid = threadIdx.x;
    const unsigned long long begin = (unsigned long long)blockIdx.x * blockDim.x;
    unsigned *mine = work + begin;
    mine[tid] = begin + blockDim.x <= n ? in[begin + tid] : 0;
    __syncthreads();
    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        if (tid % (2 * stride) == 0 && tid + stride < blockDim.x)
            mine[tid] += mine[tid + stride];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = mine[0];
}

// Folds its input away: right the first time.
extern "C" __global__ void neighbored_compact(unsigned *in, unsigned *work, unsigned *partials, unsigned long long n)
{
    const unsigned long long begin = (unsigned long long)blockIdx.x * blockDim.x;
    const unsigned length = begin >= n ? 0 : n - begin < blockDim.x ? unsigned(n - begin) : blockDim.x;
    unsigned *mine = in + begin;
    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        const unsigned at = 2 * stride * threadIdx.x;
        if (at + stride < length)
            mine[at] += mine[at + stride];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        partials[blockIdx.x] = length > 0 ? mine[0] : 0;
}

// Forgets the barriers between the levels: right on most devices, most of the time.
extern "C" __global__ void interleaved(const unsigned *in, unsigned *work, unsigned *partials, unsigned long long n)
{
    const unsigned tid = threadIdx.x;
    const unsigned long long begin = (unsigned long long)blockIdx.x * blockDim.x;
    unsigned *mine = work + begin;
    mine[tid] = begin + tid < n ? in[begin + tid] : 0;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2)
        if (tid < half)
            mine[tid] += mine[tid + half];
    if (tid == 0)
        partials[blockIdx.x] = mine[0];
}
