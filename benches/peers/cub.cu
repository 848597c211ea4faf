// CUB's device-wide reductions, timed as crates/cuda/examples/full_reductions.rs times ours: calls follow one another without a
// wait, each on the next part of a buffer of 8 GiB, so that none finds its data in the L2 cache.
//
//     nvcc -O3 -std=c++17 -arch=native -o cub cub.cu && ./cub
//
// Prints one JSON object a line: {"peer", "op", "dtype", "elements", "seconds"}, medians of several rounds. "call to value" is
// the time from the call until the value is on the host, by a copy and a wait.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cub/cub.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>
#include <vector>

#define CHECK(call) \
    do { \
        const cudaError_t error = (call); \
        if (error != cudaSuccess) { \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error)); \
            std::exit(1); \
        } \
    } while (0)

constexpr size_t BUFFER = size_t(8) << 30;
constexpr size_t ROUND = size_t(16) << 30;
constexpr size_t MOST_CALLS = 2000;
constexpr int ROUNDS = 7;

static char *buffer;
static char *answer;
static void *workspace;
static size_t workspace_bytes = size_t(64) << 20;

// What the data are: uniform floats below 1, integers of random bits.
template <class T> __device__ T element(uint64_t bits) { return T(bits); }
template <> __device__ float element<float>(uint64_t bits) { return float(bits >> 40) * 0x1p-24f; }
template <> __device__ double element<double>(uint64_t bits) { return double(bits >> 11) * 0x1p-53; }
template <> __device__ __half element<__half>(uint64_t bits) { return __float2half(float(bits >> 53) * 0x1p-11f); }
template <> __device__ __nv_bfloat16 element<__nv_bfloat16>(uint64_t bits) { return __float2bfloat16(float(bits >> 56) * 0x1p-8f); }

template <class T> __global__ void fill(T *data, size_t n)
{
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
        uint64_t x = i * 0x9e3779b97f4a7c15 + 1;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
        x = (x ^ x >> 27) * 0x94d049bb133111eb;
        data[i] = element<T>(x ^ x >> 31);
    }
}

struct Plus {
    template <class A, class B> __host__ __device__ auto operator()(A a, B b) const { return a + b; }
};

template <class Call> double median_of_rounds(size_t calls, Call call)
{
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    std::vector<double> times;
    for (int round = 0; round <= ROUNDS; ++round) {
        CHECK(cudaEventRecord(begin));
        for (size_t c = 0; c < calls; ++c)
            call();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        // The first round warms up.
        if (round > 0)
            times.push_back(ms * 1e-3 / calls);
    }
    std::sort(times.begin(), times.end());
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    return times[times.size() / 2];
}

static void print(const char *op, const char *dtype, size_t n, double seconds)
{
    std::printf("{\"peer\": \"CUB\", \"op\": \"%s\", \"dtype\": \"%s\", \"elements\": %zu, \"seconds\": %.4g}\n", op, dtype, n, seconds);
    std::fflush(stdout);
}

template <class T, class Reduce> void measure(const char *op, const char *dtype, Reduce reduce)
{
    for (const int log : {10, 16, 20, 24, 28, 30, 0}) {
        const size_t n = log == 0 ? (size_t(4) << 30) / sizeof(T) : size_t(1) << log;
        const size_t bytes = n * sizeof(T), stride = (bytes + 255) / 256 * 256;
        size_t at = 0;
        const size_t calls = std::clamp(ROUND / bytes, size_t(4), MOST_CALLS);
        print(op, dtype, n, median_of_rounds(calls, [&] {
            if (at + bytes > BUFFER)
                at = 0;
            CHECK(reduce(reinterpret_cast<const T *>(buffer + at), n));
            at += stride;
        }));
    }
}

template <class T, class Reduce> void call_to_value(const char *dtype, Reduce reduce)
{
    std::vector<double> times;
    for (int i = 0; i < 200; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        CHECK(reduce(reinterpret_cast<const T *>(buffer), size_t(1) << 16));
        char value[16];
        CHECK(cudaMemcpyAsync(value, answer, sizeof(T), cudaMemcpyDeviceToHost));
        CHECK(cudaStreamSynchronize(0));
        times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    std::sort(times.begin(), times.end());
    print("call to value", dtype, size_t(1) << 16, times[times.size() / 2]);
}

// Sums of T that come out as S, minima and positions.
template <class T, class S> void sums(const char *dtype, bool order)
{
    fill<<<4096, 256>>>(reinterpret_cast<T *>(buffer), BUFFER / sizeof(T));
    CHECK(cudaDeviceSynchronize());
    const auto sum = [](const T *data, size_t n) {
        return cub::DeviceReduce::Reduce(workspace, workspace_bytes, data, reinterpret_cast<S *>(answer), n, Plus(), S(0));
    };
    measure<T>("sum", dtype, sum);
    if (order) {
        measure<T>("min", dtype, [](const T *data, size_t n) {
            return cub::DeviceReduce::Min(workspace, workspace_bytes, data, reinterpret_cast<T *>(answer), n);
        });
        measure<T>("argmin", dtype, [](const T *data, size_t n) {
#if CUB_MAJOR_VERSION >= 3
            return cub::DeviceReduce::ArgMin(
                workspace, workspace_bytes, data, reinterpret_cast<T *>(answer), reinterpret_cast<int64_t *>(answer + 16), int64_t(n));
#else
            return cub::DeviceReduce::ArgMin(workspace, workspace_bytes, data, reinterpret_cast<cub::KeyValuePair<int, T> *>(answer), int(n));
#endif
        });
    }
    if (std::is_same_v<T, float>)
        call_to_value<T>(dtype, sum);
}

int main()
{
    CHECK(cudaMalloc(&buffer, BUFFER));
    CHECK(cudaMalloc(&answer, 256));
    CHECK(cudaMalloc(&workspace, workspace_bytes));
    sums<float, float>("f32", true);
    sums<double, double>("f64", true);
    sums<int32_t, int32_t>("i32", true);
    sums<int64_t, int64_t>("i64", true);
    sums<int8_t, int32_t>("i8", false);
    sums<uint8_t, uint32_t>("u8", false);
    sums<int16_t, int32_t>("i16", false);
    sums<__half, __half>("f16", false);
    sums<__nv_bfloat16, __nv_bfloat16>("bf16", false);
}
