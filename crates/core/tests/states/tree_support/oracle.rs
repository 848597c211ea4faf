//! Exponentials and logarithms in fixed point with big integers.

use num_bigint::BigInt;

/// Fraction bits; results are good to about 2^-380.
pub(crate) const BITS: u32 = 420;

pub(crate) fn one() -> BigInt {
    BigInt::from(1) << BITS
}

/// `x`, cut off below 2^-BITS.
pub(crate) fn fixed(x: f64) -> BigInt {
    let bits = x.to_bits();
    let field = (bits >> 52) & 0x7ff;
    assert!(field != 0x7ff, "only finite numbers have a place");
    let fraction = bits & ((1 << 52) - 1);
    let (magnitude, exponent) =
        if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field as i64 - 1075) };
    let shift = exponent + i64::from(BITS);
    let magnitude = BigInt::from(magnitude);
    let value = if shift >= 0 { magnitude << shift as u64 } else { magnitude >> (-shift) as u64 };
    if bits >> 63 == 1 { -value } else { value }
}

/// About the same, for messages.
pub(crate) fn float(x: &BigInt) -> f64 {
    let bits = x.bits();
    if bits <= 60 {
        return i64::try_from(x).unwrap() as f64 * 2f64.powi(-(BITS as i32));
    }
    let top = i64::try_from(x >> (bits - 60)).unwrap() as f64;
    top * 2f64.powi(bits as i32 - 60 - BITS as i32)
}

pub(crate) fn magnitude(x: &BigInt) -> BigInt {
    if *x < BigInt::from(0) { -x } else { x.clone() }
}

/// `e^x` for `x <= 300`; 0 if it is below 2^-BITS.
pub(crate) fn exp(x: &BigInt) -> BigInt {
    const HALVINGS: u32 = 16;
    if *x < BigInt::from(-300) << BITS {
        return BigInt::from(0);
    }
    // Sixteen halvings leave |x| < 2^-7; squaring brings them back. Forty
    // more bits make up for what the squarings lose.
    let scale = BITS + 40;
    let x: BigInt = (x << 40) >> HALVINGS;
    let mut term = BigInt::from(1) << scale;
    let mut sum = term.clone();
    for k in 1..60 {
        term = ((term * &x) >> scale) / k;
        sum += &term;
    }
    for _ in 0..HALVINGS {
        sum = (&sum * &sum) >> scale;
    }
    sum >> 40
}

/// `ln x` for `1 <= x < 2^70`, by Newton's iteration.
pub(crate) fn ln(x: &BigInt) -> BigInt {
    let mut y = fixed(float(x).ln());
    for _ in 0..4 {
        y = &y + ((x * exp(&-&y)) >> BITS) - one();
    }
    y
}

/// `ln(sum of n e^x)` over pairs `(x, n)`.
pub(crate) fn logsumexp(terms: impl IntoIterator<Item = (BigInt, u64)> + Clone) -> BigInt {
    let max = terms.clone().into_iter().map(|(x, _)| x).max().unwrap();
    let sum: BigInt = terms.into_iter().map(|(x, n)| exp(&(x - &max)) * n).sum();
    max + ln(&sum)
}
