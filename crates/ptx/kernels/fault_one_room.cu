// A row at a time: its largest element, then the sum of its exponentials. The warps hand over both in the same room, and between the reading of
// the first and the writing of the second there is no barrier.

__device__ __forceinline__ float largest_of_warp(float x)
{
    for (int step = 16; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

__device__ __forceinline__ float sum_of_warp(float x)
{
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

template <bool RIGHT>
__device__ __forceinline__ void exponentials(const float *in, float *sums, int columns)
{
    __shared__ float of_warps[32];
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const float *row = in + blockIdx.x * columns;
    float most = -3.4e38f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        most = fmaxf(most, row[i]);
    most = largest_of_warp(most);
    if (threadIdx.x % 32 == 0)
        of_warps[warp] = most;
    __syncthreads();
    for (int i = 0; i < warps; ++i)
        most = fmaxf(most, of_warps[i]); // fault: one_room
    if (RIGHT)
        __syncthreads();
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        sum += __expf(row[i] - most);
    sum = sum_of_warp(sum);
    if (threadIdx.x % 32 == 0)
        of_warps[warp] = sum; // fault: one_room
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < warps; ++i)
            sum += of_warps[i];
        sums[blockIdx.x] = sum;
    }
}

extern "C" __global__ void one_room(const float *in, float *sums, int columns)
{
    exponentials<false>(in, sums, columns);
}

extern "C" __global__ void one_room_fixed(const float *in, float *sums, int columns)
{
    exponentials<true>(in, sums, columns);
}
