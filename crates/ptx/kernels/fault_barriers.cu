// Barriers that the threads of a block do not agree on.

// Odd warps never come.
extern "C" __global__ void divergent_barrier(int *out)
{
    if (threadIdx.x / 32 % 2 == 0)
        __syncthreads(); // fault: divergent_barrier
    out[threadIdx.x] = (int)threadIdx.x;
}

extern "C" __global__ void divergent_barrier_fixed(int *out)
{
    __syncthreads();
    out[threadIdx.x] = (int)threadIdx.x;
}

// Half of the warps wait at one barrier, half at another.
extern "C" __global__ void other_barrier(int *out)
{
    if (threadIdx.x / 32 % 2 == 0)
        asm volatile("bar.sync 1, 64;" ::: "memory"); // fault: other_barrier
    else
        asm volatile("bar.sync 2, 64;" ::: "memory"); // fault: other_barrier
    out[threadIdx.x] = (int)threadIdx.x;
}

extern "C" __global__ void other_barrier_fixed(int *out)
{
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[threadIdx.x] = (int)threadIdx.x;
}

// They meet at one barrier and count on different crowds.
extern "C" __global__ void other_count(int *out)
{
    if (threadIdx.x / 32 % 2 == 0)
        asm volatile("bar.sync 1, 64;" ::: "memory"); // fault: other_count
    else
        asm volatile("bar.sync 1, 96;" ::: "memory"); // fault: other_count
    out[threadIdx.x] = (int)threadIdx.x;
}

extern "C" __global__ void other_count_fixed(int *out)
{
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[threadIdx.x] = (int)threadIdx.x;
}
