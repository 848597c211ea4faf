// Shared memory whose size the launch gives, beside some that the kernel declares.

extern __shared__ int slots[];

extern "C" __global__ void dynamic_sum(const int *in, int *partials, unsigned n)
{
    __shared__ int total;
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    slots[threadIdx.x] = i < n ? in[i] : 0;
    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            slots[threadIdx.x] += slots[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        total += slots[0];
        partials[blockIdx.x] = total;
    }
}

extern "C" __global__ void dynamic_size(unsigned *out)
{
    unsigned dynamic, total;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(dynamic));
    asm("mov.u32 %0, %%total_smem_size;" : "=r"(total));
    out[0] = dynamic;
    out[1] = total;
}
