// Products of floats: core's `FloatProd`, crates/core/src/op/float_prod.rs, which says why the order does not matter.
//
// A thread adds exponents and logarithms of significands, each rounded by itself to an integer, operation by operation as
// crates/core/src/op/logarithm.rs makes them. The sums of a number of elements that registers have room for go to 128 bits from time to
// time. Zeros, infinities and NaNs are counted and taken as ones; subnormal f64 are scaled.

#pragma once

#include "answer.cuh"
#include "fold.cuh"
#include "logarithm_tables.cuh"
#include "power.cuh"
#include "rounded.cuh"

// What rounds to multiples of 2^-60 and 2^-80; of its bits, there are as many too many as elements.
constexpr f64 BIG_ROUNDER = 0x1.8p-8, SMALL_ROUNDER = 0x1.8p-28;
constexpr u64 BIG_OFFSET = u64(1023 - 8) << 52 | u64(1) << 51, SMALL_OFFSET = u64(1023 - 28) << 52 | u64(1) << 51;

// A table in a block's shared memory.
template <class Logs>
__device__ __forceinline__ ulonglong2 *logarithm_room()
{
    __shared__ ulonglong2 entries[Logs::ENTRIES];
    return entries;
}

// Logarithms of significands of 53 digits.
struct LongLogs {
    static constexpr int ENTRIES = 1024, SUMS = 4;
    static constexpr u32 ROOM = 4096; // |-ln k| < 2^50.5 in units of 2^-52
    static constexpr int INDEX_BITS = 10; // of the upper word, below those of the entry
    static constexpr u32 TURN = (2 * LONG_HALVED - 1) << (INDEX_BITS - 1);
    static __device__ __forceinline__ const ulonglong2 *table() { return LONG_LOGARITHMS; }
    static __device__ __forceinline__ void add(u64 (&sum)[SUMS], f64 m, ulonglong2 entry)
    {
        // The factor is in the last bits of the logarithm, in units of 2^-11, of which the rest takes no notice.
        const f64 k = sub(of_bits(u64(1023 + 41) << 52 | (entry.x & 0xfff)), 0x1p41);
        const f64 h = of_bits(bits_of(m) & ~((u64(1) << 27) - 1));
        const f64 r = ::add(sub(mul(h, k), 1.0), mul(sub(m, h), k));
        const f64 w = mul(r, r), half = mul(w, -0.5);
        const f64 p = ::add(LONG_CUBE, mul(r, ::add(-0.25, mul(r, sub(LONG_FIFTH, mul(r, 1.0 / 6.0))))));
        const f64 c = mul(mul(w, r), p);
        const f64 big = ::add(::add(r, ::add(half, c)), BIG_ROUNDER);
        const f64 small = ::add(::add(::add(sub(r, sub(big, BIG_ROUNDER)), half), c), SMALL_ROUNDER);
        sum[0] += bits_of(big);
        sum[1] += entry.x;
        sum[2] += entry.y;
        sum[3] += bits_of(small);
    }
    // Of n elements.
    static __device__ __forceinline__ void deposit(Fixed &log, const u64 (&sum)[SUMS], u32 n)
    {
        log.add<20>(i64(sum[0] - n * BIG_OFFSET));
        log.add<28>(i64(sum[1]));
        log.add<0>(i64(sum[2]));
        log.add<0>(i64(sum[3] - n * SMALL_OFFSET));
    }
};

// The same of significands of at most 24 digits.
struct ShortLogs {
    static constexpr int ENTRIES = 512, SUMS = 2;
    static constexpr u32 ROOM = 128; // |-ln k| < 2^55.6 in units of 2^-57
    static constexpr int INDEX_BITS = 11;
    static constexpr u32 TURN = (2 * SHORT_HALVED - 1) << (INDEX_BITS - 1);
    static __device__ __forceinline__ const ulonglong2 *table() { return SHORT_LOGARITHMS; }
    static __device__ __forceinline__ void add(u64 (&sum)[SUMS], f64 m, ulonglong2 entry)
    {
        const f64 r = sub(mul(m, of_bits(entry.x)), 1.0);
        const f64 p = ::add(SHORT_SQUARE, mul(r, ::add(1.0 / 3.0, mul(r, ::add(SHORT_FOURTH, mul(r, 0.2))))));
        const f64 big = ::add(::add(r, mul(mul(r, r), p)), BIG_ROUNDER);
        sum[0] += bits_of(big);
        sum[1] += entry.y;
    }
    static __device__ __forceinline__ void deposit(Fixed &log, const u64 (&sum)[SUMS], u32 n)
    {
        log.add<20>(i64(sum[0] - n * BIG_OFFSET));
        log.add<23>(i64(sum[1]));
    }
};
template <class T> struct LogsOf { using Type = ShortLogs; };
template <> struct LogsOf<f64> { using Type = LongLogs; };

// What threads and blocks have: words that add, the second one with a carry.
struct Factors {
    static constexpr int WORDS = 6;
    // The exponent; the logarithm; zeros, and the sign in the last bit, from which nothing is carried; infinities; NaNs.
    u64 word[WORDS] = {};

    __device__ __forceinline__ void merge(const Factors &other)
    {
        const u64 low = word[1] + other.word[1];
        word[2] += other.word[2] + (low < word[1]);
        word[1] = low;
#pragma unroll
        for (int w = 0; w < WORDS; w += w == 0 ? 3 : 1)
            word[w] += other.word[w];
    }
    __device__ __forceinline__ bool negative() const { return word[3] >> 63 != 0; }
    __device__ __forceinline__ u64 zeros() const { return word[3] & ~(u64(1) << 63); }
    __device__ __forceinline__ u64 infinities() const { return word[4]; }
    __device__ __forceinline__ u64 nans() const { return word[5]; }
};

template <class T>
struct FloatProd {
    using Bits = typename Element<T>::Bits;
    using Logs = typename LogsOf<T>::Type;
    // One.
    static constexpr Bits IDENTITY = Bits((Element<T>::INFINITE >> 1) & Element<T>::INFINITE);

    Factors all;
    // Of elements that are not in `all` yet.
    u64 sum[Logs::SUMS] = {};
    u32 exponents = 0, signs = 0, taken = 0;

    // By all threads of the block, before the first element.
    static __device__ __forceinline__ void prepare()
    {
        ulonglong2 *const room = logarithm_room<Logs>();
        for (int i = threadIdx.x; i < Logs::ENTRIES; i += blockDim.x)
            room[i] = Logs::table()[i];
        __syncthreads();
    }

    // `all`, with what is not in it yet.
    __device__ __forceinline__ Factors whole() const
    {
        Fixed log;
        Logs::deposit(log, sum, taken);
        Factors mine;
        mine.word[0] = u64(i64(exponents) - i64(1023) * taken);
        mine.word[1] = log.low;
        mine.word[2] = log.high;
        mine.word[3] = u64(signs >> 31) << 63;
        mine.merge(all);
        return mine;
    }

    __device__ __forceinline__ void deposit()
    {
        all = whole();
#pragma unroll
        for (int s = 0; s < Logs::SUMS; ++s)
            sum[s] = 0;
        exponents = signs = taken = 0;
    }

    static __device__ __forceinline__ bool is_odd(Bits bits)
    {
        const Bits field = bits & Element<T>::INFINITE;
        return field == 0 || field == Element<T>::INFINITE;
    }

    // An element that is odd, as a normal f64.
    __device__ __forceinline__ f64 made_normal(Bits bits)
    {
        const f64 x = f64(Element<T>::value(bits));
        const Bits magnitude = Element<T>::magnitude(bits);
        if (magnitude != 0 && magnitude < Element<T>::INFINITE) {
            if constexpr (sizeof(Bits) == 8) {
                all.word[0] -= 64;
                return mul(x, 0x1p64);
            }
            return x;
        }
        all.word[5] += magnitude > Element<T>::INFINITE;
        all.word[4] += magnitude == Element<T>::INFINITE;
        all.word[3] += magnitude == 0;
        if (magnitude <= Element<T>::INFINITE && (bits & Element<T>::SIGN) != 0)
            all.word[3] += u64(1) << 63;
        return 1.0;
    }

    template <int U>
    __device__ __forceinline__ void take(const Bits (&bits)[U])
    {
        static_assert(Logs::ROOM % U == 0, "registers have room");
        bool odd = false;
        f64 x[U];
#pragma unroll
        for (int k = 0; k < U; ++k) {
            odd |= is_odd(bits[k]);
            x[k] = f64(Element<T>::value(bits[k]));
        }
        if (odd) {
#pragma unroll
            for (int k = 0; k < U; ++k)
                x[k] = is_odd(bits[k]) ? made_normal(bits[k]) : x[k];
        }
        if (taken + U > Logs::ROOM)
            deposit();
        taken += U;
        const ulonglong2 *const table = logarithm_room<Logs>();
        constexpr u32 FIELD = 0x7ff00000, STEP = 0x00100000, ONE = 0x3ff00000;
#pragma unroll
        for (int k = 0; k < U; ++k) {
            const u64 wide = bits_of(x[k]);
            const u32 high = u32(wide >> 32), magnitude = high & 0x7fffffff;
            signs ^= high;
            // Significands from the turn on go with the next exponent.
            const u32 turned = magnitude + (STEP - Logs::TURN);
            exponents += turned >> 20;
            const u32 entry = (high + (1u << (Logs::INDEX_BITS - 1))) >> Logs::INDEX_BITS & (Logs::ENTRIES - 1);
            Logs::add(sum, of_bits(u64(magnitude + ONE - (turned & FIELD)) << 32 | u32(wide)), table[entry]);
        }
    }

    __device__ __forceinline__ void merge(const FloatProd &other)
    {
        deposit();
        all.merge(other.whole());
    }

    static constexpr int WORDS = Factors::WORDS;
    __device__ __forceinline__ u64 word(int w) const { return whole().word[w]; }
    static __device__ __forceinline__ FloatProd of_words(const u64 (&words)[WORDS])
    {
        FloatProd product;
#pragma unroll
        for (int w = 0; w < WORDS; ++w)
            product.all.word[w] = words[w];
        return product;
    }

    // The product of n elements, rounded once.
    static __device__ __forceinline__ Bits value(const Factors &factors, u64 n)
    {
        const Bits sign = factors.negative() ? Element<T>::SIGN : Bits(0);
        const bool zero = factors.zeros() != 0, infinite = factors.infinities() != 0;
        if (factors.nans() != 0 || (zero && infinite))
            return NOT_A_NUMBER<T>;
        if (infinite)
            return Element<T>::INFINITE | sign;
        if (zero)
            return sign;
        i64 exponent;
        Fixed product = power(Fixed{factors.word[1], factors.word[2]}, exponent);
        // A product of few digits is not where its factors' errors take it.
        constexpr bool LONG = sizeof(Bits) == 8;
        constexpr u64 MOST = LONG ? 34 : 16;
        const u64 count = n < MOST ? n : MOST;
        if constexpr (LONG) {
            const bool up = product.low >> 63 != 0;
            if ((up ? -product.low : product.low) <= count << 50) {
                product.high += up;
                product.low = 0;
            }
        } else {
            const u64 few = (product.high + (1 << 19)) >> 20 << 20;
            const bool up = few > product.high;
            const u64 off_low = up ? -product.low : product.low;
            const u64 off = up ? few - product.high - (product.low != 0) : product.high - few;
            if (off < count << 3 || (off == count << 3 && off_low == 0)) {
                product.high = few;
                product.low = 0;
            }
        }
        // Powers far beyond all formats do not fit the exponent.
        constexpr i64 FAR = 1 << 20;
        Truncated t;
        t.negative = sign != 0;
        t.high = product.high;
        t.low = product.low;
        t.exponent = int(min(max(i64(factors.word[0]) + exponent, -FAR), FAR));
        return t.template round<T>();
    }
};
