//! From exact numbers to answers of the type asked for.

use super::{Decimal, NanPolicy, Op, Rules, Scalar, Value};
use crate::DType;
use crate::element::{Element, Parts, bf16, f16};
use crate::error::{Error, Result};
use crate::exact::round::Truncated;
use num_bigint::BigInt;

/// A real number, or an infinity or NaN.
#[derive(Clone, Copy, Debug)]
pub(super) enum Real {
    Finite(Truncated),
    Infinite { negative: bool },
    Nan,
}

impl Real {
    /// The value of an element; a zero keeps its sign.
    pub(super) fn of(parts: Parts) -> Real {
        match parts {
            Parts::Infinite { negative } => Real::Infinite { negative },
            Parts::Nan => Real::Nan,
            parts => Truncated::of_parts(parts).map_or(Real::Nan, Real::Finite),
        }
    }

    /// The nearest number of type `out`, which must be a float type.
    #[inline]
    pub(super) fn round(self, out: DType) -> Scalar {
        macro_rules! to {
            ($t:ty) => {{
                use crate::exact::FloatFormat;
                match self {
                    Real::Finite(value) => value.round::<$t>(),
                    Real::Infinite { negative: false } => {
                        <$t as Element>::from_bits(<$t>::INFINITY_BITS)
                    }
                    Real::Infinite { negative: true } => {
                        <$t as Element>::from_bits(<$t>::INFINITY_BITS | <$t>::SIGN_BIT)
                    }
                    Real::Nan => <$t as Element>::from_bits(<$t>::NAN_BITS),
                }
            }};
        }
        match out {
            DType::F16 => Scalar::F16(to!(f16)),
            DType::BF16 => Scalar::BF16(to!(bf16)),
            DType::F32 => Scalar::F32(to!(f32)),
            _ => Scalar::F64(to!(f64)),
        }
    }
}

/// The question is not one that the state answers.
pub(super) fn not_answered(op: Op, dtype: DType) -> Error {
    Error::UnsupportedType { op, dtype }
}

/// The float type to answer in: `out`, or else the element type, or else f64.
#[inline]
pub(super) fn float_type(op: Op, dtype: DType, rules: &Rules) -> Result<DType> {
    match rules.out {
        None if dtype.is_float() => Ok(dtype),
        None => Ok(DType::F64),
        Some(out) if out.is_float() => Ok(out),
        Some(out) => Err(Error::UnsupportedOut { op, dtype, out }),
    }
}

/// Applies the NaN policy: whether the answer is NaN.
///
/// # Errors
/// [`Error::NanFound`] if there are NaNs and the policy is to fail.
#[inline]
pub(super) fn nan_wins(rules: &Rules, nans: u64, first: Option<u64>) -> Result<bool> {
    match rules.nan {
        NanPolicy::Error if nans > 0 => Err(Error::NanFound { count: nans, first }),
        NanPolicy::Propagate => Ok(nans > 0),
        _ => Ok(false),
    }
}

/// An integer in `out`, or else in `natural`: range-checked in an integer
/// type, rounded once in a float type.
pub(super) fn integer(
    op: Op,
    dtype: DType,
    value: i128,
    natural: DType,
    rules: &Rules,
) -> Result<Scalar> {
    let out = rules.out.unwrap_or(natural);
    if out.is_float() {
        return Ok(Real::Finite(rules.pointed(Truncated::of_integer(value))).round(out));
    }
    if out == DType::Bool && natural != DType::Bool {
        return Err(Error::UnsupportedOut { op, dtype, out });
    }
    let scalar = Scalar::integer(value, out);
    scalar.map_or_else(|| beyond(op, &value.into(), out, rules), Ok)
}

/// An integer that is beyond `out`: an answer if it is of decimals, and nobody asks for a type.
pub(super) fn beyond(op: Op, value: &BigInt, out: DType, rules: &Rules) -> Result<Scalar> {
    let decimal = match (rules.decimals, rules.out) {
        (Some(digits), None) => Decimal::new(value, digits).map(Scalar::Decimal),
        _ => None,
    };
    decimal.ok_or_else(|| Error::Overflow { op, total: rules.shown(value), out })
}

/// A count or a position in `out`, or else in u64; never a float.
pub(super) fn count(op: Op, dtype: DType, value: u64, rules: &Rules) -> Result<Scalar> {
    match rules.out {
        None => Ok(Scalar::from_bits(DType::U64, value)),
        Some(out) if out.is_float() => Err(Error::UnsupportedOut { op, dtype, out }),
        Some(_) => integer(op, dtype, i128::from(value), DType::U64, rules),
    }
}

/// A truth value; no other type.
pub(super) fn truth(op: Op, dtype: DType, value: bool, rules: &Rules) -> Result<Scalar> {
    match rules.out {
        None | Some(DType::Bool) => Ok(Scalar::Bool(value)),
        Some(out) => Err(Error::UnsupportedOut { op, dtype, out }),
    }
}

/// The answer in the [float type](float_type) asked for.
///
/// # Errors
/// [`Error::UnsupportedOut`] for other types.
pub(super) fn float_answer(
    op: Op,
    dtype: DType,
    rules: &Rules,
    scalar: impl Fn(DType) -> Option<Scalar>,
) -> Result<Value> {
    let out = float_type(op, dtype, rules)?;
    scalar(out).map(Value::One).ok_or(Error::UnsupportedOut { op, dtype, out })
}
