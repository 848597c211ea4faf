//! Answers.

use crate::DType;
use half::{bf16, f16};

/// One number of a type known at run time.
///
/// Equality is by bits, so that NaN equals NaN and -0 differs from +0.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// A signed integer, of the type given.
    Int(i64, DType),
    /// An unsigned integer, of the type given.
    UInt(u64, DType),
    /// A binary16.
    F16(f16),
    /// A bfloat16.
    BF16(bf16),
    /// A binary32.
    F32(f32),
    /// A binary64.
    F64(f64),
}

impl Scalar {
    /// The type of the number.
    #[must_use]
    pub const fn dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_, d) | Scalar::UInt(_, d) => d,
            Scalar::F16(_) => DType::F16,
            Scalar::BF16(_) => DType::BF16,
            Scalar::F32(_) => DType::F32,
            Scalar::F64(_) => DType::F64,
        }
    }

    /// The bits of the number, zero-extended to 64.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        match self {
            Scalar::Bool(b) => u64::from(b),
            Scalar::Int(i, d) => i as u64 & (u64::MAX >> (64 - 8 * d.size())),
            Scalar::UInt(u, _) => u,
            Scalar::F16(x) => u64::from(x.to_bits()),
            Scalar::BF16(x) => u64::from(x.to_bits()),
            Scalar::F32(x) => u64::from(x.to_bits()),
            Scalar::F64(x) => x.to_bits(),
        }
    }

    /// The number of type `dtype` whose bits are the low ones of `bits`.
    #[must_use]
    pub fn from_bits(dtype: DType, bits: u64) -> Scalar {
        match dtype {
            DType::Bool => Scalar::Bool(bits as u8 != 0),
            DType::I8 => Scalar::Int(i64::from(bits as i8), dtype),
            DType::I16 => Scalar::Int(i64::from(bits as i16), dtype),
            DType::I32 => Scalar::Int(i64::from(bits as i32), dtype),
            DType::I64 => Scalar::Int(bits as i64, dtype),
            DType::U8 => Scalar::UInt(u64::from(bits as u8), dtype),
            DType::U16 => Scalar::UInt(u64::from(bits as u16), dtype),
            DType::U32 => Scalar::UInt(u64::from(bits as u32), dtype),
            DType::U64 => Scalar::UInt(bits, dtype),
            DType::F16 => Scalar::F16(f16::from_bits(bits as u16)),
            DType::BF16 => Scalar::BF16(bf16::from_bits(bits as u16)),
            DType::F32 => Scalar::F32(f32::from_bits(bits as u32)),
            DType::F64 => Scalar::F64(f64::from_bits(bits)),
        }
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
        }
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.dtype() == other.dtype() && self.to_bits() == other.to_bits()
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
