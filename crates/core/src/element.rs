//! The element types and the formats each one accumulates in.

mod dtype;
mod short_floats;

use crate::exact::format::{self, Format};
use core::fmt;
pub use dtype::{DType, Known};
pub use short_floats::{bf16, f16};

/// A truth value in an array: one byte, true unless 0.
///
/// A file may hold any byte, but a Rust `bool` is 0 or 1 only. Therefore kernels never
/// use `bool`. Two that are true are equal, whatever their bytes.
///
/// ```
/// use warpfold_core::element::Bool8;
///
/// assert_eq!(Bool8(2), Bool8::from(true));
/// assert!(bool::from(Bool8(2)));
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Bool8(pub u8);

// SAFETY: a byte, of which any bits are a value.
unsafe impl bytemuck::Zeroable for Bool8 {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Bool8 {}

impl PartialEq for Bool8 {
    fn eq(&self, other: &Self) -> bool {
        bool::from(*self) == bool::from(*other)
    }
}
impl Eq for Bool8 {}

impl From<bool> for Bool8 {
    fn from(truth: bool) -> Bool8 {
        Bool8(u8::from(truth))
    }
}

impl From<Bool8> for bool {
    fn from(truth: Bool8) -> bool {
        truth.0 != 0
    }
}

/// The parts of an element: `value = (-1)^negative * magnitude * 2^exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// A finite value; zero has magnitude 0.
    Finite {
        /// The sign; of zeros too.
        negative: bool,
        /// The integer significand.
        magnitude: u64,
        /// The weight of the significand's lowest bit.
        exponent: i32,
    },
    /// An infinity.
    Infinite {
        /// Its sign.
        negative: bool,
    },
    /// Not a number.
    Nan,
}

/// An integer that orders elements. Sealed, as [`Element`] is.
pub trait Key: sealed::Sealed + Copy + Ord + Send + Sync + fmt::Debug + 'static {
    /// The least value of the type.
    const LEAST: Self;
    /// The greatest value of the type.
    const GREATEST: Self;
    /// The key as 64 bits, sign- or zero-extended.
    fn to_bits64(self) -> u64;
    /// The inverse of [`to_bits64`](Self::to_bits64); excess bits are dropped.
    fn from_bits64(bits: u64) -> Self;
}

macro_rules! key {
    ($($t:ty),*) => {$(
        impl Key for $t {
            const LEAST: Self = <$t>::MIN;
            const GREATEST: Self = <$t>::MAX;
            #[inline(always)]
            fn to_bits64(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn from_bits64(bits: u64) -> Self {
                bits as $t
            }
        }
    )*};
}
key!(i8, i16, i32, i64, u8, u16, u32, u64);

mod sealed {
    pub trait Sealed {}
}

/// A type of array elements.
///
/// Sealed: the set of types is closed, because every backend has kernels for
/// exactly these.
///
///
/// Slices may hold more than elements: see [`Item`](crate::Item).
pub trait Element: sealed::Sealed + bytemuck::Pod + fmt::Debug + Send + Sync + 'static {
    /// The run-time name of this type.
    const DTYPE: DType;
    /// The unsigned integer of the same size.
    type Bits: bytemuck::Pod + Into<u64>;
    /// The integer whose order is the elements' order.
    type Key: Key;
    /// The superaccumulator that holds any sum of elements.
    type Sum: Format;
    /// The superaccumulator that holds any sum of products of two elements.
    type Dot: Format;

    /// The parts of the value, found with integer instructions only, so that
    /// flush-to-zero and rounding modes have no effect.
    fn parts(self) -> Parts;

    /// The bits, zero-extended.
    fn bits(self) -> u64;

    /// The element with the low bits of `bits`.
    fn from_bits(bits: u64) -> Self;

    /// Order-preserving integer key: `a < b` exactly if `a.key() < b.key()`,
    /// with `-0 < +0`. NaNs of positive sign lie above `+inf`, those of
    /// negative sign below `-inf`.
    fn key(self) -> Self::Key;

    /// The element whose [`key`](Self::key) is `key`.
    fn from_key(key: Self::Key) -> Self;

    /// The smallest and the largest key of values other than NaN.
    fn key_range() -> (Self::Key, Self::Key);

    /// What says whether the values of two [keys](Self::key) are equal, and which is less: as
    /// the keys themselves do, but -0 and +0 are equal.
    #[inline(always)]
    fn numeric(key: Self::Key) -> Self::Key {
        key
    }

    /// The key of the magnitude: of `|x|` for floats; for integers the value
    /// itself.
    fn without_sign(self) -> Self::Key;

    /// Whether the value is a NaN.
    fn is_nan(self) -> bool {
        self.parts() == Parts::Nan
    }
}

/// Splits IEEE-like bits with `mant` stored significand bits and a bias such
/// that the subnormal unit is `2^lsb`.
#[inline(always)]
fn float_parts(bits: u64, width: u32, mant: u32, lsb: i32) -> Parts {
    let negative = (bits >> (width - 1)) & 1 == 1;
    let exponent_mask = (1u64 << (width - 1 - mant)) - 1;
    let biased = (bits >> mant) & exponent_mask;
    let fraction = bits & ((1u64 << mant) - 1);
    if biased == exponent_mask {
        if fraction == 0 { Parts::Infinite { negative } } else { Parts::Nan }
    } else if biased == 0 {
        Parts::Finite { negative, magnitude: fraction, exponent: lsb }
    } else {
        Parts::Finite {
            negative,
            magnitude: fraction | (1 << mant),
            exponent: lsb + biased as i32 - 1,
        }
    }
}

macro_rules! float_element {
    ($t:ty, $dtype:ident, $bits:ty, $ibits:ty, $width:literal, $mant:literal, $lsb:literal, $sum:ty, $dot:ty) => {
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$dtype;
            type Bits = $bits;
            type Key = $ibits;
            type Sum = $sum;
            type Dot = $dot;
            #[inline(always)]
            fn parts(self) -> Parts {
                float_parts(self.bits(), $width, $mant, $lsb)
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self.to_bits())
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                <$t>::from_bits(bits as $bits)
            }
            #[inline(always)]
            fn key(self) -> $ibits {
                let i = self.to_bits() as $ibits;
                i ^ (((i >> ($width - 1)) as $bits >> 1) as $ibits)
            }
            #[inline(always)]
            fn from_key(key: $ibits) -> Self {
                // The map is its own inverse: it flips all bits but the sign
                // of negative numbers and leaves the sign alone.
                <$t>::from_bits((key ^ (((key >> ($width - 1)) as $bits >> 1) as $ibits)) as $bits)
            }
            #[inline(always)]
            fn without_sign(self) -> $ibits {
                (self.to_bits() & (<$bits>::MAX >> 1)) as $ibits
            }
            #[inline(always)]
            fn key_range() -> ($ibits, $ibits) {
                (<$t>::NEG_INFINITY.key(), <$t>::INFINITY.key())
            }
            #[inline(always)]
            fn numeric(key: $ibits) -> $ibits {
                // One more for what has a sign: -0 comes right below +0.
                key - (key >> ($width - 1))
            }
        }
    };
}
float_element!(f16, F16, u16, i16, 16, 10, -24, format::F16Sum, format::F16Dot);
float_element!(bf16, BF16, u16, i16, 16, 7, -133, format::F32Sum, format::F32Dot);
float_element!(f32, F32, u32, i32, 32, 23, -149, format::F32Sum, format::F32Dot);
float_element!(f64, F64, u64, i64, 64, 52, -1074, format::F64Sum, format::F64Dot);

macro_rules! int_element {
    ($t:ty, $dtype:ident, $bits:ty) => {
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$dtype;
            type Bits = $bits;
            type Key = $t;
            type Sum = format::IntSum;
            type Dot = format::IntDot;
            #[inline(always)]
            fn parts(self) -> Parts {
                let wide = self as i128;
                let magnitude = wide.unsigned_abs() as u64;
                Parts::Finite { negative: wide < 0, magnitude, exponent: 0 }
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self as $bits)
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                bits as $t
            }
            #[inline(always)]
            fn key(self) -> $t {
                self
            }
            #[inline(always)]
            fn from_key(key: $t) -> Self {
                key
            }
            #[inline(always)]
            fn without_sign(self) -> $t {
                self
            }
            #[inline(always)]
            fn key_range() -> ($t, $t) {
                (<$t>::MIN, <$t>::MAX)
            }
        }
    };
}
int_element!(i8, I8, u8);
int_element!(i16, I16, u16);
int_element!(i32, I32, u32);
int_element!(i64, I64, u64);
int_element!(u8, U8, u8);
int_element!(u16, U16, u16);
int_element!(u32, U32, u32);
int_element!(u64, U64, u64);

impl sealed::Sealed for Bool8 {}
impl Element for Bool8 {
    const DTYPE: DType = DType::Bool;
    type Bits = u8;
    type Key = u8;
    type Sum = format::IntSum;
    type Dot = format::IntDot;
    #[inline(always)]
    fn parts(self) -> Parts {
        Parts::Finite { negative: false, magnitude: u64::from(self.0 != 0), exponent: 0 }
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self.0)
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        Bool8(bits as u8)
    }
    #[inline(always)]
    fn key(self) -> u8 {
        u8::from(self.0 != 0)
    }
    #[inline(always)]
    fn from_key(key: u8) -> Self {
        Bool8(key)
    }
    #[inline(always)]
    fn without_sign(self) -> u8 {
        self.key()
    }
    #[inline(always)]
    fn key_range() -> (u8, u8) {
        (0, 1)
    }
}

/// Calls a generic function with the element type that a [`DType`] names:
/// `with_element!(dtype, T => f::<T>(x))`.
#[macro_export]
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $crate::DType::known($dtype) {
            $crate::element::Known::Bool => {
                type $T = $crate::element::Bool8;
                $body
            }
            $crate::element::Known::I8 => {
                type $T = i8;
                $body
            }
            $crate::element::Known::I16 => {
                type $T = i16;
                $body
            }
            $crate::element::Known::I32 => {
                type $T = i32;
                $body
            }
            $crate::element::Known::I64 => {
                type $T = i64;
                $body
            }
            $crate::element::Known::U8 => {
                type $T = u8;
                $body
            }
            $crate::element::Known::U16 => {
                type $T = u16;
                $body
            }
            $crate::element::Known::U32 => {
                type $T = u32;
                $body
            }
            $crate::element::Known::U64 => {
                type $T = u64;
                $body
            }
            $crate::element::Known::F16 => {
                type $T = $crate::element::f16;
                $body
            }
            $crate::element::Known::BF16 => {
                type $T = $crate::element::bf16;
                $body
            }
            $crate::element::Known::F32 => {
                type $T = f32;
                $body
            }
            $crate::element::Known::F64 => {
                type $T = f64;
                $body
            }
        }
    };
}
