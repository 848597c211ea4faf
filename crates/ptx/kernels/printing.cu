// Output from the device.

extern "C" __global__ void greet(int value)
{
    printf("block %u thread %u: %d %s %.3f\n", blockIdx.x, threadIdx.x, value, "times", 0.125);
}

extern "C" __global__ void clocks(unsigned long long *out)
{
    unsigned long long timer;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(timer));
    const long long cycles = clock64();
    __nanosleep(100);
    out[0] = (unsigned long long)(clock64() - cycles);
    out[1] = timer;
}

extern "C" __global__ void demand(const int *in)
{
    if (in[threadIdx.x] < 0)
        __trap();
}
