// compute: 90
// options: -rdc=true
// A second launch from the device, behind the first: what cudaStreamTailLaunch compiles to.

extern "C" __device__ void *cudaGetParameterBufferV2(void *kernel, dim3 grid, dim3 block, unsigned shared);
extern "C" __device__ int cudaLaunchDeviceV2(void *buffer, void *stream);

extern "C" __global__ void fold_partials(const int *partials, int *out, unsigned count)
{
    int sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += partials[i];
    *out = sum;
}

extern "C" __global__ void sum_then_fold(const int *in, int *partials, int *out, unsigned n)
{
    __shared__ int total;
    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&total, in[i]);
    __syncthreads();
    if (threadIdx.x == 0)
        partials[blockIdx.x] = total;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        struct Arguments {
            const int *partials;
            int *out;
            unsigned count;
        };
        Arguments *arguments = (Arguments *)cudaGetParameterBufferV2((void *)fold_partials, dim3(1), dim3(1), 0);
        if (arguments) {
            arguments->partials = partials;
            arguments->out = out;
            arguments->count = gridDim.x;
            cudaLaunchDeviceV2(arguments, (void *)3); // cudaStreamTailLaunch
        }
    }
}
