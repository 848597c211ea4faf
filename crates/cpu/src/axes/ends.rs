//! The least and the greatest of floats, compared as such.
//!
//! An order of integers costs a vector five instructions. Floats are compared by two, and two
//! vectors are asked at once for NaNs. What such comparisons do not tell is found afterwards: of
//! zeros which sign they have, by the signs of all elements, which are on one side of zero then.

use super::words::Word;
use crate::simd::Simd;
use warpfold_core::{fpenv, prefetch};

/// Vectors of a group. Each has a least and a greatest element in registers.
const GROUP: usize = 4;
/// Lanes of a vector at most, of 64 bytes.
const MOST_LANES: usize = 64 / size_of::<f32>();
/// Bytes of elements that are compared at a time: few enough to stay in the second cache, where
/// their signs are sought.
const BLOCK: usize = 64 << 10;

/// What is found of floats in each lane: the least one, the greatest one, and some bits where there is a
/// NaN, which neither is.
pub(super) type Found<W> = [[W; MOST_LANES]; 3];

/// [`in_lanes`] of floats of one width, whose bits are words.
macro_rules! in_lanes_of {
    ($name:ident, $Word:ident, $Float:ident, $Lane:ident, |$x:ident| $lane:expr,
     $splat:ident, $load:ident, $store:ident, $least:ident, $greatest:ident, $or_unordered:ident) => {
        /// # Safety
        /// As for [`in_lanes`]; there are as many elements as a vector has, at least.
        #[inline(always)]
        pub(super) unsafe fn $name<S: Simd, const LOW: bool, const HIGH: bool>(
            items: &[$Word],
        ) -> Found<$Word> {
            let (lanes, len) = (S::LANES * size_of::<f64>() / size_of::<$Word>(), items.len());
            let (in_group, p) = (GROUP * lanes, items.as_ptr().cast::<$Lane>());
            let none = [$Float::INFINITY, $Float::NEG_INFINITY, 0.0];
            let mut found = none.map(|none| [none.to_bits().cast_signed(); MOST_LANES]);
            // SAFETY: the caller vouches for the instructions; every vector is within the elements, or
            // within arrays of as many lanes as the widest one has.
            unsafe {
                // Not by `map`: its closure would be compiled apart.
                let [$x, ..] = none;
                let low = S::$splat($lane);
                let [_, $x, _] = none;
                let high = S::$splat($lane);
                let [.., $x] = none;
                let zero = S::$splat($lane);
                let (mut least, mut greatest, mut odds) = ([low; GROUP], [high; GROUP], zero);
                let helps = prefetch::is_wanted();
                let whole = len / in_group * in_group;
                for first in (0..whole).step_by(in_group) {
                    let first = p.add(first);
                    if helps {
                        prefetch::ahead_always(core::slice::from_raw_parts(first, in_group));
                    }
                    for v in (0..GROUP).step_by(2) {
                        let x = S::$load(first.add(v * lanes));
                        let y = S::$load(first.add((v + 1) * lanes));
                        odds = S::$or_unordered(odds, x, y);
                        if LOW {
                            least[v] = S::$least(x, least[v]);
                            least[v + 1] = S::$least(y, least[v + 1]);
                        }
                        if HIGH {
                            greatest[v] = S::$greatest(x, greatest[v]);
                            greatest[v + 1] = S::$greatest(y, greatest[v + 1]);
                        }
                    }
                }
                for next in (whole..len).step_by(lanes) {
                    // The last one with some of the elements before it, which change nothing.
                    let x = S::$load(p.add(next.min(len - lanes)));
                    odds = S::$or_unordered(odds, x, x);
                    least[0] = S::$least(x, least[0]);
                    greatest[0] = S::$greatest(x, greatest[0]);
                }
                for v in 1..GROUP {
                    least[0] = S::$least(least[v], least[0]);
                    greatest[0] = S::$greatest(greatest[v], greatest[0]);
                }
                for (to, v) in found.iter_mut().zip([least[0], greatest[0], odds]) {
                    S::$store(v, to.as_mut_ptr().cast());
                }
            }
            found
        }
    };
}
in_lanes_of!(
    in_lanes_of_f32,
    i32,
    f32,
    u32,
    |x| x.to_bits(),
    wsplat,
    wload,
    wstore,
    wleast,
    wgreatest,
    wor_unordered
);
in_lanes_of!(in_lanes_of_f64, i64, f64, f64, |x| x, splat, load, store, min, max, or_unordered);

/// What is found in each lane, of `LOW` ends, of `HIGH` ones or of both. Lanes that there are not have seen
/// nothing. `None` where there are no vectors of such floats, or fewer elements than one has.
///
/// # Safety
/// See [`Simd`].
#[inline(always)]
unsafe fn in_lanes<S: Simd, W: Word, const LOW: bool, const HIGH: bool>(
    items: &[W],
) -> Option<Found<W>> {
    let enough = size_of_val(items) >= S::LANES * size_of::<f64>();
    // SAFETY: passed on from the caller; there is a vector.
    if enough { unsafe { W::in_lanes::<S, LOW, HIGH>(items) } } else { None }
}

/// Whether an end may be wrong, as subnormals are taken for zeros.
#[inline(always)]
fn is_flushed<W: Word>(end: W) -> bool {
    let normal = if size_of::<W>() == 4 {
        f32::MIN_POSITIVE.to_bits().into()
    } else {
        f64::MIN_POSITIVE.to_bits()
    };
    end & W::GREATEST < W::of(normal) && !fpenv::is_usual()
}

/// The bits of the least of floats, or of the least of their opposites where the greatest is sought,
/// and whether there is a NaN, which it is not: infinity of nothing else. `None` as of [`ends`]. The
/// sign of a zero may be either.
///
/// # Safety
/// See [`Simd`].
#[inline(always)]
pub(super) unsafe fn least<S: Simd, W: Word>(items: &[W], greatest: bool) -> Option<(W, bool)> {
    // SAFETY: passed on from the caller.
    let [lows, highs, mut odd] = unsafe {
        if greatest {
            in_lanes::<S, W, false, true>(items)?
        } else {
            in_lanes::<S, W, true, false>(items)?
        }
    };
    let mut lows = if greatest { highs.map(|high| high ^ W::LEAST) } else { lows };
    let mut half = MOST_LANES / 2;
    while half > 0 {
        for i in 0..half {
            lows[i] = if lows[i].is_at_most(lows[i + half]) { lows[i] } else { lows[i + half] };
            odd[i] = odd[i] | odd[i + half];
        }
        half /= 2;
    }
    (!is_flushed(lows[0])).then_some((lows[0], odd[0] != W::of(0)))
}

/// The least and the greatest element of words that are the bits of floats, as words in order; the
/// ends of that order where there is a NaN. `None` where there are no vectors of such floats, or fewer
/// elements than one has, and where subnormals are taken for zeros and are the least or the greatest.
///
/// # Safety
/// See [`Simd`].
#[inline(always)]
pub(super) unsafe fn ends<S: Simd, W: Word>(items: &[W]) -> Option<[W; 2]> {
    let (mut least, mut greatest) = (W::GREATEST, W::LEAST);
    let mut next = 0;
    while next < items.len() {
        // The last block has a vector at least.
        let end = next + BLOCK / size_of::<W>();
        let end = if items.len() < end + MOST_LANES { items.len() } else { end };
        let block = &items[next..end];
        // SAFETY: passed on from the caller.
        let [low, high] = unsafe { ends_of_block::<S, W>(block) }?;
        least = least.min(low);
        greatest = greatest.max(high);
        next = end;
    }
    Some([least, greatest])
}

/// [`ends`] of a few elements.
///
/// # Safety
/// See [`Simd`].
#[inline(always)]
unsafe fn ends_of_block<S: Simd, W: Word>(items: &[W]) -> Option<[W; 2]> {
    // SAFETY: passed on from the caller.
    let [lows, highs, odd] = unsafe { in_lanes::<S, W, true, true>(items) }?;
    let (mut low, mut high, mut any) = (W::GREATEST, W::LEAST, W::of(0));
    for lane in 0..MOST_LANES {
        low = low.min(lows[lane].in_order());
        high = high.max(highs[lane].in_order());
        any = any | odd[lane];
    }
    if any != W::of(0) {
        return Some([W::LEAST, W::GREATEST]);
    }
    let magnitude = |end: W| end.in_order() & W::GREATEST;
    if is_flushed(low.in_order()) || is_flushed(high.in_order()) {
        return None;
    }
    if magnitude(low) == W::of(0) {
        let mut signs = W::of(0);
        for &x in items {
            signs = signs | x;
        }
        low = (signs & W::LEAST).in_order();
    }
    if magnitude(high) == W::of(0) {
        let mut signs = W::LEAST;
        for &x in items {
            signs = signs & x;
        }
        high = (signs & W::LEAST).in_order();
    }
    Some([low, high])
}
