//! The floating-point formats that answers are rounded to.

use crate::element::{Element, bf16, f16};

/// A binary interchange format, described for integer arithmetic.
///
/// The bits of a non-negative finite value are `q + (f << (PRECISION - 1))`
/// for the value `q * 2^(LSB + f)` with `q < 2^PRECISION`, and with
/// `q >= 2^(PRECISION - 1)` unless `f = 0`: the implicit leading bit of `q`
/// adds the one by which the exponent field of a normal number exceeds `f`.
pub trait FloatFormat: Element {
    /// Significand bits, the implicit one included.
    const PRECISION: u32;
    /// The exponent of the smallest subnormal.
    const LSB: i32;
    /// The bits of positive infinity: all of the exponent field.
    const INFINITY_BITS: u64;
    /// The sign bit.
    const SIGN_BIT: u64 = 1 << (8 * size_of::<Self>() - 1);
    /// The canonical NaN: quiet, sign 0, payload 0.
    const NAN_BITS: u64 = Self::INFINITY_BITS | 1 << (Self::PRECISION - 2);
}

impl FloatFormat for f16 {
    const PRECISION: u32 = 11;
    const LSB: i32 = -24;
    const INFINITY_BITS: u64 = 0x7c00;
}

impl FloatFormat for bf16 {
    const PRECISION: u32 = 8;
    const LSB: i32 = -133;
    const INFINITY_BITS: u64 = 0x7f80;
}

impl FloatFormat for f32 {
    const PRECISION: u32 = 24;
    const LSB: i32 = -149;
    const INFINITY_BITS: u64 = 0x7f80_0000;
}

impl FloatFormat for f64 {
    const PRECISION: u32 = 53;
    const LSB: i32 = -1074;
    const INFINITY_BITS: u64 = 0x7ff0_0000_0000_0000;
}
