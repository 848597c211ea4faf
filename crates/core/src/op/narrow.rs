//! From a significand and an exponent to a float of a type known at run time,
//! rounded once.

use super::Scalar;
use crate::DType;
use crate::element::Parts;

/// Stored significand bits, total bits and the exponent of the subnormal unit.
const fn layout(dtype: DType) -> Option<(u32, u32, i64)> {
    match dtype {
        DType::F16 => Some((10, 16, -24)),
        DType::BF16 => Some((7, 16, -133)),
        DType::F32 => Some((23, 32, -149)),
        DType::F64 => Some((52, 64, -1074)),
        _ => None,
    }
}

/// `(-1)^negative * magnitude * 2^exponent` in the float type `dtype`, to nearest even;
/// `None` if that is not a float type.
///
/// With `t` the exponent of the leading bit, the result's last place is
/// `u = max(t - stored, lsb)`; the magnitude in units of `2^u`, rounded, is
/// `q <= 2^(stored + 1)`. Normal or not, the bits are `q + ((u - lsb) << stored)`:
/// for normals the implicit bit of `q` makes up for the field being
/// `u - lsb + 1`, and a carry out of `q` goes into the field, as it should.
pub(super) fn from_parts(
    dtype: DType,
    negative: bool,
    magnitude: u64,
    exponent: i64,
) -> Option<Scalar> {
    let (stored, width, lsb) = layout(dtype)?;
    let infinity = ((1u64 << (width - 1 - stored)) - 1) << stored;
    let bits = if magnitude == 0 {
        0
    } else {
        // Far outside every type's range, and far from overflowing below.
        let exponent = exponent.clamp(-8192, 8192);
        let top = exponent + i64::from(magnitude.ilog2());
        if top > 1024 {
            infinity
        } else {
            let unit = (top - i64::from(stored)).max(lsb);
            let q = match unit - exponent {
                shift @ ..=0 => magnitude << -shift,
                shift @ 1..=64 => {
                    let wide = u128::from(magnitude);
                    let (q, rest) = (wide >> shift, wide & ((1 << shift) - 1));
                    let half = 1u128 << (shift - 1);
                    (q + u128::from(rest > half || rest == half && q & 1 == 1)) as u64
                }
                // Less than half a unit.
                _ => 0,
            };
            (q + (((unit - lsb) as u64) << stored)).min(infinity)
        }
    };
    Some(Scalar::from_bits(dtype, bits | u64::from(negative) << (width - 1)))
}

/// An infinity of the float type `dtype`.
pub(super) fn infinity(dtype: DType, negative: bool) -> Option<Scalar> {
    from_parts(dtype, negative, 1, 4096)
}

/// The canonical NaN of the float type `dtype`: quiet, sign 0, payload 0.
pub(super) fn nan(dtype: DType) -> Option<Scalar> {
    let (stored, width, _) = layout(dtype)?;
    let field = (1u64 << (width - 1 - stored)) - 1;
    Some(Scalar::from_bits(dtype, field << stored | 1 << (stored - 1)))
}

/// `x` in the float type `dtype`, to nearest even; NaNs become the canonical one.
pub(super) fn from_f64(dtype: DType, x: f64) -> Option<Scalar> {
    use crate::Element;
    match x.parts() {
        Parts::Finite { negative, magnitude, exponent } => {
            from_parts(dtype, negative, magnitude, i64::from(exponent))
        }
        Parts::Infinite { negative } => infinity(dtype, negative),
        Parts::Nan => nan(dtype),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f64_to_f32_is_the_hardware_conversion() {
        let mut x = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..200_000 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            // Exponents around f32's whole range, subnormals included.
            let exponent = 1023 - 160 + (x >> 32) % 300;
            let v = f64::from_bits(x & 0x800f_ffff_ffff_ffff | exponent << 52);
            // A tie in every other case.
            let v = if x & 1 == 0 {
                f64::from_bits(v.to_bits() & !0xfff_ffff | 0x1000_0000)
            } else {
                v
            };
            assert_eq!(from_f64(DType::F32, v), Some(Scalar::F32(v as f32)), "{v:e}");
            assert_eq!(from_f64(DType::F64, v), Some(Scalar::F64(v)));
        }
    }

    #[test]
    fn sixteen_bit_ties_do_not_round_twice() {
        let just_above = |x: f64| f64::from_bits(x.to_bits() + 1);
        let tie = 1.0 + 2f64.powi(-11);
        assert_eq!(from_f64(DType::F16, tie).map(Scalar::to_bits), Some(0x3c00));
        assert_eq!(from_f64(DType::F16, just_above(tie)).map(Scalar::to_bits), Some(0x3c01));
        assert_eq!(from_f64(DType::F16, 65519.99).map(Scalar::to_bits), Some(0x7bff));
        assert_eq!(from_f64(DType::F16, -65520.0).map(Scalar::to_bits), Some(0xfc00));
        assert_eq!(from_f64(DType::F16, 2f64.powi(-25)).map(Scalar::to_bits), Some(0));
        assert_eq!(from_f64(DType::F16, just_above(2f64.powi(-25))).map(Scalar::to_bits), Some(1));
        assert_eq!(from_f64(DType::BF16, 1.0 + 3.0 / 256.0).map(Scalar::to_bits), Some(0x3f82));
        assert_eq!(from_f64(DType::F32, 1e-320).map(Scalar::to_bits), Some(0));
        assert_eq!(
            from_parts(DType::F64, true, u64::MAX, i64::MIN).map(Scalar::to_bits),
            Some(1 << 63)
        );
        assert_eq!(from_parts(DType::F64, false, 1, i64::MAX), Some(Scalar::F64(f64::INFINITY)));
        assert_eq!(from_parts(DType::I8, false, 1, 0), None);
    }
}
