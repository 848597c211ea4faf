// An array of a thread that does not fit its registers, a loop that is kept, and a switch.

extern "C" __global__ void local_histogram(const unsigned *in, unsigned *out, unsigned n)
{
    unsigned bins[16];
    for (unsigned b = 0; b < 16; b++)
        bins[b] = 0;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        bins[in[i] % 16]++;
    for (unsigned b = 0; b < 16; b++)
        out[threadIdx.x * 16 + b] = bins[b];
}

extern "C" __global__ void operations(const int *code, float *data)
{
    float v = data[threadIdx.x];
    switch (code[threadIdx.x]) {
    case 0: v = v + 1.0f; break;
    case 1: v = v * 3.0f; break;
    case 2: v = sqrtf(v); break;
    case 3: v = -v; break;
    case 4: v = v / 7.0f; break;
    case 5: v = 0.0f; break;
    case 6: v = v - 2.0f; break;
    case 7: v = exp2f(v); break;
    default: v = 1.0f;
    }
    data[threadIdx.x] = v;
}
