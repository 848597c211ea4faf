//! Squares and variances of a few f64, from registers.
//!
//! A difference from the first element is two f64, and so is its square but for 2^-104 of it. What is
//! lost of sums of them, two f64 each, is added up beside: `n + 3` times 2^-53 of the squares at most,
//! in `3 n` additions that are rounded, and so `3 n (n + 3)` times 2^-106 are not known of them. Of the
//! sums of differences, whose square is not more than `n squares`, it is `4 n (n + 1)` and the square of
//! `n + 1` times as much of that. Of at most 64 elements all this is below 2^-90 of `n squares`.
//!
//! Subnormal numbers on the way may be zeros, which takes Intel's processors no time: a difference is
//! off by 2^-1021 then, and of squares above 1e-200 that is less than 2^-300. Elements of outputs whose
//! squares overflow, or are smaller, are multiplied by a power of two, which brings the largest near 1.

use super::finish::Asked;
use super::fold::Left;
use super::round::{quotient, rooted, spread, two_sum};
use super::short::{ask_ahead, leave};
use crate::simd::{Kernel, Simd};

/// Outputs that are answered together.
const GROUP: usize = 16;
/// What is not known of a numerator, of `n squares`, at most.
const UNKNOWN: f64 = 1.0 / (1u128 << 88) as f64;

/// Answers outputs of a few elements; false if too many are left.
pub(super) struct FewSquares<'a> {
    /// The first elements of the rows, each with one of every output, which may be read.
    pub(super) rows: &'a [*const f64],
    pub(super) asked: Asked,
    pub(super) to: &'a mut [f64],
    pub(super) left: &'a mut Left,
}

impl Kernel for FewSquares<'_> {
    type Out = bool;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> bool {
        match self.asked {
            Asked::Second => self.find::<false, false>(0),
            Asked::Root => self.find::<false, true>(0),
            Asked::Variance { ddof, root: false } => self.find::<true, false>(ddof),
            Asked::Variance { ddof, root: true } => self.find::<true, true>(ddof),
            _ => false,
        }
    }
}

impl FewSquares<'_> {
    #[inline(always)]
    fn find<const SPREAD: bool, const ROOT: bool>(self, ddof: u64) -> bool {
        let FewSquares { rows, to, left, .. } = self;
        let Some(last) = to.len().checked_sub(GROUP) else { return false };
        let (len, outputs) = (rows.len() as f64, to.len());
        let (times, divisor) = if SPREAD { (len, len * (len - ddof as f64)) } else { (1.0, 1.0) };
        let mut far = false;
        for column in (0..outputs).step_by(GROUP) {
            // The last group has some of the columns before it.
            let at = column.min(last);
            let (mut found, mut sure, mut is_scaled) = ([0.0; GROUP], [false; GROUP], far);
            loop {
                // SAFETY: every row has an element for each output, here and below.
                let row = |row: &*const f64| unsafe { &*row.add(at).cast::<[f64; GROUP]>() };
                let first = row(&rows[0]);
                let mut scales = [1.0; GROUP];
                if is_scaled {
                    let mut largest = [0.0; GROUP];
                    for items in rows {
                        let (items, before) = (row(items), largest);
                        for i in 0..GROUP {
                            largest[i] = items[i].abs().max(before[i]);
                        }
                    }
                    scales = largest.map(bring_to_one);
                }
                let [mut sums, mut sums_rest, mut squares, mut squares_rest] = [[0.0; GROUP]; 4];
                let mut any = [0; GROUP];
                for items in rows {
                    let items = row(items);
                    ask_ahead(items.as_ptr(), GROUP);
                    // New numbers for all lanes: they stay in registers.
                    let [mut s, mut t, mut q, mut r] = [[0.0; GROUP]; 4];
                    let mut bits = any;
                    for i in 0..GROUP {
                        let [x, rest] = if SPREAD {
                            two_sum(items[i] * scales[i], -first[i] * scales[i])
                        } else {
                            [items[i] * scales[i], 0.0]
                        };
                        let square = x * x;
                        let below = x.mul_add(x, -square) + 2.0 * x * rest;
                        let [sum, lost] = two_sum(squares[i], square);
                        (q[i], r[i]) = (sum, squares_rest[i] + (lost + below));
                        let [sum, lost] = two_sum(sums[i], x);
                        (s[i], t[i]) = (sum, sums_rest[i] + (lost + rest));
                        bits[i] |= if SPREAD {
                            x.to_bits() << 1 | u64::from(items[i] != first[i])
                        } else {
                            items[i].to_bits() << 1
                        };
                    }
                    (sums, sums_rest, squares, squares_rest, any) = (s, t, q, r, bits);
                }
                let mut odd = [false; GROUP];
                for i in 0..GROUP {
                    let [high, low] = if SPREAD {
                        let (squares, sum) =
                            ([squares[i], squares_rest[i]], [sums[i], sums_rest[i]]);
                        spread(len, squares, sum)
                    } else {
                        two_sum(squares[i], squares_rest[i])
                    };
                    let all = times * squares[i];
                    let share = all * UNKNOWN / high;
                    let (answer, certain) = if ROOT {
                        rooted([high, low], share, divisor)
                    } else {
                        quotient([high, low], share, divisor)
                    };
                    // Neither did a square overflow, nor is what underflowed more than that.
                    let usual = (all > 1e-200) & (all < 1e300);
                    let none = any[i] == 0;
                    // By powers of two, so that what is normal or too large is rounded once.
                    let back = bring_to_one(scales[i]);
                    let answer = if ROOT { answer * back } else { answer * back * back };
                    odd[i] = !none & !usual;
                    // Squares of what is scaled do not overflow.
                    let special = is_scaled & !squares[i].is_finite();
                    let infinite = if SPREAD | squares[i].is_nan() { f64::NAN } else { squares[i] };
                    let answer = if special { infinite } else { answer };
                    found[i] = if none { 0.0 } else { answer };
                    sure[i] = none
                        | special
                        | (usual & (high > 0.0) & certain & (answer >= f64::MIN_POSITIVE));
                }
                if is_scaled {
                    let is_far = |&scale: &f64| !(1e-90..1e90).contains(&scale);
                    far = scales.iter().any(is_far);
                    break;
                }
                far = odd.iter().fold(false, |far, &odd| far | odd);
                if !far {
                    break;
                }
                is_scaled = true;
            }
            to[at..at + GROUP].copy_from_slice(&found);
            if sure.iter().any(|sure| !sure) {
                let unsure = (0..GROUP).filter(|&i| !sure[i]).map(|i| at + i);
                if leave(left, unsure, outputs).is_none() {
                    return false;
                }
            }
        }
        true
    }
}

/// The power of two that brings a number to between 1 and 2: of a power of two, what brings it to 1. Of
/// the largest numbers and of those that are infinite or NaN, 2^-1022; of those that are subnormal,
/// 2^1022.
#[inline(always)]
fn bring_to_one(x: f64) -> f64 {
    const EXPONENT: u64 = f64::INFINITY.to_bits();
    const LEAST: u64 = f64::MIN_POSITIVE.to_bits();
    let exponent = (x.to_bits() & EXPONENT).clamp(LEAST, EXPONENT - 2 * LEAST);
    f64::from_bits(EXPONENT - LEAST - exponent)
}
