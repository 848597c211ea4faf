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
