// Slots that only some threads fill, and all are folded.

template <bool RIGHT>
__device__ __forceinline__ void fold(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[256];
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        slots[threadIdx.x] = in[i];
    else if (RIGHT)
        slots[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            slots[threadIdx.x] += slots[threadIdx.x + half]; // fault: uninitialised_shared
        __syncthreads();
    }
    if (threadIdx.x == 0)
        partials[blockIdx.x] = slots[0];
}

extern "C" __global__ void uninitialised_shared(const int *in, int *partials, unsigned n)
{
    fold<false>(in, partials, n);
}

extern "C" __global__ void uninitialised_shared_fixed(const int *in, int *partials, unsigned n)
{
    fold<true>(in, partials, n);
}

// Blocks that have nothing to add leave no partial; the second pass reads one of every block.
extern "C" __global__ void partials_of_some(const int *in, int *partials, unsigned n)
{
    const unsigned first = blockIdx.x * 256;
    if (threadIdx.x != 0 || first >= n)
        return;
    int sum = 0;
    for (unsigned i = first; i < min(first + 256, n); i++)
        sum += in[i];
    partials[blockIdx.x] = sum;
}

extern "C" __global__ void partials_of_all(const int *in, int *partials, unsigned n)
{
    const unsigned first = blockIdx.x * 256;
    if (threadIdx.x != 0)
        return;
    int sum = 0;
    for (unsigned i = first; i < min(first + 256, n); i++)
        sum += in[i];
    partials[blockIdx.x] = sum;
}

extern "C" __global__ void second_pass(const int *partials, int *out, unsigned blocks)
{
    int sum = 0;
    for (unsigned i = 0; i < blocks; i++)
        sum += partials[i]; // fault: second_pass
    *out = sum;
}
