// 64-bit integers and f64, and 128-bit sums with carries.

extern "C" __global__ void sum_i64(const long long *in, long long *partials, unsigned long long n)
{
    __shared__ long long slots[512];
    long long sum = 0;
    for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    slots[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            slots[threadIdx.x] += slots[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        partials[blockIdx.x] = slots[0];
}

extern "C" __global__ void sum_f64(const double *in, double *partials, unsigned long long n)
{
    __shared__ double slots[512];
    double sum = 0.0;
    for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    slots[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            slots[threadIdx.x] += slots[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        partials[blockIdx.x] = slots[0];
}

// One thread's share at a time; the total of each block is low and high word.
extern "C" __global__ void sum_u128(const unsigned long long *in, unsigned long long *out, unsigned n)
{
    unsigned long long low = 0, high = 0;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        asm("add.cc.u64 %0, %0, %2;\n\t"
            "addc.u64 %1, %1, 0;"
            : "+l"(low), "+l"(high)
            : "l"(in[i]));
    out[2 * threadIdx.x] = low;
    out[2 * threadIdx.x + 1] = high;
}

// The square of 64 bits, by words of 32 with carries; and what division gives.
extern "C" __global__ void squares(const unsigned long long *in, unsigned long long *out, unsigned divisor)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned long long v = in[i];
    unsigned a = (unsigned)v, b = (unsigned)(v >> 32);
    unsigned r0, r1, r2, r3;
    asm("{\n\t"
        ".reg .u32 w0, w1, w2, w3;\n\t"
        "mul.lo.u32 w0, %4, %4;\n\t"
        "mul.hi.u32 w1, %4, %4;\n\t"
        "mul.lo.u32 w2, %5, %5;\n\t"
        "mul.hi.u32 w3, %5, %5;\n\t"
        "mad.lo.cc.u32 w1, %4, %5, w1;\n\t"
        "madc.hi.cc.u32 w2, %4, %5, w2;\n\t"
        "addc.u32 w3, w3, 0;\n\t"
        "mad.lo.cc.u32 w1, %4, %5, w1;\n\t"
        "madc.hi.cc.u32 w2, %4, %5, w2;\n\t"
        "addc.u32 w3, w3, 0;\n\t"
        "mov.u32 %0, w0;\n\t"
        "mov.u32 %1, w1;\n\t"
        "mov.u32 %2, w2;\n\t"
        "mov.u32 %3, w3;\n\t"
        "}"
        : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
        : "r"(a), "r"(b));
    out[6 * i] = r0 | (unsigned long long)r1 << 32;
    out[6 * i + 1] = r2 | (unsigned long long)r3 << 32;
    out[6 * i + 2] = __umul64hi(v, v);
    out[6 * i + 3] = v / divisor;
    out[6 * i + 4] = v % divisor;
    out[6 * i + 5] = (unsigned long long)((long long)v / (int)(divisor | 1));
}
