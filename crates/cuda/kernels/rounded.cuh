// Arithmetic of which every operation is rounded, once and to nearest: nothing may contract or reorder it.

#pragma once

#include "element.cuh"

__device__ __forceinline__ f32 add(f32 a, f32 b) { return __fadd_rn(a, b); }
__device__ __forceinline__ f64 add(f64 a, f64 b) { return __dadd_rn(a, b); }
__device__ __forceinline__ f64 sub(f64 a, f64 b) { return __dsub_rn(a, b); }
__device__ __forceinline__ f32 mul(f32 a, f32 b) { return __fmul_rn(a, b); }
__device__ __forceinline__ f64 mul(f64 a, f64 b) { return __dmul_rn(a, b); }
__device__ __forceinline__ f64 fused(f64 a, f64 b, f64 c) { return __fma_rn(a, b, c); }

__device__ __forceinline__ u64 bits_of(f64 x) { return u64(__double_as_longlong(x)); }
__device__ __forceinline__ f64 of_bits(u64 bits) { return __longlong_as_double(i64(bits)); }
