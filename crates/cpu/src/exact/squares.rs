//! Sums of squares of f16, bf16 and f32, in five operations a vector.
//!
//! A square `p` has at most 48 bits and is exact in f64. With `M = 1.5 * 2^(k + 52)`,
//! `t = M + p` rounds `p` to a multiple `q = t - M` of `2^k`. What is left, `r = p - q`, is at
//! most `2^(k - 1)`. The bits of all `t` are added as integers, all `r` as f64. No sum waits
//! for the rounding of another, and two registers hold what a window takes four for.
//!
//! *Exact.* All squares are below `2^T`, `k = T - 51`: as the largest element shows, which is
//! below `2^(T / 2)`. So `t` stays in `M`'s binade (`p` has too few bits to be rounded up to `2^T`),
//! `q` and `r` are exact, and `bits(t) - bits(M) = q / 2^k < 2^51`, of which a lane adds at most
//! `2^9`. If all squares are multiples of `2^u` with `u >= k - 45`, then so are all `r`, and a lane's sum of
//! `2^9` of them is a multiple of `2^u` up to `2^(k + 8) <= 2^(u + 53)`: no add rounds. An element
//! with a biased exponent `f`, as f32, is a multiple of `2^(f - 127 - P)`, where `P` is how many bits its
//! type's fraction has, and of the type's least positive number: the smallest
//! element that is not zero shows `u`. Zeros, infinities and NaNs are seen as in
//! [`range`](super::range).

use super::fixed::Part;
use super::range::{Certificate, FIRST_SPECIAL, Word};
use super::window::{MAX_ROW, VECTORS};
use crate::simd::{Kernel, Simd};
use warpfold_core::prefetch;

/// Squares that a lane may add.
const ADDS: usize = 1 << 9;
/// Binades that the residues' last bit may lie below `2^k`.
const DEPTH: i32 = 45;

/// Where the squares are cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// `k`.
    unit: i32,
    /// `2 * bits` of elements are below this: they are below `2^(T / 2)`.
    above_largest: u32,
    /// `2 * bits - 1` of elements is at least this: their squares are multiples of
    /// `2^(k - 45)`.
    smallest: u32,
}

impl Cut {
    /// For squares of a type below `2^top`.
    pub(super) fn below<T: Word>(top: i32) -> Option<Cut> {
        let unit = top - 51;
        // The biased exponent of 2^(top / 2), rounded down; no element is below a
        // subnormal.
        let end = top.div_euclid(2) + 127;
        if end < 1 {
            return None;
        }
        let above_largest = if end >= 255 { FIRST_SPECIAL } else { (end as u32) << 24 };
        // Squares are multiples of 2^(2 * LOWEST) at least.
        let exponent = (unit - DEPTH + 1).div_euclid(2) + 127 + T::FRACTION;
        let smallest = if 2 * T::LOWEST >= unit - DEPTH || exponent <= 1 {
            0
        } else if exponent < 255 {
            ((exponent as u32) << 24) - 1
        } else {
            return None;
        };
        Some(Cut { unit, above_largest, smallest })
    }

    /// `M`.
    #[inline(always)]
    fn anchor(self) -> f64 {
        // 1.5 * 2^(k + 52) by its bits; squares of f32 keep the exponent normal.
        f64::from_bits((((self.unit + 52 + 1023) as u64) << 52) | (1 << 51))
    }

    /// The parts of the exact sum from the sums of the integers and of the
    /// residues, in units.
    pub(super) fn parts(self, sums: [i128; 2]) -> [Part; 2] {
        [(sums[0], self.unit), (sums[1], self.unit - DEPTH)]
    }
}

/// Sums squares.
pub(super) struct SquareRange<'a, T: Word> {
    /// The elements.
    pub(super) items: &'a [T],
    /// Where their squares are cut.
    pub(super) cut: Cut,
}

/// The sums of each lane.
struct Lanes<S: Simd> {
    integers: [S::W; VECTORS],
    residues: [S::F; VECTORS],
    certificate: Certificate<S>,
    anchor: S::F,
}

impl<S: Simd> Lanes<S> {
    /// # Safety
    /// See [`Simd`], here and below.
    #[inline(always)]
    unsafe fn new(cut: Cut) -> Self {
        // SAFETY: passed on from the caller.
        unsafe {
            Lanes {
                integers: [S::wsplat(0); VECTORS],
                residues: [S::splat(0.0); VECTORS],
                certificate: Certificate::new(),
                anchor: S::splat(cut.anchor()),
            }
        }
    }

    /// Adds the squares of a row.
    #[inline(always)]
    unsafe fn add_row<T: Word>(&mut self, p: *const T) {
        // SAFETY: the caller guarantees a row at `p`.
        unsafe {
            // Written out, and over fewer sums where registers are few: see `window`.
            self.add_words::<T>(0, p);
            self.add_words::<T>(if S::MANY_REGISTERS { 2 } else { 0 }, p.add(2 * S::LANES));
        }
    }

    #[inline(always)]
    unsafe fn add_words<T: Word>(&mut self, v: usize, p: *const T) {
        // SAFETY: the caller guarantees half a row at `p`.
        unsafe {
            let x = T::words::<S>(p);
            self.certificate.see(x);
            let (low, high) = S::widen(x);
            self.add(v, low);
            self.add(v + 1, high);
        }
    }

    #[inline(always)]
    unsafe fn add(&mut self, v: usize, x: S::F) {
        // SAFETY: passed on from the caller.
        unsafe {
            let square = S::mul(x, x);
            let t = S::add(self.anchor, square);
            let q = S::sub(t, self.anchor);
            self.integers[v] = S::dadd_bits(self.integers[v], t);
            self.residues[v] = S::add(self.residues[v], S::sub(square, q));
        }
    }
}

impl<T: Word> Kernel for SquareRange<'_, T> {
    /// The sums of the integers and of the residues, in units, unless the
    /// certificate fails.
    type Out = Option<[i128; 2]>;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Option<[i128; 2]> {
        let row = VECTORS * S::LANES;
        // Few sums take two adds of each row.
        let rows = if S::MANY_REGISTERS { ADDS } else { ADDS / 2 };
        let mut totals = [0i128; 2];
        // SAFETY: only whole rows are read from the slice, the last row from a padded
        // copy; the buffers hold the widest vector.
        unsafe {
            for part in self.items.chunks(row * rows) {
                let mut lanes = Lanes::<S>::new(self.cut);
                let mut rows = part.chunks_exact(row);
                for items in &mut rows {
                    prefetch::ahead(items);
                    lanes.add_row(items.as_ptr());
                }
                let rest = rows.remainder();
                if !rest.is_empty() {
                    let mut padded = [<T as bytemuck::Zeroable>::zeroed(); MAX_ROW];
                    padded[..rest.len()].copy_from_slice(rest);
                    lanes.add_row(padded.as_ptr());
                }
                if !lanes.certificate.lies_within(self.cut.smallest, self.cut.above_largest) {
                    return None;
                }
                // A vector that takes every second half of each row adds twice as often.
                let used = if S::MANY_REGISTERS { VECTORS } else { VECTORS / 2 };
                let adds = part.len().div_ceil(row) * (VECTORS / used);
                let base = self.cut.anchor().to_bits().wrapping_mul(adds as u64);
                // Exact: an integer of at most 53 bits, scaled by a power of two; k is
                // between -349 and 205.
                let scale = f64::from_bits(((1023 + DEPTH - self.cut.unit) as u64) << 52);
                for v in 0..used {
                    let mut words = [0u32; 16];
                    S::wstore(lanes.integers[v], words.as_mut_ptr());
                    let integers: [u64; 8] = bytemuck::must_cast(words);
                    let mut residues = [0f64; 8];
                    S::store(lanes.residues[v], residues.as_mut_ptr());
                    for (integer, residue) in integers.iter().zip(residues).take(S::LANES) {
                        totals[0] += i128::from(integer.wrapping_sub(base));
                        totals[1] += i128::from((residue * scale) as i64);
                    }
                }
            }
        }
        Some(totals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Isa;
    use crate::simd::dispatch;

    /// The sum of squares in units of `2^unit`, if it is certified on every instruction
    /// set, and on all or on none.
    fn sum(items: &[f32], top: i32, unit: i32) -> Option<i128> {
        let cut = Cut::below::<f32>(top)?;
        let found: Vec<_> = Isa::available()
            .map(|isa| dispatch(isa, SquareRange { items, cut }))
            .map(|sums| {
                let parts = cut.parts(sums?);
                let value = |(n, exponent): Part| match exponent - unit {
                    up @ 0.. => n << up,
                    down => {
                        assert_eq!(n & ((1 << -down) - 1), 0);
                        n >> -down
                    }
                };
                Some(parts.map(value).iter().sum())
            })
            .collect();
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{found:?}");
        found[0]
    }

    #[test]
    fn squares_at_both_ends_of_the_cut_are_exact() {
        // Elements below 2, squares below 2^2: k = -49. Squares may be multiples of 2^-94, elements with 23
        // bits of fraction of 2^-47, and so at least 2^-24.
        let largest = f32::from_bits(0x3fff_ffff);
        let smallest = 2f32.powi(-24);
        let odd = f32::from_bits(smallest.to_bits() + 1);
        let square = |x: f32| {
            let n = i128::from((x.to_bits() & 0x7f_ffff) | 0x80_0000);
            let e = (x.to_bits() >> 23) as i32 - 150;
            (n * n) << (2 * e + 94)
        };
        for n in [1, 2, 31, 32, 33, 8192, 8193, 40_000] {
            for x in [largest, smallest, odd, 0.7] {
                let expected = square(x) * n as i128;
                assert_eq!(sum(&vec![x; n], 2, -94), Some(expected), "{x:e}, {n}");
                assert_eq!(sum(&vec![-x; n], 2, -94), Some(expected), "{x:e}, {n}");
            }
            let both: Vec<f32> = (0..n).map(|i| if i % 2 == 0 { largest } else { odd }).collect();
            let expected: i128 = both.iter().map(|&x| square(x)).sum();
            assert_eq!(sum(&both, 2, -94), Some(expected), "{n}");
        }
        assert_eq!(sum(&[0.0, -0.0, 0.5], 2, -94), Some(1 << 92));
    }

    #[test]
    fn what_is_outside_of_the_cut_is_refused() {
        let below = f32::from_bits(2f32.powi(-24).to_bits() - 1);
        for x in [2.0, -2.0, 1e30, below, -below, 1e-40, f32::INFINITY, f32::NAN, -f32::NAN] {
            assert_eq!(sum(&[0.5, x, 0.25], 2, -94), None, "{x:e}");
        }
    }
}
