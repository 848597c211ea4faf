// compute: 90
// 16-bit floating point that needs a newer device: bf16 conversions, pairs from two floats, bf16 arithmetic, min and max of halves.

extern "C" __global__ void pack_pairs(const float *a, const float *b, unsigned *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned f16x2, bf16x2, relu, sum, least, fused;
    unsigned short bf16;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(f16x2) : "f"(a[i]), "f"(b[i]));
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bf16x2) : "f"(a[i]), "f"(b[i]));
    asm("cvt.rz.relu.bf16x2.f32 %0, %1, %2;" : "=r"(relu) : "f"(a[i]), "f"(b[i]));
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bf16) : "f"(a[i]));
    asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(sum) : "r"(bf16x2), "r"(relu));
    asm("min.NaN.f16x2 %0, %1, %2;" : "=r"(least) : "r"(f16x2), "r"(f16x2));
    asm("fma.rn.relu.bf16x2 %0, %1, %2, %3;" : "=r"(fused) : "r"(bf16x2), "r"(relu), "r"(sum));
    out[7 * i] = f16x2;
    out[7 * i + 1] = bf16x2;
    out[7 * i + 2] = relu;
    out[7 * i + 3] = bf16;
    out[7 * i + 4] = sum;
    out[7 * i + 5] = least;
    out[7 * i + 6] = fused;
}
