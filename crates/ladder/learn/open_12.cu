// Each level of the fold is a grid of its own, which the one before has asked for. A grid never sees what its children write: a launch
// in the stream TAIL begins when this grid has ended, with all of its blocks, and sees all that they wrote.
// options: -rdc=true
#define TAIL ((cudaStream_t)3)

// A copy of the elements, which the fold may overwrite: a tile for each block.
__device__ int work[1 << 15];

// A level of all tiles, which are `width` apart.
extern "C" __global__ void fold(int *partials, unsigned width)
{
    const unsigned tid = threadIdx.x, half = blockDim.x;
    int *mine = work + blockIdx.x * width;
    mine[tid] += mine[tid + half];
    // HOLE: launch the next level, one grid for all tiles; of the last level leave each tile's sum
}

extern "C" __global__ void sum(const int *in, int *partials, unsigned n)
{
    const unsigned tid = threadIdx.x, width = blockDim.x, i = blockIdx.x * width + tid;
    work[i] = i < n ? in[i] : 0;
    if (tid == 0 && blockIdx.x == 0)
        fold<<<gridDim.x, width / 2, 0, TAIL>>>(partials, width);
}
