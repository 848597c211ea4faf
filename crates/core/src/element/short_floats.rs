//! Floats of 16 bits: their bits, and the way to and from the floats of the language.
//!
//! All of it is integer instructions, or exact: flush-to-zero and rounding modes have no effect.

use super::{Element, Parts};
use core::cmp::Ordering;
use core::fmt;

macro_rules! short_float {
    ($(#[$doc:meta])* $name:ident: $digits:literal, $lsb:literal, $nearest:expr, $wide:expr) => {
        $(#[$doc])*
        #[expect(non_camel_case_types, reason = "the names of primitive floats are written so")]
        #[derive(Clone, Copy, Default)]
        #[repr(transparent)]
        pub struct $name(u16);

        // SAFETY: a `u16`, of which any bits are a value.
        unsafe impl bytemuck::Zeroable for $name {}
        // SAFETY: as above.
        unsafe impl bytemuck::Pod for $name {}

        impl $name {
            /// Zero.
            pub const ZERO: Self = Self(0);
            /// One.
            pub const ONE: Self = Self(((1 - $lsb - $digits) as u16) << $digits);
            /// Infinity.
            pub const INFINITY: Self = Self(0x7fff >> $digits << $digits);
            /// Minus infinity.
            pub const NEG_INFINITY: Self = Self(0x8000 | Self::INFINITY.0);
            /// The greatest finite number.
            pub const MAX: Self = Self(Self::INFINITY.0 - 1);
            /// The least finite number.
            pub const MIN: Self = Self(0x8000 | Self::MAX.0);
            /// A quiet NaN.
            pub const NAN: Self = Self(Self::INFINITY.0 | 1 << ($digits - 1));

            /// The number of these bits.
            #[inline(always)]
            #[must_use]
            pub const fn from_bits(bits: u16) -> Self {
                Self(bits)
            }

            /// The bits of the number.
            #[inline(always)]
            #[must_use]
            pub const fn to_bits(self) -> u16 {
                self.0
            }

            /// The number of these bytes, the lowest first.
            #[inline(always)]
            #[must_use]
            pub const fn from_le_bytes(bytes: [u8; 2]) -> Self {
                Self(u16::from_le_bytes(bytes))
            }

            /// The bytes of the number, the lowest first.
            #[inline(always)]
            #[must_use]
            pub const fn to_le_bytes(self) -> [u8; 2] {
                self.0.to_le_bytes()
            }

            /// The nearest number; of two that are equally near the even one.
            #[inline(always)]
            #[must_use]
            pub fn from_f32(x: f32) -> Self {
                Self($nearest(x.to_bits()))
            }

            /// The nearest number; of two that are equally near the even one.
            #[must_use]
            pub fn from_f64(x: f64) -> Self {
                let sign = ((x.to_bits() >> 63) as u16) << 15;
                Self(match x.parts() {
                    Parts::Finite { magnitude, exponent, .. } => {
                        let bits = nearest(magnitude, exponent, $digits, $lsb);
                        sign | bits.min(Self::INFINITY.0)
                    }
                    Parts::Infinite { .. } => sign | Self::INFINITY.0,
                    // The payload's first bits stay.
                    Parts::Nan => {
                        let payload = x.to_bits() >> (52 - $digits);
                        sign | Self::NAN.0 | payload as u16 & !(u16::MAX << $digits)
                    }
                })
            }

            /// The same number: exact.
            #[inline(always)]
            #[must_use]
            pub fn to_f32(self) -> f32 {
                f32::from_bits($wide(u32::from(self.0)))
            }

            /// The same number: exact.
            #[must_use]
            pub fn to_f64(self) -> f64 {
                let magnitude = match self.parts() {
                    // Both factors and the product are normal, or zero.
                    Parts::Finite { magnitude, exponent, .. } => {
                        magnitude as f64 * f64::from_bits(((1023 + exponent) as u64) << 52)
                    }
                    Parts::Infinite { .. } => f64::INFINITY,
                    Parts::Nan => {
                        let payload = u64::from(self.0) << (52 - $digits) & (u64::MAX >> 12);
                        f64::from_bits(f64::NAN.to_bits() | payload)
                    }
                };
                f64::from_bits(magnitude.to_bits() | u64::from(self.0 >> 15) << 63)
            }

            /// Whether it is a NaN.
            #[inline(always)]
            #[must_use]
            pub const fn is_nan(self) -> bool {
                self.0 & 0x7fff > Self::INFINITY.0
            }

            /// Whether it is an infinity.
            #[inline(always)]
            #[must_use]
            pub const fn is_infinite(self) -> bool {
                self.0 & 0x7fff == Self::INFINITY.0
            }

            /// Whether it is neither infinite nor a NaN.
            #[inline(always)]
            #[must_use]
            pub const fn is_finite(self) -> bool {
                self.0 & 0x7fff < Self::INFINITY.0
            }

            /// Whether its sign is that of negative numbers.
            #[inline(always)]
            #[must_use]
            pub const fn is_sign_negative(self) -> bool {
                self.0 >> 15 == 1
            }
        }

        /// As numbers are equal: NaN to nothing, and zeros of both signs to each other.
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.partial_cmp(other) == Some(Ordering::Equal)
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                if self.is_nan() || other.is_nan() {
                    return None;
                }
                let both_zero = (self.0 | other.0) & 0x7fff == 0;
                Some(if both_zero { Ordering::Equal } else { self.key().cmp(&other.key()) })
            }
        }

        impl core::ops::Neg for $name {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                Self(self.0 ^ 0x8000)
            }
        }

        impl From<$name> for f32 {
            #[inline(always)]
            fn from(x: $name) -> f32 {
                x.to_f32()
            }
        }

        impl From<$name> for f64 {
            fn from(x: $name) -> f64 {
                x.to_f64()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.to_f32().fmt(f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.to_f32(), f)
            }
        }

        #[cfg(feature = "half")]
        impl From<half::$name> for $name {
            #[inline(always)]
            fn from(x: half::$name) -> Self {
                Self(x.to_bits())
            }
        }

        #[cfg(feature = "half")]
        impl From<$name> for half::$name {
            #[inline(always)]
            fn from(x: $name) -> Self {
                half::$name::from_bits(x.0)
            }
        }
    };
}
short_float!(
    /// A binary16 of IEEE 754: 11 significant bits, up to 65504.
    ///
    /// With the feature `half` the type of that name in the crate `half` is reduced as well.
    f16: 10, -24, nearest_f16, wide_f16
);
short_float!(
    /// A bfloat16: 8 significant bits, and the range of an f32.
    ///
    /// With the feature `half` the type of that name in the crate `half` is reduced as well.
    bf16: 7, -133, nearest_bf16, wide_bf16
);

/// The bits of the short float nearest to `magnitude * 2^exponent`, or beyond those of infinity.
fn nearest(magnitude: u64, exponent: i32, digits: u32, lsb: i32) -> u16 {
    if magnitude == 0 {
        return 0;
    }
    // The weight of the last bit that there is room for.
    let top = 63 - magnitude.leading_zeros() as i32 + exponent;
    let unit = lsb.max(top - digits as i32);
    let rounded = match unit - exponent {
        shift @ 1..64 => {
            let (whole, rest) = (magnitude >> shift, magnitude << (64 - shift));
            // More than a half, or a half and the number would be odd.
            whole + u64::from(rest > 1 << 63 || rest == 1 << 63 && whole & 1 == 1)
        }
        64.. => 0,
        shift => magnitude << -shift,
    };
    // The leading bit of a normal number adds one to its exponent.
    let bits = ((unit - lsb) as u64) << digits;
    u16::try_from(bits + rounded).unwrap_or(u16::MAX)
}

/// The bits of the binary16 nearest to an f32, both as bits.
#[inline(always)]
fn nearest_f16(bits: u32) -> u16 {
    let (sign, rest) = ((bits >> 16) as u16 & 0x8000, bits & 0x7fff_ffff);
    if rest > 0x7f80_0000 {
        return sign | f16::NAN.0 | (rest >> 13) as u16 & 0x3ff;
    }
    let magnitude = if rest >= 0x3880_0000 {
        // The exponent bias falls from 127 to 15, and a carry may reach the exponent.
        let rebased = rest - (112 << 23);
        ((rebased + 0xfff + (rebased >> 13 & 1)) >> 13).min(0x7c00)
    } else {
        // A subnormal: a multiple of 2^-24, which is 2^(exponent of `rest` - 126) of its last bit.
        let shift = 126 - (rest >> 23).max(101);
        let significand = (rest & 0x7f_ffff) | 0x80_0000;
        let (whole, half) = (significand >> shift, 1 << (shift - 1));
        let odd_half = half - 1 + (whole & 1);
        if rest >> 23 < 101 { 0 } else { (significand + odd_half) >> shift }
    };
    sign | magnitude as u16
}

/// The bits of the bfloat16 nearest to an f32, both as bits.
#[inline(always)]
fn nearest_bf16(bits: u32) -> u16 {
    if bits & 0x7fff_ffff > 0x7f80_0000 {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// The bits of a binary16 as those of an f32: without branches, so that it becomes vector
/// instructions, and without a subnormal f32 on the way, which flush-to-zero would swallow.
#[inline(always)]
fn wide_f16(bits: u32) -> u32 {
    let rest = bits & 0x7fff;
    // The exponent bias grows from 15 to 127; infinities and NaNs have the largest exponent,
    // which grows from 31 to 255. NaNs become quiet.
    let bias = if rest >= 0x7c00 { 224 << 23 } else { 112 << 23 };
    let quiet = if rest > 0x7c00 { 1 << 22 } else { 0 };
    let normal = ((rest << 13) + bias) | quiet;
    // A subnormal is `rest * 2^-24`, and 2^-24 is the last place of 0.5.
    let subnormal = (f32::from_bits(0x3f00_0000 | rest) - 0.5).to_bits();
    let magnitude = if rest < 0x400 { subnormal } else { normal };
    magnitude | (bits & 0x8000) << 16
}

/// The bits of a bfloat16 as those of an f32. NaNs become quiet.
#[inline(always)]
fn wide_bf16(bits: u32) -> u32 {
    let quiet = if bits & 0x7fff > 0x7f80 { 0x40 } else { 0 };
    (bits | quiet) << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_short_floats_are_widened_as_by_half() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (f16::from_bits(bits), half::f16::from_bits(bits));
            assert_eq!(ours.to_f32().to_bits(), theirs.to_f32().to_bits(), "{bits:#x}");
            assert_eq!(ours.to_f64().to_bits(), theirs.to_f64().to_bits(), "{bits:#x}");
            assert_eq!(ours.is_nan(), theirs.is_nan());
            assert_eq!(ours.is_finite(), theirs.is_finite());
            assert_eq!(ours.is_infinite(), theirs.is_infinite());
            let (ours, theirs) = (bf16::from_bits(bits), half::bf16::from_bits(bits));
            assert_eq!(ours.to_f32().to_bits(), theirs.to_f32().to_bits(), "{bits:#x}");
            assert_eq!(ours.to_f64().to_bits(), theirs.to_f64().to_bits(), "{bits:#x}");
            assert_eq!(ours.is_nan(), theirs.is_nan());
        }
    }

    fn rounds_as_half(x: f32, beside: f64) {
        assert_eq!(f16::from_f32(x).0, half::f16::from_f32(x).to_bits(), "{x:e}");
        assert_eq!(bf16::from_f32(x).0, half::bf16::from_f32(x).to_bits(), "{x:e}");
        assert_eq!(f16::from_f64(f64::from(x)).0, half::f16::from_f32(x).to_bits(), "{x:e}");
        assert_eq!(bf16::from_f64(f64::from(x)).0, half::bf16::from_f32(x).to_bits(), "{x:e}");
        // What lies beside an f32, too close for an f32 to tell.
        let near = f64::from(x) * beside;
        assert_eq!(f16::from_f64(near).0, nearest_of(near, 10, -24, 0x7c00), "{near:e}");
        assert_eq!(bf16::from_f64(near).0, nearest_of(near, 7, -133, 0x7f80), "{near:e}");
    }

    /// By counting units in f64, in which all that is done is exact.
    fn nearest_of(x: f64, digits: i32, lsb: i32, infinity: u16) -> u16 {
        let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
        let magnitude = x.abs();
        if magnitude == 0.0 {
            return sign;
        }
        let exponent = (magnitude.to_bits() >> 52) as i32 - 1023;
        let unit = lsb.max(exponent - digits);
        let units = magnitude * 2f64.powi(-unit / 2) * 2f64.powi(-unit - -unit / 2);
        let bits = ((unit - lsb) as i64) << digits;
        sign | (bits + units.round_ties_even() as i64).min(i64::from(infinity)) as u16
    }

    #[test]
    fn numbers_at_and_beside_all_middles_are_rounded_once() {
        for bits in 0..0x7c00u16 {
            let (low, high) = (f16::from_bits(bits).to_f32(), f16::from_bits(bits + 1).to_f32());
            let high = if high.is_finite() { high } else { 65536.0 };
            let middle = f32::midpoint(low, high);
            for x in [low, middle, middle.next_up(), middle.next_down()] {
                for x in [x, -x] {
                    rounds_as_half(x, 1.0 + f64::EPSILON);
                    rounds_as_half(x, 1.0 - f64::EPSILON);
                }
            }
        }
        for bits in (0..0x7f80u32).map(|bits| bits << 16) {
            for around in [0, 0x7fff, 0x8000, 0x8001] {
                let x = f32::from_bits(bits + around);
                rounds_as_half(x, 1.0 + f64::EPSILON);
                rounds_as_half(-x, 1.0 - f64::EPSILON);
            }
        }
    }

    #[test]
    fn what_is_no_number_stays_so() {
        for bits in
            [0x7f80_0000u32, 0x7f80_0001, 0x7fc0_0000, 0x7fff_ffff, 0xff80_0000, 0xffa5_a5a5]
        {
            let x = f32::from_bits(bits);
            assert_eq!(f16::from_f32(x).0, half::f16::from_f32_const(x).to_bits(), "{bits:#x}");
            assert_eq!(bf16::from_f32(x).0, half::bf16::from_f32(x).to_bits(), "{bits:#x}");
            let wide = f64::from_bits(
                (u64::from(bits) & 0x8000_0000) << 32
                    | 0x7ff0_0000_0000_0000
                    | u64::from(bits & 0x7f_ffff) << 29,
            );
            assert_eq!(
                f16::from_f64(wide).0,
                half::f16::from_f64_const(wide).to_bits(),
                "{bits:#x}"
            );
            assert_eq!(bf16::from_f64(wide).0, half::bf16::from_f64(wide).to_bits(), "{bits:#x}");
        }
        assert_eq!(f16::from_f64(1e300).0, 0x7c00);
        assert_eq!(bf16::from_f64(-1e300).0, 0xff80);
        assert_eq!(f16::from_f64(f64::from_bits(1)).0, 0);
        assert_eq!(bf16::from_f64(-f64::from_bits(1)).0, 0x8000);
    }

    #[test]
    fn they_compare_as_numbers() {
        let all = [f16::NEG_INFINITY, f16::MIN, -f16::ONE, f16::ZERO, f16::ONE, f16::MAX];
        assert!(all.is_sorted() && all.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(-f16::ZERO, f16::ZERO);
        assert!((-bf16::ZERO).is_sign_negative());
        assert_ne!(bf16::NAN, bf16::NAN);
        assert_eq!(bf16::ONE.partial_cmp(&bf16::NAN), None);
        assert_eq!(f16::ONE.to_f32(), 1.0);
        assert_eq!(bf16::ONE.to_f32(), 1.0);
        assert_eq!(f16::MAX.to_string(), "65504");
        assert_eq!(format!("{:?}", bf16::from_f32(-2.5)), "-2.5");
        assert_eq!(f16::from_le_bytes(f16::ONE.to_le_bytes()), f16::ONE);
    }
}
