//! Sign and magnitude of a fixed-point integer, without copying it.

use super::limbs::{first_nonzero, last_other};
use num_bigint::{BigInt, BigUint, Sign};

const DIGIT: u64 = 0xffff_ffff;

/// The digits of `|S|` for a canonical, non-zero `S`.
///
/// The digits of `-S` follow from those of `S` by complement: below the lowest
/// non-zero limb they are 0, there the complement plus one, above it the
/// complement. So no borrow has to be carried and no digit stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Magnitude<'a> {
    limbs: &'a [i64],
    /// Whether `S` is negative.
    pub(crate) negative: bool,
    /// The lowest digit that is not 0.
    pub(crate) low: usize,
    /// The highest digit that is not 0.
    pub(crate) high: usize,
}

impl<'a> Magnitude<'a> {
    /// `None` if `S = 0`. Every limb but the last must be in `[0, 2^32)`.
    #[inline]
    pub(crate) fn new(limbs: &'a [i64]) -> Option<Self> {
        let low = first_nonzero(limbs)?;
        let top = limbs.len() - 1;
        let negative = limbs[top] < 0;
        // Above the lowest digit, the limb of a zero digit is 0, or all ones
        // if S is negative. The lowest digit itself is never 0.
        let (zero, top_zero) = if negative { (DIGIT as i64, -1) } else { (0, 0) };
        let high = if limbs[top] != top_zero {
            top
        } else {
            last_other(&limbs[low..top], zero).map_or(low, |i| low + i)
        };
        Some(Magnitude { limbs, negative, low, high })
    }

    /// Digit `i`: 32 bits, up to 64 for the last limb's.
    #[inline]
    pub(crate) fn digit(&self, i: usize) -> u64 {
        let limb = self.limbs[i] as u64;
        if !self.negative {
            return limb;
        }
        if i < self.low {
            return 0;
        }
        let complement = (!limb).wrapping_add(u64::from(i == self.low));
        if i + 1 == self.limbs.len() { complement } else { complement & DIGIT }
    }

    /// The digits from the lowest that is not 0, which weighs `2^(32 low)`.
    pub(crate) fn to_big(self) -> BigUint {
        let mut digits = Vec::with_capacity(self.high - self.low + 2);
        for i in self.low..=self.high {
            let d = self.digit(i);
            digits.push(d as u32);
            if d > DIGIT {
                digits.push((d >> 32) as u32);
            }
        }
        BigUint::new(digits)
    }
}

/// The canonical integer as an `i128`, if it fits.
#[must_use]
pub fn to_i128(limbs: &[i64]) -> Option<i128> {
    let (&top, rest) = limbs.split_last()?;
    // With limbs in [0, 2^32), a multiple of 2^32 outside the range of i128
    // stays outside after the limb is added, so no step fails too early.
    rest.iter()
        .rev()
        .try_fold(i128::from(top), |v, &l| v.checked_mul(1 << 32)?.checked_add(i128::from(l)))
}

/// The low 64 bits of the canonical integer in two's complement.
#[must_use]
pub fn low_bits(limbs: &[i64]) -> u64 {
    limbs.iter().take(2).rev().fold(0, |v, &l| v << 32 | (l as u64 & DIGIT))
}

/// The canonical integer, of any size.
#[must_use]
pub fn to_big(limbs: &[i64]) -> BigInt {
    match Magnitude::new(limbs) {
        None => BigInt::ZERO,
        Some(m) => {
            let sign = if m.negative { Sign::Minus } else { Sign::Plus };
            BigInt::from_biguint(sign, m.to_big() << (32 * m.low))
        }
    }
}
