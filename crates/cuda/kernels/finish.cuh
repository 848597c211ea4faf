// What the kernels have in common that make numbers of the payloads of others, a thread for each. A block brings its payloads together
// first: a thread takes the words of one in turn, and would wait for each.

#pragma once

#include "answer.cuh"
#include "dependent_launch.cuh"
#include "name.cuh"
#include "nonzero.cuh"
#include "wide.cuh"

constexpr int FINISH_THREADS = 128;
// Words of a block's payloads.
constexpr int FINISH_WORDS = 3072;

// The type of roots and variances.
template <class T, bool FLOAT = Element<T>::FLOAT>
struct RealOf {
    using Type = T;
};
template <class T>
struct RealOf<T, false> {
    using Type = f64;
};
template <class T>
using Real = typename RealOf<T>::Type;

// What the counters behind the limbs of floats say: the count, NaNs, positive and negative infinities. NaNs may be as if they were not
// there.
template <class T>
__device__ __forceinline__ Specials<T> specials_of(const u64 *counters, bool omits)
{
    return {counters[1] != 0 && !omits, counters[2] != 0, counters[3] != 0};
}
__device__ __forceinline__ u64 count_of(const u64 *counters, bool omits) { return counters[0] - (omits ? counters[1] : 0); }

// The total that a payload's limbs make. Behind the last that is not 0 comes its carry.
template <class Format>
__device__ __forceinline__ Truncated total_of(const u64 *limbs)
{
    int first = 0, count = Format::LIMBS;
    if constexpr (Format::LIMBS >= MANY_LIMBS) {
        const Nonzero some(count, [&](int i) { return limbs[i]; });
        first = some.first;
        count = some.last + 1 - first;
    }
    return Truncated::of_limbs(count, Format::LSB + 32 * first, [&](int i) { return i64(limbs[first + i]); });
}

// The total of integers, in 64 bits: whether it fits there.
template <class T, int LIMBS>
__device__ __forceinline__ bool integer_total(const u64 *limbs, u64 &total)
{
    constexpr bool SIGNED = T(-1) < T(0);
    i64 carry = 0;
    u64 digits[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        carry += i64(limbs[i]);
        digits[i] = u64(carry) & 0xffffffff;
        carry >>= 32;
    }
    total = digits[1] << 32 | digits[0];
    const i64 sign = SIGNED && i64(total) < 0 ? -1 : 0;
    bool fits = true;
#pragma unroll
    for (int i = 2; i < LIMBS - 1; ++i) {
        carry += i64(limbs[i]);
        fits &= (carry & 0xffffffff) == (sign & 0xffffffff);
        carry >>= 32;
    }
    return fits && carry + i64(limbs[LIMBS - 1]) == sign;
}

template <class Number>
__device__ __forceinline__ void write(void *out, i64 place, Number x)
{
    static_cast<Number *>(out)[place] = x;
}

// NaNs may be as if they were not there. Sums, means and variances of shorter floats may be f64.
enum Manner : u32 {
    OMITS_NAN = 1,
    IN_F64 = 2
};

template <class T>
__device__ __forceinline__ void write_special(void *out, i64 place, const Specials<T> &specials, u32 manner)
{
    if (sizeof(typename Element<T>::Bits) < 8 && (manner & IN_F64) != 0)
        write(out, place, Specials<f64>{specials.nan, specials.positive, specials.negative}.bits());
    else
        write(out, place, specials.bits());
}

// The kernel NAME_ELEMENT, of which `finish` makes a number. The i-th of `count` payloads is i * words words behind `payloads`; its
// number goes i * step numbers behind `out`. A block has `each` of them. `overflow` is set where a total does not fit its type, or where
// nothing is left that has an extreme. `manner` is as `Manner` says.
#define FINISHING_KERNEL(name) \
    extern "C" __global__ void __launch_bounds__(FINISH_THREADS) NAMED(name, ELEMENT)(const u64 *payloads, u64 words, u32 count, u32 each, \
        u32 ask, u32 manner, void *out, i64 step, u32 *overflow) \
    { \
        wait_for_launch_ahead(); \
        __shared__ u64 some[FINISH_WORDS]; \
        const u32 first = blockIdx.x * each, here = min(each, count - first), length = u32(words), pitch = length | 1; \
        for (u32 i = threadIdx.x; i < here * length; i += FINISH_THREADS) \
            some[i / length * pitch + i % length] = read_left(payloads + first * words + i); \
        __syncthreads(); \
        if (threadIdx.x < here) \
            finish<ELEMENT>(some + threadIdx.x * pitch, ask, manner, out, (first + threadIdx.x) * step, overflow); \
    }
