//! The least and the greatest of floats, compared as such.
//!
//! An order of integers costs a vector five instructions. Floats are compared by two, and two
//! vectors are asked at once for NaNs. What such comparisons do not tell is found afterwards: of
//! zeros which sign they have, by the signs of all elements, which are on one side of zero then.

use super::first::FloatWord;
use super::words::Word;
use crate::simd::Simd;
use core::mem::MaybeUninit;
use warpfold_core::{fpenv, prefetch};

/// Vectors of a group. Each has a least and a greatest element in registers.
const GROUP: usize = 4;
/// Lanes of a vector at most, of 64 bytes.
pub(super) const MOST_LANES: usize = 64 / size_of::<i32>();
/// Bytes of elements that are compared at a time: few enough to stay in the second cache, where
/// their signs are sought.
pub(super) const BLOCK: usize = 64 << 10;

/// [`ends`], of words of any width: `None`, too, where there are no vectors of such floats.
///
/// # Safety
/// See [`Simd`].
#[inline(always)]
pub(super) unsafe fn of_words<S: Simd, W: Word>(items: &[W]) -> Option<[W; 2]> {
    // SAFETY: passed on from the caller.
    let ends = unsafe {
        match size_of::<W>() {
            4 => ends::<S, i32>(bytemuck::try_cast_slice(items).ok()?)?.map(i64::from),
            8 => ends::<S, i64>(bytemuck::try_cast_slice(items).ok()?)?,
            _ => return None,
        }
    };
    Some(ends.map(|end| W::of(end.cast_unsigned())))
}

/// The least and the greatest element of words that are the bits of floats, as words in order; the
/// ends of that order where there is a NaN. `None` where there are fewer elements than a vector
/// has, and where subnormals are taken for zeros and are the least or the greatest.
///
/// # Safety
/// See [`Simd`].
#[inline(always)]
pub(super) unsafe fn ends<S: Simd, W: FloatWord>(items: &[W]) -> Option<[W; 2]> {
    if items.len() < W::lanes::<S>() {
        return None;
    }
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

/// [`ends`] of a vector or more.
///
/// # Safety
/// See [`Simd`].
#[inline(always)]
unsafe fn ends_of_block<S: Simd, W: FloatWord>(items: &[W]) -> Option<[W; 2]> {
    let (lanes, len, p) = (W::lanes::<S>(), items.len(), items.as_ptr());
    let in_group = GROUP * lanes;
    let mut found = [[const { MaybeUninit::<W>::uninit() }; MOST_LANES]; 3];
    // SAFETY: the caller vouches for the instructions; every vector is within the elements, of which
    // there is one vector at least, or within arrays of so many lanes, of which those are read that
    // were written.
    let [least, greatest, odd] = unsafe {
        let mut odds = W::splat::<S>(W::of(0));
        let mut least = [W::splat::<S>(W::INFINITY); GROUP];
        let mut greatest = [W::splat::<S>(W::INFINITY | W::LEAST); GROUP];
        let helps = prefetch::is_wanted();
        let whole = len / in_group * in_group;
        for first in (0..whole).step_by(in_group) {
            let first = p.add(first);
            if helps {
                prefetch::ahead_always(core::slice::from_raw_parts(first, in_group));
            }
            for v in (0..GROUP).step_by(2) {
                let x = W::load::<S>(first.add(v * lanes));
                let y = W::load::<S>(first.add((v + 1) * lanes));
                odds = W::or_unordered::<S>(odds, x, y);
                least[v] = W::least::<S>(x, least[v]);
                greatest[v] = W::greatest::<S>(x, greatest[v]);
                least[v + 1] = W::least::<S>(y, least[v + 1]);
                greatest[v + 1] = W::greatest::<S>(y, greatest[v + 1]);
            }
        }
        for next in (whole..len).step_by(lanes) {
            // The last one with some of the elements before it, which change nothing.
            let x = W::load::<S>(p.add(next.min(len - lanes)));
            odds = W::or_unordered::<S>(odds, x, x);
            least[0] = W::least::<S>(x, least[0]);
            greatest[0] = W::greatest::<S>(x, greatest[0]);
        }
        for v in 1..GROUP {
            least[0] = W::least::<S>(least[v], least[0]);
            greatest[0] = W::greatest::<S>(greatest[v], greatest[0]);
        }
        for (v, to) in [least[0], greatest[0], odds].into_iter().zip(&mut found) {
            W::store::<S>(v, to.as_mut_ptr().cast());
        }
        [0, 1, 2].map(|i| core::slice::from_raw_parts(found[i].as_ptr().cast::<W>(), lanes))
    };
    let (mut low, mut high, mut any) = (W::GREATEST, W::LEAST, W::of(0));
    for lane in 0..lanes {
        low = low.min(least[lane].in_order());
        high = high.max(greatest[lane].in_order());
        any = any | odd[lane];
    }
    if any != W::of(0) {
        return Some([W::LEAST, W::GREATEST]);
    }
    let magnitude = |end: W| end.in_order() & W::GREATEST;
    if magnitude(low).min(magnitude(high)) < W::LEAST_NORMAL && !fpenv::is_usual() {
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
