// Exact sums of integers: as many 64-bit words as 2^64 of them need.

#pragma once

#include "load.cuh"
#include "ticket.cuh"
#include "words.cuh"

// What four, two or one elements in a 32-bit word add up to; 2^16 of them stay within 32 bits for elements of up to 16.
template <class T> __device__ __forceinline__ i32 add_word(u32 word, i32 sum);
template <> __device__ __forceinline__ i32 add_word<i8>(u32 word, i32 sum)
{
    asm("dp4a.s32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(word), "r"(0x01010101));
    return sum;
}
template <> __device__ __forceinline__ i32 add_word<u8>(u32 word, i32 sum)
{
    asm("dp4a.u32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(word), "r"(0x01010101));
    return sum;
}
template <> __device__ __forceinline__ i32 add_word<i16>(u32 word, i32 sum) { return sum + i16(word) + (i32(word) >> 16); }
template <> __device__ __forceinline__ i32 add_word<u16>(u32 word, i32 sum) { return sum + i32(word & 0xffff) + i32(word >> 16); }
// Any byte that is not 0 counts as one.
template <> __device__ __forceinline__ i32 add_word<bool>(u32 word, i32 sum) { return sum + __popc(any_byte(word)); }

// Absolute values of signed elements are taken one by one.
template <class T, bool ABSOLUTE>
struct IntegerSum {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    static constexpr bool SIGNED = T(-1) < T(0);
    static constexpr bool NEGATE = ABSOLUTE && SIGNED;
    static constexpr bool LONG = sizeof(T) == 8;

    // The sum: low, and for 64-bit elements what does not fit it.
    u64 low = 0;
    i64 high = 0;

    __device__ __forceinline__ void one(Bits bits)
    {
        const T x = T(Element<T>::key(bits));
        if constexpr (LONG) {
            const u64 term = NEGATE && x < 0 ? -u64(x) : u64(x);
            low += term;
            high += (low < term) + (SIGNED && !NEGATE ? i64(x) >> 63 : 0);
        } else {
            low += u64(NEGATE && x < 0 ? -i64(x) : i64(x));
        }
    }

    // Short elements of a vector side by side, added to a sum of 32 bits.
    static __device__ __forceinline__ i32 add_vector(const uint4 &v, i32 sum)
    {
        return add_word<T>(v.x, add_word<T>(v.y, add_word<T>(v.z, add_word<T>(v.w, sum))));
    }

    __device__ __forceinline__ void take(const uint4 &v)
    {
        if constexpr (sizeof(T) < 4 && !NEGATE) {
            low += u64(i64(add_vector(v, 0)));
        } else {
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i)
                one(item<T>(v, i));
        }
    }

    template <bool FULL>
    __device__ __forceinline__ void tile(const uint4 (&v)[VECTORS], u32, u32 valid)
    {
        if constexpr (sizeof(T) < 4 && !NEGATE) {
            i32 sum = 0;
#pragma unroll
            for (int k = 0; k < VECTORS; ++k) {
                if (FULL || k < valid)
                    sum = add_vector(v[k], sum);
            }
            low += u64(i64(sum));
        } else {
            each<T, FULL>(v, valid, [&](Bits bits) { one(bits); });
        }
    }

    // Three words that weigh 1, 2^32 and 2^64 and add over 2^31 threads.
    __device__ __forceinline__ Totals<3> words() const
    {
        Totals<3> totals;
        totals.word[0] = low & 0xffffffff;
        totals.word[1] = LONG ? low >> 32 : u64(i64(low) >> 32);
        totals.word[2] = u64(high);
        return totals;
    }
};

// Leaves what is the same for every array: the last limb, the number of elements, and three counters that stay zero.
__device__ __forceinline__ void leave_constants(u64 n, u64 *out)
{
    if (blockIdx.x == 0 && threadIdx.x < 5)
        out[threadIdx.x] = threadIdx.x == 1 ? n : 0;
}

// Leaves the vector form of core's superaccumulator in `out`: four limbs, of which the upper ones' carries are still to move,
// and the four counters.
template <class T, bool ABSOLUTE>
__device__ __forceinline__ void integer_sum(const void *data, u64 n, u64 *scratch, u64 *out)
{
    IntegerSum<T, ABSOLUTE> pass;
    walk(data, n, scratch, pass);
    const Totals<3> totals = fold_block(pass.words());
    add_over_grid<3>([&](int i) { return i == 0 ? totals.word[0] : i == 1 ? totals.word[1] : totals.word[2]; }, scratch, out);
    leave_constants(n, out + 3);
}
