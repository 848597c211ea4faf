// A short row of floats in integers of its own scale, in units of 2^-REACH of the last place of its largest element: every element that is
// not REACH binades below that is one. Of others what is below the unit is cut off, where that is asked for. Such an element keeps k units, fewer
// than 2^FRACTION: the sum of elements lacks less than a unit for it, that of squares at most 2 k + 1.
//
// Elements are cut in parts, and the sums of all products of two parts fit 64 bits. The form of the elements says
//
//     Whole                         the format that they are looked at in
//     bits_of(v, i)                 a vector's i-th element in it
//     PARTS                         how many parts there are, and
//     cut(significand, up, part)    which those of significand * 2^up are, the highest first
//     join(products, sums)          takes a row's sums: of signed parts, and of products of the i-th and the j-th one, i <= j, in the
//                                   place j (j + 1) / 2 + i
//     answer(unit, by, ask, n, out) what is asked of them, in units of 2^unit; false if that is not sure of sums that are off `by` this

#pragma once

#include "fold.cuh"
#include "scaled_f32.cuh"
#include "scaled_f64.cuh"

// Binades below the largest element that are looked after.
constexpr int REACH = 29;

template <class T>
struct ScaledForm : ScaledF32<T> {};
template <>
struct ScaledForm<f64> : ScaledF64 {};

template <class T>
struct ScaledRow {
    using Form = ScaledForm<T>;
    using Whole = typename Form::Whole;
    using Bits = typename Whole::Bits;
    static constexpr int PARTS = Form::PARTS;
    static constexpr int PRODUCTS = PARTS * (PARTS + 1) / 2;

    Form totals;
    Bits most;  // magnitudes are at most this
    bool holds; // whether no element was too small

    // The exponent's field, which is 1 of subnormals.
    static __device__ __forceinline__ int field(Bits magnitude) { return max(int(magnitude >> Whole::FRACTION), 1); }

    // A row of which each lane has EACH vectors. CUT says that elements are cut off.
    template <int EACH, bool CUT = false>
    __device__ __forceinline__ void take(const uint4 *v, u32 lanes)
    {
        most = 0;
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i)
                most = max(most, Whole::magnitude(Form::bits_of(v[k], i)));
        }
        for (u32 d = lanes / 2; d > 0; d /= 2)
            most = max(most, __shfl_xor_sync(ALL_LANES, most, d));

        const int lowest = field(most) - REACH;
        u64 products[PRODUCTS] = {};
        i64 sums[PARTS] = {};
        int least = 0;
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i) {
                const Bits bits = Form::bits_of(v[k], i), magnitude = Whole::magnitude(bits);
                constexpr Bits LEADING = Bits(1) << Whole::FRACTION;
                Bits significand = (magnitude & (LEADING - 1)) | (magnitude >> Whole::FRACTION != 0 ? LEADING : 0);
                int up = field(magnitude) - lowest;
                least = min(least, significand != 0 ? up : 0);
                // Otherwise, what is made of elements that are too small is of no matter.
                if constexpr (CUT) {
                    significand >>= min(max(-up, 0), Whole::WIDTH - 1);
                    up = max(up, 0);
                }
                u32 part[PARTS];
                Form::cut(significand, up, part);
                const i32 sign = i32(bits >> (Whole::WIDTH - 32)) >> 31 | 1;
#pragma unroll
                for (int p = 0; p < PARTS; ++p) {
#pragma unroll
                    for (int q = 0; q <= p; ++q)
                        products[p * (p + 1) / 2 + q] += u64(part[p]) * part[q];
                }
#pragma unroll
                for (int p = 0; p < PARTS; ++p)
                    sums[p] += i64(i32(part[p])) * sign;
            }
        }
        for (u32 d = lanes / 2; d > 0; d /= 2) {
#pragma unroll
            for (int w = 0; w < PRODUCTS; ++w)
                products[w] += __shfl_xor_sync(ALL_LANES, products[w], d);
#pragma unroll
            for (int w = 0; w < PARTS; ++w)
                sums[w] += __shfl_xor_sync(ALL_LANES, sums[w], d);
            least = min(least, __shfl_xor_sync(ALL_LANES, least, d));
        }
        holds = least >= 0;
        totals.join(products, sums);
    }

    // Whether elements were too small, of those that are finite.
    __device__ __forceinline__ bool lacks() const { return !holds && most < Whole::INFINITE; }

    // Returns whether the answer is sure, as it is of a row that lacks nothing.
    __device__ __forceinline__ bool answer(u32 ask, u64 n, typename Element<T>::Bits &out) const
    {
        if (most >= Whole::INFINITE) {
            out = asks_spread(ask) || most > Whole::INFINITE ? NOT_A_NUMBER<T> : Element<T>::INFINITE;
            return true;
        }
        const Off by = holds ? Off() : Off{f64(n) * f64(u64(2) << Whole::FRACTION), f64(n)};
        return totals.answer(Whole::UNIT + field(most) - 1 - REACH, by, ask, n, out);
    }
};
