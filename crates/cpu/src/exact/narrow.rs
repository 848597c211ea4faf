//! Sums of f16: exact whatever the values, with one f64 add an element.
//!
//! Every finite f16 is a multiple of `2^-24` below `2^16`, an integer of at
//! most 40 bits. A lane that adds up to `2^13` of them in f64 holds an integer
//! of at most 53 bits and never rounds. An infinity or a NaN makes the lane's
//! sum one, and it stays one.

use super::terms::Widen;
use super::window::{MAX_ROW, VECTORS};
use crate::simd::{Kernel, Simd};
use warpfold_core::element::f16;
use warpfold_core::prefetch;

/// Rows that a lane may add.
const ROWS: usize = 1 << 12;

/// Sums f16, or their absolute values, in units of `2^-24`.
pub(super) struct NarrowSum<'a, const ABS: bool> {
    /// The elements.
    pub(super) items: &'a [f16],
}

impl<const ABS: bool> NarrowSum<'_, ABS> {
    #[inline(always)]
    unsafe fn add_row<S: Simd>(lanes: &mut [S::F; VECTORS], p: *const f16) {
        // SAFETY: the caller guarantees a whole row at `p`.
        unsafe {
            Self::add_pair::<S>(lanes, 0, p);
            Self::add_pair::<S>(lanes, 2, p.add(2 * S::LANES));
        }
    }

    #[inline(always)]
    unsafe fn add_pair<S: Simd>(lanes: &mut [S::F; VECTORS], v: usize, p: *const f16) {
        // SAFETY: the caller guarantees half a row at `p`.
        unsafe {
            // Not by `array::map`, which is not always inlined.
            let [mut a, mut b] = f16::widen::<S>(p);
            if ABS {
                (a, b) = (S::abs(a), S::abs(b));
            }
            lanes[v] = S::add(lanes[v], a);
            lanes[v + 1] = S::add(lanes[v + 1], b);
        }
    }
}

impl<const ABS: bool> Kernel for NarrowSum<'_, ABS> {
    /// The sum in units of `2^-24`, unless there was an infinity or a NaN.
    type Out = Option<i64>;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Option<i64> {
        let row = VECTORS * S::LANES;
        let mut total = 0i64;
        // SAFETY: only whole rows are read from the slice, the last row from
        // a padded copy; `values` holds a vector at every index used.
        unsafe {
            for part in self.items.chunks(row * ROWS) {
                let mut lanes = [S::splat(0.0); VECTORS];
                let whole = part.len() / row * row;
                let mut at = 0;
                while at < whole {
                    let p = part.as_ptr().add(at);
                    prefetch::ahead(&part[at..at + row]);
                    Self::add_row::<S>(&mut lanes, p);
                    at += row;
                }
                if whole < part.len() {
                    let mut padded = [f16::ZERO; MAX_ROW];
                    padded[..part.len() - whole].copy_from_slice(&part[whole..]);
                    Self::add_row::<S>(&mut lanes, padded.as_ptr());
                }
                let mut values = [0f64; MAX_ROW];
                for (v, lane) in lanes.into_iter().enumerate() {
                    S::store(lane, values.as_mut_ptr().add(v * S::LANES));
                }
                for x in values {
                    if !x.is_finite() {
                        return None;
                    }
                    // Exact: an integer of at most 53 bits, scaled by a power
                    // of two.
                    total += (x * 16_777_216.0) as i64;
                }
            }
        }
        Some(total)
    }
}
