// Lesson 8: solutions that are wrong, or that do not do what the lesson is about.
// elements: i32
#define ARGUMENTS const int *in, int *partials, unsigned n
#define WRONG(number) extern "C" __global__ void wrong_##number(ARGUMENTS)

template <int MISTAKE>
__device__ __forceinline__ void add(ARGUMENTS)
{
    __shared__ int slots[32];
    __shared__ int all[1024];
    const unsigned tid = threadIdx.x, warp = tid / 32, lane = tid % 32, i = blockIdx.x * blockDim.x + tid;
    int sum = i < n ? in[i] : 0;
    if (MISTAKE == 1) {
        // Right, by shared memory.
        all[tid] = sum;
        __syncwarp();
        if (lane == 0)
            for (unsigned other = 1; other < 32; ++other)
                sum += all[tid + other];
        __syncwarp();
    } else if (MISTAKE == 2) {
        if (i < n)
            for (unsigned distance = 16; distance > 0; distance /= 2)
                sum += __shfl_down_sync(0xffffffff, sum, distance);
    } else if (MISTAKE == 3) {
        for (unsigned distance = 16; distance > 0; distance /= 2)
            sum += __shfl_down_sync(31, sum, distance);
    } else if (MISTAKE == 4) {
        for (unsigned distance = 16; distance > 1; distance /= 2)
            sum += __shfl_down_sync(0xffffffff, sum, distance);
    } else {
        for (unsigned distance = 16; distance > 0; distance /= 2)
            sum += __shfl_down_sync(0xffffffff, sum, distance, 16);
    }
    if (lane == 0)
        slots[warp] = sum;
    __syncthreads();
    if (tid == 0) {
        for (unsigned other = 1; other < blockDim.x / 32; ++other)
            sum += slots[other];
        partials[blockIdx.x] = sum;
    }
}

WRONG(1) { add<1>(in, partials, n); }
// Lanes past the end do not come, and the mask names them.
WRONG(2) { add<2>(in, partials, n); }
// A mask of five lanes.
WRONG(3) { add<3>(in, partials, n); }
// One step too few.
WRONG(4) { add<4>(in, partials, n); }
// Groups of half a warp.
WRONG(5) { add<5>(in, partials, n); }
