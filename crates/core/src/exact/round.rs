//! Final rounding: from a fixed-point integer, or a quotient or square root of
//! such integers, to the nearest float, once, ties to even.
//!
//! Only integer instructions are used, so that a changed rounding mode or
//! flush-to-zero cannot disturb the answer, and nothing is allocated.
//!
//! Each function first *truncates* the real number to a [`Truncated`], which
//! knows the leading bits and whether anything non-zero follows, and rounds
//! that. The truncations compose because floors do: for a real `x >= 0` and an
//! integer `n >= 1`, `floor(x / n) = floor(floor(x) / n)` and
//! `floor(sqrt(x)) = floor(sqrt(floor(x)))`.

use super::float::FloatFormat;
use super::magnitude::Magnitude;
use crate::element::Parts;

/// A real number cut off below its leading bits: its magnitude is
/// `(window + f) * 2^exponent` with `f` in `(0, 1)` if `inexact`, else `f = 0`.
///
/// If `inexact`, the window has at least 62 bits, enough for every format's
/// significand and rounding bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated {
    /// The sign.
    pub negative: bool,
    /// The leading bits.
    pub window: u128,
    /// The exponent of the window's lowest bit.
    pub exponent: i32,
    /// Whether anything was cut off.
    pub inexact: bool,
}

impl Truncated {
    /// Exactly `+0`.
    pub const ZERO: Truncated =
        Truncated { negative: false, window: 0, exponent: 0, inexact: false };

    /// The canonical integer `S` times `2^lsb`. The window has bit 127 set
    /// unless `S = 0`.
    #[must_use]
    #[inline]
    pub fn of_fixed(limbs: &[i64], lsb: i32) -> Truncated {
        let Some(digits) = Magnitude::new(limbs) else { return Truncated::ZERO };
        let mut i = digits.high;
        let mut window = u128::from(digits.digit(i));
        // The highest digit is not 0, so that at most 127 bits are free.
        let mut free = window.leading_zeros();
        window <<= free;
        let exponent = lsb + 32 * i as i32 - free as i32;
        let mut inexact = false;
        while free > 0 && i > digits.low {
            i -= 1;
            let digit = u128::from(digits.digit(i));
            if free >= 32 {
                free -= 32;
                window |= digit << free;
            } else {
                window |= digit >> (32 - free);
                inexact = (digit << free) as u32 != 0;
                free = 0;
            }
        }
        // Digits not looked at include the lowest one that is not 0.
        inexact |= i > digits.low;
        Truncated { negative: digits.negative, window, exponent, inexact }
    }

    /// An integer.
    #[must_use]
    pub fn of_integer(value: i128) -> Truncated {
        Truncated { negative: value < 0, window: value.unsigned_abs(), exponent: 0, inexact: false }
    }

    /// A finite element; `None` for infinities and NaNs.
    #[must_use]
    pub fn of_parts(parts: Parts) -> Option<Truncated> {
        match parts {
            Parts::Finite { negative, magnitude, exponent } => Some(Truncated {
                negative,
                window: u128::from(magnitude),
                exponent,
                inexact: false,
            }),
            _ => None,
        }
    }

    /// The number divided by `n`, which must not be 0.
    ///
    /// The quotient keeps 64 bits: a normalised window is at least `2^127`,
    /// so that `floor(window / n) >= 2^63`. It is
    /// `floor((window + f) / n)` too, and exact only if there is neither a
    /// remainder nor an `f`.
    ///
    /// # Panics
    /// If `n` is 0.
    #[must_use]
    #[inline]
    pub fn divide(self, n: u64) -> Truncated {
        assert!(n != 0, "a quotient by 0");
        let Truncated { negative, window, exponent, inexact } = self.normalised();
        let n = u128::from(n);
        let quotient = window / n;
        let remainder = window - quotient * n;
        Truncated { negative, window: quotient, exponent, inexact: inexact || remainder != 0 }
    }

    /// The square root of the magnitude.
    ///
    /// A normalised window, less one bit where the exponent is odd, is at
    /// least `2^126`, so that the root keeps 64 bits. Its square is the
    /// radicand only if the root is exact.
    #[must_use]
    #[inline]
    pub fn sqrt(self) -> Truncated {
        let Truncated { window, exponent, inexact, .. } = self.normalised();
        let odd = exponent & 1;
        let radicand = window >> odd;
        let root = radicand.isqrt();
        Truncated {
            negative: false,
            window: root,
            exponent: (exponent + odd) / 2,
            inexact: inexact || radicand << odd != window || root * root != radicand,
        }
    }

    /// The same number with bit 127 of the window set, if it is exact or
    /// normalised already; an inexact one is left as it is.
    #[inline]
    fn normalised(self) -> Truncated {
        if self.inexact || self.window == 0 {
            return self;
        }
        let free = self.window.leading_zeros();
        Truncated { window: self.window << free, exponent: self.exponent - free as i32, ..self }
    }

    /// The nearest float, ties to even; infinity only from `MAX + ulp/2` on.
    ///
    /// Let the window have `b` bits. The result's last place is
    /// `u = max(exponent + b - PRECISION, LSB)`: below it no bit of the format
    /// remains, and the second term is the subnormals' limit. The number is
    /// `q + r` in units of `2^u` with `q = floor(window >> s)`,
    /// `s = u - exponent`, and `r` in `[0, 1)` is compared with 1/2: for
    /// `s > 128` it is smaller, since `window + f < 2^128 <= 2^(s - 1)`;
    /// otherwise the remainder, shifted so that its top bit weighs 1/2,
    /// decides, and on equality `f`, and then the parity of `q`. For `s <= 0`
    /// the number is exact in the format, as an inexact window has more bits
    /// than the significand.
    ///
    /// The bits of the result are `q + ((u - LSB) << (PRECISION - 1))`, see
    /// [`FloatFormat`]; `q = 2^PRECISION`, a carry out of rounding, is thereby
    /// a carry into the exponent field and from the largest finite value into
    /// infinity.
    #[must_use]
    #[inline]
    pub fn round<T: FloatFormat>(self) -> T {
        let Truncated { negative, window, exponent, inexact } = self;
        let sign = if negative { T::SIGN_BIT } else { 0 };
        if window == 0 {
            return T::from_bits(sign);
        }
        let bits = (128 - window.leading_zeros()) as i32;
        let place = (exponent + bits - T::PRECISION as i32).max(T::LSB);
        let shift = place - exponent;
        let q = if shift <= 0 {
            assert!(!inexact, "too few bits to round");
            (window << -shift) as u64
        } else if shift > 128 {
            0
        } else {
            let q = if shift == 128 { 0 } else { (window >> shift) as u64 };
            let remainder = window << (128 - shift);
            const HALF: u128 = 1 << 127;
            let up = remainder > HALF || remainder == HALF && (inexact || q & 1 == 1);
            q + u64::from(up)
        };
        // Any field from 2^11 on is infinity in every format, and 2^11 shifts
        // without overflow in every format.
        let field = (place - T::LSB).min(1 << 11) as u64;
        let magnitude = (q + (field << (T::PRECISION - 1))).min(T::INFINITY_BITS);
        T::from_bits(sign | magnitude)
    }
}

/// The canonical integer `S` times `2^lsb`, rounded. Zero is `+0`.
///
/// ```
/// use warpfold_core::exact::{Superacc, format::F64Sum, format::Format, round};
/// let mut acc = Superacc::<F64Sum>::new();
/// for x in [1e308, 1e308, -1e308] {
///     acc.absorb(x);
/// }
/// let sum: f64 = acc.with_canonical(|limbs| round::round_fixed(limbs, F64Sum::LSB));
/// assert_eq!(sum, 1e308);
/// ```
#[must_use]
#[inline]
pub fn round_fixed<T: FloatFormat>(limbs: &[i64], lsb: i32) -> T {
    Truncated::of_fixed(limbs, lsb).round()
}

/// `S * 2^lsb / n`, rounded once. `n` must not be 0.
#[must_use]
#[inline]
pub fn round_quotient<T: FloatFormat>(limbs: &[i64], lsb: i32, n: u64) -> T {
    Truncated::of_fixed(limbs, lsb).divide(n).round()
}

/// `sqrt(S * 2^lsb)`, rounded once; `None` if `S` is negative.
#[must_use]
#[inline]
pub fn round_sqrt<T: FloatFormat>(limbs: &[i64], lsb: i32) -> Option<T> {
    let s = Truncated::of_fixed(limbs, lsb);
    (!s.negative).then(|| s.sqrt().round())
}
