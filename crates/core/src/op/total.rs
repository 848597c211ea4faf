//! How an exact total becomes a sum, a mean, a norm or a variance.
//!
//! An accumulator is finished once, so that types and formats are known at run time here:
//! compiled for each of them, this was a third of what a state brings along.

use super::answer::{self, Real};
use super::{Op, Rules, Scalar, Value};
use crate::DType;
use crate::error::{Error, Result};
use crate::exact::format::Format;
use crate::exact::round::Truncated;
use crate::exact::{Superacc, low_bits, to_big, to_i128, variance};

/// What `op` makes of the terms in `acc`, which are of elements of type `dtype`: their mean, the
/// root of their total, or the total itself.
pub(super) fn finish<F: Format>(
    op: Op,
    dtype: DType,
    acc: &Superacc<F>,
    rules: &Rules,
) -> Result<Value> {
    acc.with_canonical(|limbs| Total::new(limbs, acc).finish(op, dtype, rules))
}

/// The variance or the standard deviation of elements of type `dtype`.
pub(super) fn finish_spread<S: Format, D: Format>(
    op: Op,
    dtype: DType,
    (sum, squares): (&Superacc<S>, &Superacc<D>),
    rules: &Rules,
) -> Result<Value> {
    sum.with_canonical(|s| {
        let s = Total::new(s, sum);
        squares.with_canonical(|q| s.spread(&Total::new(q, squares), op, dtype, rules))
    })
}

/// The same of integers, of which there are `count`, by the limbs of their sum and of that of their squares.
pub(super) fn finish_integers(
    op: Op,
    dtype: DType,
    sums: &[Vec<i64>; 2],
    count: u64,
    rules: &Rules,
) -> Result<Value> {
    let counters = [count.cast_signed(), 0, 0, 0];
    let [sum, squares] = sums.each_ref().map(|limbs| Total { limbs, lsb: 0, counters });
    match op {
        Op::Var | Op::Std => sum.spread(&squares, op, dtype, rules),
        _ => sum.finish(op, dtype, rules),
    }
}

/// An accumulator without its format.
struct Total<'a> {
    /// Canonical, lowest first.
    limbs: &'a [i64],
    /// What the lowest bit weighs.
    lsb: i32,
    /// Terms, NaNs, positive and negative infinities.
    counters: [i64; 4],
}

impl<'a> Total<'a> {
    fn new<F: Format>(limbs: &'a [i64], acc: &Superacc<F>) -> Total<'a> {
        Total { limbs, lsb: F::LSB, counters: acc.counters() }
    }

    fn finish(&self, op: Op, dtype: DType, rules: &Rules) -> Result<Value> {
        if !matches!(op, Op::Mean | Op::Norm2) && !dtype.is_float() {
            return self.integer(op, dtype, rules).map(Value::One);
        }
        let out = answer::float_type(op, dtype, rules)?;
        let real = match (self.special(rules)?, op) {
            (Some(special), _) => special,
            (None, Op::Mean) => match self.terms() {
                0 => Real::Nan,
                n => Real::Finite(rules.quotient(self.truncated(), n)),
            },
            (None, Op::Norm2) => Real::Finite(self.truncated().sqrt()),
            (None, _) => Real::Finite(self.truncated()),
        };
        Ok(Value::One(real.round(out)))
    }

    fn integer(&self, op: Op, dtype: DType, rules: &Rules) -> Result<Scalar> {
        let natural = if dtype.is_signed_int() { DType::I64 } else { DType::U64 };
        let out = rules.out.unwrap_or(natural);
        if out.is_float() {
            return Ok(Real::Finite(rules.pointed(self.truncated())).round(out));
        }
        if out == DType::Bool {
            return Err(Error::UnsupportedOut { op, dtype, out });
        }
        if rules.wrap {
            return Ok(Scalar::from_bits(out, low_bits(self.limbs)));
        }
        let total = to_i128(self.limbs).and_then(|total| Scalar::integer(total, out));
        total.map_or_else(|| answer::beyond(op, &to_big(self.limbs), out, rules), Ok)
    }

    fn spread(&self, squares: &Total<'_>, op: Op, dtype: DType, rules: &Rules) -> Result<Value> {
        let out = answer::float_type(op, dtype, rules)?;
        let sums = ((self.limbs, self.lsb), (squares.limbs, squares.lsb));
        let ddof = (rules.ddof, f64::from_bits(rules.ddof_fraction));
        let variance = match self.special(rules)? {
            Some(_) => None,
            None => variance(sums.0, sums.1, self.terms(), ddof),
        };
        let real = match variance.map(|variance| rules.squared(variance)) {
            Some(variance) if op == Op::Std => Real::Finite(variance.sqrt()),
            Some(variance) => Real::Finite(variance),
            None => Real::Nan,
        };
        Ok(Value::One(real.round(out)))
    }

    /// What the NaNs and infinities among the terms make of the total, if any do.
    ///
    /// # Errors
    /// [`Error::NanFound`] under `nan = error`.
    fn special(&self, rules: &Rules) -> Result<Option<Real>> {
        let [_, nans, pos_infs, neg_infs] = self.counters;
        let nan = answer::nan_wins(rules, nans as u64, None)?;
        Ok(match (nan, pos_infs != 0, neg_infs != 0) {
            (false, false, false) => None,
            (false, true, false) => Some(Real::Infinite { negative: false }),
            (false, false, true) => Some(Real::Infinite { negative: true }),
            _ => Some(Real::Nan),
        })
    }

    /// How many terms count: those that are not NaN. Under the other policies
    /// than `omit` there are no NaNs left when this is asked.
    fn terms(&self) -> u64 {
        let [count, nans, ..] = self.counters;
        (count as u64).wrapping_sub(nans as u64)
    }

    fn truncated(&self) -> Truncated {
        Truncated::of_fixed(self.limbs, self.lsb)
    }
}
