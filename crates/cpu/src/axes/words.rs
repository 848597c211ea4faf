//! Elements as the integers that their bits are.
//!
//! What differs between types of one width is then a word that an element is combined
//! with, and not another loop: an operation is compiled for each width.

use core::ops::{BitAnd, BitOr, BitXor, Not};
use warpfold_core::DType;

/// The bits of an element, as an integer with a sign.
pub(super) trait Word:
    bytemuck::Pod
    + Ord
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + Send
    + Sync
{
    /// The least word.
    const LEAST: Self;
    /// The greatest word.
    const GREATEST: Self;
    /// The low bits of `bits`.
    fn of(bits: u64) -> Self;
    /// The integer.
    fn wide(self) -> i64;
    /// All bits if it is above `limit`, or none. Neither is negative.
    fn is_above(self, limit: Self) -> Self;
    /// Words of floats in their order, -0 below +0; its own inverse.
    fn in_order(self) -> Self;
}

macro_rules! word {
    ($($word:ident),*) => {$(
        impl Word for $word {
            const LEAST: Self = $word::MIN;
            const GREATEST: Self = $word::MAX;
            #[inline(always)]
            fn of(bits: u64) -> Self {
                bits as $word
            }
            #[inline(always)]
            fn wide(self) -> i64 {
                i64::from(self)
            }
            #[inline(always)]
            fn is_above(self, limit: Self) -> Self {
                limit.wrapping_sub(self) >> ($word::BITS - 1)
            }
            #[inline(always)]
            fn in_order(self) -> Self {
                let sign = self >> ($word::BITS - 1);
                self ^ (sign.cast_unsigned() >> 1).cast_signed()
            }
        }
    )*};
}
word!(i8, i16, i32, i64);

/// Calls a generic function with the word of so many bytes.
macro_rules! with_word {
    ($size:expr, $W:ident => $body:expr) => {
        match $size {
            1 => {
                type $W = i8;
                $body
            }
            2 => {
                type $W = i16;
                $body
            }
            4 => {
                type $W = i32;
                $body
            }
            _ => {
                type $W = i64;
                $body
            }
        }
    };
}
pub(super) use with_word;

/// What turns the words of an integer type into their order, when combined by
/// exclusive or.
pub(super) fn flip(dtype: DType) -> u64 {
    if dtype.is_signed_int() { 0 } else { sign(dtype) }
}

/// The topmost bit.
pub(super) fn sign(dtype: DType) -> u64 {
    1 << (8 * dtype.size() - 1)
}
