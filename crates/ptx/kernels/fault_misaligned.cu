// Vectors read from where no vector may begin.

extern "C" __global__ void misaligned_vector(const float *in, float *out, unsigned offset)
{
    const float4 v = *(const float4 *)(in + offset + 4 * threadIdx.x); // fault: misaligned_vector
    out[threadIdx.x] = v.x + v.y + v.z + v.w;
}

extern "C" __global__ void misaligned_vector_fixed(const float *in, float *out, unsigned offset)
{
    const float *first = in + offset + 4 * threadIdx.x;
    out[threadIdx.x] = first[0] + first[1] + first[2] + first[3];
}
