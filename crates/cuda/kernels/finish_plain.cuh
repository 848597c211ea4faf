// Makes numbers of the payloads of sums, extremes, positions, counts and bits.

#pragma once

#include "finish.cuh"
#include "narrow.cuh"

// How far the least element and the greatest, which is no NaN, are apart. A difference of shorter floats that is rounded to f64 first
// rounds as it does itself: 53 bits are two more than twice as many, and where the shorter ones have no more than their last bits it is
// exact (Figueroa 1995).
template <class T>
__device__ __forceinline__ auto difference(typename Element<T>::Key greatest, typename Element<T>::Key least)
{
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    if constexpr (Format::FLOAT) {
        const auto value = [](typename Format::Key key) { return f64(Format::value(Bits(Format::key(Bits(key))))); };
        const f64 apart = __dsub_rn(value(greatest), value(least));
        if (apart != apart)
            return NOT_A_NUMBER<T>;
        if constexpr (sizeof(Bits) == 8)
            return Bits(__double_as_longlong(apart));
        else
            return narrow<T>(apart);
    } else {
        return u64(greatest) - u64(least);
    }
}

// The larger of their magnitudes.
template <class T>
__device__ __forceinline__ auto larger_magnitude(typename Element<T>::Key greatest, typename Element<T>::Key least)
{
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    if constexpr (Format::FLOAT) {
        const auto magnitude = [](typename Format::Key key) { return Format::magnitude(Bits(Format::key(Bits(key)))); };
        return Bits(max(magnitude(greatest), magnitude(least)));
    } else {
        const auto magnitude = [](typename Format::Key key) { return key < 0 ? -u64(key) : u64(key); };
        return max(magnitude(greatest), magnitude(least));
    }
}

template <class T>
__device__ __forceinline__ void finish(u64 *payload, u32 ask, u32 manner, void *out, i64 place, u32 *overflow)
{
    const bool omits = (manner & OMITS_NAN) != 0;
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    if (ask == TOTAL || ask == MEAN) {
        constexpr int LIMBS = SumFormat<T>::LIMBS;
        const u64 n = Format::FLOAT ? count_of(payload + LIMBS, omits) : payload[LIMBS];
        if constexpr (Format::FLOAT) {
            const Specials<T> specials = specials_of<T>(payload + LIMBS, omits);
            if (specials.any())
                return write_special(out, place, specials, manner);
            if (n == 0 && ask == MEAN)
                return write_special(out, place, Specials<T>{true}, manner);
            const Truncated total = total_of<SumFormat<T>>(payload);
            if (sizeof(Bits) < 8 && (manner & IN_F64) != 0)
                write(out, place, float_answer<f64>(total, ask, n));
            else
                write(out, place, float_answer<T>(total, ask, n));
        } else if (ask == TOTAL) {
            u64 total;
            if (!integer_total<T, LIMBS>(payload, total))
                atomicOr(overflow, 1u);
            write(out, place, total);
        } else {
            write(out, place, total_of<SumFormat<T>>(payload).divide(n).template round<f64>());
        }
        return;
    }
    // Extremes and positions begin with the count and NaNs, counts with what is not zero between them.
    const bool counts = ask == COUNT || ask == NONZERO || ask == NANS || ask == ANY || ask == ALL;
    if (Format::FLOAT && omits && !counts && payload[0] == payload[1]) {
        if (ask == MAGNITUDE)
            write(out, place, Bits(0));
        else
            atomicOr(overflow, 1u);
        return;
    }
    const bool has_nan = Format::FLOAT && payload[1] != 0 && !omits;
    if (ask == LEAST || ask == GREATEST) {
        // Count, NaNs and keys.
        const auto key = typename Format::Key(payload[ask == LEAST ? 2 : 3]);
        if constexpr (Format::FLOAT)
            write(out, place, has_nan ? NOT_A_NUMBER<T> : Bits(Format::key(Bits(key))));
        else
            write(out, place, Bits(key));
    } else if (ask == RANGE || ask == MAGNITUDE) {
        const auto least = typename Format::Key(payload[2]), greatest = typename Format::Key(payload[3]);
        if constexpr (Format::FLOAT) {
            if (has_nan)
                return write(out, place, NOT_A_NUMBER<T>);
        }
        if (ask == RANGE)
            write(out, place, difference<T>(greatest, least));
        else
            write(out, place, larger_magnitude<T>(greatest, least));
    } else if (ask == AND || ask == OR || ask == XOR) {
        write(out, place, Bits(payload[ask - AND]));
    } else if (ask == ARG_MIN || ask == ARG_MAX) {
        // Behind the keys: the positions of the first NaN, of the smallest and of the largest.
        write(out, place, payload[has_nan ? 4 : ask == ARG_MIN ? 5 : 6]);
    } else {
        // Count, what is not zero, NaNs.
        const u64 left_out = omits ? payload[2] : 0, n = payload[0] - left_out, nonzero = payload[1] - left_out;
        switch (ask) {
        case COUNT: return write(out, place, n);
        case NONZERO: return write(out, place, nonzero);
        case NANS: return write(out, place, payload[2]);
        case ANY: return write(out, place, u8(nonzero != 0));
        default: return write(out, place, u8(nonzero == n));
        }
    }
}
