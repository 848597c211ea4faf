//! Answers.

use super::Decimal;
use crate::DType;
use crate::element::{bf16, f16};

/// One number of a type known at run time.
///
/// Equality is by bits, so that NaN equals NaN and -0 differs from +0.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// A signed integer, of the type given: see [`integer`](Scalar::integer).
    Int(i64, OfType),
    /// An unsigned integer, likewise.
    UInt(u64, OfType),
    /// A binary16.
    F16(f16),
    /// A bfloat16.
    BF16(bf16),
    /// A binary32.
    F32(f32),
    /// A binary64.
    F64(f64),
    /// A decimal beyond 64 bits. To those who do not know it, it is the nearest binary64.
    Decimal(Decimal),
}

/// The type of an integer. Only this file makes one: a number is never of a type that has no
/// integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfType(DType);

impl Scalar {
    /// The type of the number.
    #[must_use]
    pub const fn dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_, OfType(d)) | Scalar::UInt(_, OfType(d)) => d,
            Scalar::F16(_) => DType::F16,
            Scalar::BF16(_) => DType::BF16,
            Scalar::F32(_) => DType::F32,
            Scalar::F64(_) | Scalar::Decimal(_) => DType::F64,
        }
    }

    /// The bits of the number, zero-extended to 64.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        match self {
            Scalar::Bool(b) => u64::from(b),
            Scalar::Int(i, OfType(d)) => i as u64 & (u64::MAX >> (64 - 8 * d.size())),
            Scalar::UInt(u, _) => u,
            Scalar::F16(x) => u64::from(x.to_bits()),
            Scalar::BF16(x) => u64::from(x.to_bits()),
            Scalar::F32(x) => u64::from(x.to_bits()),
            Scalar::F64(x) => x.to_bits(),
            Scalar::Decimal(x) => x.to_f64().to_bits(),
        }
    }

    /// The number of type `dtype` whose bits are the low ones of `bits`.
    #[must_use]
    pub fn from_bits(dtype: DType, bits: u64) -> Scalar {
        match dtype {
            DType::Bool => Scalar::Bool(bits as u8 != 0),
            DType::I8 => Scalar::Int(i64::from(bits as i8), OfType(dtype)),
            DType::I16 => Scalar::Int(i64::from(bits as i16), OfType(dtype)),
            DType::I32 => Scalar::Int(i64::from(bits as i32), OfType(dtype)),
            DType::I64 => Scalar::Int(bits as i64, OfType(dtype)),
            DType::U8 => Scalar::UInt(u64::from(bits as u8), OfType(dtype)),
            DType::U16 => Scalar::UInt(u64::from(bits as u16), OfType(dtype)),
            DType::U32 => Scalar::UInt(u64::from(bits as u32), OfType(dtype)),
            DType::U64 => Scalar::UInt(bits, OfType(dtype)),
            DType::F16 => Scalar::F16(f16::from_bits(bits as u16)),
            DType::BF16 => Scalar::BF16(bf16::from_bits(bits as u16)),
            DType::F32 => Scalar::F32(f32::from_bits(bits as u32)),
            DType::F64 => Scalar::F64(f64::from_bits(bits)),
        }
    }

    /// An integer or a truth value of this type; `None` if the type does not have the number,
    /// as no float type does.
    ///
    /// ```
    /// use warpfold_core::{DType, Scalar};
    /// assert_eq!(Scalar::integer(-128, DType::I8).map(|x| x.to_string()).as_deref(), Some("-128"));
    /// assert_eq!(Scalar::integer(128, DType::I8), None);
    /// assert_eq!(Scalar::integer(5, DType::F64), None);
    /// ```
    ///
    /// The number and its type cannot contradict each other:
    ///
    /// ```compile_fail
    /// use warpfold_core::{DType, Scalar};
    /// let _ = Scalar::Int(5, DType::F64);
    /// ```
    #[must_use]
    pub fn integer(value: i128, dtype: DType) -> Option<Scalar> {
        let bits = 8 * dtype.size() as u32;
        let range = match dtype {
            DType::Bool => 0..2,
            _ if dtype.is_float() => 0..0,
            _ if dtype.is_signed_int() => -(1i128 << (bits - 1))..1i128 << (bits - 1),
            _ => 0..1i128 << bits,
        };
        range.contains(&value).then(|| Scalar::from_bits(dtype, value as u64))
    }

    /// The nearest f64; integers beyond 2^53 are rounded.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => f64::from(u8::from(b)),
            Scalar::Int(i, _) => i as f64,
            Scalar::UInt(u, _) => u as f64,
            Scalar::F16(x) => x.to_f64(),
            Scalar::BF16(x) => x.to_f64(),
            Scalar::F32(x) => f64::from(x),
            Scalar::F64(x) => x,
            Scalar::Decimal(x) => x.to_f64(),
        }
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Scalar::Decimal(left), Scalar::Decimal(right)) => left == right,
            (Scalar::Decimal(_), _) | (_, Scalar::Decimal(_)) => false,
            _ => self.dtype() == other.dtype() && self.to_bits() == other.to_bits(),
        }
    }
}
impl Eq for Scalar {}

/// What an operation answers: one number, or two for `minmax` and `argminmax`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// One number.
    One(Scalar),
    /// The smallest and the largest.
    Pair(Scalar, Scalar),
}

impl Value {
    /// The number, or the first of two.
    #[must_use]
    pub const fn first(self) -> Scalar {
        match self {
            Value::One(a) | Value::Pair(a, _) => a,
        }
    }

    /// The second of two numbers.
    #[must_use]
    pub const fn second(self) -> Option<Scalar> {
        match self {
            Value::One(_) => None,
            Value::Pair(_, b) => Some(b),
        }
    }
}
