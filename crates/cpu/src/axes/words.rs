//! Elements as the integers that their bits are.
//!
//! What differs between types of one width is then a word that an element is combined
//! with, and not another loop: an operation is compiled for each width.

use super::ends::{Found, in_lanes_of_f32, in_lanes_of_f64};
use super::extremes::Asked;
use crate::simd::Simd;
use core::ops::{BitAnd, BitOr, BitXor, Not};
use warpfold_core::DType;
use warpfold_core::element::Key;

/// The bits of an element, as an integer with a sign.
pub(super) trait Word:
    bytemuck::Pod
    + Key
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
{
    /// The low bits of `bits`.
    fn of(bits: u64) -> Self;
    /// The integer.
    fn wide(self) -> i64;
    /// One more where all bits of `mask` are set, and the same where none is.
    fn counted(self, mask: Self) -> Self;
    /// All bits if it is above `limit`, or none.
    fn is_above(self, limit: Self) -> Self;
    /// Words of floats in their order, -0 below +0; its own inverse.
    fn in_order(self) -> Self;
    /// Words of floats in the order of their values: the same for -0 and +0.
    fn by_value(self) -> Self;
    /// Whether the float with these bits is not above that one, compared as floats are where they are of
    /// 32 or 64 bits.
    fn is_at_most(self, other: Self) -> bool;
    /// What is found of floats in lanes: see [`ends`](super::ends). `None` where there are no vectors of
    /// such floats.
    ///
    /// # Safety
    /// See [`Simd`]; there are as many elements as a vector has, at least.
    unsafe fn in_lanes<S: Simd, const LOW: bool, const HIGH: bool>(
        items: &[Self],
    ) -> Option<Found<Self>>;
    /// Writes the extremes of rows of floats, `column` elements from the beginning of each, or the NaN
    /// where there is one; `false` where there are no such instructions. Subnormals are not to be taken for zeros.
    ///
    /// # Safety
    /// These elements may be read.
    unsafe fn few_ends<const N: usize>(
        rows: &[*const Self],
        column: usize,
        asked: (Asked, Self),
        to: &mut [Self; N],
    ) -> bool;
}

/// [`Word::few_ends`].
macro_rules! few_ends {
    ($rows:expr, $column:expr, $asked:expr, $nan:expr, $to:expr, $Float:ident, $Bits:ident) => {{
        let sign = 1 << ($Bits::BITS - 1);
        // Where the end is a zero all other elements are on one side of it, so that the signs
        // of all tell which zero it is. New numbers for all lanes: they stay in registers, where a
        // lane that is written if it is better does not.
        macro_rules! turn {
            ($start:expr, $before:tt, $join:tt, $signs:expr, $mask:expr) => {{
                let (mut ends, mut signs, mut nans) = ([$start; N], [$signs; N], [0; N]);
                for row in $rows {
                    // SAFETY: the caller vouches for the elements; floats are as wide as words.
                    let row = unsafe { &*row.add($column).cast::<[$Bits; N]>() };
                    let (mut next, mut all, mut odd) = ([$start; N], [$signs; N], [0; N]);
                    for i in 0..N {
                        let x = $Float::from_bits(row[i] & $mask);
                        next[i] = if x $before ends[i] { x } else { ends[i] };
                        odd[i] = nans[i] | if x != x { $Bits::MAX } else { 0 };
                        all[i] = signs[i] $join row[i];
                    }
                    (ends, signs, nans) = (next, all, odd);
                }
                let (mut all_ends, mut all_signs, mut odd) = ([$start; N], [$signs; N], [0; N]);
                all_ends.copy_from_slice(&ends);
                all_signs.copy_from_slice(&signs);
                odd.copy_from_slice(&nans);
                let nan = $nan.cast_unsigned();
                for i in 0..N {
                    let bits = all_ends[i].to_bits();
                    let zero = all_signs[i] & sign & $mask;
                    let end = if all_ends[i] == 0.0 { zero } else { bits };
                    $to[i] = ((end & !odd[i]) | (nan & odd[i])).cast_signed();
                }
            }};
        }
        match $asked {
            Asked::Min => turn!($Float::INFINITY, <, |, 0, $Bits::MAX),
            Asked::Max => turn!($Float::NEG_INFINITY, >, &, $Bits::MAX, $Bits::MAX),
            Asked::Magnitude => turn!(0.0, >, |, 0, $Bits::MAX >> 1),
        }
        true
    }};
}

macro_rules! word {
    ($($word:ident, |$bits:ident| $float:expr, |$items:ident| $lanes:expr, |$rows:ident, $column:ident, $asked:ident, $nan:ident, $to:ident| $few:expr;)*) => {$(
        impl Word for $word {
            #[inline(always)]
            fn of(bits: u64) -> Self {
                bits as $word
            }
            #[inline(always)]
            fn wide(self) -> i64 {
                i64::from(self)
            }
            #[inline(always)]
            fn counted(self, mask: Self) -> Self {
                self.wrapping_sub(mask)
            }
            #[inline(always)]
            fn is_above(self, limit: Self) -> Self {
                if self > limit { -1 } else { 0 }
            }
            #[inline(always)]
            fn in_order(self) -> Self {
                let sign = self >> ($word::BITS - 1);
                self ^ (sign.cast_unsigned() >> 1).cast_signed()
            }
            #[inline(always)]
            fn by_value(self) -> Self {
                // The magnitude, and its opposite if there is a sign.
                let sign = self >> ($word::BITS - 1);
                ((self & $word::MAX) ^ sign).wrapping_sub(sign)
            }
            #[inline(always)]
            fn is_at_most(self, other: Self) -> bool {
                // Not by a closure, which would be compiled for other instructions.
                let $bits = self;
                let one = $float;
                let $bits = other;
                one <= $float
            }
            #[inline(always)]
            unsafe fn in_lanes<S: Simd, const LOW: bool, const HIGH: bool>(
                $items: &[Self],
            ) -> Option<Found<Self>> {
                $lanes
            }
            #[inline(always)]
            unsafe fn few_ends<const N: usize>(
                $rows: &[*const Self],
                $column: usize,
                ($asked, $nan): (Asked, Self),
                $to: &mut [Self; N],
            ) -> bool {
                $few
            }
        }
    )*};
}
word! {
    i8, |bits| bits.by_value(), |_items| None, |_rows, _column, _asked, _nan, _to| false;
    i16, |bits| bits.by_value(), |_items| None, |_rows, _column, _asked, _nan, _to| false;
    // SAFETY: passed on from the caller.
    i32, |bits| f32::from_bits(bits.cast_unsigned()), |items| Some(unsafe { in_lanes_of_f32::<S, LOW, HIGH>(items) }), |rows, column, asked, nan, to| few_ends!(rows, column, asked, nan, to, f32, u32);
    // SAFETY: as above.
    i64, |bits| f64::from_bits(bits.cast_unsigned()), |items| Some(unsafe { in_lanes_of_f64::<S, LOW, HIGH>(items) }), |rows, column, asked, nan, to| few_ends!(rows, column, asked, nan, to, f64, u64);
}

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
