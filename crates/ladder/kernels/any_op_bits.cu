// The operations that integers alone have.
// elements: i32 u32 i64 u64

#include "any_op.cuh"

struct And {
    static __device__ __forceinline__ T identity() { return ~T(0); }
    static __device__ __forceinline__ T apply(T a, T b) { return a & b; }
};
struct Or {
    static __device__ __forceinline__ T identity() { return T(0); }
    static __device__ __forceinline__ T apply(T a, T b) { return a | b; }
};
struct Xor {
    static __device__ __forceinline__ T identity() { return T(0); }
    static __device__ __forceinline__ T apply(T a, T b) { return a ^ b; }
};

OF_OP(and, And)
OF_OP(or, Or)
OF_OP(xor, Xor)
