// Device functions that stay functions: plain, with a structure, through a pointer, and one that calls itself.

struct Moments {
    double sum, squares;
    int count;
};

__device__ __noinline__ int clamped(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

__device__ __noinline__ Moments absorbed(Moments m, float value)
{
    m.sum += value;
    m.squares += (double)value * value;
    m.count += 1;
    return m;
}

__device__ __noinline__ unsigned depth(unsigned n)
{
    return n < 2 ? n : depth(n - 1) + depth(n - 2);
}

__device__ __noinline__ int larger(int a, int b)
{
    return a > b ? a : b;
}

__device__ __noinline__ int smaller(int a, int b)
{
    return a < b ? a : b;
}

typedef int (*Choice)(int, int);
__device__ Choice choices[2] = {larger, smaller};

extern "C" __global__ void clamp_all(int *data, int low, int high, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        data[i] = clamped(data[i], low, high);
}

extern "C" __global__ void moments(const float *in, Moments *out, unsigned n)
{
    Moments m = {0.0, 0.0, 0};
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        m = absorbed(m, in[i]);
    out[threadIdx.x] = m;
}

extern "C" __global__ void fibonacci(unsigned *out)
{
    out[threadIdx.x] = depth(threadIdx.x % 12);
}

extern "C" __global__ void choose(const int *a, const int *b, int *out, unsigned which)
{
    out[threadIdx.x] = choices[which](a[threadIdx.x], b[threadIdx.x]);
}

// Parameters by value, as a structure.
extern "C" __global__ void unpack(Moments m, double *out)
{
    out[0] = m.sum;
    out[1] = m.squares;
    out[2] = m.count;
}
