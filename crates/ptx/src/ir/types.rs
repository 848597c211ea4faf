//! The types that instructions and registers have.

use core::fmt;

/// A fundamental type of PTX, or a pair of them packed into 32 or 64 bits.
///
/// A register of any type is kept as a `u64`: predicates are 0 or 1, narrower values fill the low bits and the rest is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the variants are PTX's own names")]
pub enum Type {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    Bf16,
    Tf32,
    F32,
    F64,
    U16x2,
    S16x2,
    F16x2,
    Bf16x2,
    F32x2,
}

/// What the bits of a type mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// One truth value.
    Predicate,
    /// Untyped bits.
    Bits,
    /// An unsigned integer.
    Unsigned,
    /// A two's complement integer.
    Signed,
    /// A floating-point number.
    Float,
    /// Two 16-bit integers; the first is in the low half.
    IntegerPair,
    /// Two floating-point numbers of 16 or 32 bits; the first is in the low half.
    FloatPair,
}

impl Type {
    /// Every type.
    pub const ALL: [Type; 24] = [
        Type::Pred,
        Type::B8,
        Type::B16,
        Type::B32,
        Type::B64,
        Type::B128,
        Type::U8,
        Type::U16,
        Type::U32,
        Type::U64,
        Type::S8,
        Type::S16,
        Type::S32,
        Type::S64,
        Type::F16,
        Type::Bf16,
        Type::Tf32,
        Type::F32,
        Type::F64,
        Type::U16x2,
        Type::S16x2,
        Type::F16x2,
        Type::Bf16x2,
        Type::F32x2,
    ];

    /// The type's name in PTX, without the dot.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Type::Pred => "pred",
            Type::B8 => "b8",
            Type::B16 => "b16",
            Type::B32 => "b32",
            Type::B64 => "b64",
            Type::B128 => "b128",
            Type::U8 => "u8",
            Type::U16 => "u16",
            Type::U32 => "u32",
            Type::U64 => "u64",
            Type::S8 => "s8",
            Type::S16 => "s16",
            Type::S32 => "s32",
            Type::S64 => "s64",
            Type::F16 => "f16",
            Type::Bf16 => "bf16",
            Type::Tf32 => "tf32",
            Type::F32 => "f32",
            Type::F64 => "f64",
            Type::U16x2 => "u16x2",
            Type::S16x2 => "s16x2",
            Type::F16x2 => "f16x2",
            Type::Bf16x2 => "bf16x2",
            Type::F32x2 => "f32x2",
        }
    }

    /// The type with this name, given without the dot.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Type> {
        Type::ALL.into_iter().find(|t| t.name() == name)
    }

    /// What the bits mean.
    #[must_use]
    pub fn class(self) -> Class {
        match self {
            Type::Pred => Class::Predicate,
            Type::B8 | Type::B16 | Type::B32 | Type::B64 | Type::B128 => Class::Bits,
            Type::U8 | Type::U16 | Type::U32 | Type::U64 => Class::Unsigned,
            Type::S8 | Type::S16 | Type::S32 | Type::S64 => Class::Signed,
            Type::F16 | Type::Bf16 | Type::Tf32 | Type::F32 | Type::F64 => Class::Float,
            Type::U16x2 | Type::S16x2 => Class::IntegerPair,
            Type::F16x2 | Type::Bf16x2 | Type::F32x2 => Class::FloatPair,
        }
    }

    /// The width in bits; a predicate has one.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self {
            Type::Pred => 1,
            Type::B8 | Type::U8 | Type::S8 => 8,
            Type::B16 | Type::U16 | Type::S16 | Type::F16 | Type::Bf16 => 16,
            Type::B32 | Type::U32 | Type::S32 | Type::F32 | Type::Tf32 => 32,
            Type::U16x2 | Type::S16x2 | Type::F16x2 | Type::Bf16x2 => 32,
            Type::B64 | Type::U64 | Type::S64 | Type::F64 | Type::F32x2 => 64,
            Type::B128 => 128,
        }
    }

    /// The bytes that a value takes in memory; a predicate has none there and counts as one.
    #[must_use]
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether values are floating-point numbers or pairs of them.
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(self.class(), Class::Float | Class::FloatPair)
    }

    /// Whether values are two's complement integers.
    #[must_use]
    pub fn is_signed(self) -> bool {
        matches!(self.class(), Class::Signed) || self == Type::S16x2
    }

    /// All ones over the width: what a register of the type may hold.
    #[must_use]
    pub fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits().min(64))
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Type;

    #[test]
    fn names_are_read_back() {
        for ty in Type::ALL {
            assert_eq!(Type::from_name(ty.name()), Some(ty));
        }
        assert_eq!(Type::from_name("q32"), None);
    }

    #[test]
    fn masks_cover_the_width() {
        assert_eq!(Type::Pred.mask(), 1);
        assert_eq!(Type::S16.mask(), 0xffff);
        assert_eq!(Type::F16x2.mask(), 0xffff_ffff);
        assert_eq!(Type::B64.mask(), u64::MAX);
    }
}
