//! The operations that PTX lets be approximate, computed in double precision and rounded to nearest.
//!
//! Special values (zeros, infinities, NaN, negative arguments, the range where `div.approx` gives up) are as PTX's tables have them. Elsewhere the hardware may
//! differ within the error that PTX states: 1 ulp for `rcp` and `sqrt`, 2^-22.5 or so for `rsqrt` and `lg2`, 2 ulp for `ex2` and `div`, and so on. The library
//! functions come from the `libm` crate, so that the bits are the same on every host.

use super::float::{canonical, f32_of, narrow, widen};
use super::real::Format;
use crate::ir::{FloatUnary, Rounding};

/// An approximate operation with one source.
#[must_use]
pub fn unary(op: FloatUnary, format: Format, a: u64) -> u64 {
    if format == Format::F64 {
        return upper_half(op, a);
    }
    let x = widen(format, a);
    let y = match op {
        FloatUnary::RcpApprox => 1.0 / x,
        FloatUnary::SqrtApprox => x.sqrt(),
        // The root of -0 is -0, whose reciprocal is -infinity.
        FloatUnary::RsqrtApprox => 1.0 / x.sqrt(),
        FloatUnary::Ex2Approx => libm::exp2(x),
        FloatUnary::Lg2Approx => libm::log2(x),
        FloatUnary::SinApprox => libm::sin(x),
        FloatUnary::CosApprox => libm::cos(x),
        FloatUnary::TanhApprox => libm::tanh(x),
        FloatUnary::Abs | FloatUnary::Neg | FloatUnary::Rcp | FloatUnary::Sqrt => {
            unreachable!("exact operations are in the module float")
        }
    };
    narrow(format, Rounding::Nearest, y)
}

/// `rsqrt.approx.f64`, which a library calls where a double is asked for: within 1 ulp, subnormal numbers included.
#[must_use]
pub fn rsqrt(a: u64) -> u64 {
    let x = f64::from_bits(a);
    let y = 1.0 / x.sqrt();
    if y.is_nan() {
        return Format::F64.nan();
    }
    if !y.is_finite() || y == 0.0 {
        return y.to_bits();
    }
    // One step of Newton's: what x y y lacks of 1, exactly but for the last rounding.
    let product = x * y;
    let rest = libm::fma(x, y, -product);
    let lacks = libm::fma(-product, y, 1.0) - rest * y;
    (y + 0.5 * y * lacks).to_bits()
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`: the lower half of the source is not looked at, the result's is zero, and subnormal numbers are zeros.
fn upper_half(op: FloatUnary, a: u64) -> u64 {
    let format = Format::F64;
    let x = f64::from_bits(format.flush(a & !0xffff_ffff));
    if x.is_nan() {
        return format.nan();
    }
    let y = match op {
        FloatUnary::RcpApprox => 1.0 / x,
        FloatUnary::RsqrtApprox => 1.0 / x.sqrt(),
        FloatUnary::SqrtApprox => x.sqrt(),
        _ => return format.nan(),
    };
    if y.is_nan() {
        return format.nan();
    }
    format.flush(y.to_bits()) & !0xffff_ffff
}

/// `div.approx.f32`: where the divisor is above 2^126 its reciprocal is lost, and the quotient is 0, or NaN for an infinite dividend.
#[must_use]
pub fn div(a: u64, b: u64) -> u64 {
    let (x, y) = (f32_of(a), f32_of(b));
    if y.is_finite() && y.abs() > 2f32.powi(126) {
        let zero = f32::from_bits(((a ^ b) as u32) & 0x8000_0000);
        return canonical(if x.is_finite() { zero } else { f32::NAN });
    }
    div_full(a, b)
}

/// `div.full.f32`.
#[must_use]
pub fn div_full(a: u64, b: u64) -> u64 {
    canonical(f32_of(a) / f32_of(b))
}
