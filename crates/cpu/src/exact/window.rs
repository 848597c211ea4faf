//! The anchored window (WIN): exact sums with plain f64 adds.
//!
//! Every accumulator starts at an anchor `M(l) = 1.5 * 2^(k(l) + 52)`, so that
//! while it stays in the anchor's binade its last bit weighs `2^k(l)`. Adding
//! a term `r` gives `t = A + r`, of which `q = t - A` is the part that fitted
//! and `r - q` the part below `2^k(l)`, which goes on to the next level.
//!
//! *Exact.* If `t` lies in `A`'s binade then `|r| <= |A|`, and Fast2Sum says
//! that `q` and `r - q` are exact. Level 0 is checked for that: `bad` collects
//! every bit in which some `t` differs from the anchor, and a sign or exponent
//! bit among them fails the tile; NaN, infinities and terms above the window
//! leave the binade too. Deeper levels receive residues of at most
//! `2^(k(l-1) - 1)`; with at most `2^H` adds an anchor and
//! `k(l) = k(l-1) - (52 - H)` they drift by at most `2^(H + k(l-1) - 1) =
//! 2^(k(l) + 51)`, half a binade, and so stay in theirs (an end point is
//! representable, and the difference of bit patterns below is right there
//! too). What is left after the last level must be zero: `leftover` collects
//! its bits. A tile that passes both has lost nothing, and
//! `bits(A) - bits(M)` is its sum in units of `2^k(l)`, an integer.
//!
//! *Split terms* `p + e` enter `e` at level 1. `|e| <= 2^(k(0) - 1)`, as `p` is
//! below `2^T` and `k(0) = T + H - 51 > T - 52`, so that level 1 receives up to twice
//! as much; half as many adds an anchor make up for it. An `e` that underflowed is
//! inexact only if `|p| < 2^-968`; with `k(last) >= -960` such a `p` is itself
//! a leftover, and a `p` that became zero is reported by the terms.
//!
//! Source: the anchors are those of binned summation (Demmel, Nguyen, Ahrens
//! 2020) and of Rump, Ogita and Oishi 2008; the certificate is warpfold's own.

use super::terms::{Split, Terms};
use crate::simd::{Kernel, Simd};
use crate::slices::Slices;
use warpfold_core::prefetch;

/// log2 of the adds an anchor takes.
const H: i32 = 8;
/// Binades from one level to the next.
const STEP: i32 = 52 - H;
/// Vectors of f64 in a row; enough of them hide the latency of an add.
pub(super) const VECTORS: usize = 4;
/// The most elements a row can have, over all instruction sets.
pub(super) const MAX_ROW: usize = VECTORS * 8;

const SIGN_AND_EXPONENT: u64 = 0xfff0_0000_0000_0000;
const SIGN: u64 = 1 << 63;

/// The exponents of a window's levels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// `k(0)`.
    first: i32,
}

impl Window {
    /// The window for terms below `2^top`, if `levels` of it fit between the
    /// ends of f64's range.
    pub(crate) fn below(top: i32, levels: i32, split: bool) -> Option<Window> {
        let lowest = if split { -960 } else { -1074 };
        // A window may sit higher than it has to, but not so high that its
        // anchor overflows.
        let first = (top + H - 51).max(lowest + STEP * (levels - 1));
        (first <= 970).then_some(Window { first })
    }

    /// `k(level)`.
    #[inline(always)]
    pub(super) fn unit(self, level: usize) -> i32 {
        self.first - STEP * level as i32
    }

    /// `M(level)`.
    #[inline(always)]
    pub(super) fn anchor(self, level: usize) -> f64 {
        let exponent = self.unit(level) + 52;
        // 1.5 * 2^exponent by its bits; `below` keeps the exponent normal.
        f64::from_bits((((exponent + 1023) as u64) << 52) | (1 << 51))
    }
}

/// The accumulators of one window in vectors.
pub(super) struct Anchored<S: Simd, const L: usize> {
    sums: [[S::F; VECTORS]; L],
    bad: S::F,
    leftover: S::F,
    /// Where the sums of level 0 began.
    anchor: S::F,
    /// See [`Simd::add_beside`].
    one: S::F,
    window: Window,
}

impl<S: Simd, const L: usize> Anchored<S, L> {
    /// All sums at their anchors.
    ///
    /// # Safety
    /// See [`Simd`], here and below.
    #[inline(always)]
    pub(super) unsafe fn new(window: Window) -> Self {
        // SAFETY: passed on from the caller.
        unsafe {
            let mut sums = [[S::splat(0.0); VECTORS]; L];
            for (level, sums) in sums.iter_mut().enumerate() {
                *sums = [S::splat(window.anchor(level)); VECTORS];
            }
            Anchored {
                sums,
                bad: S::splat(0.0),
                leftover: S::splat(0.0),
                anchor: S::splat(window.anchor(0)),
                one: S::splat(core::hint::black_box(1.0)),
                window,
            }
        }
    }

    /// Adds a vector of terms to lane group `v`.
    #[inline(always)]
    pub(super) unsafe fn add(&mut self, v: usize, term: S::F) {
        // SAFETY: passed on from the caller.
        unsafe {
            let a = self.sums[0][v];
            let t = S::add_beside(term, a, self.one);
            let q = S::sub(t, a);
            self.sums[0][v] = t;
            self.bad = S::or_xor(self.bad, t, self.anchor);
            self.push_down(v, S::sub(term, q));
        }
    }

    /// Adds a vector of split terms to lane group `v`.
    #[inline(always)]
    pub(super) unsafe fn add_split(&mut self, v: usize, term: Split<S>) {
        // SAFETY: passed on from the caller.
        unsafe {
            self.add_sound_split(v, term);
            let [a, b] = term.factors;
            self.leftover = S::or_lost(self.leftover, term.product, a, b);
        }
    }

    /// Adds a vector of split terms none of which underflowed.
    #[inline(always)]
    pub(super) unsafe fn add_sound_split(&mut self, v: usize, term: Split<S>) {
        // SAFETY: passed on from the caller.
        unsafe {
            self.add(v, term.product);
            self.push_down(v, term.error);
        }
    }

    /// Adds a vector that is known to fit level 1 and below.
    #[inline(always)]
    pub(super) unsafe fn push_down(&mut self, v: usize, mut r: S::F) {
        // SAFETY: passed on from the caller.
        unsafe {
            for l in 1..L {
                let a = self.sums[l][v];
                let t = S::add_beside(r, a, self.one);
                let q = S::sub(t, a);
                self.sums[l][v] = t;
                r = S::sub(r, q);
            }
            self.leftover = S::or(self.leftover, r);
        }
    }

    /// Whether nothing left its binade and nothing was left over.
    #[inline(always)]
    unsafe fn holds(&self) -> bool {
        // SAFETY: passed on from the caller; the buffers hold the widest
        // vector.
        unsafe {
            let mut lanes = [[0f64; 8]; 2];
            S::store(self.bad, lanes[0].as_mut_ptr());
            S::store(self.leftover, lanes[1].as_mut_ptr());
            lanes[0].iter().all(|x| x.to_bits() & SIGN_AND_EXPONENT == 0)
                && lanes[1].iter().all(|x| x.to_bits() & !SIGN == 0)
        }
    }

    /// Adds the levels' sums to `totals`, in units of `2^k(l)`; false if the
    /// certificate fails, and `totals` is then of no use.
    #[inline(always)]
    pub(super) unsafe fn finish(self, totals: &mut [i64; L]) -> bool {
        // SAFETY: passed on from the caller; the buffers hold 8 lanes, the
        // most there are.
        unsafe {
            if !self.holds() {
                return false;
            }
            for (l, (sums, total)) in self.sums.iter().zip(totals).enumerate() {
                // Stored without loops over vectors or lanes in this place: an index
                // that is not a constant would keep the sums in memory while they are
                // being added to.
                let mut lanes = [[0f64; 8]; VECTORS];
                S::store(sums[0], lanes[0].as_mut_ptr());
                S::store(sums[1], lanes[1].as_mut_ptr());
                S::store(sums[2], lanes[2].as_mut_ptr());
                S::store(sums[3], lanes[3].as_mut_ptr());
                *total += drift(&lanes, S::LANES, self.window.anchor(l));
            }
            true
        }
    }
}

/// How far sums have moved from their anchor, in units of its last bit.
#[inline(never)]
fn drift(lanes: &[[f64; 8]; VECTORS], count: usize, anchor: f64) -> i64 {
    let base = anchor.to_bits();
    let sums = lanes.iter().flat_map(|vector| vector.iter().take(count));
    sums.fold(0, |total, x| total + x.to_bits().wrapping_sub(base).cast_signed())
}

/// Sums terms in a window of `L` levels.
pub(super) struct WindowSum<'a, T: Terms, const L: usize> {
    /// The elements.
    pub(super) slices: Slices<'a, T::Item>,
    /// Where the levels lie.
    pub(super) window: Window,
}

impl<T: Terms, const L: usize> Kernel for WindowSum<'_, T, L> {
    /// The levels' sums, unless a tile failed its certificate.
    type Out = Option<[i64; L]>;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Option<[i64; L]> {
        let row = VECTORS * S::LANES;
        // A row adds to all groups of lanes, or twice to half of them.
        let adds_of_row = if S::MANY_REGISTERS { 1 } else { 2 };
        let rows_per_anchor = (1usize << H) / if T::SPLIT { 2 } else { 1 } / adds_of_row;
        let mut totals = [0i64; L];
        // SAFETY: pointers stay inside the slices: `tile` counts whole rows,
        // and the last row is read from a padded copy.
        unsafe {
            for tile in self.slices.chunks(row * rows_per_anchor) {
                let mut sums = Anchored::<S, L>::new(self.window);
                let mut rows = tile.items().chunks_exact(row);
                let mut other_rows = tile.others().chunks_exact(row);
                if T::PAIRED {
                    for (items, others) in (&mut rows).zip(&mut other_rows) {
                        prefetch::ahead(items);
                        prefetch::ahead(others);
                        Self::add_row::<S>(&mut sums, items.as_ptr(), others.as_ptr());
                    }
                } else {
                    for items in &mut rows {
                        prefetch::ahead(items);
                        Self::add_row::<S>(&mut sums, items.as_ptr(), items.as_ptr());
                    }
                }
                // Of one array the second half is not looked at.
                let rest = [rows.remainder(), other_rows.remainder()];
                if !rest[0].is_empty() {
                    // Zeros add nothing, whatever the terms are.
                    let mut padded = [[<T::Item as bytemuck::Zeroable>::zeroed(); MAX_ROW]; 2];
                    for (padded, rest) in padded.iter_mut().zip(rest) {
                        padded[..rest.len()].copy_from_slice(rest);
                    }
                    Self::add_row::<S>(&mut sums, padded[0].as_ptr(), padded[1].as_ptr());
                }
                if !sums.finish(&mut totals) {
                    return None;
                }
            }
        }
        Some(totals)
    }
}

impl<T: Terms, const L: usize> WindowSum<'_, T, L> {
    #[inline(always)]
    unsafe fn add_row<S: Simd>(sums: &mut Anchored<S, L>, p: *const T::Item, q: *const T::Item) {
        // SAFETY: the caller guarantees a whole row at `p` and, if terms are paired, at
        // `q`.
        unsafe {
            // Written out: lane groups must be constants for the sums to stay
            // in registers.
            Self::add_pair(sums, 0, p, q);
            let p = p.add(2 * S::LANES);
            let q = if T::PAIRED { q.add(2 * S::LANES) } else { q };
            Self::add_pair(sums, if S::MANY_REGISTERS { 2 } else { 0 }, p, q);
        }
    }

    #[inline(always)]
    unsafe fn add_pair<S: Simd>(
        sums: &mut Anchored<S, L>,
        v: usize,
        p: *const T::Item,
        q: *const T::Item,
    ) {
        // SAFETY: the caller guarantees half a row at `p` and, if terms are paired, at
        // `q`.
        unsafe {
            if T::SPLIT {
                let [a, b] = T::load_split::<S>(p, q);
                sums.add_split(v, a);
                sums.add_split(v + 1, b);
            } else {
                let [a, b] = T::load::<S>(p, q);
                sums.add(v, a);
                sums.add(v + 1, b);
            }
        }
    }
}
