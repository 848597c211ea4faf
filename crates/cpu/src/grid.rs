//! Exact sums of a few f64 as integers of 127 bits: what is asked for where a sum lies in
//! the middle between two numbers, as one in sixteen does whose elements have few bits.

use crate::exact::power_of_two;
use warpfold_core::Element;
use warpfold_core::element::Parts;

/// Bits of an integer below its sign, less one for good measure.
const BITS: i32 = 126;

/// A sum: an integer times a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GridSum {
    integer: i128,
    exponent: i32,
}

/// The sum of some f64 as two, if these hold it exactly: what rounding loses of the sum is
/// added up as well, and nothing is lost of that. `None` if it is zero or may not be had.
#[inline]
pub(crate) fn sum_in_two(items: &[f64]) -> Option<f64> {
    let two_sum = |a: f64, b: f64| {
        let t = a + b;
        let z = t - a;
        (t, (a - (t - z)) + (b - z))
    };
    let (mut sum, mut rest, mut lost) = (0.0, 0.0, false);
    for &x in items {
        let (t, error) = two_sum(sum, x);
        let (r, beyond) = two_sum(rest, error);
        (sum, rest) = (t, r);
        // NaN where something overflowed.
        lost |= beyond != 0.0;
    }
    let total = sum + rest;
    (!lost && total != 0.0 && total.is_finite()).then_some(total)
}

impl GridSum {
    /// The sum of some elements, if all of them are finite, it is not zero, and the grid
    /// that they lie on has that many points.
    pub(crate) fn of(items: &[f64]) -> Option<GridSum> {
        let (mut low, mut high) = (i32::MAX, i32::MIN);
        for x in items {
            match x.parts() {
                Parts::Finite { magnitude: 0, .. } => {}
                Parts::Finite { magnitude, exponent, .. } => {
                    low = low.min(exponent + magnitude.trailing_zeros().cast_signed());
                    high = high.max(exponent + 64 - magnitude.leading_zeros().cast_signed());
                }
                _ => return None,
            }
        }
        // The sum is below so many times the largest.
        let carries = items.len().checked_ilog2()?.cast_signed() + 1;
        if low > high || high - low + carries > BITS {
            return None;
        }
        let mut integer = 0i128;
        for x in items {
            let Parts::Finite { negative, magnitude, exponent } = x.parts() else { continue };
            // Below the grid there are only zeros.
            let place = exponent - low;
            let wide = if place < 0 {
                i128::from(magnitude.checked_shr(place.unsigned_abs()).unwrap_or(0))
            } else if magnitude == 0 {
                0
            } else {
                i128::from(magnitude) << place
            };
            integer += if negative { -wide } else { wide };
        }
        (integer != 0).then_some(GridSum { integer, exponent: low })
    }

    /// The sum, rounded once.
    pub(crate) fn rounded(self) -> Option<f64> {
        scaled(self.integer.unsigned_abs(), self.exponent, self.integer < 0)
    }

    /// The sum divided by `n`, rounded once.
    pub(crate) fn divided(self, n: u64) -> Option<f64> {
        let magnitude = self.integer.unsigned_abs();
        let shift = magnitude.leading_zeros();
        let wide = magnitude << shift;
        let (n, low) = (u128::from(n), self.exponent - shift.cast_signed());
        // More than 53 bits of the quotient, and in the last one whether there are others.
        let quotient = wide.checked_div(n)?;
        scaled(quotient | u128::from(quotient * n != wide), low, self.integer < 0)
    }
}

/// An integer times a power of two, rounded once; `None` if it may not be a normal number.
fn scaled(integer: u128, exponent: i32, negative: bool) -> Option<f64> {
    let top = exponent + integer.checked_ilog2()?.cast_signed();
    if !(-1000..1000).contains(&top) {
        return None;
    }
    // The factor alone may be none: two of them are.
    let half = exponent / 2;
    let value = integer as f64 * power_of_two(half) * power_of_two(exponent - half);
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_in_the_middle_go_to_the_even_number() {
        let sum = |items: &[f64]| GridSum::of(items).and_then(GridSum::rounded);
        let half = 2f64.powi(-53);
        assert_eq!(sum(&[1.0, half]), Some(1.0));
        assert_eq!(sum(&[1.0, 3.0 * half]), Some(1.0 + 4.0 * half));
        assert_eq!(sum(&[1.0, half, 2f64.powi(-70)]), Some(1.0 + 2.0 * half));
        assert_eq!(sum(&[-1.0, -half, -2f64.powi(-70)]), Some(-1.0 - 2.0 * half));
        // Beyond the grid, without a value, or without a sign.
        assert_eq!(sum(&[1.0, 2f64.powi(-200)]), None);
        assert_eq!(sum(&[1.0, f64::NAN]), None);
        assert_eq!(sum(&[1.0, -1.0, 0.0]), None);
        assert_eq!(sum(&[]), None);
        assert_eq!(sum(&[1e300, 1e300, -1e300]), Some(1e300));
        assert_eq!(sum(&[1e-300, 3e-300, 0.0]), Some(1e-300 + 3e-300));
    }

    #[test]
    fn two_numbers_hold_a_sum_or_say_so() {
        let half = 2f64.powi(-53);
        assert_eq!(sum_in_two(&[1.0, half]), Some(1.0));
        assert_eq!(sum_in_two(&[1.0, half, half]), Some(1.0 + 2.0 * half));
        assert_eq!(sum_in_two(&[1e16, 1.0, -1e16]), Some(1.0));
        assert_eq!(sum_in_two(&[1.0, 1e-40, 1e-80]), None);
        assert_eq!(sum_in_two(&[1e308, 1e308, -1e308]), None);
        assert_eq!(sum_in_two(&[1.0, f64::NAN]), None);
        assert_eq!(sum_in_two(&[f64::INFINITY, 1.0]), None);
        assert_eq!(sum_in_two(&[1.0, -1.0]), None);
        assert_eq!(sum_in_two(&[]), None);
    }

    #[test]
    fn means_are_rounded_once() {
        let mean = |items: &[f64]| GridSum::of(items).and_then(|s| s.divided(items.len() as u64));
        assert_eq!(mean(&[1.0, 2.0, 4.0]), Some(7.0 / 3.0));
        assert_eq!(mean(&[-1.0, 0.0, 0.0]), Some(-1.0 / 3.0));
        let unit = 2f64.powi(-52);
        // In the middle between 1 and the next number, and a little beside it.
        assert_eq!(mean(&[1.0, 1.0 + unit]), Some(1.0));
        assert_eq!(mean(&[1.0 + unit, 1.0 + 2.0 * unit]), Some(1.0 + 2.0 * unit));
        // A third of it is a little above the middle.
        assert_eq!(mean(&[1.0, 1.0, 1.0 + 1.5 * unit + unit / 2.0]), Some(1.0 + unit));
    }
}
