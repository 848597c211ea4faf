//! A value that takes part beside the elements.

use crate::device::Device;
use crate::partial::Partial;
use crate::reduction::Reduction;
use warpfold_core::element::{bf16, f16};
use warpfold_core::layout::View;
use warpfold_core::op::Numbers;
use warpfold_core::{DType, Error, Op, Result, Scalar, with_element};

/// Operations on elements, and on nothing that is said of them all: a mean, a count or a
/// position has no use for a value without a place.
const TAKERS: [Op; 7] = [Op::Sum, Op::Prod, Op::Min, Op::Max, Op::MinMax, Op::Range, Op::NormInf];

/// The initial value as an element of an array's type, if there is one.
///
/// # Errors
/// [`Error::BadInitial`] for operations that take none, and for values that the type does
/// not have.
pub(crate) fn of(reduction: &Reduction, dtype: DType) -> Result<Option<Scalar>> {
    let Some(initial) = reduction.initial else { return Ok(None) };
    if let Some(op) = reduction.ops.iter().find(|op| !TAKERS.contains(op)) {
        return Err(Error::BadInitial {
            what: format!("{op} takes no initial value"),
            hint: "sum, prod, min, max, minmax, range and norm-inf take one",
        });
    }
    converted(initial, dtype).map(Some).ok_or_else(|| Error::BadInitial {
        what: format!("the initial value {initial} is no {dtype}"),
        hint: "it takes part as an element of the array's type: choose one that it has",
    })
}

/// Says that partial states do not hold initial values.
///
/// # Errors
/// [`Error::BadInitial`] if there is one.
pub(crate) fn none(reduction: &Reduction) -> Result<()> {
    let hint = "each piece would count it: absorb it once, as an element";
    refused(reduction, "states of pieces take no initial value", hint)
}

/// Says that groups do not take initial values.
///
/// # Errors
/// [`Error::BadInitial`] if there is one.
pub(crate) fn of_no_groups(reduction: &Reduction) -> Result<()> {
    refused(reduction, "groups take no initial value", "give each group a row with it")
}

fn refused(reduction: &Reduction, what: &str, hint: &'static str) -> Result<()> {
    match reduction.initial {
        None => Ok(()),
        Some(_) => Err(Error::BadInitial { what: what.into(), hint }),
    }
}

/// Lets the states of each output absorb the initial value, which stands behind `len` elements.
///
/// # Errors
/// Those of [`Reduction::partial`].
pub(crate) fn absorb(
    question: &Reduction,
    states: &mut Partial,
    initial: Scalar,
    len: u64,
) -> Result<()> {
    // The one element lies in the host's memory.
    let question = question.of_all().device(Device::Cpu);
    let mut one = Numbers::zeros(initial.dtype(), 1);
    Numbers::set_bits(one.bytes_mut(), initial.dtype(), 0, initial.to_bits());
    with_element!(initial.dtype(), T => {
        let items: &[T] = one.as_slice().unwrap_or_default();
        states.merge_into_each(&question.partial_views([Some(&View::of(items)), None], len)?)
    })
}

/// The same number of another type; `None` if that has none.
pub(crate) fn converted(number: Scalar, dtype: DType) -> Option<Scalar> {
    let integer = match number {
        Scalar::Bool(b) => Some(i128::from(b)),
        Scalar::Int(i, _) => Some(i128::from(i)),
        Scalar::UInt(u, _) => Some(i128::from(u)),
        // Beyond 64 bits is beyond all integer types.
        other => {
            Some(other.to_f64()).filter(|x| x.trunc() == *x && x.abs() < 1e30).map(|x| x as i128)
        }
    };
    if !dtype.is_float() {
        return Scalar::integer(integer?, dtype);
    }
    let wide = match number {
        Scalar::Bool(_) | Scalar::Int(..) | Scalar::UInt(..) => {
            let wide = integer? as f64;
            if wide as i128 != integer? {
                return None;
            }
            wide
        }
        other => other.to_f64(),
    };
    let found = match dtype {
        DType::F16 => Scalar::F16(f16::from_f64(wide)),
        DType::BF16 => Scalar::BF16(bf16::from_f64(wide)),
        DType::F32 => Scalar::F32(wide as f32),
        _ => Scalar::F64(wide),
    };
    let same = wide.is_nan() || found.to_f64().to_bits() == wide.to_bits();
    same.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_the_same_or_are_refused() {
        let int = |i: i64| Scalar::from_bits(DType::I64, i.cast_unsigned());
        let cases = [
            (int(3), DType::F32, Some(3.0)),
            (int(-1), DType::U8, None),
            (int(256), DType::U8, None),
            (int(255), DType::U8, Some(255.0)),
            (int(-128), DType::I8, Some(-128.0)),
            (int(-129), DType::I8, None),
            (int(-1), DType::U64, None),
            (int(i64::MIN), DType::I64, Some(i64::MIN as f64)),
            (Scalar::from_bits(DType::U64, u64::MAX), DType::I64, None),
            (Scalar::from_bits(DType::U64, u64::MAX), DType::F64, None),
            (Scalar::from_bits(DType::U64, u64::MAX), DType::U64, Some(u64::MAX as f64)),
            (int((1 << 53) + 1), DType::F64, None),
            (int(2049), DType::F16, None),
            (Scalar::F64(0.1), DType::F32, None),
            (Scalar::F64(0.5), DType::I32, None),
            (Scalar::F64(4.0), DType::I32, Some(4.0)),
            (Scalar::F64(1e300), DType::I64, None),
            (Scalar::F64(1e300), DType::F32, None),
            (Scalar::F64(f64::INFINITY), DType::F16, Some(f64::INFINITY)),
            (Scalar::F64(f64::INFINITY), DType::U32, None),
            (Scalar::F64(f64::NAN), DType::I8, None),
            (Scalar::F64(-0.0), DType::F32, Some(-0.0)),
            (int(1), DType::Bool, Some(1.0)),
            (int(2), DType::Bool, None),
            (Scalar::Bool(true), DType::BF16, Some(1.0)),
        ];
        for (number, dtype, expected) in cases {
            let found = converted(number, dtype);
            assert_eq!(
                found.map(|x| x.to_f64().to_bits()),
                expected.map(f64::to_bits),
                "{number:?} {dtype}"
            );
            assert!(found.is_none_or(|x| x.dtype() == dtype));
        }
        let nan = converted(Scalar::F64(f64::NAN), DType::F32).unwrap();
        assert!(nan.to_f64().is_nan());
    }
}
