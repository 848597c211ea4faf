//! What an instruction computes: pure functions on the bits of registers.
//!
//! A value is a `u64` whose bits above its type's width are zero. Floating-point results are the exact result rounded once, as IEEE 754 and
//! PTX define them; where PTX allows an approximation, the answer is the double-precision one rounded, which lies within
//! the error that PTX states but need not have the hardware's bits. Nothing here touches the processor's rounding mode.

pub mod approx;
pub mod bits;
pub mod compare;
pub mod convert;
pub mod eight;
pub mod float;
pub mod int;
pub mod real;
