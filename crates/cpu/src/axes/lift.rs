//! Subnormal elements, brought to normal numbers: an instruction that takes a subnormal number in
//! takes as long as a hundred others.
//!
//! With the exponent of 2^-22 the bits of a subnormal `x` are those of a number that is `2^1000 x`
//! more than 2^-22, or less, as the last bit of both is worth 2^-74. The difference is exact.

use super::fold::Left;
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

/// Makes answers of lifted elements those of the elements: multiplies them by 2^-1000, or by its square,
/// and leaves those of which it is not known how they round.
///
/// Sums are multiples of 2^-74 here. Other answers are rounded to those where they become subnormal: by
/// the sum with a number whose last place that is. They were rounded before, so that one in the middle
/// may have been on either side; no other can have been moved over it, as a middle is a number. A mean
/// of `n` that was moved there is off by half a last place at most, and the sum by `n` times that,
/// which for an even `n` is a multiple of 2^-74, and half of one for an odd `n`. So means are what they
/// seem where sums are below 2^-21, or 2^-22.
pub(super) fn lower(answers: &mut [f64], [squares, mean]: [bool; 2], len: usize, left: &mut Left) {
    let (least, half) = (f64::from_bits(EXPONENT), f64::EPSILON / 2.0 * f64::from_bits(EXPONENT));
    let exact = least * if len.is_multiple_of(2) { 2.0 } else { 1.0 };
    for (i, answer) in answers.iter_mut().enumerate().filter(|(_, answer)| answer.is_finite()) {
        let magnitude = answer.abs();
        if squares {
            // Less than half of the least number.
            *answer = 0.0;
        } else if magnitude < least {
            let rounded = magnitude + least;
            let is_exact = mean && magnitude * (len as f64) < exact;
            if (magnitude - (rounded - least)).abs() == half && !is_exact {
                left.push(i);
            }
            *answer = f64::from_bits(rounded.to_bits() - EXPONENT).copysign(*answer);
        } else {
            *answer /= LARGEST_SCALE;
        }
    }
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
