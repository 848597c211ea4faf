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

// Every block's first thread launches a grid of one block of half as many threads. It begins when all of this grid is done and its
// own children come behind it: a tail launch, as a grid cannot wait for its children. Nothing smaller than `least` threads is launched,
// and nothing from the depth `deepest`.
extern "C" __global__ void hello(Greeting *greetings, u32 *count, u32 most, u32 self, u32 least, u32 deepest)
{
    Greeting &mine = greetings[self];
    atomicAdd(&mine.greeted, 1);
    if (threadIdx.x != 0 || blockDim.x / 2 < least || blockDim.x < 2 || mine.depth >= deepest)
        return;
    const u32 child = atomicAdd(count, 1);
    if (child >= most)
        return;
    Greeting &other = greetings[child];
    other.parent = self;
    other.from_block = blockIdx.x;
    other.depth = mine.depth + 1;
    other.blocks = 1;
    other.threads = blockDim.x / 2;
    struct Arguments {
        Greeting *greetings;
        u32 *count;
        u32 most, self, least, deepest;
    };
    auto *arguments = (Arguments *)__cudaCDP2GetParameterBufferV2((void *)hello, dim3(1), dim3(blockDim.x / 2), 0);
    if (arguments) {
        *arguments = {greetings, count, most, child, least, deepest};
        __cudaCDP2LaunchDeviceV2(arguments, (cudaStream_t)3); // cudaStreamTailLaunch
    }
}
