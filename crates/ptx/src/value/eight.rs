//! Floating-point numbers of eight bits: `e4m3` and `e5m2`.

use super::real::{Format, Real};
use crate::ir::Rounding;

/// A format of eight bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Eight {
    /// Four bits of exponent, three of significand, no infinity; the largest number is 448.
    E4m3,
    /// Five bits of exponent, two of significand; the largest number is 57344.
    E5m2,
}

impl Eight {
    /// Bits of the significand that are stored, and the exponent of 1.0.
    fn shape(self) -> (i32, i32) {
        match self {
            Eight::E4m3 => (3, 7),
            Eight::E5m2 => (2, 15),
        }
    }

    /// The largest finite number.
    fn largest(self) -> u64 {
        match self {
            Eight::E4m3 => 0x7e,
            Eight::E5m2 => 0x7b,
        }
    }

    /// The number in single precision, which holds it exactly.
    #[must_use]
    pub fn to_f32(self, bits: u64) -> f32 {
        let (stored, bias) = self.shape();
        let magnitude = (bits & 0x7f) as i32;
        let (exponent, fraction) = (magnitude >> stored, magnitude & ((1 << stored) - 1));
        let value = match (self, magnitude) {
            (Eight::E4m3, 0x7f) | (Eight::E5m2, 0x7d..=0x7f) => f32::NAN,
            (Eight::E5m2, 0x7c) => f32::INFINITY,
            _ if exponent == 0 => fraction as f32 * 2f32.powi(1 - bias - stored),
            _ => (fraction + (1 << stored)) as f32 * 2f32.powi(exponent - bias - stored),
        };
        if bits & 0x80 != 0 { -value } else { value }
    }

    /// A number of another format, to nearest, ties to even. What is too large becomes the largest number, as `.satfinite` says; `relu` makes
    /// negative numbers zero.
    #[must_use]
    pub fn of(self, format: Format, relu: bool, bits: u64) -> u64 {
        if format.is_nan(bits) {
            return 0x7f;
        }
        let negative = format.is_negative(bits);
        if negative && relu {
            return 0;
        }
        let sign = if negative { 0x80 } else { 0 };
        if format.is_infinite(bits) {
            return sign | self.largest();
        }
        let (stored, bias) = self.shape();
        // As numbers of a format with the same significand, whose exponents have room above.
        let wide = Format { precision: stored as u32 + 1, max_exponent: bias + 1, bits: 16 };
        let real: Real = format.unpack(bits);
        if real.is_zero() {
            return sign;
        }
        let rounded = real.round(Format { max_exponent: 127, ..wide }, Rounding::Nearest);
        // The same number with its own exponents: subnormal ones are rounded where they end.
        let lead = (rounded >> stored & 0xff) as i32 - 127;
        let rounded = if lead < 1 - bias {
            let units = real.in_units(1 - bias - stored);
            return sign | units.min(1 << stored);
        } else {
            ((lead + bias) as u64) << stored | rounded & ((1 << stored) - 1)
        };
        sign | rounded.min(self.largest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number of the format, and the nearest of all of them for a number in between: the definition.
    #[test]
    fn every_number_is_rounded_to_the_nearest() {
        for eight in [Eight::E4m3, Eight::E5m2] {
            let all: Vec<(f32, u64)> =
                (0..=eight.largest()).map(|bits| (eight.to_f32(bits), bits)).collect();
            assert!(all.windows(2).all(|pair| pair[0].0 < pair[1].0));
            for (value, bits) in &all {
                assert_eq!(eight.of(Format::F32, false, value.to_bits().into()), *bits);
                assert_eq!(eight.of(Format::F32, false, (-value).to_bits().into()), bits | 0x80);
            }
            for pair in all.windows(2) {
                let middle = f32::midpoint(pair[0].0, pair[1].0);
                let even = if pair[0].1 & 1 == 0 { pair[0].1 } else { pair[1].1 };
                let of = |x: f32| eight.of(Format::F32, false, x.to_bits().into());
                assert_eq!(of(middle), even, "{middle}");
                assert_eq!((of(middle.next_down()), of(middle.next_up())), (pair[0].1, pair[1].1));
            }
            let largest = all[all.len() - 1].0;
            for beyond in [largest * 1.01, largest * 100.0, f32::INFINITY] {
                assert_eq!(eight.of(Format::F32, false, beyond.to_bits().into()), eight.largest());
            }
            assert_eq!(eight.of(Format::F32, false, f32::NAN.to_bits().into()), 0x7f);
            assert_eq!(eight.of(Format::F32, true, (-1f32).to_bits().into()), 0);
            assert!(eight.to_f32(0x7f).is_nan());
        }
    }
}
