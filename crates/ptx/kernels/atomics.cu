// Atomics in shared and global memory, with as many addresses as the caller likes: fewer mean more contention.

extern "C" __global__ void global_histogram(const unsigned *in, unsigned *bins, unsigned count, unsigned n)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[in[i] % count], 1u);
}

extern "C" __global__ void shared_histogram(const unsigned *in, unsigned *bins, unsigned count, unsigned n)
{
    __shared__ unsigned own[256];
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
        own[i] = 0;
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[in[i] % count], 1u);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x)
        atomicAdd(&bins[i], own[i]);
}

extern "C" __global__ void every_atomic(int *i, unsigned *u, unsigned long long *l, float *f, double *d)
{
    const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
    atomicMin(&i[0], (int)k - 5);
    atomicMax(&i[1], (int)k - 5);
    atomicAnd(&u[0], ~(1u << (k % 7)));
    atomicOr(&u[1], 1u << (k % 19));
    atomicXor(&u[2], k);
    atomicInc(&u[3], 9u);
    atomicDec(&u[4], 9u);
    atomicSub(&u[5], k);
    atomicAdd(&l[0], (unsigned long long)k << 33);
    atomicMax(&l[1], (unsigned long long)k << 33);
    atomicAdd(&f[0], 1.0f);
    atomicAdd(&d[0], 0.5);
    u[32 + k] = atomicExch(&u[6], k);
    atomicAdd_system(&u[7], 1u);
    atomicAdd_block(&u[8 + blockIdx.x % 2], 1u);
}

// A product by compare-and-swap, since there is no atomic for it.
extern "C" __global__ void swap_product(float *product, const float *in, unsigned n)
{
    const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n)
        return;
    int *bits = (int *)product;
    int seen = atomicAdd(bits, 0);
    int wanted;
    do {
        wanted = seen;
        seen = atomicCAS(bits, wanted, __float_as_int(__int_as_float(wanted) * in[k]));
    } while (seen != wanted);
}

extern "C" __global__ void half_atomics(unsigned short *half, unsigned *pair)
{
    const unsigned short one = 0x3c00;
    const unsigned ones = 0x3c003c00;
    asm volatile("red.global.add.noftz.f16 [%0], %1;" ::"l"(half), "h"(one) : "memory");
    asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(pair), "r"(ones) : "memory");
}
