//! Sums of f16 and bf16, straight from their 16 bits to f64.
//!
//! The sign, the exponent and the fraction of both types fit the upper word of an
//! f64, below whose sign the exponent gets three or six zeros above it. That
//! f64 is the element times `2^-S`, `S` = 1008 for f16 and 896 for bf16; a subnormal
//! element becomes a subnormal f64 of the same scale. It takes shifts and masks and no
//! conversion.
//!
//! *Exact, f16.* Every finite f16 is a multiple of `2^-24` below `2^16`, an
//! integer of at most 40 bits. A lane that adds up to `2^13` of them in f64
//! holds an integer of at most 53 bits and never rounds, scaled or not: the
//! scaled unit is `2^-1032`.
//!
//! *Exact, bf16.* In a tile every lane adds `K = 64` elements. Let `m` be the
//! largest and `l + 1` the smallest non-zero of `2 * bits`, so that `m >> 8` and
//! `(l + 1) >> 8` are biased exponents `e` and `f`. Every element is a multiple
//! of `u = 2^(max(f, 1) - 134)` and below `2^(e - 126)`; any partial sum of 64 is a
//! multiple of `u` up to `2^(e - 126 + 6)`, at most `2^(e - f + 14) u`. So if `e - f <= 39` it
//! fits 53 bits and no add rounds, scaled or not: the scaled unit is at least
//! `2^-1029`. `m - l <= 39 << 8` implies that, as in [`range`](super::range). A zero has
//! `2 * bits - 1 = 2^16 - 1`, which never is the smallest. The lanes' sums then go
//! into an anchored window.
//!
//! Infinities and NaNs have the largest exponent and become ordinary f64: `m`
//! shows them.

use super::terms::Plain;
use super::window::{MAX_ROW, VECTORS, Window, WindowSum};
use crate::simd::{Kernel, Simd};
use crate::slices::Slices;
use warpfold_core::Element;
use warpfold_core::element::{bf16, f16};
use warpfold_core::prefetch;

/// A type of 16 bits: one sign, an exponent and a fraction.
pub(crate) trait Half: Element {
    /// Bits that the exponent of f64 has more.
    const SHIFT: u32;
    /// log2 of what an element is divided by.
    const SCALE: i32;
    /// `2 * bits` of the smallest special value.
    const FIRST_SPECIAL: u16;
    /// The elements of a row as f64, of which `mask` says what stays of the upper
    /// word.
    ///
    /// # Safety
    /// See [`Simd`].
    unsafe fn widen<S: Simd>(halves: S::W, mask: u32) -> [S::F; VECTORS];
}

impl Half for f16 {
    const SHIFT: u32 = 6;
    const SCALE: i32 = 1023 - 15;
    const FIRST_SPECIAL: u16 = 0xf800;
    #[inline(always)]
    unsafe fn widen<S: Simd>(halves: S::W, mask: u32) -> [S::F; VECTORS] {
        // SAFETY: passed on from the caller.
        unsafe { S::halves_to_f64::<6>(halves, mask) }
    }
}

impl Half for bf16 {
    const SHIFT: u32 = 3;
    const SCALE: i32 = 1023 - 127;
    const FIRST_SPECIAL: u16 = 0xff00;
    #[inline(always)]
    unsafe fn widen<S: Simd>(halves: S::W, mask: u32) -> [S::F; VECTORS] {
        // SAFETY: passed on from the caller.
        unsafe { S::halves_to_f64::<3>(halves, mask) }
    }
}

/// Which bits of the f64's upper word are an element's.
const fn mask<T: Half>(absolute: bool) -> u32 {
    let magnitude = 0x7fff << 16 >> T::SHIFT;
    if absolute { magnitude } else { magnitude | 1 << 31 }
}

/// What each lane has added, and the extremes of its elements.
struct Lanes<S: Simd> {
    sums: [S::F; VECTORS],
    /// The largest `2 * bits`.
    most: S::W,
    /// The smallest `2 * bits - 1`.
    least: S::W,
    /// See [`Simd::add_beside`].
    one: S::F,
}

impl<S: Simd> Lanes<S> {
    /// Adds up a slice, whose last row is read from a padded copy: zeros add nothing
    /// and are not the smallest. `least` is kept if `RANGE` says so.
    ///
    /// # Safety
    /// See [`Simd`].
    #[inline(always)]
    unsafe fn of<T: Half, const ABS: bool, const RANGE: bool>(items: &[T]) -> Self {
        let row = VECTORS * S::LANES;
        // SAFETY: passed on from the caller; a row is one vector of halves.
        unsafe {
            let zero = S::splat(0.0);
            let mut lanes = Lanes {
                sums: [zero; VECTORS],
                most: S::wsplat(0),
                least: S::wsplat(u32::MAX),
                one: S::splat(core::hint::black_box(1.0)),
            };
            let mut rows = items.chunks_exact(2 * row);
            for both in &mut rows {
                prefetch::ahead(both);
                lanes.add::<T, ABS, RANGE>(both.as_ptr());
                lanes.add::<T, ABS, RANGE>(both.as_ptr().add(row));
            }
            for rest in rows.remainder().chunks(row) {
                let mut padded = [<T as bytemuck::Zeroable>::zeroed(); MAX_ROW];
                padded[..rest.len()].copy_from_slice(rest);
                lanes.add::<T, ABS, RANGE>(padded.as_ptr());
            }
            lanes
        }
    }

    #[inline(always)]
    unsafe fn add<T: Half, const ABS: bool, const RANGE: bool>(&mut self, p: *const T) {
        // SAFETY: the caller guarantees a row at `p`.
        unsafe {
            let x = S::wload(p.cast());
            let doubled = S::hadd(x, x);
            self.most = S::hmax(self.most, doubled);
            if RANGE {
                self.least = S::hmin(self.least, S::hsub(doubled, S::wsplat(0x0001_0001)));
            }
            let [a, b, c, d] = T::widen::<S>(x, mask::<T>(ABS));
            let [p, q, r, s] = self.sums;
            self.sums = if RANGE {
                [S::add(p, a), S::add(q, b), S::add(r, c), S::add(s, d)]
            } else {
                // Half of the adds by other units: shifts take those of the adds.
                let one = self.one;
                [S::add(p, a), S::add_beside(b, q, one), S::add(r, c), S::add_beside(d, s, one)]
            };
        }
    }
}

/// The halves of a vector of words, and zeros.
///
/// # Safety
/// See [`Simd`].
#[inline(always)]
unsafe fn halves_of<S: Simd>(words: S::W) -> [u16; MAX_ROW] {
    let mut buffer = [0u32; 16];
    // SAFETY: the caller has the instructions; the buffer holds the widest vector.
    unsafe { S::wstore(words, buffer.as_mut_ptr()) };
    bytemuck::must_cast(buffer)
}

/// A power of two that f64 has as a normal number.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// Sums f16, or their absolute values, in units of `2^-24`.
pub(super) struct NarrowSum<'a, const ABS: bool> {
    /// The elements.
    pub(super) items: &'a [f16],
}

/// Elements that a lane may add.
const NARROW_ROWS: usize = 1 << 13;

impl<const ABS: bool> Kernel for NarrowSum<'_, ABS> {
    /// The sum in units of `2^-24`, unless there was an infinity or a NaN.
    type Out = Option<i64>;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Option<i64> {
        let row = VECTORS * S::LANES;
        let mut total = 0i64;
        // SAFETY: the caller has the instructions; `values` holds the widest row.
        unsafe {
            for part in self.items.chunks(row * NARROW_ROWS) {
                let lanes = Lanes::<S>::of::<f16, ABS, false>(part);
                if halves_of::<S>(lanes.most).iter().any(|&m| m >= f16::FIRST_SPECIAL) {
                    return None;
                }
                let mut values = [0f64; MAX_ROW];
                for (v, lane) in lanes.sums.into_iter().enumerate() {
                    S::store(lane, values.as_mut_ptr().add(v * S::LANES));
                }
                // Exact: an integer of at most 53 bits, scaled by powers of two.
                let up = |x: f64| x * power(f16::SCALE) * power(24);
                total += values.iter().map(|&x| up(x) as i64).sum::<i64>();
            }
        }
        Some(total)
    }
}

/// Elements of a lane in a tile of bf16.
const K: usize = 64;
/// log2 of [`K`]: what a lane's sum may exceed its elements by.
pub(super) const K_BITS: i32 = 6;
const LARGEST_SPREAD: u16 = (45 - K_BITS as u16) << 8;
/// Tiles whose sums go into the window together.
const TILES: usize = 16;

/// Sums bf16, or their absolute values, in a window of two levels.
pub(super) struct BriefSum<'a, const ABS: bool> {
    /// The elements.
    pub(super) items: &'a [bf16],
    /// A window for the scaled sums of [`K`] elements.
    pub(super) window: Window,
}

impl<const ABS: bool> Kernel for BriefSum<'_, ABS> {
    /// The levels' sums of the scaled elements, unless a tile failed its
    /// certificate.
    type Out = Option<[i64; 2]>;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Option<[i64; 2]> {
        let row = VECTORS * S::LANES;
        let mut totals = [0i64; 2];
        let mut sums = [0f64; TILES * MAX_ROW];
        // SAFETY: the caller has the instructions; `sums` has room for the widest
        // row of each tile.
        unsafe {
            let mut spread = S::wsplat(0);
            let mut peak = S::wsplat(0);
            for part in self.items.chunks(row * K * TILES) {
                let mut filled = 0;
                for tile in part.chunks(row * K) {
                    let lanes = Lanes::<S>::of::<bf16, ABS, true>(tile);
                    spread = S::hmax(spread, S::hsub(lanes.most, lanes.least));
                    peak = S::hmax(peak, lanes.most);
                    for lane in lanes.sums {
                        S::store(lane, sums[filled..filled + S::LANES].as_mut_ptr());
                        filled += S::LANES;
                    }
                }
                let slices = Slices::one(&sums[..filled]);
                let part = WindowSum::<Plain<f64>, 2> { slices, window: self.window }.run::<S>()?;
                totals = [totals[0] + part[0], totals[1] + part[1]];
            }
            let certified = halves_of::<S>(spread).iter().all(|&s| s <= LARGEST_SPREAD)
                && halves_of::<S>(peak).iter().all(|&m| m < bf16::FIRST_SPECIAL);
            certified.then_some(totals)
        }
    }
}
