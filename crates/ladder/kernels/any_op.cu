// Any associative operation: what it does to two values, and which value changes nothing.
// elements: i32 u32 i64 u64 f16 bf16 f32 f64

#include "any_op.cuh"

// Order needs signed integers; all else has the same bits either way.
template <class E> struct Ordered { using V = E; };
template <> struct Ordered<f16> { using V = f32; };
template <> struct Ordered<bf16> { using V = f32; };
using V = Ordered<ELEMENT>::V;

constexpr bool FLOAT = Element<ELEMENT>::FLOAT;

// Where nothing is, the identity stands: 0 would be wrong for all but sum, or and xor. A NaN is the least and the greatest.
struct Sum {
    static __device__ __forceinline__ T identity() { return T(0); }
    static __device__ __forceinline__ T apply(T a, T b) { return a + b; }
};
struct Prod {
    static __device__ __forceinline__ T identity() { return T(1); }
    static __device__ __forceinline__ T apply(T a, T b) { return a * b; }
};
struct Min {
    static __device__ __forceinline__ T identity()
    {
        if constexpr (FLOAT)
            return T(__int_as_float(0x7f800000));
        else
            return T(Element<ELEMENT>::GREATEST);
    }
    static __device__ __forceinline__ T apply(T a, T b) { return V(b) < V(a) || b != b ? b : a; }
};
struct Max {
    static __device__ __forceinline__ T identity()
    {
        if constexpr (FLOAT)
            return T(__int_as_float(0xff800000));
        else
            return T(Element<ELEMENT>::LEAST);
    }
    static __device__ __forceinline__ T apply(T a, T b) { return V(b) > V(a) || b != b ? b : a; }
};

OF_OP(sum, Sum)
OF_OP(prod, Prod)
OF_OP(min, Min)
OF_OP(max, Max)
