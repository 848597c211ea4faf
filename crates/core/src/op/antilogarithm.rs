//! The number whose logarithm is an integer in fixed point: how products of floats end. Its
//! constants are public for kernels, which compute the same.
//!
//! `e^x = 2^k e^(j/64) e^t`, where `k` is the integer nearest to `x / ln 2`, `j` the integer
//! below `64 (x - k ln 2)`, and `t`, below 1/64, the rest. All in integers.
//!
//! # The error
//!
//! `x - k ln 2` is off by `|k| 2^-121`, which is less than the 2^-76 that each of at least
//! `|k|` elements is off. The table is off by 2^-116, the series lacks `t^13 / 13! < 2^-110`,
//! and its roundings come to less than 2^-104. Together below 2^-103 for sums of fewer than
//! 2^17 elements.

use super::logarithm::UNIT_BITS;

/// Binary digits behind the point of `x - k ln 2`.
const POINT: u32 = 120;
/// Those of powers of `e`, which are below 2.
const ONE: u32 = 126;

/// `ln 2` in units of 2^-120.
pub const LN_2: i128 = 0xb1_7217_f7d1_cf79_abc9_e3b3_9803_f2f7;
/// `ln 2` in units of 2^-63.
const LN_2_WORD: i128 = 0x58b9_0bfb_e8e7_bcd6;
/// `2^47 / ln 2`.
pub const INVERSE: i128 = 0xb8aa_3b29_5c18;

/// `e^(j / 64)` for `j` from -32 on, in units of 2^-126.
pub static POWERS: [u128; 64] = {
    let mut powers = [0; 64];
    let mut i = 0;
    while i < 64 {
        let j = i as i128 - 32;
        let (mut term, mut sum, mut k) = (1i128 << ONE, 0, 1);
        while term != 0 {
            sum += term;
            term = term / (64 * k) * j;
            k += 1;
        }
        powers[i] = sum as u128;
        i += 1;
    }
    powers
};

/// `1 / n!` in units of `2^-bits`.
const fn inverse_factorial(n: u128, bits: u32) -> u128 {
    let (mut value, mut k) = (1 << bits, 2);
    while k <= n {
        value /= k;
        k += 1;
    }
    value
}

/// The first terms of the series of `e^t`: `1 / n!` in units of 2^-126.
pub const NEAR: [u128; 6] = {
    let mut near = [0; 6];
    let mut i = 0;
    while i < 6 {
        near[i] = inverse_factorial(i as u128, ONE);
        i += 1;
    }
    near
};

/// The others, from `t^6 / 6!` on, which need half as many digits: in units of 2^-70.
pub const FAR: [u64; 7] = {
    let mut far = [0; 7];
    let mut i = 0;
    while i < 7 {
        far[i] = inverse_factorial(6 + i as u128, 70) as u64;
        i += 1;
    }
    far
};

/// The upper half of a product.
const fn high(a: u128, b: u128) -> u128 {
    const LOW: u128 = u64::MAX as u128;
    let (a0, a1, b0, b1) = (a & LOW, a >> 64, b & LOW, b >> 64);
    let (low, first, second) = (a0 * b0, a1 * b0, a0 * b1);
    // Below 2^128: (2^64 - 1)^2 + 2 (2^64 - 1) is 2^128 - 1.
    let middle = (low >> 64) + (first & LOW) + (second & LOW);
    a1 * b1 + (first >> 64) + (second >> 64) + (middle >> 64)
}

/// `e^t` in units of 2^-126, of `t < 1/64` in units of 2^-128.
fn series(t: u128) -> u128 {
    let short = t >> 64;
    let far = FAR.iter().rev().fold(0u128, |sum, &c| u128::from(c) + ((short * sum) >> 64));
    NEAR.iter().rev().fold(far << (ONE - 70), |sum, &c| c + high(t, sum))
}

/// `e^x` as `magnitude 2^exponent`, for `x` in units of `2^-UNIT_BITS`, in three limbs: a
/// magnitude in [2^122, 2^126). It is exact for `x = 0`.
pub(super) fn power(x: [u64; 3]) -> (u128, i128) {
    // In units of 2^-16.
    let top = (u128::from(x[2]) << 64 | u128::from(x[1])).cast_signed();
    // A quotient that is off by less than 2^-6 of one, before it is rounded.
    let k = if top.unsigned_abs() < 1 << 55 {
        (top * INVERSE + (1 << 62)) >> 63
    } else {
        // Too large for a product, of more than 2^39 elements, or of no elements at all.
        let top = top.clamp(-(1 << 79), (1 << 79) - 1);
        ((top << 47) + LN_2_WORD / 2).div_euclid(LN_2_WORD)
    };
    // Modulo 2^128; it is below 2^119, either sign.
    let low = (u128::from(x[1]) << 64 | u128::from(x[0])) << (POINT - UNIT_BITS);
    let rest = low.wrapping_sub(k.wrapping_mul(LN_2).cast_unsigned()).cast_signed();
    let j = rest >> (POINT - 6);
    let t = (rest - (j << (POINT - 6))).cast_unsigned() << (128 - POINT);
    // Sums that no elements have may be anywhere.
    let table = POWERS[(j + 32).clamp(0, 63) as usize];
    (high(table, series(t)), k - i128::from(2 * ONE - 128))
}

#[cfg(test)]
mod tests {
    use super::super::double_double::oracle;
    use super::*;
    use num_bigint::BigInt;

    fn limbs(x: i128) -> [u64; 3] {
        [x as u64, (x >> 64) as u64, (x >> 127) as u64]
    }

    /// The relative error of `e^x`.
    fn error(x: i128, ln_2: &BigInt) -> f64 {
        let (magnitude, exponent) = power(limbs(x));
        assert!((1 << 122..1 << 125).contains(&magnitude), "{x}: {magnitude:x}");
        // e^x 2^-(exponent + 124), which is near 1.
        let exponent = exponent + 124;
        let x = BigInt::from(x) << (oracle::BITS - UNIT_BITS);
        let want = oracle::exp(&(x - ln_2 * exponent));
        let got = BigInt::from(magnitude) << (oracle::BITS - 124);
        oracle::float(&oracle::magnitude(&(got - &want))) / oracle::float(&want)
    }

    #[test]
    fn powers_keep_their_bound() {
        let ln_2 = oracle::ln(&oracle::fixed(2.0));
        let unit = 1i128 << UNIT_BITS;
        let mut worst = 0.0f64;
        let mut check = |x: i128| worst = worst.max(error(x, &ln_2));
        for i in -200..200 {
            // Beside every change of j, and of k.
            for off in [-1, 0, 1, unit / 77] {
                check(i * unit / 64 + off);
                let half: BigInt = (&ln_2 * (2 * i + 1) / 2) >> (oracle::BITS - UNIT_BITS);
                check(i128::try_from(half).unwrap() + off);
            }
        }
        let mut z = 1u64;
        for i in 0..1000 {
            z = z.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let wide = i128::from(z.cast_signed()) << 33 | i128::from(z >> 20);
            check(wide >> (i % 90));
        }
        println!("2^{:.1}", worst.log2());
        assert!(worst < 2f64.powi(-103), "2^{}", worst.log2());
        assert_eq!(power([0; 3]), (1 << 124, -124));
    }

    /// Sums of more elements than anybody has are off by less than these are.
    #[test]
    fn long_sums_do_not_lose_their_place() {
        let ln_2 = oracle::ln(&oracle::fixed(2.0));
        for shift in 97..127 {
            for x in [0x5bd1_e995_7f4a_7c15_i128, -0x5bd1_e995_7f4a_7c15] {
                let x = if shift < 64 { x } else { x << (shift - 63) | 12345 };
                // More than as many elements are off by.
                let bound = 2f64.powi(-103) + 2f64.powi(shift + 1 - 80 - 121);
                assert!(error(x, &ln_2) < bound, "2^{shift}");
            }
        }
        // Beyond 128 bits: multiples of ln 2 are powers of two.
        for shift in [50, 55, 60, 62] {
            let scaled: BigInt = (&ln_2 << shift) >> (oracle::BITS - UNIT_BITS);
            let digits = scaled.to_u64_digits().1;
            let x = [digits[0], digits[1], digits.get(2).copied().unwrap_or(0)];
            let (magnitude, exponent) = power(x);
            let near = magnitude as f64 * 2f64.powi(-124);
            let k = exponent + 124;
            assert_eq!(k, 1 << shift, "{near}");
            assert!((near - 1.0).abs() < 2f64.powi(shift - 118), "{near}");
        }
        // And what no elements have.
        for x in [[u64::MAX; 3], [0, 0, 1 << 63], [5, u64::MAX, u64::MAX >> 1], [0, 0, 1 << 20]] {
            let (magnitude, _) = power(x);
            assert!(magnitude > 0);
        }
    }

    #[test]
    fn constants_are_what_they_are_called() {
        let ln_2 = oracle::ln(&oracle::fixed(2.0));
        let digits = |bits: u32| (&ln_2 + (oracle::one() >> (bits + 1))) >> (oracle::BITS - bits);
        assert_eq!(BigInt::from(LN_2), digits(POINT));
        assert_eq!(BigInt::from(LN_2_WORD), digits(63));
        assert_eq!(BigInt::from(INVERSE), (oracle::one() << 47) / &ln_2 + 1);
        for (i, &power) in POWERS.iter().enumerate() {
            let j = i as i32 - 32;
            let want = oracle::exp(&(oracle::one() * j / 64));
            let off = oracle::magnitude(&((BigInt::from(power) << (oracle::BITS - ONE)) - want));
            assert!(oracle::float(&off) < 2f64.powi(-116), "{j}");
        }
    }
}
