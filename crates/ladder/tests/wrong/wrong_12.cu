// Lesson 12: solutions that are wrong, or that do not do what the lesson is about.
// elements: i32
// options: -rdc=true
#define ARGUMENTS const int *in, int *partials, unsigned n
#define WRONG(number) extern "C" __global__ void wrong_##number(ARGUMENTS)
#define TAIL ((cudaStream_t)3)

__device__ int work[1 << 15];

__device__ __forceinline__ void copy(const int *in, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    work[i] = i < n ? in[i] : 0;
}

// No launch at all: a tree with barriers.
WRONG(1)
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
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

// A launch for each block and each level.
extern "C" __global__ void fold_alone(int *mine, int *out)
{
    const unsigned tid = threadIdx.x, half = blockDim.x;
    mine[tid] += mine[tid + half];
    if (tid > 0)
        return;
    if (half == 1)
        *out = mine[0];
    else
        fold_alone<<<1, half / 2, 0, TAIL>>>(mine, out);
}
WRONG(2)
{
    copy(in, n);
    if (threadIdx.x == 0)
        fold_alone<<<1, blockDim.x / 2, 0, TAIL>>>(work + blockIdx.x * blockDim.x, partials + blockIdx.x);
}

// The last level is left out.
extern "C" __global__ void fold_to_two(int *partials, unsigned width)
{
    const unsigned tid = threadIdx.x, half = blockDim.x;
    int *mine = work + blockIdx.x * width;
    mine[tid] += mine[tid + half];
    if (tid > 0)
        return;
    if (half == 2)
        partials[blockIdx.x] = mine[0];
    else if (blockIdx.x == 0)
        fold_to_two<<<gridDim.x, half / 2, 0, TAIL>>>(partials, width);
}
WRONG(3)
{
    copy(in, n);
    if (threadIdx.x == 0 && blockIdx.x == 0)
        fold_to_two<<<gridDim.x, blockDim.x / 2, 0, TAIL>>>(partials, blockDim.x);
}

// Every block launches the next level of all of them.
extern "C" __global__ void fold_by_all(int *partials, unsigned width)
{
    const unsigned tid = threadIdx.x, half = blockDim.x;
    int *mine = work + blockIdx.x * width;
    mine[tid] += mine[tid + half];
    if (tid > 0)
        return;
    if (half == 1)
        partials[blockIdx.x] = mine[0];
    else
        fold_by_all<<<gridDim.x, half / 2, 0, TAIL>>>(partials, width);
}
WRONG(4)
{
    copy(in, n);
    if (threadIdx.x == 0 && blockIdx.x == 0)
        fold_by_all<<<gridDim.x, blockDim.x / 2, 0, TAIL>>>(partials, blockDim.x);
}

// The parent reads what its child has not written yet, as the text's parent does behind its wait.
extern "C" __global__ void fold_once(unsigned width)
{
    const unsigned tid = threadIdx.x, half = blockDim.x;
    int *mine = work + blockIdx.x * width;
    mine[tid] += mine[tid + half];
    if (tid == 0 && blockIdx.x == 0 && half > 1)
        fold_once<<<gridDim.x, half / 2, 0, TAIL>>>(width);
}
WRONG(5)
{
    copy(in, n);
    if (threadIdx.x > 0)
        return;
    if (blockIdx.x == 0)
        fold_once<<<gridDim.x, blockDim.x / 2, 0, TAIL>>>(blockDim.x);
    partials[blockIdx.x] = work[blockIdx.x * blockDim.x];
}
