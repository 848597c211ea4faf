//! Decimals beyond 64 bits, as answers.

use super::Rules;
use crate::error::{Error, Result};
use core::fmt;
use num_bigint::BigInt;

/// A decimal: an integer of up to 192 bits, and how many of its digits are behind the point. Sums
/// of 2^64 decimals of 128 bits have so many.
///
/// It is written with all its digits:
///
/// ```
/// use warpfold_core::op::Decimal;
///
/// let decimal = Decimal::of((1 << 100) + 1, 2);
/// assert_eq!(decimal.to_string(), "12676506002282294014967032053.77");
/// assert_eq!((decimal.to_i128(), decimal.digits()), (Some((1 << 100) + 1), 2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// In two's complement, the lowest word first.
    words: [u64; 3],
    digits: u8,
}

impl Decimal {
    /// `None` for an integer of more bits.
    pub(super) fn new(integer: &BigInt, digits: u8) -> Option<Decimal> {
        let bytes = integer.to_signed_bytes_le();
        let sign = if bytes.last().is_some_and(|&top| top >= 0x80) { 0xff } else { 0 };
        let mut all = [sign; 24];
        all.get_mut(..bytes.len())?.copy_from_slice(&bytes);
        let mut words = [0; 3];
        for (word, bytes) in words.iter_mut().zip(all.chunks_exact(8)) {
            *word = bytes.iter().rfold(0, |word, &byte| word << 8 | u64::from(byte));
        }
        Some(Decimal { words, digits })
    }

    /// An integer with so many digits behind the point.
    #[must_use]
    pub fn of(integer: i128, digits: u8) -> Decimal {
        let sign = if integer < 0 { u64::MAX } else { 0 };
        Decimal { words: [integer as u64, (integer >> 64) as u64, sign], digits }
    }

    /// How many digits are behind the point.
    #[must_use]
    pub const fn digits(self) -> u8 {
        self.digits
    }

    /// The integer, of which some digits are behind the point; `None` beyond 128 bits.
    #[must_use]
    pub fn to_i128(self) -> Option<i128> {
        let [low, high, top] = self.words;
        let integer = i128::from(high.cast_signed()) << 64 | i128::from(low);
        (Decimal::of(integer, self.digits).words[2] == top).then_some(integer)
    }

    /// The integer in two's complement, the lowest byte first.
    #[must_use]
    pub fn to_le_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        for (to, word) in bytes.chunks_exact_mut(8).zip(self.words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The nearest f64.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        // What is written here is read, and rounded once.
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    pub(super) fn to_big(self) -> BigInt {
        BigInt::from_signed_bytes_le(&self.to_le_bytes())
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&Rules::new().decimals(self.digits).shown(&self.to_big()))
    }
}

/// All its digits, with a point before those behind it.
impl core::str::FromStr for Decimal {
    type Err = Error;

    fn from_str(text: &str) -> Result<Decimal> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let integer = format!("{whole}{fraction}").parse::<BigInt>().ok();
        let digits = u8::try_from(fraction.len()).ok();
        let plain = fraction.bytes().all(|digit| digit.is_ascii_digit());
        let decimal = integer.zip(digits).filter(|_| plain);
        decimal
            .and_then(|(integer, digits)| Decimal::new(&integer, digits))
            .ok_or_else(|| Error::DamagedState { why: format!("{text:?} is no decimal") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_192_bits_are_written_and_read() {
        let most: BigInt = (BigInt::from(1) << 191) - 1;
        for integer in [BigInt::ZERO, (-1).into(), most.clone(), -&most - 1, i128::MIN.into()] {
            for digits in [0, 1, 38, 76] {
                let decimal = Decimal::new(&integer, digits).unwrap();
                assert_eq!(decimal.to_string().parse(), Ok(decimal), "{integer} {digits}");
                assert_eq!(decimal.to_i128(), i128::try_from(&integer).ok());
                assert_eq!(decimal.to_big(), integer);
                let scaled = format!("{integer}e-{digits}").parse::<f64>().unwrap();
                assert_eq!(decimal.to_f64(), scaled);
            }
        }
        assert_eq!(Decimal::new(&(&most + 1), 0), None);
        assert_eq!(Decimal::new(&(-&most - 2), 0), None);
        assert_eq!(Decimal::of(-5, 2).to_string(), "-0.05");
        for text in ["", ".", "1.-5", "1.5.5", "x", "1e5"] {
            assert!(text.parse::<Decimal>().is_err(), "{text}");
        }
    }
}
