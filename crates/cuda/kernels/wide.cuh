// A superaccumulator in shared memory, which takes any element and cannot fail: where every exact float sum of a block ends.
//
// A limb is the 64-bit integer {high, low}, kept as two words because shared memory adds 32 bits natively and 64 bits in a loop.
// A digit is added to the low word; when that wraps, one thread sees it and moves the high word by one. An
// element moves a given high word by two at most, and a block gets no more than 2^29 of them.

#pragma once

#include "fold.cuh"

template <class Format>
struct Wide {
    static constexpr int LIMBS = Format::LIMBS;
    // The counters behind the limbs of core's vector form: count, NaNs, positive and negative infinities.
    static constexpr int COUNT = LIMBS;
    static constexpr int WORDS = LIMBS + 4;
    enum Special { NOT_A_NUMBER, POSITIVE, NEGATIVE };

    u32 low[LIMBS];
    u32 high[LIMBS];
    u32 specials[3];

    __device__ __forceinline__ void clear()
    {
        for (int i = threadIdx.x; i < LIMBS; i += blockDim.x) {
            low[i] = 0;
            high[i] = 0;
        }
        if (threadIdx.x < 3)
            specials[threadIdx.x] = 0;
    }

    __device__ __forceinline__ void count(Special special) { atomicAdd(&specials[special], 1u); }

    // Counts what a warp's lanes have, fewer than 2^15 of a lane each. All of them call it.
    __device__ __forceinline__ void count(u32 nans, u32 positive, u32 negative)
    {
        if (!__any_sync(ALL_LANES, (nans | positive | negative) != 0))
            return;
        Totals<1> all;
        all.word[0] = u64(negative) << 40 | u64(positive) << 20 | nans;
        all = fold_warp(all);
        const u32 lane = threadIdx.x % 32;
        if (lane < 3)
            atomicAdd(&specials[lane], u32(all.word[0] >> 20 * lane) & 0xfffff);
    }

    // Adds (-1)^negative * magnitude * 2^exponent, a multiple of the format's last bit.
    __device__ __forceinline__ void deposit(bool negative, u64 magnitude, int exponent)
    {
        int offset = exponent - Format::LSB;
        if (offset < 0) {
            // The bits that go are zeros.
            magnitude = offset > -64 ? magnitude >> -offset : 0;
            offset = 0;
        }
        const int shift = offset % 32;
        u64 below = magnitude << shift;
        u64 rest = below >> 32 | (shift ? magnitude >> (64 - shift) : 0) << 32;
        u32 digit = u32(below);
        // No sum of elements reaches beyond the last limb: the bound only keeps memory safe.
        for (int i = offset / 32; i < LIMBS && (digit | rest) != 0; ++i) {
            if (digit != 0)
                add_digit(i, digit, negative);
            digit = u32(rest);
            rest >>= 32;
        }
    }

    __device__ __forceinline__ void add_digit(int i, u32 digit, bool negative)
    {
        if (negative) {
            if (atomicSub(&low[i], digit) < digit)
                atomicSub(&high[i], 1u);
        } else {
            if (atomicAdd(&low[i], digit) > ~digit)
                atomicAdd(&high[i], 1u);
        }
    }

    // Entry i of the vector form of a sum of n elements over the grid: the first block has the count. The upper halves of the limbs
    // have moved up by one limb, so that the entries of 2^29 blocks add without overflow.
    __device__ __forceinline__ u64 entry(int i, u64 n) const
    {
        if (i == COUNT)
            return blockIdx.x == 0 ? n : 0;
        if (i > COUNT)
            return specials[i - COUNT - 1];
        i64 limb = i64(low[i]);
        if (i > 0)
            limb += i64(i32(high[i - 1]));
        if (i == LIMBS - 1)
            limb += i64(u64(high[i]) << 32);
        return u64(limb);
    }

    // Adds entry i of another's vector form, or of the sum of up to 2^16 others; of specials, that there are some.
    __device__ __forceinline__ void add_entry(int i, u64 entry)
    {
        if (i > COUNT && entry != 0)
            count(Special(i - COUNT - 1));
        if (i < LIMBS) {
            add_digit(i, u32(entry), false);
            atomicAdd(&high[i], u32(entry >> 32));
        }
    }
};

// A finite float's integer significand and the exponent of its last bit.
template <class T>
struct Parts {
    u64 significand;
    int exponent;
    __device__ __forceinline__ Parts(typename Element<T>::Bits magnitude)
    {
        using Format = Element<T>;
        const int field = int(magnitude >> Format::FRACTION);
        const u64 fraction = magnitude & ((typename Format::Bits(1) << Format::FRACTION) - 1);
        significand = field == 0 ? fraction : fraction | u64(1) << Format::FRACTION;
        exponent = Format::UNIT + (field == 0 ? 0 : field - 1);
    }
};

// Takes an element, taken apart by integer instructions.
template <class T, class Sums>
__device__ __forceinline__ void absorb(Sums &wide, typename Element<T>::Bits bits)
{
    using Format = Element<T>;
    const bool negative = (bits & Format::SIGN) != 0;
    const auto magnitude = Format::magnitude(bits);
    if (magnitude >= Format::INFINITE) {
        wide.count(magnitude > Format::INFINITE ? Sums::NOT_A_NUMBER : negative ? Sums::NEGATIVE : Sums::POSITIVE);
        return;
    }
    const Parts<T> parts(magnitude);
    wide.deposit(negative, parts.significand, parts.exponent);
}

// Whether a product is zero.
template <class T>
__device__ __forceinline__ bool adds_nothing(typename Element<T>::Bits x, typename Element<T>::Bits y)
{
    return (Element<T>::magnitude(x) == 0 || Element<T>::magnitude(y) == 0) && Element<T>::is_finite(x) && Element<T>::is_finite(y);
}

// Takes the product of two elements. Zero times infinity is NaN.
template <class T, class Sums>
__device__ __forceinline__ void absorb_product(Sums &wide, typename Element<T>::Bits x, typename Element<T>::Bits y)
{
    using Format = Element<T>;
    const bool negative = ((x ^ y) & Format::SIGN) != 0;
    const auto a = Format::magnitude(x), b = Format::magnitude(y);
    const auto most = a < b ? b : a, least = a < b ? a : b;
    if (most >= Format::INFINITE) {
        const bool nan = most > Format::INFINITE || least == 0;
        wide.count(nan ? Sums::NOT_A_NUMBER : negative ? Sums::NEGATIVE : Sums::POSITIVE);
        return;
    }
    const Parts<T> one(a), other(b);
    const int exponent = one.exponent + other.exponent;
    wide.deposit(negative, one.significand * other.significand, exponent);
    // Significands of f64 make 106 bits, the others' fit.
    if constexpr (Format::FRACTION > 31)
        wide.deposit(negative, __umul64hi(one.significand, other.significand), exponent + 64);
}
