// Grids that launch smaller grids behind themselves.
// compute: 90
// options: -rdc=true

#include "element.cuh"

// The compiler knows the second function, but blanks both names out.
#undef __cudaCDP2GetParameterBufferV2
#undef __cudaCDP2LaunchDeviceV2
extern "C" __device__ void *__cudaCDP2GetParameterBufferV2(void *kernel, dim3 grid, dim3 block, u32 shared);

// What a grid leaves of itself. Grids are numbered in the order in which they were asked for; the host's is 0.
struct Greeting {
    u32 parent, from_block, depth, blocks, threads;
    // Threads that said hello.
    u32 greeted;
};

// Two strategies. Every block's first thread launches a grid of one block of half as many threads; or, with `by_grid`, the first thread
// of the first block launches half as many blocks of as many threads: one launch a level, and blocks that stay as large as the device
// likes them. A child begins when all of this grid is done and its own children come behind it: a tail launch, as a grid cannot wait for
// its children. Nothing smaller than `least` threads is launched, and nothing from the depth `deepest`.
extern "C" __global__ void hello(Greeting *greetings, u32 *count, u32 most, u32 self, u32 least, u32 deepest, u32 by_grid)
{
    Greeting &mine = greetings[self];
    atomicAdd(&mine.greeted, 1);
    const u32 blocks = by_grid ? gridDim.x / 2 : 1, threads = by_grid ? blockDim.x : blockDim.x / 2;
    const bool launches = threadIdx.x == 0 && (!by_grid || blockIdx.x == 0);
    if (!launches || blocks == 0 || threads == 0 || threads < least || mine.depth >= deepest)
        return;
    const u32 child = atomicAdd(count, 1);
    if (child >= most)
        return;
    Greeting &other = greetings[child];
    other.parent = self;
    other.from_block = blockIdx.x;
    other.depth = mine.depth + 1;
    other.blocks = blocks;
    other.threads = threads;
    struct Arguments {
        Greeting *greetings;
        u32 *count;
        u32 most, self, least, deepest, by_grid;
    };
    auto *arguments = (Arguments *)__cudaCDP2GetParameterBufferV2((void *)hello, dim3(blocks), dim3(threads), 0);
    if (arguments) {
        *arguments = {greetings, count, most, child, least, deepest, by_grid};
        __cudaCDP2LaunchDeviceV2(arguments, (cudaStream_t)3); // cudaStreamTailLaunch
    }
}
