//! Keys of different types, brought to one: integers of several widths, units of time.

use crate::unit::Unit;
use warpfold_core::{DType, Error, Result, Scalar};

/// The type of a column of numbers, and what they count.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The type of the elements.
    pub dtype: DType,
    /// What they count; plain numbers count nothing.
    pub unit: Option<Unit>,
}

/// How elements become those of another type that holds the same values.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widening {
    from: DType,
    to: DType,
    factor: u64,
}

impl Counted {
    /// What both become: the same values in one type, so that equal keys are equal. A u64
    /// goes with integers that have a sign as far as its values do.
    ///
    /// # Errors
    /// [`Error::UnitMismatch`], and [`Error::StateMismatch`] for types that have no values in
    /// common, or not exactly.
    pub fn joined(&self, other: &Counted) -> Result<Counted> {
        let (unit, factors) = Unit::joined(self.unit.as_ref(), other.unit.as_ref())?;
        let dtype = match common(self.dtype, other.dtype) {
            Some(dtype) if factors == [1, 1] => dtype,
            Some(_) => DType::I64,
            None => {
                let (left, right) = (self.dtype.to_string(), other.dtype.to_string());
                return Err(Error::StateMismatch { what: "key type", left, right });
            }
        };
        Ok(Counted { dtype, unit })
    }

    /// How elements of this type become those of `joined`, if they are not such already.
    #[must_use]
    pub fn widening(&self, joined: &Counted) -> Option<Widening> {
        let units = self.unit.as_ref().zip(joined.unit.as_ref());
        let factor = units.and_then(|(own, finer)| own.factor_to(finer)).unwrap_or(1);
        let same = self.dtype == joined.dtype && factor == 1;
        (!same).then_some(Widening { from: self.dtype, to: joined.dtype, factor })
    }

    /// The error that a key of this type is none of `joined`.
    #[must_use]
    pub fn beyond(&self, joined: &Counted) -> Error {
        match (&self.unit, &joined.unit) {
            (Some(own), Some(unit)) => unit.too_coarse(own),
            _ => Error::StateMismatch {
                what: "key type",
                left: format!("{} beyond {}", self.dtype, joined.dtype),
                right: joined.dtype.to_string(),
            },
        }
    }
}

impl Widening {
    /// The type that the elements become.
    #[must_use]
    pub fn to(&self) -> DType {
        self.to
    }

    /// By what counts are multiplied.
    #[must_use]
    pub fn factor(&self) -> u64 {
        self.factor
    }

    /// The bits of an element of the wider type; `None` if it has no such value.
    #[inline]
    #[must_use]
    pub fn bits(&self, bits: u64) -> Option<u64> {
        let wide = match Scalar::from_bits(self.from, bits) {
            Scalar::Int(x, _) => i128::from(x),
            Scalar::UInt(x, _) => i128::from(x),
            Scalar::Bool(x) => i128::from(x),
            float => return Some(float.to_f64().to_bits()),
        };
        let wide = wide * i128::from(self.factor);
        let fits = match self.to {
            DType::U64 => u64::try_from(wide).is_ok(),
            _ => i64::try_from(wide).is_ok(),
        };
        // Narrower types are those of both sides, or wider than these.
        fits.then_some(wide as u64 & (u64::MAX >> (64 - 8 * self.to.size())))
    }
}

/// The type that holds the values of both.
fn common(left: DType, right: DType) -> Option<DType> {
    if left == right {
        return Some(left);
    }
    if left.is_float() && right.is_float() {
        return Some(DType::F64);
    }
    if [left, right].iter().any(|dtype| dtype.is_float() || *dtype == DType::Bool) {
        return None;
    }
    let signed = left.is_signed_int() || right.is_signed_int();
    let size = |dtype: DType| match signed && !dtype.is_signed_int() {
        true => (2 * dtype.size()).min(8),
        false => dtype.size(),
    };
    Some(match (signed, size(left).max(size(right))) {
        (true, 2) => DType::I16,
        (true, 4) => DType::I32,
        (true, _) => DType::I64,
        (false, 2) => DType::U16,
        (false, 4) => DType::U32,
        (false, _) => DType::U64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::Tick;

    fn plain(dtype: DType) -> Counted {
        Counted { dtype, unit: None }
    }

    /// The ends of each type, in each type that it is joined to.
    #[test]
    fn values_stay_what_they_are() {
        for left in DType::ALL {
            for right in DType::ALL {
                let joined = plain(left).joined(&plain(right));
                let turned = plain(right).joined(&plain(left));
                assert_eq!(joined.as_ref().ok(), turned.as_ref().ok(), "{left} {right}");
                let Ok(joined) = joined else {
                    let mixed = left.is_float() != right.is_float();
                    assert!(mixed || [left, right].contains(&DType::Bool), "{left} {right}");
                    continue;
                };
                let Some(widening) = plain(left).widening(&joined) else { continue };
                for bits in [0, 1, u64::MAX, 1 << (8 * left.size() - 1), 0x3c00] {
                    let from = Scalar::from_bits(left, bits);
                    let Some(to) = widening.bits(from.to_bits()) else {
                        assert!(left == DType::U64 && from.to_f64() >= 2f64.powi(63));
                        continue;
                    };
                    let to = Scalar::from_bits(joined.dtype, to);
                    let same = match left.is_float() {
                        true => from.to_f64() == to.to_f64() || from.to_f64().is_nan(),
                        false => from.to_string() == to.to_string(),
                    };
                    assert!(same, "{left}: {from}, {to}");
                }
            }
        }
    }

    #[test]
    fn steps_of_time_are_multiplied() {
        let of = |dtype, unit| Counted { dtype, unit: Some(unit) };
        let days = of(DType::I32, Unit::Date(Tick::Day));
        let joined = days.joined(&of(DType::I64, Unit::Date(Tick::Milli))).unwrap();
        assert_eq!(joined, of(DType::I64, Unit::Date(Tick::Milli)));
        let widening = days.widening(&joined).unwrap();
        let minus_two = u64::from(u32::MAX - 1);
        assert_eq!(widening.bits(minus_two), Some((-172_800_000i64).cast_unsigned()));
        assert_eq!(days.joined(&days).unwrap(), days);
        let far = of(DType::I64, Unit::Timestamp(Tick::Second, None));
        let fine = of(DType::I64, Unit::Timestamp(Tick::Nano, None));
        let widening = far.widening(&far.joined(&fine).unwrap()).unwrap();
        assert_eq!(widening.bits(1 << 62), None);
    }
}
