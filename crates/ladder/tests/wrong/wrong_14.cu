// Lesson 14: solutions that are wrong, or that do not do what the lesson is about.
// elements: i32
#define ARGUMENTS const int *in, int *partials, unsigned n
#define WRONG(number) extern "C" __global__ void wrong_##number(ARGUMENTS)
#define ALL 0xffffffffu

__device__ __forceinline__ int fold_warp(int sum)
{
    for (unsigned distance = 16; distance > 0; distance /= 2)
        sum += __shfl_down_sync(ALL, sum, distance);
    return sum;
}

// Warps by shuffles, and their sums by the first one. A mistake leaves out the barrier.
template <bool BARRIER>
__device__ __forceinline__ void fold(int mine, int *partials)
{
    __shared__ int slots[32];
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    mine = fold_warp(mine);
    if (lane == 0)
        slots[warp] = mine;
    if (BARRIER)
        __syncthreads();
    if (warp > 0)
        return;
    mine = fold_warp(lane < blockDim.x / 32 ? slots[lane] : 0);
    if (lane == 0)
        partials[blockIdx.x] = mine;
}

__device__ __forceinline__ int4 four(const int *in, unsigned at, unsigned n)
{
    if (at + 4 <= n)
        return *reinterpret_cast<const int4 *>(in + at);
    return make_int4(at < n ? in[at] : 0, at + 1 < n ? in[at + 1] : 0, at + 2 < n ? in[at + 2] : 0, 0);
}

// Where the fours of a thread begin.
__device__ __forceinline__ unsigned place(unsigned k)
{
    return ((blockIdx.x * 4 + k) * blockDim.x + threadIdx.x) * 4;
}

__device__ __forceinline__ int add(int4 x)
{
    return x.x + x.y + x.z + x.w;
}

__device__ __forceinline__ int add_fours(const int *in, unsigned n)
{
    int4 found[4];
    for (unsigned k = 0; k < 4; ++k)
        found[k] = four(in, place(k), n);
    return add(found[0]) + add(found[1]) + add(found[2]) + add(found[3]);
}

// Lanes side by side, and 4 bytes a load.
WRONG(1)
{
    int found[16], mine = 0;
    for (unsigned k = 0; k < 16; ++k) {
        const unsigned i = (blockIdx.x * 16 + k) * blockDim.x + threadIdx.x;
        found[k] = i < n ? in[i] : 0;
    }
    for (unsigned k = 0; k < 16; ++k)
        mine += found[k];
    fold<true>(mine, partials);
}
// 16 bytes a load, and a barrier a level.
WRONG(2)
{
    __shared__ int slots[1024];
    const unsigned tid = threadIdx.x;
    slots[tid] = add_fours(in, n);
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}
// The ragged end is dropped.
WRONG(3)
{
    int mine = 0;
    for (unsigned k = 0; k < 4; ++k)
        if (place(k) + 4 <= n)
            mine += add(*reinterpret_cast<const int4 *>(in + place(k)));
    fold<true>(mine, partials);
}
// No barrier between the warps' sums and the first warp.
WRONG(4) { fold<false>(add_fours(in, n), partials); }
// A thread's fours lie side by side, so that lanes do not.
WRONG(5)
{
    int4 found[4];
    for (unsigned k = 0; k < 4; ++k)
        found[k] = four(in, (blockIdx.x * blockDim.x + threadIdx.x) * 16 + 4 * k, n);
    fold<true>(add(found[0]) + add(found[1]) + add(found[2]) + add(found[3]), partials);
}
