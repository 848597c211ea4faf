// A sum in one launch: the block that draws the last ticket folds the partials.

__device__ float fold_block(float value, float *slots)
{
    slots[threadIdx.x] = value;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            slots[threadIdx.x] += slots[threadIdx.x + half];
        __syncthreads();
    }
    return slots[0];
}

// FENCES: 1 before the ticket, 2 behind it, 3 both.
template <int FENCES>
__device__ __forceinline__ void ticket(const float *in, float *partials, float *out, unsigned *tickets, unsigned n)
{
    __shared__ float slots[1024];
    __shared__ bool last;
    float sum = 0.0f;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    sum = fold_block(sum, slots);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum; // fault: ticket_without_release
        if (FENCES & 1)
            __threadfence();
        last = atomicInc(tickets, gridDim.x - 1) == gridDim.x - 1;
        if (FENCES & 2)
            __threadfence();
    }
    __syncthreads();
    if (!last)
        return;
    sum = 0.0f;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x)
        sum += partials[i]; // fault: ticket_without_release ticket_without_acquire
    sum = fold_block(sum, slots);
    if (threadIdx.x == 0)
        *out = sum;
}

extern "C" __global__ void ticket_sum(const float *in, float *partials, float *out, unsigned *tickets, unsigned n)
{
    ticket<3>(in, partials, out, tickets, n);
}

extern "C" __global__ void ticket_without_release(const float *in, float *partials, float *out, unsigned *tickets, unsigned n)
{
    ticket<2>(in, partials, out, tickets, n);
}

extern "C" __global__ void ticket_without_acquire(const float *in, float *partials, float *out, unsigned *tickets, unsigned n)
{
    ticket<1>(in, partials, out, tickets, n);
}

// The same order by the ticket itself: an atomic that acquires and releases.
extern "C" __global__ void ticket_acq_rel(const float *in, float *partials, float *out, unsigned *tickets, unsigned n)
{
    __shared__ float slots[1024];
    __shared__ unsigned drawn;
    float sum = 0.0f;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    sum = fold_block(sum, slots);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum;
        asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                     : "=r"(drawn)
                     : "l"(tickets), "r"(gridDim.x - 1)
                     : "memory");
    }
    __syncthreads();
    if (drawn != gridDim.x - 1)
        return;
    sum = 0.0f;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x)
        sum += partials[i];
    sum = fold_block(sum, slots);
    if (threadIdx.x == 0)
        *out = sum;
}
