// Constant memory, global variables with values, and addresses among them.

__constant__ float weights[8] = {0.5f, 1.0f, 1.5f, 2.0f, 2.5f, 3.0f, 3.5f, 4.0f};
__constant__ double scale = 0.25;
__device__ int table[16] = {1, -2, 3, -4};
__device__ int *entry = &table[2];
__device__ unsigned launches;
__device__ const char name[] = "weighted";

struct Entry {
    const char *name;
    int value;
};
__device__ Entry entries[2] = {{name, 1}, {name + 4, 2}};

extern "C" __global__ void weighted(const float *in, double *out, unsigned n)
{
    double sum = 0.0;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        sum += weights[i % 8] * in[i];
    out[threadIdx.x] = sum * scale;
}

extern "C" __global__ void variables(int *out)
{
    out[0] = *entry;
    out[1] = table[threadIdx.x % 16];
    out[2] = (int)atomicAdd(&launches, 1u);
    out[3] = entries[threadIdx.x % 2].name[0];
    out[4] = entries[1].value;
    entry = &table[threadIdx.x % 4];
}
