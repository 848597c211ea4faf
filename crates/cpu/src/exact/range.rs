//! The range certificate (RNG): exact sums of f32 and bf16 with one f64 add an
//! element.
//!
//! In a tile every lane adds `K = 32` elements in f64. Let `m` be the largest
//! and `l + 1` the smallest non-zero of `2 * bits`, so that `m >> 24` and
//! `(l + 1) >> 24` are biased exponents `e` and `f`. Every element is a multiple
//! of `u = 2^(max(f, 1) - 150)` and below `2^(e - 126)`; any partial sum of 32 is a multiple
//! of `u` up to `2^(e - 126 + 5)`, at most `2^(e - f + 29) u`. So if `e - f <= 24` it fits 53
//! bits and no add rounds. `m - l <= 24 << 24` implies that. A zero has
//! `2 * bits - 1 = 2^32 - 1`, which never is the smallest; infinities and NaNs have `m
//! >= 0xff000000`.
//!
//! The lane's sum then goes into an anchored window, 32 times more seldom than
//! elements would.

use super::terms::Widen;
use super::window::{Anchored, MAX_ROW, VECTORS, Window};
use crate::simd::{Kernel, Simd};
use warpfold_core::prefetch;

/// Elements of a lane in a tile.
pub(super) const K: usize = 32;
/// log2 of [`K`]: what a lane's sum may exceed its elements by.
pub(super) const K_BITS: i32 = 5;
const LARGEST_SPREAD: u32 = (29 - K_BITS as u32) << 24;
/// `2 * bits` of an infinity.
pub(super) const FIRST_SPECIAL: u32 = 0xff00_0000;
/// Vectors of words in a row; each widens to two vectors of f64.
const WORDS: usize = VECTORS / 2;
/// Tiles whose sums go into the window together: fewer than an anchor takes adds.
const TILES: usize = 32;

/// Elements that are f32, or widen to f32 by a shift.
pub(crate) trait Word: Widen {
    /// Bits of the fraction.
    const FRACTION: i32;
    /// The exponent of the least positive number.
    const LOWEST: i32;
    /// `2 * LANES` elements at `p` as f32 bits.
    ///
    /// # Safety
    /// See [`Simd`].
    unsafe fn words<S: Simd>(p: *const Self) -> S::W;
}

impl Word for f32 {
    const FRACTION: i32 = 23;
    const LOWEST: i32 = -149;
    #[inline(always)]
    unsafe fn words<S: Simd>(p: *const f32) -> S::W {
        // SAFETY: passed on from the caller.
        unsafe { S::wload(p.cast()) }
    }
}

impl Word for warpfold_core::element::bf16 {
    const FRACTION: i32 = 7;
    const LOWEST: i32 = -133;
    #[inline(always)]
    unsafe fn words<S: Simd>(p: *const Self) -> S::W {
        // SAFETY: passed on from the caller.
        unsafe { S::load_bf16(p.cast()) }
    }
}

impl Word for warpfold_core::element::f16 {
    const FRACTION: i32 = 10;
    const LOWEST: i32 = -24;
    #[inline(always)]
    unsafe fn words<S: Simd>(p: *const Self) -> S::W {
        // SAFETY: passed on from the caller.
        unsafe { S::load_f16(p.cast()) }
    }
}

/// Sums elements, or their absolute values, in a window of two levels.
pub(super) struct RangeSum<'a, T: Word, const ABS: bool> {
    /// The elements.
    pub(super) items: &'a [T],
    /// A window of two levels for sums of [`K`] elements.
    pub(super) window: Window,
}

/// What certifies tiles: in each lane of words, the largest and the smallest
/// element of the current tile, the widest spread and the largest element of
/// all tiles before.
pub(super) struct Certificate<S: Simd> {
    most: [S::W; WORDS],
    least: [S::W; WORDS],
    spread: S::W,
    peak: S::W,
}

impl<S: Simd> Certificate<S> {
    /// Nothing seen.
    ///
    /// # Safety
    /// See [`Simd`], here and below.
    #[inline(always)]
    pub(super) unsafe fn new() -> Self {
        // SAFETY: passed on from the caller.
        unsafe {
            Certificate {
                most: [S::wsplat(0); WORDS],
                least: [S::wsplat(u32::MAX); WORDS],
                spread: S::wsplat(0),
                peak: S::wsplat(0),
            }
        }
    }

    /// Sees a vector of elements.
    #[inline(always)]
    pub(super) unsafe fn see(&mut self, x: S::W) {
        // SAFETY: passed on from the caller.
        unsafe { self.see_as(0, x) }
    }

    /// Sees a vector of elements of lane group `w`.
    #[inline(always)]
    unsafe fn see_as(&mut self, w: usize, x: S::W) {
        // SAFETY: passed on from the caller.
        unsafe {
            let doubled = S::wadd(x, x);
            self.most[w] = S::wmax(self.most[w], doubled);
            self.least[w] = S::wmin(self.least[w], S::wsub(doubled, S::wsplat(1)));
        }
    }

    /// Ends a tile.
    #[inline(always)]
    pub(super) unsafe fn end_tile(&mut self) {
        // SAFETY: passed on from the caller.
        unsafe {
            let [a, b] = self.most;
            let [c, d] = self.least;
            self.spread = S::wmax(self.spread, S::wmax(S::wsub(a, c), S::wsub(b, d)));
            self.peak = S::wmax(self.peak, S::wmax(a, b));
            self.most = [S::wsplat(0); WORDS];
            self.least = [S::wsplat(u32::MAX); WORDS];
        }
    }

    /// Whether every lane of every ended tile is certified.
    #[inline(always)]
    pub(super) unsafe fn holds(self) -> bool {
        let mut words = [[0u32; 16]; 2];
        // SAFETY: passed on from the caller; the buffers hold the widest
        // vector.
        unsafe {
            S::wstore(self.spread, words[0].as_mut_ptr());
            S::wstore(self.peak, words[1].as_mut_ptr());
        }
        words[0].iter().all(|&d| d <= LARGEST_SPREAD) && words[1].iter().all(|&m| m < FIRST_SPECIAL)
    }

    /// Whether the smallest `2 * bits - 1` of all that was seen since the last tile ended
    /// is at least `least`, and the largest `2 * bits` below `end`.
    #[inline(always)]
    pub(super) unsafe fn lies_within(self, least: u32, end: u32) -> bool {
        let mut words = [[0u32; 16], [u32::MAX; 16]];
        // SAFETY: passed on from the caller; the buffers hold the widest
        // vector.
        unsafe {
            S::wstore(self.most[0], words[0].as_mut_ptr());
            S::wstore(self.least[0], words[1].as_mut_ptr());
        }
        words[0].iter().all(|&m| m < end) && words[1].iter().all(|&l| l >= least)
    }
}

/// Adds up to [`K`] rows in f64; `row` says where each begins. The tile is
/// still to be ended.
///
/// # Safety
/// See [`Simd`]; every row is a whole one.
#[inline(always)]
pub(super) unsafe fn tile<S: Simd, T: Word, const ABS: bool>(
    certificate: &mut Certificate<S>,
    rows: usize,
    row: impl Fn(usize) -> *const T,
) -> [S::F; VECTORS] {
    // SAFETY: passed on from the caller.
    unsafe {
        let mut lanes = [S::splat(0.0); VECTORS];
        for r in 0..rows {
            let p = row(r);
            let mut x = [T::words::<S>(p), T::words::<S>(p.add(2 * S::LANES))];
            certificate.see_as(0, x[0]);
            certificate.see_as(1, x[1]);
            if ABS {
                let magnitude = S::wsplat(0x7fff_ffff);
                x = [S::wand(x[0], magnitude), S::wand(x[1], magnitude)];
            }
            let (a, b) = S::widen(x[0]);
            let (c, d) = S::widen(x[1]);
            lanes[0] = S::add(lanes[0], a);
            lanes[1] = S::add(lanes[1], b);
            lanes[2] = S::add(lanes[2], c);
            lanes[3] = S::add(lanes[3], d);
        }
        lanes
    }
}

impl<T: Word, const ABS: bool> RangeSum<'_, T, ABS> {
    /// Adds `rows` rows at `p` to the lanes and writes their sums.
    #[inline(always)]
    unsafe fn sum_tile<S: Simd>(
        to: &mut [f64; MAX_ROW],
        certificate: &mut Certificate<S>,
        p: *const T,
        rows: usize,
    ) {
        let row = VECTORS * S::LANES;
        // SAFETY: the caller guarantees `rows` whole rows at `p`; `to` has room for the
        // widest row.
        unsafe {
            let lanes = tile::<S, T, ABS>(certificate, rows, |r| {
                let p = p.add(r * row);
                prefetch::ahead(core::slice::from_raw_parts(p, row));
                p
            });
            certificate.end_tile();
            for (v, lane) in lanes.into_iter().enumerate() {
                S::store(lane, to[v * S::LANES..(v + 1) * S::LANES].as_mut_ptr());
            }
        }
    }
}

impl<T: Word, const ABS: bool> Kernel for RangeSum<'_, T, ABS> {
    /// The levels' sums, unless a tile failed its certificate.
    type Out = Option<[i64; 2]>;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Option<[i64; 2]> {
        let row = VECTORS * S::LANES;
        let mut totals = [0i64; 2];
        // SAFETY: pointers stay inside the slice: only whole rows are read
        // from it, and the last row from a padded copy.
        unsafe {
            let mut certificate = Certificate::<S>::new();
            // Written down before they go into the window: the window's sums would take
            // the registers of the tile's.
            let mut sums = [[0f64; MAX_ROW]; TILES + 1];
            for part in self.items.chunks(row * K * TILES) {
                let mut filled = 0;
                for tile in part.chunks(row * K) {
                    let rows = tile.len() / row;
                    Self::sum_tile(&mut sums[filled], &mut certificate, tile.as_ptr(), rows);
                    filled += 1;
                    let rest = &tile[rows * row..];
                    if !rest.is_empty() {
                        let mut padded = [<T as bytemuck::Zeroable>::zeroed(); MAX_ROW];
                        padded[..rest.len()].copy_from_slice(rest);
                        Self::sum_tile(&mut sums[filled], &mut certificate, padded.as_ptr(), 1);
                        filled += 1;
                    }
                }
                let mut window = Anchored::<S, 2>::new(self.window);
                for sums in &sums[..filled] {
                    let p = sums.as_ptr();
                    window.add(0, S::load(p));
                    window.add(1, S::load(p.add(S::LANES)));
                    window.add(2, S::load(p.add(2 * S::LANES)));
                    window.add(3, S::load(p.add(3 * S::LANES)));
                }
                if !window.finish(&mut totals) {
                    return None;
                }
            }
            certificate.holds().then_some(totals)
        }
    }
}
