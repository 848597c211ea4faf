//! Subnormal elements, brought to normal numbers: an instruction that takes a subnormal number in
//! takes as long as a hundred others.
//!
//! With the exponent of 2^-22 the bits of a subnormal `x` are those of a number that is `2^1000 x`
//! more than 2^-22, or less, as the last bit of both is worth 2^-74. The difference is exact.

use super::measures::LARGEST_SCALE;
use crate::simd::{Kernel, Simd};
use crate::table::Table;

/// The exponent that subnormal elements are given.
const EXPONENT: u64 = (LARGEST_SCALE * f64::MIN_POSITIVE).to_bits();
const SIGN: u64 = 1 << 63;

/// The exponent that the elements of an output are given: none if the largest one is not subnormal.
pub(super) fn lift(largest: f64) -> u64 {
    if largest.is_subnormal() { EXPONENT } else { 0 }
}

/// Copies elements: multiplied by 2^1000 where they are lifted, or by their scale.
pub(super) struct Lift<'a> {
    pub(super) items: Table<'a, u64>,
    /// Of each column; or of all elements, if it is a single one.
    pub(super) lifts: &'a [u64],
    pub(super) scales: &'a [f64],
    pub(super) to: &'a mut [f64],
}

impl Kernel for Lift<'_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Lift { items, lifts, scales, to } = self;
        let of = |x: u64, lift: u64| f64::from_bits(x | lift) - f64::from_bits((x & SIGN) | lift);
        for (row, to) in to.chunks_exact_mut(items.columns()).enumerate() {
            let row = &items.row(row)[..to.len()];
            if let ([lift], [scale]) = (lifts, scales) {
                for i in 0..to.len() {
                    to[i] =
                        if *lift == 0 { f64::from_bits(row[i]) * scale } else { of(row[i], *lift) };
                }
            } else {
                let (lifts, scales) = (&lifts[..to.len()], &scales[..to.len()]);
                for i in 0..to.len() {
                    let scaled = f64::from_bits(row[i]) * scales[i];
                    to[i] = if lifts[i] == 0 { scaled } else { of(row[i], lifts[i]) };
                }
            }
        }
    }
}
