//! Sums and sums of squares in one pass: two anchored windows side by side.

use super::terms::{Product, Terms, Widen};
use super::window::{Anchored, MAX_ROW, VECTORS, Window};
use crate::simd::{Kernel, Simd};
use warpfold_core::prefetch;

/// Rows that an anchor takes: as many as split terms allow (see
/// [`window`](super::window)).
const ROWS: usize = 128;

/// The least last bit of the elements' window for split squares. The window's
/// certificate says that every element is a multiple of that bit: no square is
/// below `2^-960` unless it is 0, so that none is lost and no error inexact.
pub(super) const LOWEST_UNIT: i32 = -480;

/// Elements whose squares are terms.
pub(crate) trait Squared: Widen {
    /// The squares.
    type Squares: Terms<Item = Self>;
    /// Limbs of a fixed-point window for elements of all the exponents that
    /// are common in one array.
    const LIMBS: usize;
}

macro_rules! squared {
    ($($t:ty, $limbs:literal;)*) => {$(
        impl Squared for $t {
            type Squares = Product<$t, false>;
            const LIMBS: usize = $limbs;
        }
    )*};
}
squared! {
    warpfold_core::element::f16, 1;
    warpfold_core::element::bf16, 1;
    f32, 1;
    f64, 2;
}

/// Sums elements and their squares in windows of two levels each.
pub(super) struct MomentsSum<'a, T> {
    /// The elements.
    pub(super) items: &'a [T],
    /// The window for the elements.
    pub(super) plain: Window,
    /// The window for the squares.
    pub(super) squares: Window,
}

impl<T: Squared> MomentsSum<'_, T> {
    #[inline(always)]
    unsafe fn add_row<S: Simd>(
        plain: &mut Anchored<S, 2>,
        squares: &mut Anchored<S, 2>,
        p: *const T,
    ) {
        // SAFETY: the caller guarantees a whole row at `p`.
        unsafe {
            Self::add_pair(plain, squares, 0, p);
            Self::add_pair(plain, squares, 2, p.add(2 * S::LANES));
        }
    }

    #[inline(always)]
    unsafe fn add_pair<S: Simd>(
        plain: &mut Anchored<S, 2>,
        squares: &mut Anchored<S, 2>,
        v: usize,
        p: *const T,
    ) {
        // SAFETY: the caller guarantees half a row at `p`.
        unsafe {
            let [a, b] = T::widen::<S>(p);
            plain.add(v, a);
            plain.add(v + 1, b);
            if T::Squares::SPLIT {
                let [a, b] = T::Squares::load_split::<S>(p, p);
                squares.add_sound_split(v, a);
                squares.add_sound_split(v + 1, b);
            } else {
                let [a, b] = T::Squares::load::<S>(p, p);
                squares.add(v, a);
                squares.add(v + 1, b);
            }
        }
    }
}

impl<T: Squared> Kernel for MomentsSum<'_, T> {
    /// The levels' sums, of the elements and of the squares, unless a tile
    /// failed its certificate.
    type Out = Option<[[i64; 2]; 2]>;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Option<[[i64; 2]; 2]> {
        let row = VECTORS * S::LANES;
        let mut totals = [[0i64; 2]; 2];
        // SAFETY: only whole rows are read from the slice, the last row from
        // a padded copy.
        unsafe {
            for tile in self.items.chunks(row * ROWS) {
                let mut plain = Anchored::<S, 2>::new(self.plain);
                let mut squares = Anchored::<S, 2>::new(self.squares);
                let mut rows = tile.chunks_exact(row);
                for items in &mut rows {
                    prefetch::ahead(items);
                    Self::add_row(&mut plain, &mut squares, items.as_ptr());
                }
                let rest = rows.remainder();
                if !rest.is_empty() {
                    let mut padded = [<T as bytemuck::Zeroable>::zeroed(); MAX_ROW];
                    padded[..rest.len()].copy_from_slice(rest);
                    Self::add_row(&mut plain, &mut squares, padded.as_ptr());
                }
                if !(plain.finish(&mut totals[0]) && squares.finish(&mut totals[1])) {
                    return None;
                }
            }
        }
        Some(totals)
    }
}
