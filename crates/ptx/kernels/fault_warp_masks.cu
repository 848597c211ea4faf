// Masks that do not name the lanes that are there.

constexpr unsigned ALL = 0xffffffffu;

// 31 is the last lane's number, not a mask of all lanes: lanes 5 and up are not in it.
extern "C" __global__ void mask_of_lane_number(const int *in, int *out)
{
    int sum = in[threadIdx.x];
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(warpSize - 1, sum, offset); // fault: mask_of_lane_number
    if (threadIdx.x % 32 == 0)
        out[threadIdx.x / 32] = sum;
}

extern "C" __global__ void mask_of_lane_number_fixed(const int *in, int *out)
{
    int sum = in[threadIdx.x];
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(ALL, sum, offset);
    if (threadIdx.x % 32 == 0)
        out[threadIdx.x / 32] = sum;
}

// The mask names lanes that have left.
extern "C" __global__ void mask_of_absent_lanes(const int *in, int *out, unsigned n)
{
    if (threadIdx.x >= n)
        return;
    out[threadIdx.x] = __any_sync(ALL, in[threadIdx.x] > 0); // fault: mask_of_absent_lanes
}

extern "C" __global__ void mask_of_absent_lanes_fixed(const int *in, int *out, unsigned n)
{
    const unsigned there = __ballot_sync(ALL, threadIdx.x < n);
    if (threadIdx.x >= n)
        return;
    out[threadIdx.x] = __any_sync(there, in[threadIdx.x] > 0);
}

// The lanes that are there name themselves, but ask one that is not.
extern "C" __global__ void shuffle_from_absent_lane(const int *in, int *out)
{
    const int v = in[threadIdx.x];
    if (threadIdx.x % 32 < 16)
        out[threadIdx.x] = __shfl_sync(0xffffu, v, 20); // fault: shuffle_from_absent_lane
}

extern "C" __global__ void shuffle_from_absent_lane_fixed(const int *in, int *out)
{
    const int v = __shfl_sync(ALL, in[threadIdx.x], 20);
    if (threadIdx.x % 32 < 16)
        out[threadIdx.x] = v;
}
