// Functions of one number, and operations on bits: what the compiler makes of CUDA's own names for them.

extern "C" __global__ void functions(const float *in, float *out)
{
    const float v = in[threadIdx.x];
    float *o = out + 20 * threadIdx.x;
    o[0] = exp2f(v);
    o[1] = log2f(v);
    o[2] = sqrtf(v);
    o[3] = rsqrtf(v);
    o[4] = 1.0f / v;
    o[5] = __fdividef(3.0f, v);
    o[6] = __sinf(v);
    o[7] = __cosf(v);
    o[8] = __frcp_rz(v);
    o[9] = __fsqrt_rd(v);
    o[10] = __fadd_ru(v, 0.1f);
    o[11] = __fmaf_rz(v, v, 0.1f);
    o[12] = fminf(v, 0.0f) + fmaxf(v, 1.0f);
    o[13] = fabsf(v) - (-v);
    o[14] = floorf(v) + ceilf(v) + truncf(v) + rintf(v);
    o[15] = __saturatef(v);
    o[16] = isnan(v) ? 1.0f : isinf(v) ? 2.0f : 3.0f;
    o[17] = copysignf(1.0f, v);
    o[18] = fmodf(v, 0.7f);
    asm("tanh.approx.f32 %0, %1;" : "=f"(o[19]) : "f"(v));
}

extern "C" __global__ void functions_f64(const double *in, double *out)
{
    const double v = in[threadIdx.x];
    double *o = out + 8 * threadIdx.x;
    o[0] = sqrt(v);
    o[1] = 1.0 / v;
    o[2] = fma(v, v, 0.1);
    o[3] = __ddiv_rd(1.0, v);
    o[4] = fmin(v, 0.0) + fmax(v, 1.0);
    o[5] = floor(v);
    o[6] = (double)(float)v;
    o[7] = __longlong_as_double(__double_as_longlong(v) ^ 1);
}

extern "C" __global__ void conversions(const float *in, const double *wide, long long *out)
{
    const float v = in[threadIdx.x];
    const double w = wide[threadIdx.x];
    long long *o = out + 12 * threadIdx.x;
    o[0] = (int)v;
    o[1] = (unsigned)v;
    o[2] = (long long)v;
    o[3] = (long long)(unsigned char)(int)v;
    o[4] = __float2int_rn(v);
    o[5] = __float2int_ru(v);
    o[6] = (long long)w;
    o[7] = (long long)(unsigned long long)w;
    o[8] = (signed char)(int)w;
    o[9] = __double_as_longlong((double)(long long)v);
    o[10] = __float_as_int((float)(int)w);
    o[11] = (short)(int)v;
}

extern "C" __global__ void bits(const unsigned *in, unsigned *out)
{
    const unsigned v = in[threadIdx.x];
    unsigned *o = out + 16 * threadIdx.x;
    o[0] = __popc(v);
    o[1] = __clz(v);
    o[2] = __brev(v);
    o[3] = __ffs(v);
    o[4] = __byte_perm(v, ~v, 0x5140);
    o[5] = __funnelshift_l(v, ~v, v & 31);
    o[6] = __funnelshift_rc(v, ~v, 33);
    asm("bfe.u32 %0, %1, 5, 9;" : "=r"(o[7]) : "r"(v));
    asm("bfi.b32 %0, %1, %2, 5, 9;" : "=r"(o[8]) : "r"(v), "r"(~v));
    o[9] = __mulhi((int)v, (int)~v);
    o[10] = __umulhi(v, ~v);
    o[11] = __sad((int)v, 77, 5u);
    o[12] = __mul24((int)v, 77);
    o[13] = (v & 0xf0f0f0f0u) ^ (~v | 0x33u);
    asm("dp4a.s32.s32 %0, %1, %2, 3;" : "=r"(o[14]) : "r"(v), "r"(~v));
    o[15] = min((int)v, 9) + max(v, 9u) + (unsigned)abs((int)v) + v % 7u + v / 9u;
}
