// CUB's sums of variable segments, timed as crates/cuda/examples/segments.rs times ours: calls follow one another without a wait, on an
// array that no cache holds.
//
//     nvcc -O3 -std=c++17 -arch=native -o cub_segments cub_segments.cu && ./cub_segments OFFSETS...
//
// A file has offsets, as u32. Prints one JSON object a line: {"peer", "case", "seconds"}, medians of several rounds.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cub/cub.cuh>
#include <vector>

#define CHECK(call) \
    do { \
        const cudaError_t error = (call); \
        if (error != cudaSuccess) { \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error)); \
            std::exit(1); \
        } \
    } while (0)

constexpr int ROUNDS = 7, CALLS = 4;

__global__ void fill(float *data, size_t n)
{
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
        data[i] = float(i * 2654435761u >> 8 & 0xffffff) * 0x1p-24f;
}

int main(int count, char **files)
{
    for (int f = 1; f < count; ++f) {
        std::FILE *file = std::fopen(files[f], "rb");
        if (file == nullptr) {
            std::fprintf(stderr, "%s cannot be read\n", files[f]);
            return 1;
        }
        std::vector<uint32_t> offsets;
        uint32_t word;
        while (std::fread(&word, 4, 1, file) == 1)
            offsets.push_back(word);
        std::fclose(file);
        const size_t n = offsets.back();
        const int64_t segments = int64_t(offsets.size()) - 1;
        float *data, *sums;
        uint32_t *at;
        void *workspace = nullptr;
        size_t bytes = 0;
        CHECK(cudaMalloc(&data, n * sizeof(float)));
        CHECK(cudaMalloc(&sums, segments * sizeof(float)));
        CHECK(cudaMalloc(&at, offsets.size() * 4));
        CHECK(cudaMemcpy(at, offsets.data(), offsets.size() * 4, cudaMemcpyHostToDevice));
        fill<<<4096, 256>>>(data, n);
        const auto sum = [&] { CHECK(cub::DeviceSegmentedReduce::Sum(workspace, bytes, data, sums, segments, at, at + 1)); };
        sum();
        CHECK(cudaMalloc(&workspace, std::max<size_t>(bytes, 1)));
        std::vector<double> seconds;
        for (int round = 0; round <= ROUNDS; ++round) {
            CHECK(cudaDeviceSynchronize());
            const auto begin = std::chrono::steady_clock::now();
            for (int call = 0; call < CALLS; ++call)
                sum();
            CHECK(cudaDeviceSynchronize());
            const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
            if (round > 0)
                seconds.push_back(all.count() / CALLS);
        }
        std::sort(seconds.begin(), seconds.end());
        std::printf("{\"peer\": \"cub\", \"case\": \"%s\", \"seconds\": %e}\n", files[f], seconds[seconds.size() / 2]);
        CHECK(cudaFree(data));
        CHECK(cudaFree(sums));
        CHECK(cudaFree(at));
        CHECK(cudaFree(workspace));
    }
}
