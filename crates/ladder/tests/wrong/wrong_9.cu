// Lesson 9: solutions that are wrong, or that do not do what the lesson is about.
// elements: i32
#define ARGUMENTS const int *in, int *partials, unsigned n
#define WRONG(number) extern "C" __global__ void wrong_##number(ARGUMENTS)

// The levels of a block of a power of two.
__device__ __forceinline__ void fold(int *slots, int *partials)
{
    const unsigned tid = threadIdx.x;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid < half)
            slots[tid] += slots[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        partials[blockIdx.x] = slots[0];
}

__device__ unsigned tickets;

template <int MISTAKE>
__device__ __forceinline__ void add(ARGUMENTS)
{
    __shared__ int slots[1024];
    const unsigned tid = threadIdx.x, i = blockIdx.x * blockDim.x + tid;
    slots[tid] = i < n ? in[i] : 0;
    fold(slots, partials);
    if (tid > 0)
        return;
    // The second stage is left to the host.
    if (MISTAKE == 1)
        return;
    if (MISTAKE != 2)
        __threadfence();
    if (MISTAKE == 4)
        ++tickets;
    if ((MISTAKE == 4 ? tickets - 1 : atomicAdd(&tickets, 1)) != gridDim.x - 1)
        return;
    __threadfence();
    if (MISTAKE != 3)
        tickets = 0;
    int sum = 0;
    for (unsigned block = MISTAKE == 5 ? 1 : 0; block < gridDim.x; ++block)
        sum += partials[block];
    partials[0] = sum;
}

WRONG(1) { add<1>(in, partials, n); }
// No fence between the partial and the ticket.
WRONG(2) { add<2>(in, partials, n); }
// The tickets are not set back.
WRONG(3) { add<3>(in, partials, n); }
// A ticket without an atomic.
WRONG(4) { add<4>(in, partials, n); }
// Without the first block.
WRONG(5) { add<5>(in, partials, n); }
