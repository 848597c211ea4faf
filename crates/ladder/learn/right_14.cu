// Sixteen elements a thread: four loads of sixteen bytes, all on their way before the first addition, folded by shuffles.
#define ALL 0xffffffffu

__device__ __forceinline__ int fold(int sum)
{
    for (unsigned distance = 16; distance > 0; distance /= 2)
        sum += __shfl_down_sync(ALL, sum, distance);
    return sum;
}

// Four elements from `at` on, or those that are there.
__device__ __forceinline__ int4 four(const int *in, unsigned at, unsigned n)
{
    if (at + 4 <= n)
        return *reinterpret_cast<const int4 *>(in + at);
    return make_int4(at < n ? in[at] : 0, at + 1 < n ? in[at + 1] : 0, at + 2 < n ? in[at + 2] : 0, 0);
}

extern "C" __global__ void sum(const int *in, int *partials, unsigned n)
{
    __shared__ int slots[32];
    const unsigned tid = threadIdx.x, width = blockDim.x, warp = tid / 32, lane = tid % 32;
    int4 found[4];
    for (unsigned k = 0; k < 4; ++k)
        found[k] = four(in, ((blockIdx.x * 4 + k) * width + tid) * 4, n);
    int mine = 0;
    for (unsigned k = 0; k < 4; ++k)
        mine += found[k].x + found[k].y + found[k].z + found[k].w;
    mine = fold(mine);
    if (lane == 0)
        slots[warp] = mine;
    __syncthreads();
    if (warp > 0)
        return;
    mine = fold(lane < width / 32 ? slots[lane] : 0);
    if (lane == 0)
        partials[blockIdx.x] = mine;
}
