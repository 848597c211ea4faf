//! Variance from an exact sum and an exact sum of squares.

use super::magnitude::Magnitude;
use super::round::Truncated;
use num_bigint::BigUint;

/// `(n S2 - S1^2) / (n (n - ddof))`, truncated: the sum of squared deviations
/// from the mean over `n - ddof`: ddof is the sum of an integer and of a number below 1.
///
/// `sum` and `squares` are canonical, in units of `2^sum_lsb` and
/// `2^squares_lsb`. `None` unless `n > ddof`, or if `n S2 < S1^2`, which
/// no real numbers have. The window has 127 or 128 bits unless it is 0, so
/// that [`Truncated::sqrt`] of it can be rounded.
///
/// One pass over the data is enough and nothing cancels, as the numerator is
/// exact.
#[must_use]
pub fn variance(
    sum: (&[i64], i32),
    squares: (&[i64], i32),
    n: u64,
    (ddof, fraction): (u64, f64),
) -> Option<Truncated> {
    let of = |(limbs, lsb)| Truncated::of_fixed(limbs, lsb);
    let whole = fraction == 0.0;
    let short = whole.then(|| short_variance(of(sum), of(squares), n, ddof)).flatten();
    short.or_else(|| long_variance(sum, squares, n, (ddof, fraction)))
}

/// The same of numbers of any length.
fn long_variance(
    (sum, sum_lsb): (&[i64], i32),
    (squares, squares_lsb): (&[i64], i32),
    n: u64,
    (ddof, fraction): (u64, f64),
) -> Option<Truncated> {
    let divisor = n.checked_sub(ddof).filter(|&d| d > 0)?;
    let Some(s2) = Magnitude::new(squares) else {
        return Magnitude::new(sum).is_none().then_some(Truncated::ZERO);
    };
    if s2.negative {
        return None;
    }
    let mut minuend = s2.to_big() * n;
    let mut exponent = squares_lsb + 32 * s2.low as i32;
    if let Some(s1) = Magnitude::new(sum) {
        let root = s1.to_big();
        let mut subtrahend = &root * &root;
        // Bring both to the lower of the two exponents.
        let subtrahend_exponent = 2 * (sum_lsb + 32 * s1.low as i32);
        if exponent > subtrahend_exponent {
            minuend <<= exponent - subtrahend_exponent;
            exponent = subtrahend_exponent;
        } else {
            subtrahend <<= subtrahend_exponent - exponent;
        }
        if minuend < subtrahend {
            return None;
        }
        minuend -= subtrahend;
    }
    Some(if fraction == 0.0 {
        quotient(minuend, exponent, &BigUint::from(u128::from(n) * u128::from(divisor)))
    } else {
        let (units, shift) = units(fraction.abs());
        // In these units, which the exponent takes back.
        let whole = BigUint::from(divisor) << shift;
        let divisor = if fraction < 0.0 { whole + units } else { whole - units };
        quotient(minuend, exponent + shift as i32, &(divisor * n))
    })
}

/// The same without memory of its own, of an exact sum and an exact sum of squares that have few bits,
/// with a `ddof` that is an integer; `None` where that does not do.
///
/// Nothing is rounded but the quotient: `S1^2` and `n S2` are integers of at most 256 bits in the same
/// units.
#[must_use]
pub fn short_variance(sum: Truncated, squares: Truncated, n: u64, ddof: u64) -> Option<Truncated> {
    let divisor = n.checked_sub(ddof).filter(|&d| d > 0)?.checked_mul(n)?;
    if sum.inexact || squares.inexact || squares.negative {
        return None;
    }
    let (sum, sum_exponent) = stripped(sum);
    let (squares, exponent) = stripped(squares);
    if squares == 0 {
        return (sum == 0).then_some(Truncated::ZERO);
    }
    let (mut minuend, mut exponent) = (Wide::product(squares, u128::from(n)), exponent);
    if sum != 0 {
        let (mut subtrahend, own) = (Wide::product(sum, sum), sum_exponent.checked_mul(2)?);
        // Both in the lower units.
        let apart = exponent.checked_sub(own)?;
        if apart > 0 {
            (minuend, exponent) = (minuend.shifted(apart.unsigned_abs())?, own);
        } else {
            subtrahend = subtrahend.shifted(apart.unsigned_abs())?;
        }
        minuend = minuend.less(subtrahend)?;
    }
    let free = minuend.leading_zeros();
    if free == 256 {
        return Some(Truncated::ZERO);
    }
    // The quotient of a number of 256 bits has 192 at least.
    let (quotient, remainder) = minuend.shifted(free)?.divided(divisor);
    let more = quotient.leading_zeros();
    let quotient = quotient.shifted(more)?;
    let exponent = exponent - free as i32 + 128 - more as i32;
    let inexact = remainder != 0 || quotient.low != 0;
    Some(Truncated { negative: false, window: quotient.high, exponent, inexact })
}

/// The window without the zeros at its end.
fn stripped(number: Truncated) -> (u128, i32) {
    let zeros = if number.window == 0 { 0 } else { number.window.trailing_zeros() };
    (number.window >> zeros, number.exponent + zeros as i32)
}

/// An integer of 256 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wide {
    high: u128,
    low: u128,
}

impl Wide {
    fn product(a: u128, b: u128) -> Wide {
        let halves = |x: u128| (x >> 64, x & u128::from(u64::MAX));
        let ((a1, a0), (b1, b0)) = (halves(a), halves(b));
        let ((low1, low0), (beside1, beside0)) = (halves(a0 * b0), halves(a1 * b0));
        let (also1, also0) = halves(a0 * b1);
        // Three numbers below 2^64.
        let (carry, middle) = halves(low1 + beside0 + also0);
        Wide { high: a1 * b1 + beside1 + also1 + carry, low: middle << 64 | low0 }
    }

    fn leading_zeros(self) -> u32 {
        if self.high == 0 { 128 + self.low.leading_zeros() } else { self.high.leading_zeros() }
    }

    /// Times `2^by`, if that has no more bits.
    fn shifted(self, by: u32) -> Option<Wide> {
        let Wide { high, low } = self;
        if by > self.leading_zeros() {
            return None;
        }
        Some(match by {
            0 => self,
            1..128 => Wide { high: high << by | low >> (128 - by), low: low << by },
            128..256 => Wide { high: low << (by - 128), low: 0 },
            // Nothing is shifted.
            _ => self,
        })
    }

    /// The difference, if it is not negative.
    fn less(self, other: Wide) -> Option<Wide> {
        let (low, borrows) = self.low.overflowing_sub(other.low);
        let high = self.high.checked_sub(other.high)?.checked_sub(u128::from(borrows))?;
        Some(Wide { high, low })
    }

    /// The quotient and the remainder.
    fn divided(self, divisor: u64) -> (Wide, u64) {
        let divisor = u128::from(divisor);
        let mut remainder = 0;
        let mut quotient = |number: u128| {
            let mut found = 0;
            for digit in [number >> 64, number & u128::from(u64::MAX)] {
                // The remainder is below the divisor, so that a digit has 64 bits.
                let number = remainder << 64 | digit;
                found = (found << 64) | (number / divisor);
                remainder = number % divisor;
            }
            found
        };
        let high = quotient(self.high);
        let low = quotient(self.low);
        (Wide { high, low }, remainder as u64)
    }
}

/// A positive number as an integer in units of `2^-shift`.
fn units(number: f64) -> (BigUint, u32) {
    let bits = number.to_bits();
    let (exponent, significand) = ((bits >> 52) as u32, bits & ((1 << 52) - 1));
    match exponent {
        0 => (significand.into(), 1074),
        1..1076 => ((significand | 1 << 52).into(), 1075 - exponent),
        _ => (BigUint::from(significand | 1 << 52) << (exponent - 1075), 0),
    }
}

/// `numerator * 2^exponent / divisor` with 127 or 128 leading bits.
///
/// A numerator of exactly `127 + b` bits over a divisor of `b` bits lies in
/// `(2^126, 2^128)`. Cutting the numerator's low bits off is a floor, which
/// the floor of the quotient does not see.
fn quotient(numerator: BigUint, exponent: i32, divisor: &BigUint) -> Truncated {
    let bits = numerator.bits() as i64;
    if bits == 0 {
        return Truncated::ZERO;
    }
    let shift = 127 + divisor.bits() as i64 - bits;
    let (dividend, cut) = if shift >= 0 {
        (numerator << shift, false)
    } else {
        let cut = numerator.trailing_zeros().is_some_and(|z| (z as i64) < -shift);
        (numerator >> -shift, cut)
    };
    let quotient = &dividend / divisor;
    let inexact = cut || &quotient * divisor != dividend;
    let window = quotient.iter_u64_digits().rev().fold(0, |w, d| w << 64 | u128::from(d));
    Truncated { negative: false, window, exponent: exponent - shift as i32, inexact }
}

#[cfg(test)]
mod tests {
    use super::{Wide, long_variance, short_variance};
    use crate::exact::round::Truncated;
    use num_bigint::BigUint;

    /// Limbs of 32 bits of a number that is not negative.
    fn limbs(number: u128) -> Vec<i64> {
        (0..6).map(|i| if i < 4 { (number >> (32 * i)) as u32 as i64 } else { 0 }).collect()
    }

    #[test]
    fn few_bits_have_the_variance_of_many() {
        let mut state = 9u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 11
        };
        let mut found = [0; 2];
        for _ in 0..3000 {
            let n = 1 + random() % [4, 70][random() as usize % 2];
            // Of at most 62 bits, so that the squares have a sum of 128.
            let (few, more) = (random() % 50, random() % (if n < 5 { 10 } else { 7 }));
            let items: Vec<u128> = (0..n).map(|_| u128::from(random() >> few << more)).collect();
            let (sum, squares) = (items.iter().sum::<u128>(), items.iter().map(|x| x * x).sum());
            let ddof = random() % 3;
            let many = long_variance((&limbs(sum), -40), (&limbs(squares), -80), n, (ddof, 0.0));
            let exact = |window, exponent| Truncated { window, exponent, ..Truncated::ZERO };
            let few = short_variance(exact(sum, -40), exact(squares, -80), n, ddof);
            assert_eq!(few.is_some(), n > ddof);
            // Of 127 bits, and whether anything follows.
            let cut = |x: Truncated| {
                let over = u32::from(x.window >> 127 != 0);
                let lost = x.window & u128::from(over) != 0;
                (x.window >> over, x.exponent + over as i32, x.inexact || lost)
            };
            let exact = |x: Truncated| if x.window == 0 { (0, 0, false) } else { cut(x) };
            assert_eq!(few.map(exact), many.map(exact), "{items:?}, {ddof}");
            found[usize::from(few.is_some_and(|x| x.window != 0))] += 1;
        }
        assert!(found.iter().all(|&n| n > 20), "{found:?}");
        // More squares than a sum can have, and units that are too far apart.
        let one = Truncated { window: 1, ..Truncated::ZERO };
        let far = Truncated { exponent: 400, ..one };
        assert_eq!(short_variance(one, Truncated { window: 1, exponent: -1, ..one }, 1, 0), None);
        assert_eq!(short_variance(one, far, 2, 0), None);
        assert_eq!(short_variance(one, Truncated::ZERO, 2, 0), None);
        assert_eq!(short_variance(one, one, u64::MAX, 0), None);
        // The divisor leaves no remainder, and bits of the quotient are cut off.
        let many = Truncated { window: u128::MAX, ..one };
        assert!(short_variance(one, many, 1 << 31, 0).unwrap().inexact);
    }

    #[test]
    fn integers_of_256_bits() {
        let big = |x: Wide| (BigUint::from(x.high) << 128u32) + x.low;
        let mut state = 5u128;
        let mut random = || {
            state = state.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(1);
            state >> (state as u32 >> 9 & 127)
        };
        for _ in 0..1000 {
            let (a, b, by) = (random(), random(), random() as u32 % 256);
            let product = Wide::product(a, b);
            assert_eq!(big(product), BigUint::from(a) * b);
            let shifted = big(product) << by;
            assert_eq!(product.shifted(by).map(big), (shifted.bits() <= 256).then_some(shifted));
            let other = Wide { high: random(), low: random() };
            let less = (product >= other).then(|| big(product) - big(other));
            assert_eq!(product.less(other).map(big), less);
            let divisor = random() as u64 | 1;
            let (quotient, remainder) = product.divided(divisor);
            assert_eq!(big(quotient) * divisor + remainder, big(product));
            assert!(remainder < divisor);
        }
    }
}
