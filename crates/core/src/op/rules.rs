//! The choices that a caller has about an answer.

use super::{Kind, Op};
use crate::DType;
use crate::exact::round::Truncated;
use num_bigint::BigUint;

/// The treatment of NaNs among the elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NanPolicy {
    /// The answer is NaN (for `argmin` and `argmax`: the first NaN's index).
    #[default]
    Propagate,
    /// NaNs are skipped.
    Omit,
    /// The reduction fails.
    Error,
}

/// The rules by which a state finishes. States do not depend on them: NaNs are counted
/// separately, and a state can be finished several times, under different rules.
///
/// ```
/// use warpfold_core::{DType, NanPolicy, Rules};
///
/// let rules = Rules::new().nan(NanPolicy::Omit).ddof(1).out(DType::F64);
/// assert_eq!((rules.ddof, rules.wrap), (1, false));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Rules {
    /// What NaNs do.
    pub nan: NanPolicy,
    /// Subtracted from the count in the divisor of `var` and `std`.
    pub ddof: u64,
    /// What is subtracted beside [`ddof`](Self::ddof): the bits of an f64 below 1, or of one below 0
    /// where `ddof` is 0. See
    /// [`correction`](Self::correction).
    pub ddof_fraction: u64,
    /// The type of the answer; the operation's own if `None`.
    pub out: Option<DType>,
    /// Whether integer totals wrap around instead of failing.
    pub wrap: bool,
    /// The digits behind the point of decimals, whose elements are integers: answers that are
    /// floats have these digits behind the point, and exact ones may leave 64 bits.
    #[doc(hidden)]
    pub decimals: Option<u8>,
}

impl Rules {
    /// The default rules: NaNs propagate, nothing is subtracted, answers are of
    /// the operation's own type, totals do not wrap.
    #[must_use]
    pub const fn new() -> Rules {
        let nan = NanPolicy::Propagate;
        Rules { nan, ddof: 0, ddof_fraction: 0, out: None, wrap: false, decimals: None }
    }

    /// The same rules with what NaNs do.
    #[must_use]
    pub const fn nan(self, nan: NanPolicy) -> Rules {
        Rules { nan, ..self }
    }

    /// The same rules with what is subtracted from the count in the divisor of
    /// `var` and `std`.
    #[must_use]
    pub const fn ddof(self, ddof: u64) -> Rules {
        Rules { ddof, ddof_fraction: 0, ..self }
    }

    /// The same for a number that need not be an integer, as the array API has it, and may be
    /// negative, as NumPy has it; `None` for one that is not finite.
    ///
    /// ```
    /// use warpfold_core::Rules;
    ///
    /// let rules = Rules::new().correction(1.5).unwrap();
    /// assert_eq!((rules.ddof, f64::from_bits(rules.ddof_fraction)), (1, 0.5));
    /// assert_eq!(Rules::new().correction(2.0), Some(Rules::new().ddof(2)));
    /// assert_eq!(f64::from_bits(Rules::new().correction(-1.0).unwrap().ddof_fraction), -1.0);
    /// assert_eq!(Rules::new().correction(f64::INFINITY), None);
    /// ```
    #[must_use]
    pub fn correction(self, correction: f64) -> Option<Rules> {
        if !correction.is_finite() {
            return None;
        }
        let whole = correction.trunc().max(0.0);
        // Exact: a fraction has no more digits than its number. What is beyond 2^64 is
        // beyond all counts.
        let ddof_fraction = (correction - whole + 0.0).to_bits();
        Some(Rules { ddof: whole as u64, ddof_fraction, ..self })
    }

    /// The same rules with a type of the answer; `None` for the operation's own.
    #[must_use]
    pub fn out(self, out: impl Into<Option<DType>>) -> Rules {
        Rules { out: out.into(), ..self }
    }

    /// The same rules with whether integer totals wrap around.
    #[must_use]
    pub const fn wrap(self, wrap: bool) -> Rules {
        Rules { wrap, ..self }
    }

    /// The same rules for decimals with so many digits behind the point.
    #[doc(hidden)]
    #[must_use]
    pub const fn decimals(self, decimals: u8) -> Rules {
        Rules { decimals: Some(decimals), ..self }
    }

    /// The quotient of a number, nothing of which is cut off if it is one of decimals, whose
    /// point comes where it belongs.
    #[inline]
    pub(super) fn quotient(&self, number: Truncated, n: u64) -> Truncated {
        match self.decimals {
            None | Some(0) => number.divide(n),
            Some(digits) => decimal_quotient(number, n, digits),
        }
    }

    /// The number itself, in the same way.
    #[inline]
    pub(super) fn pointed(&self, number: Truncated) -> Truncated {
        if self.decimals.unwrap_or(0) == 0 { number } else { self.quotient(number, 1) }
    }

    /// A number that has the digits behind the point twice, as squares have, in the same way.
    pub(super) fn squared(&self, number: Truncated) -> Truncated {
        match self.decimals {
            None | Some(0) => number,
            Some(digits) => decimal_quotient(number, 1, 2 * digits),
        }
    }

    /// An integer as it is printed: of decimals with the point, as in `-0.05`.
    #[doc(hidden)]
    pub fn shown(&self, integer: &impl core::fmt::Display) -> String {
        let digits = usize::from(self.decimals.unwrap_or(0));
        let sign = usize::from(integer.to_string().starts_with('-'));
        let mut text = format!("{integer:0width$}", width = digits + 1 + sign);
        if digits > 0 {
            text.insert(text.len() - digits, '.');
        }
        text
    }

    /// Whether the rules may change what the default rules answer: to this operation, over
    /// elements of this type. [`wrap`](Self::wrap) does not count, which answers where the
    /// default rules have no answer.
    ///
    /// ```
    /// use warpfold_core::{DType, NanPolicy, Op, Rules};
    ///
    /// let rules = Rules::new().nan(NanPolicy::Omit).ddof(1);
    /// assert!(rules.matter_for(Op::Sum, DType::F32));
    /// // No integer is a NaN, and a sum has no divisor.
    /// assert!(!rules.matter_for(Op::Sum, DType::I32));
    /// assert!(rules.matter_for(Op::Var, DType::I32));
    /// assert!(Rules::new().correction(0.5).unwrap().matter_for(Op::Var, DType::F64));
    /// ```
    #[must_use]
    pub fn matter_for(&self, op: Op, dtype: DType) -> bool {
        let nans = self.nan != NanPolicy::Propagate && dtype.is_float() && op != Op::CountNan;
        let divisor = (self.ddof, self.ddof_fraction) != (0, 0) && op.kind() == Kind::Moments;
        nans || divisor || self.out.is_some_and(|out| out != op.answer_type(dtype))
    }
}

/// A number divided by `n` and by a power of ten, in one division.
fn decimal_quotient(number: Truncated, n: u64, digits: u8) -> Truncated {
    let Truncated { negative, window, exponent, inexact } = number;
    // Beyond a divisor of 64 bits and 38 digits, or of 76 digits, there are 128 bits and more.
    const SPARE: u32 = 512;
    let divisor = BigUint::from(n) * BigUint::from(10u8).pow(digits.into());
    let dividend = BigUint::from(window) << SPARE;
    let quotient = &dividend / &divisor;
    let cut = quotient.bits().saturating_sub(128);
    let top = &quotient >> cut;
    let inexact = inexact || (&top << cut) * divisor != dividend;
    let window =
        top.iter_u64_digits().rev().fold(0u128, |all, digit| all << 64 | u128::from(digit));
    let exponent = exponent - SPARE as i32 + cut as i32;
    Truncated { negative, window, exponent, inexact }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the decimals that Rust reads, which it rounds once.
    #[test]
    fn decimals_are_rounded_once() {
        for digits in [1u8, 2, 9, 18, 19, 38] {
            let rules = Rules::new().decimals(digits);
            for number in [1i128, 3, -7, 123_456_789, i128::from(i64::MAX), -(1 << 100) - 1] {
                let rounded = rules.pointed(Truncated::of_integer(number)).round::<f64>();
                let text = format!("{number}e-{digits}");
                assert_eq!(rounded, text.parse::<f64>().unwrap(), "{text}");
                let half = rules.quotient(Truncated::of_integer(5 * number), 10).round::<f64>();
                assert_eq!(half, format!("{}e-{}", 5 * number, digits + 1).parse::<f64>().unwrap());
            }
            assert_eq!(rules.pointed(Truncated::ZERO).round::<f64>(), 0.0);
            for number in [7i128, -5, 1 << 90, -(1 << 100)] {
                let shown: f64 = rules.shown(&number).parse().unwrap();
                assert_eq!(shown, format!("{number}e-{digits}").parse::<f64>().unwrap());
            }
        }
    }
}
