//! How answers are printed.

use super::{Scalar, Value};
use crate::element::{bf16, f16};
use core::fmt;

/// As Rust prints numbers of the type; width and precision are heeded. Floats
/// have the fewest digits that say which one it is.
///
/// ```
/// use warpfold_core::Scalar;
///
/// assert_eq!(Scalar::F32(0.1).to_string(), "0.1");
/// assert_eq!(format!("{:.3}", Scalar::F64(2.0)), "2.000");
/// ```
impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Scalar::Bool(x) => x.fmt(f),
            Scalar::Int(x, _) => x.fmt(f),
            Scalar::UInt(x, _) => x.fmt(f),
            Scalar::F16(x) => short(x.to_f32(), |d| f16::from_f64(d).to_f32()).fmt(f),
            Scalar::BF16(x) => short(x.to_f32(), |d| bf16::from_f64(d).to_f32()).fmt(f),
            Scalar::F32(x) => x.fmt(f),
            Scalar::F64(x) => x.fmt(f),
            Scalar::Decimal(x) => x.fmt(f),
        }
    }
}

/// The number, or the smallest and the largest: `(1, 9)`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::One(x) => x.fmt(f),
            Value::Pair(x, y) => {
                f.write_str("(")?;
                x.fmt(f)?;
                f.write_str(", ")?;
                y.fmt(f)?;
                f.write_str(")")
            }
        }
    }
}

/// The number of fewest decimal digits that `narrow` rounds to `x`.
fn short(x: f32, narrow: impl Fn(f64) -> f32) -> f64 {
    if !x.is_finite() {
        return f64::from(x);
    }
    // Five significant digits tell numbers of 11 bits apart, nine of any f32.
    (0..9)
        .filter_map(|digits| format!("{x:.digits$e}").parse().ok())
        .find(|&d| narrow(d) == x)
        .unwrap_or(f64::from(x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn every_narrow_number_is_read_again() {
        for bits in 0..=u16::MAX {
            let (half, brain) = (f16::from_bits(bits), bf16::from_bits(bits));
            let text = Scalar::F16(half).to_string();
            let read = f16::from_f64(text.parse().unwrap());
            assert!(read == half || half.is_nan() && read.is_nan(), "{text}");
            let text = Scalar::BF16(brain).to_string();
            let read = bf16::from_f64(text.parse().unwrap());
            assert!(read == brain || brain.is_nan() && read.is_nan(), "{text}");
        }
    }

    #[test]
    fn answers_look_like_numbers() {
        assert_eq!(Scalar::F16(f16::from_f64(0.1)).to_string(), "0.1");
        assert_eq!(Scalar::BF16(bf16::NEG_INFINITY).to_string(), "-inf");
        assert_eq!(Scalar::F64(f64::NAN).to_string(), "NaN");
        assert_eq!(Scalar::F64(-0.0).to_string(), "-0");
        assert_eq!(Scalar::from_bits(DType::U64, u64::MAX).to_string(), "18446744073709551615");
        let pair = Value::Pair(
            Scalar::integer(-3, DType::I8).unwrap(),
            Scalar::integer(7, DType::I8).unwrap(),
        );
        assert_eq!(pair.to_string(), "(-3, 7)");
        assert_eq!(format!("{pair:>3}"), "( -3,   7)");
    }
}
