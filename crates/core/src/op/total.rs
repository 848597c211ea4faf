//! How an exact total becomes a sum, a mean or a norm.

use super::answer::{self, Real};
use super::{Op, Rules, Scalar, Value};
use crate::DType;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::exact::format::Format;
use crate::exact::round::Truncated;
use crate::exact::{Superacc, low_bits, to_big, to_i128};

/// What the NaNs and infinities among the terms make of the total, if any do.
///
/// # Errors
/// [`Error::NanFound`] under `nan = error`.
#[inline]
pub(super) fn special<F: Format>(acc: &Superacc<F>, rules: &Rules) -> Result<Option<Real>> {
    let nan = answer::nan_wins(rules, acc.nans as u64, None)?;
    Ok(match (nan, acc.pos_infs != 0, acc.neg_infs != 0) {
        (false, false, false) => None,
        (false, true, false) => Some(Real::Infinite { negative: false }),
        (false, false, true) => Some(Real::Infinite { negative: true }),
        _ => Some(Real::Nan),
    })
}

/// How many terms count: those that are not NaN. Under the other policies
/// than `omit` there are no NaNs left when this is asked.
#[inline]
pub(super) fn terms<F: Format>(acc: &Superacc<F>) -> u64 {
    (acc.count as u64).wrapping_sub(acc.nans as u64)
}

#[inline]
fn truncated<F: Format>(acc: &Superacc<F>) -> Truncated {
    acc.with_canonical(|limbs| Truncated::of_fixed(limbs, F::LSB))
}

/// The total itself.
#[inline]
pub(super) fn total<T: Element, F: Format>(
    op: Op,
    acc: &Superacc<F>,
    rules: &Rules,
) -> Result<Value> {
    if !T::DTYPE.is_float() {
        return integer_total::<T, F>(op, acc, rules).map(Value::One);
    }
    let out = answer::float_type(op, T::DTYPE, rules)?;
    let real = special(acc, rules)?.unwrap_or_else(|| Real::Finite(truncated(acc)));
    Ok(Value::One(real.round(out)))
}

fn integer_total<T: Element, F: Format>(
    op: Op,
    acc: &Superacc<F>,
    rules: &Rules,
) -> Result<Scalar> {
    let dtype = T::DTYPE;
    let natural = if dtype.is_signed_int() { DType::I64 } else { DType::U64 };
    let out = rules.out.unwrap_or(natural);
    if out.is_float() {
        return Ok(Real::Finite(rules.pointed(truncated(acc))).round(out));
    }
    if out == DType::Bool {
        return Err(Error::UnsupportedOut { op, dtype, out });
    }
    acc.with_canonical(|limbs| {
        if rules.wrap {
            return Ok(Scalar::from_bits(out, low_bits(limbs)));
        }
        let total = to_i128(limbs).and_then(|total| Scalar::integer(total, out));
        total.map_or_else(|| answer::beyond(op, &to_big(limbs), out, rules), Ok)
    })
}

/// The total divided by the number of terms.
#[inline]
pub(super) fn mean<T: Element, F: Format>(
    op: Op,
    acc: &Superacc<F>,
    rules: &Rules,
) -> Result<Value> {
    let out = answer::float_type(op, T::DTYPE, rules)?;
    let real = match special(acc, rules)? {
        Some(special) => special,
        None => match terms(acc) {
            0 => Real::Nan,
            n => Real::Finite(rules.quotient(truncated(acc), n)),
        },
    };
    Ok(Value::One(real.round(out)))
}

/// The square root of the total.
pub(super) fn root<T: Element, F: Format>(
    op: Op,
    acc: &Superacc<F>,
    rules: &Rules,
) -> Result<Value> {
    let out = answer::float_type(op, T::DTYPE, rules)?;
    let real = match special(acc, rules)? {
        Some(special) => special,
        None => Real::Finite(truncated(acc).sqrt()),
    };
    Ok(Value::One(real.round(out)))
}
