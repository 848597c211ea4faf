//! Floating-point element types: what those states need that round on the way.

use crate::element::{Element, bf16, f16};

/// What holds a floating-point element for arithmetic: f32 or f64.
pub trait Wide: Element + PartialOrd + Into<f64> {
    /// The magnitude.
    #[must_use]
    fn magnitude(self) -> Self;
    /// The magnitude of the difference, rounded.
    #[must_use]
    fn distance(self, other: Self) -> Self;
    /// The number nearest to an f64.
    #[must_use]
    fn nearest(x: f64) -> Self;
}

macro_rules! wide {
    ($($t:ty),*) => {$(
        impl Wide for $t {
            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn distance(self, other: Self) -> Self {
                (self - other).abs()
            }
            #[inline(always)]
            fn nearest(x: f64) -> Self {
                x as $t
            }
        }
    )*};
}
wide!(f32, f64);

/// A floating-point element type.
pub trait FloatElement: Element {
    /// What it is widened to.
    type Wide: Wide;
    /// Binary digits of a significand.
    const DIGITS: u32;
    /// One.
    const ONE: Self;
    /// Minus infinity.
    const NEG_INFINITY: Self;
    /// The same value in the wide type; exact.
    fn widen(self) -> Self::Wide;
}

impl FloatElement for f64 {
    type Wide = f64;
    const DIGITS: u32 = 53;
    const ONE: Self = 1.0;
    const NEG_INFINITY: Self = f64::NEG_INFINITY;
    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }
}

impl FloatElement for f32 {
    type Wide = f32;
    const DIGITS: u32 = 24;
    const ONE: Self = 1.0;
    const NEG_INFINITY: Self = f32::NEG_INFINITY;
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
}

impl FloatElement for bf16 {
    type Wide = f32;
    const DIGITS: u32 = 8;
    const ONE: Self = bf16::ONE;
    const NEG_INFINITY: Self = bf16::NEG_INFINITY;
    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32()
    }
}

impl FloatElement for f16 {
    type Wide = f32;
    const DIGITS: u32 = 11;
    const ONE: Self = f16::ONE;
    const NEG_INFINITY: Self = f16::NEG_INFINITY;
    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32()
    }
}

/// Calls a generic function with the float element type that a
/// `DType` names, or else evaluates the other expression:
/// `with_float_element!(dtype, T => f::<T>(x), else => y)`.
#[macro_export]
macro_rules! with_float_element {
    ($dtype:expr, $T:ident => $body:expr, else => $other:expr) => {
        match $crate::DType::known($dtype) {
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
            $crate::element::Known::Bool
            | $crate::element::Known::I8
            | $crate::element::Known::I16
            | $crate::element::Known::I32
            | $crate::element::Known::I64
            | $crate::element::Known::U8
            | $crate::element::Known::U16
            | $crate::element::Known::U32
            | $crate::element::Known::U64 => $other,
        }
    };
}
