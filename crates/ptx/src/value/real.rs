//! Finite numbers as integers times powers of two, and the one rounding into a format.
//!
//! Sums, products, quotients and roots are exact or, where they would not fit, *jammed*: cut off far below every format's last bit, with
//! the lowest kept bit set if anything was cut. A jammed number lies on the same side of every rounding boundary as the true one,
//! so that [`Real::round`] gives the true result rounded once.

use crate::ir::{Rounding, Type};

/// A binary interchange format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of the significand, with the leading one that is not stored.
    pub precision: u32,
    /// The exponent of the largest finite number's leading bit; also the bias.
    pub max_exponent: i32,
    /// Bits in all.
    pub bits: u32,
}

impl Format {
    /// `.f16`.
    pub const F16: Format = Format { precision: 11, max_exponent: 15, bits: 16 };
    /// `.bf16`.
    pub const BF16: Format = Format { precision: 8, max_exponent: 127, bits: 16 };
    /// `.f32`.
    pub const F32: Format = Format { precision: 24, max_exponent: 127, bits: 32 };
    /// `.tf32`: an `.f32` whose low 13 bits are zero. As a format of its own it has 19 bits, kept in the upper ones.
    pub const TF32: Format = Format { precision: 11, max_exponent: 127, bits: 19 };
    /// `.f64`.
    pub const F64: Format = Format { precision: 53, max_exponent: 1023, bits: 64 };

    /// The format of a scalar type, or of the halves of a pair.
    #[must_use]
    #[inline]
    pub const fn of(ty: Type) -> Option<Format> {
        Some(match ty {
            Type::F16 | Type::F16x2 => Format::F16,
            Type::Bf16 | Type::Bf16x2 => Format::BF16,
            Type::Tf32 => Format::TF32,
            Type::F32 | Type::F32x2 => Format::F32,
            Type::F64 => Format::F64,
            _ => return None,
        })
    }

    /// The sign bit.
    #[must_use]
    #[inline]
    pub const fn sign(self) -> u64 {
        1 << (self.bits - 1)
    }

    /// Plus infinity. Larger magnitudes are NaNs.
    #[must_use]
    #[inline]
    pub const fn infinity(self) -> u64 {
        self.sign() - self.min_normal()
    }

    /// The smallest normal number. Smaller magnitudes are subnormal or zero.
    #[must_use]
    #[inline]
    pub const fn min_normal(self) -> u64 {
        1 << (self.precision - 1)
    }

    /// Plus one.
    #[must_use]
    #[inline]
    pub const fn one(self) -> u64 {
        (self.max_exponent as u64) << (self.precision - 1)
    }

    /// What an operation gives that has no answer: `0x7fff` for 16 bits, `0x7fffffff` for `.f32`, and for `.f64`, for which PTX fixes none,
    /// the hardware's `0xfff8000000000000`.
    #[must_use]
    #[inline]
    pub const fn nan(self) -> u64 {
        if self.bits == 64 { 0xfff8_0000_0000_0000 } else { self.sign() - 1 }
    }

    /// Whether these bits are a NaN.
    #[must_use]
    #[inline]
    pub const fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign() - 1) > self.infinity()
    }

    /// Whether these bits are an infinity.
    #[must_use]
    #[inline]
    pub const fn is_infinite(self, bits: u64) -> bool {
        bits & (self.sign() - 1) == self.infinity()
    }

    /// Whether these bits are a zero.
    #[must_use]
    #[inline]
    pub const fn is_zero(self, bits: u64) -> bool {
        bits & (self.sign() - 1) == 0
    }

    /// Whether the sign bit is set.
    #[must_use]
    #[inline]
    pub const fn is_negative(self, bits: u64) -> bool {
        bits & self.sign() != 0
    }

    /// Subnormal numbers become zeros of their sign.
    #[must_use]
    #[inline]
    pub const fn flush(self, bits: u64) -> u64 {
        if bits & (self.sign() - 1) < self.min_normal() { bits & self.sign() } else { bits }
    }

    /// The number that finite bits stand for.
    #[must_use]
    #[inline]
    pub fn unpack(self, bits: u64) -> Real {
        let fraction = bits & (self.min_normal() - 1);
        let biased = ((bits & (self.sign() - 1)) >> (self.precision - 1)) as i32;
        let (significand, biased) =
            if biased == 0 { (fraction, 1) } else { (fraction | self.min_normal(), biased) };
        Real {
            negative: self.is_negative(bits),
            significand: u128::from(significand),
            exponent: biased - self.max_exponent - (self.precision as i32 - 1),
        }
    }

    /// What rounding gives a magnitude above the largest finite one.
    fn overflow(self, negative: bool, rounding: Rounding) -> u64 {
        let away = match rounding {
            Rounding::Nearest | Rounding::NearestAway => true,
            Rounding::Zero => false,
            Rounding::Down => negative,
            Rounding::Up => !negative,
        };
        self.signed(negative, self.infinity() - u64::from(!away))
    }

    #[inline]
    fn signed(self, negative: bool, magnitude: u64) -> u64 {
        magnitude | if negative { self.sign() } else { 0 }
    }
}

/// A finite number: `significand * 2^exponent`, with a sign that zero has too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Real {
    /// The sign.
    pub negative: bool,
    /// The magnitude's integer.
    pub significand: u128,
    /// The exponent of its lowest bit.
    pub exponent: i32,
}

/// Where the larger summand's leading bit is put: two bits below the top, for a carry.
const LEAD: u32 = 125;

impl Real {
    /// A number from an integer.
    #[must_use]
    pub fn integer(negative: bool, magnitude: u64) -> Real {
        Real { negative, significand: u128::from(magnitude), exponent: 0 }
    }

    /// The number with the opposite sign.
    #[must_use]
    pub fn negated(self) -> Real {
        Real { negative: !self.negative, ..self }
    }

    /// Whether it is zero of either sign.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.significand == 0
    }

    /// The exponent of the leading bit. The number must not be zero.
    fn lead(self) -> i32 {
        self.exponent + 127 - self.significand.leading_zeros() as i32
    }

    /// The product. Both significands must have at most 64 bits.
    #[must_use]
    pub fn times(self, other: Real) -> Real {
        Real {
            negative: self.negative != other.negative,
            significand: self.significand * other.significand,
            exponent: self.exponent + other.exponent,
        }
    }

    /// The sum, jammed. A sum of opposite numbers is `-0` only when rounding down; of two zeros of one sign it is that zero.
    ///
    /// Both significands must have at most 107 bits (products of two formats' numbers do). Cutting then happens only where the leading bits are more than
    /// 18 places apart, so the difference keeps at least 124 bits.
    #[must_use]
    pub fn add(self, other: Real, rounding: Rounding) -> Real {
        if self.is_zero() || other.is_zero() {
            return match (self.is_zero(), other.is_zero()) {
                (true, true) if self.negative != other.negative => Real::cancelled(rounding),
                (true, _) => other,
                _ => self,
            };
        }
        let (large, small) =
            if self.lead() >= other.lead() { (self, other) } else { (other, self) };
        let exponent = large.lead() - LEAD as i32;
        let high = large.significand << (large.exponent - exponent) as u32;
        let shift = exponent - small.exponent;
        let low = if shift <= 0 {
            small.significand << (-shift) as u32
        } else {
            jam(small.significand, shift as u32)
        };
        if large.negative == small.negative {
            return Real { negative: large.negative, significand: high + low, exponent };
        }
        match high.cmp(&low) {
            core::cmp::Ordering::Equal => Real::cancelled(rounding),
            core::cmp::Ordering::Greater => {
                Real { negative: large.negative, significand: high - low, exponent }
            }
            core::cmp::Ordering::Less => {
                Real { negative: small.negative, significand: low - high, exponent }
            }
        }
    }

    /// The zero that an exact cancellation leaves.
    fn cancelled(rounding: Rounding) -> Real {
        Real { negative: rounding == Rounding::Down, significand: 0, exponent: 0 }
    }

    /// The quotient, jammed, with at least 63 bits. Both significands must have at most 53 bits, the divisor not be zero.
    #[must_use]
    pub fn over(self, divisor: Real) -> Real {
        let negative = self.negative != divisor.negative;
        if self.is_zero() {
            return Real { negative, significand: 0, exponent: 0 };
        }
        let up = self.significand.leading_zeros();
        let dividend = self.significand << up;
        let quotient = dividend / divisor.significand;
        let rest = dividend % divisor.significand;
        Real {
            negative,
            significand: quotient | u128::from(rest != 0),
            exponent: self.exponent - up as i32 - divisor.exponent,
        }
    }

    /// The square root of a number that is not negative, jammed, with at least 63 bits.
    #[must_use]
    pub fn sqrt(self) -> Real {
        if self.is_zero() {
            return self;
        }
        let up = self.significand.leading_zeros();
        // The exponent must become even; a place is given back where it is odd.
        let up = if (self.exponent - up as i32) % 2 == 0 { up } else { up - 1 };
        let radicand = self.significand << up;
        let root = radicand.isqrt();
        Real {
            negative: false,
            significand: root | u128::from(root * root != radicand),
            exponent: (self.exponent - up as i32) / 2,
        }
    }

    /// The bits of this number in a format, rounded once.
    #[must_use]
    pub fn round(self, format: Format, rounding: Rounding) -> u64 {
        if self.is_zero() {
            return format.signed(self.negative, 0);
        }
        let lead = self.lead();
        if lead > format.max_exponent {
            return format.overflow(self.negative, rounding);
        }
        let stored = format.precision as i32 - 1;
        let lowest = lead.max(1 - format.max_exponent) - stored;
        let kept = self.rounded_at(lowest, rounding) as u64;
        // A carry out of the significand moves into the exponent by itself.
        let biased = (lowest + stored + format.max_exponent - 1) as u64;
        let magnitude = (biased << stored) + kept;
        if magnitude >= format.infinity() {
            return format.overflow(self.negative, rounding);
        }
        format.signed(self.negative, magnitude)
    }

    /// The magnitude in units of `2^lowest`, to nearest, ties to even.
    pub(crate) fn in_units(self, lowest: i32) -> u64 {
        self.rounded_at(lowest, Rounding::Nearest) as u64
    }

    /// The magnitude in units of `2^lowest`, rounded to an integer of those. The answer must have at most 127 bits.
    fn rounded_at(self, lowest: i32, rounding: Rounding) -> u128 {
        let shift = lowest - self.exponent;
        if shift <= 0 {
            return self.significand << (-shift) as u32;
        }
        let shift = shift as u32;
        let kept = self.significand.checked_shr(shift).unwrap_or(0);
        let half = self.significand.checked_shr(shift - 1).unwrap_or(0) & 1 == 1;
        let below_half = match shift - 1 {
            0 => false,
            1..=127 => self.significand << (128 - (shift - 1)) != 0,
            _ => self.significand != 0,
        };
        let up = match rounding {
            Rounding::Nearest => half && (below_half || kept & 1 == 1),
            Rounding::NearestAway => half,
            Rounding::Zero => false,
            Rounding::Down => self.negative && (half || below_half),
            Rounding::Up => !self.negative && (half || below_half),
        };
        kept + u128::from(up)
    }

    /// The nearest integer in the direction asked for, as a number again.
    #[must_use]
    pub fn to_integral(self, rounding: Rounding) -> Real {
        if self.exponent >= 0 || self.is_zero() {
            return self;
        }
        Real { significand: self.rounded_at(0, rounding), exponent: 0, ..self }
    }

    /// The integer nearest in the direction asked for, clamped into `low..=high`.
    #[must_use]
    pub fn to_clamped(self, rounding: Rounding, low: i128, high: i128) -> i128 {
        let clamped = if self.negative { low } else { high };
        if !self.is_zero() && self.lead() > 100 {
            return clamped;
        }
        let integer = self.to_integral(rounding);
        let magnitude = if integer.exponent > 0 && !integer.is_zero() {
            integer.significand << integer.exponent as u32
        } else {
            integer.significand
        };
        let value = if self.negative { -(magnitude as i128) } else { magnitude as i128 };
        value.clamp(low, high)
    }
}

/// Shifts right; bits that fall off set the lowest bit.
fn jam(bits: u128, shift: u32) -> u128 {
    match shift {
        0 => bits,
        1..=127 => (bits >> shift) | u128::from(bits << (128 - shift) != 0),
        _ => u128::from(bits != 0),
    }
}
