//! Exact sums of a few thousand elements, straight to the rounded value: no
//! superaccumulator, no allocation.

use super::odd::rounded_to_f32;
use super::range::{K_BITS, RangeSum};
use super::terms::Plain;
use super::window::{Window, WindowSum};
use super::{BLOCK, largest_exponent};
use crate::isa::Isa;
use crate::simd::dispatch;
use crate::slices::Slices;
use warpfold_core::fpenv;

/// An integer of a window's level as an f64, exactly; `None` if it has more
/// than 53 bits or a scale that f64 has no normal number for.
#[inline]
fn level(total: i64, exponent: i32) -> Option<f64> {
    let normal = (-1022..=1023).contains(&exponent);
    if total.unsigned_abs() > 1 << 53 || !normal {
        return None;
    }
    Some(total as f64 * f64::from_bits(((exponent + 1023) as u64) << 52))
}

/// The sum of a short slice as `high + low`, exactly, if a window of two
/// levels certifies it.
#[inline]
fn levels(totals: [i64; 2], window: Window) -> Option<[f64; 2]> {
    Some([level(totals[0], window.unit(0))?, level(totals[1], window.unit(1))?])
}

/// The exact sum of f64, rounded once, if it can be had quickly.
#[inline]
pub(crate) fn sum_f64(items: &[f64], isa: Isa) -> Option<f64> {
    if items.len() > BLOCK || !fpenv::is_usual() {
        return None;
    }
    let window = Window::below(largest_exponent(items, isa)?, 2, false)?;
    let kernel = WindowSum::<Plain<f64>, 2> { slices: Slices::one(items), window };
    let [high, low] = levels(dispatch(isa, kernel)?, window)?;
    // Both are exact: one add rounds their sum once.
    Some(high + low)
}

/// The exact sum of f32, rounded once, if it can be had quickly.
#[inline]
pub(crate) fn sum_f32(items: &[f32], isa: Isa) -> Option<f32> {
    levels_of_f32(items, isa).map(|[high, low]| rounded_to_f32(high, low))
}

/// The same, rounded to f64.
#[inline]
pub(crate) fn sum_f32_to_f64(items: &[f32], isa: Isa) -> Option<f64> {
    levels_of_f32(items, isa).map(|[high, low]| high + low)
}

/// The same as `high + low`, exactly.
#[inline]
fn levels_of_f32(items: &[f32], isa: Isa) -> Option<[f64; 2]> {
    if items.len() > 2 * BLOCK || !fpenv::is_usual() {
        return None;
    }
    let window = Window::below(largest_exponent(items, isa)? + K_BITS, 2, false)?;
    let kernel = RangeSum::<f32, false> { items, window };
    levels(dispatch(isa, kernel)?, window)
}
