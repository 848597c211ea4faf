// Products of columns of floats.

#pragma once

#include "column_tree.cuh"
#include "float_prod.cuh"

// Products whose powers have been split off.
struct FoldedProduct {
    f64 factor;
    i32 exponent;
    u32 special; // whether some element is zero, subnormal, infinite or NaN

    static __device__ __forceinline__ FoldedProduct of(const FoldedProduct &a, const FoldedProduct &b)
    {
        return {mul(a.factor, b.factor), a.exponent + b.exponent, a.special | b.special};
    }
};

// Products of ordinary elements, or, if others are set APART, of all elements but zeros, infinities and NaNs.
template <class T, bool APART>
struct Factors {
    using Op = FloatProd<T>;
    using Bits = typename Element<T>::Bits;
    using Given = Nothing;
    using Part = FoldedProduct;
    // Shorter elements are split when PERIOD of them are multiplied, those of f64 and subnormal ones one by one.
    static constexpr bool WHOLE = Op::WHOLE && !APART;
    static constexpr bool ORDERED = true;
    static constexpr bool RARE = APART;
    static constexpr u32 PERIOD = WHOLE ? Op::PERIOD : ROWS;

    static __device__ __forceinline__ Part fold(const Part &a, const Part &b) { return Part::of(a, b); }

    template <u32 N>
    struct Lanes {
        Factored lane[N];
        bool special;

        __device__ __forceinline__ void begin(Nothing)
        {
            special = false;
#pragma unroll
            for (u32 k = 0; k < N; ++k)
                lane[k] = {1.0, 0};
        }
        __device__ __forceinline__ void split()
        {
#pragma unroll
            for (u32 k = 0; k < N; ++k) {
                special |= Factored::is_special(bits_of(lane[k].factor));
                lane[k].split();
            }
        }
        __device__ __forceinline__ void take(u32 k, Bits bits)
        {
            if constexpr (APART)
                Op::multiply_apart(lane[k], Op::wide(bits));
            else
                special |= Op::multiply(lane[k], bits);
        }
        __device__ __forceinline__ void close()
        {
            if (WHOLE)
                split();
        }
        __device__ __forceinline__ Part part()
        {
            split();
            const Factored all = fold_lanes(1, lane, Factored::times, [](Factored x, int) { return x; });
            return {all.factor, all.exponent, special};
        }
    };
};

// How many elements are negative, zero, infinite and NaN.
template <class T>
struct SpecialCounts {
    using Op = FloatProd<T>;
    using Bits = typename Element<T>::Bits;
    using Given = Nothing;
    using Part = uint4;
    static constexpr bool ORDERED = false;
    static constexpr bool RARE = true;
    static constexpr u32 PERIOD = ROWS;

    static __device__ __forceinline__ Part fold(const Part &a, const Part &b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

    template <u32 N>
    struct Lanes {
        uint4 counts;

        __device__ __forceinline__ void begin(Nothing) { counts = make_uint4(0, 0, 0, 0); }
        __device__ __forceinline__ void take(u32, Bits bits)
        {
            using Format = Element<T>;
            const Bits magnitude = Format::magnitude(bits);
            counts.x += magnitude != bits && !Format::is_nan(bits);
            counts.y += magnitude == 0;
            counts.z += magnitude == Format::INFINITE;
            counts.w += Format::is_nan(bits);
        }
        __device__ __forceinline__ void close() {}
        __device__ __forceinline__ Part part() { return counts; }
    };
};

template <class T>
struct ColumnProd {
    using Op = FloatProd<T>;
    using Bits = typename Element<T>::Bits;
    using Leaf = TreeLeaf<Op>;
    static constexpr int COLUMNS = ITEMS<T>;

    // A node of a leaf: the counts of SpecialCounts, of which those of ordinary elements say no more than the sign.
    struct Total {
        f64 factor;
        i32 exponent;
        u16 negatives, zeros, infs, nans;

        Total() = default;
        __device__ __forceinline__ Total(const FoldedProduct &product)
        {
            Factored all = {product.factor, product.exponent};
            all.split();
            factor = all.factor;
            exponent = all.exponent;
            negatives = u16(bits_of(all.factor) >> 63);
            zeros = infs = nans = 0;
        }
        __device__ __forceinline__ Node<Op::WORDS> node() const { return Op::node({factor, exponent}, negatives % 2, zeros, infs, nans); }
    };

    static __device__ __forceinline__ void leaf(Leaf &leaf, Total (&total)[COLUMNS])
    {
        FoldedProduct part[COLUMNS];
        leaf.template pass<Factors<T, false>>(part);
        bool ordinary = true;
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            ordinary &= !leaf.owns(i) || part[i].special == 0;
            total[i] = part[i];
        }
        if (leaf.all(ordinary))
            return;
        FoldedProduct apart[COLUMNS];
        leaf.template pass<Factors<T, true>>(apart);
        uint4 counts[COLUMNS];
        leaf.template pass<SpecialCounts<T>>(counts);
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            total[i] = apart[i];
            total[i].negatives = u16(counts[i].x);
            total[i].zeros = u16(counts[i].y);
            total[i].infs = u16(counts[i].z);
            total[i].nans = u16(counts[i].w);
        }
    }
};
