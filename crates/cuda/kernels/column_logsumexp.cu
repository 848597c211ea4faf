// The logarithms of the sums of columns' exponentials.
// elements: f16 bf16 f32 f64

#include "column_tree.cuh"
#include "float_logsumexp.cuh"

// Exponents count from 0: right for columns whose largest element is within reach of it.
template <class T>
struct SumsFromZero {
    using Op = FloatLogSumExp<T>;
    using Bits = typename Element<T>::Bits;
    using Value = typename Op::Value;
    using Exp = typename Op::Exp;
    using Given = Nothing;
    static constexpr bool ORDERED = true;
    static constexpr bool RARE = false;
    static constexpr u32 PERIOD = ROWS;

    struct Part {
        f64 sum;
        Value largest;
    };

    static __device__ __forceinline__ Part fold(const Part &a, const Part &b)
    {
        return {Exp::plus(a.sum, b.sum), b.largest > a.largest ? b.largest : a.largest};
    }

    template <u32 N>
    struct Lanes {
        Powers powers;
        Value most;
        f64 lane[N];

        __device__ __forceinline__ void begin(Nothing)
        {
            most = -Op::infinity();
#pragma unroll
            for (u32 k = 0; k < N; ++k)
                lane[k] = 0.0;
        }
        __device__ __forceinline__ void take(u32 k, Bits bits)
        {
            const Value x = Element<T>::value(bits);
            most = fmaxf(most, x);
            lane[k] = plus_exponential(lane[k], at_least_floor(x), powers);
        }
        __device__ __forceinline__ void close() {}
        __device__ __forceinline__ Part part() { return {fold_lanes(1, lane, Exp::plus, Exp::swap), most}; }
    };
};

// The largest element that is neither infinite nor NaN, and how many are plus infinity, and NaN.
template <class T>
struct LargestElements {
    using Op = FloatLogSumExp<T>;
    using Bits = typename Element<T>::Bits;
    using Value = typename Op::Value;
    using Given = Nothing;
    static constexpr bool ORDERED = false;
    static constexpr bool RARE = true;
    static constexpr u32 PERIOD = ROWS;

    struct Part {
        f64 largest;
        u32 infinities, nans;
    };

    static __device__ __forceinline__ Part fold(const Part &a, const Part &b)
    {
        return {b.largest > a.largest ? b.largest : a.largest, a.infinities + b.infinities, a.nans + b.nans};
    }

    template <u32 N>
    struct Lanes {
        Value most;
        u32 infinities, nans;

        __device__ __forceinline__ void begin(Nothing)
        {
            most = -Op::infinity();
            infinities = nans = 0;
        }
        __device__ __forceinline__ void take(u32, Bits bits)
        {
            const Value x = Element<T>::value(bits);
            most = x < Op::infinity() && x > most ? x : most;
            infinities += bits == Element<T>::INFINITE;
            nans += Element<T>::is_nan(bits);
        }
        __device__ __forceinline__ void close() {}
        __device__ __forceinline__ Part part() { return {most, infinities, nans}; }
    };
};

// Sums of exponentials of differences from a reference; infinities and NaNs count as nothing.
template <class T>
struct SumsFromReference {
    using Bits = typename Element<T>::Bits;
    using Exp = typename FloatLogSumExp<T>::Exp;
    using Sum = typename Exp::Sum;
    using Given = f64;
    using Part = Sum;
    static constexpr bool ORDERED = true;
    static constexpr bool RARE = Exp::REACH > 0.0;
    static constexpr u32 PERIOD = ROWS;

    static __device__ __forceinline__ Part fold(const Part &a, const Part &b) { return Exp::plus(a, b); }

    template <u32 N>
    struct Lanes {
        f64 reference;
        Sum lane[N];

        __device__ __forceinline__ void begin(f64 given)
        {
            reference = given;
#pragma unroll
            for (u32 k = 0; k < N; ++k)
                lane[k] = Sum{};
        }
        __device__ __forceinline__ void take(u32 k, Bits bits)
        {
            const typename Exp::Terms terms = {reference};
            lane[k] = terms.add(lane[k], Element<T>::value(bits));
        }
        __device__ __forceinline__ void close() {}
        __device__ __forceinline__ Part part() { return fold_lanes(1, lane, Exp::plus, Exp::swap); }
    };
};

template <class T>
struct ColumnLogSumExp {
    using Op = FloatLogSumExp<T>;
    using Bits = typename Element<T>::Bits;
    using Exp = typename Op::Exp;
    using Leaf = TreeLeaf<Op>;
    static constexpr int COLUMNS = ITEMS<T>;

    // A node of a leaf.
    struct Total {
        f64 reference;
        typename Exp::Sum sum;
        u32 nans, infinities;

        __device__ __forceinline__ Node<Op::WORDS> node() const { return Op::node(reference, sum, nans, infinities); }
    };

    // Counts exponents from 0, and says whether this was right for all that share the leaf.
    static __device__ __forceinline__ bool leaf_from_zero(Leaf &leaf, Total (&total)[COLUMNS])
    {
        typename SumsFromZero<T>::Part part[COLUMNS];
        leaf.template pass<SumsFromZero<T>>(part);
        bool right = true;
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            const bool none = Op::is_none(part[i].largest);
            // NaNs, which are never the largest, are in the sum.
            right &= !leaf.owns(i) || ((none || Op::reaches(part[i].largest)) && part[i].sum == part[i].sum);
            total[i] = {none ? part[i].largest : 0.0, part[i].sum, 0, 0};
        }
        return leaf.all(right);
    }

    static __device__ __forceinline__ void leaf_from_largest(Leaf &leaf, Total (&total)[COLUMNS])
    {
        typename LargestElements<T>::Part part[COLUMNS];
        leaf.template pass<LargestElements<T>>(part);
        bool usual = true;
        f64 reference[COLUMNS];
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            const f64 largest = part[i].largest;
            reference[i] = Op::reaches(largest) ? 0.0 : largest;
            usual &= !leaf.owns(i) || ((Op::reaches(largest) || Op::is_none(largest)) && part[i].infinities + part[i].nans == 0);
        }
        leaf.tell(reference);
        typename Exp::Sum sum[COLUMNS];
        leaf.template pass<SumsFromReference<T>>(reference, sum);
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i)
            total[i] = {reference[i], sum[i], part[i].nans, part[i].infinities};
        leaf.twice = !leaf.all(usual);
    }

    static __device__ __forceinline__ void leaf(Leaf &leaf, Total (&total)[COLUMNS])
    {
        if constexpr (Exp::REACH > 0.0) {
            if (!leaf.twice && leaf_from_zero(leaf, total))
                return;
        }
        leaf_from_largest(leaf, total);
    }
};

TREE_COLUMNS(column_logsumexp)(const ColumnTable &table, u32 first, u32 count, u32 counters, u32 ask, void *out)
{
    FloatLogSumExp<ELEMENT>::prepare();
    fold_columns<ColumnLogSumExp<ELEMENT>>(table, first, count, counters, ask, out);
}
