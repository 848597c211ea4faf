//! The least and the greatest of floats, compared as such.
//!
//! An order of integers costs a vector five instructions. Floats are compared by two, and two
//! vectors are asked at once for NaNs. What such comparisons do not tell is found afterwards: of
//! zeros which sign they have, by the signs of all elements, which are on one side of zero then.

use super::first::FloatWord;
use crate::simd::Simd;
use core::mem::MaybeUninit;
use warpfold_core::fpenv;
use warpfold_core::prefetch;

/// Vectors of a group. Each has a least and a greatest element in registers.
const GROUP: usize = 4;
/// Lanes of a vector at most, of 64 bytes.
const MOST_LANES: usize = 64 / size_of::<i32>();
/// Bytes of elements that are compared at a time: few enough to stay in the second cache, where
/// their signs are sought.
const BLOCK: usize = 64 << 10;

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

#[cfg(test)]
mod tests {
    use super::super::first::tests::drawn;
    use super::*;
    use crate::isa::Isa;
    use crate::simd::{Kernel, dispatch};

    struct Call<'a, W>(&'a [W]);

    impl<W: FloatWord> Kernel for Call<'_, W> {
        type Out = (Option<[W; 2]>, usize);
        #[inline(always)]
        unsafe fn run<S: Simd>(self) -> Self::Out {
            // SAFETY: passed on from the caller.
            (unsafe { ends::<S, W>(self.0) }, W::lanes::<S>())
        }
    }

    fn check<W: FloatWord>(items: &[W], about: &str) {
        let keys = || items.iter().map(|x| x.in_order());
        let has_nan = items.iter().any(|&x| x & W::GREATEST > W::INFINITY);
        let want = match (keys().min(), keys().max()) {
            (Some(low), Some(high)) if !has_nan => [low, high],
            _ => [W::LEAST, W::GREATEST],
        };
        for isa in Isa::available() {
            let (found, lanes) = dispatch(isa, Call(items));
            let want = (items.len() >= lanes).then_some(want);
            assert_eq!(found, want, "{isa} {} {about}", items.len());
        }
    }

    #[test]
    fn ends_are_those_of_keys_wherever_vectors_and_blocks_end() {
        let mut random = fastrand::Rng::with_seed(1);
        let long = BLOCK / size_of::<i32>();
        for len in (1..300).chain([500, long - 1, long, long + 1, long + MOST_LANES, 2 * long + 7])
        {
            for kind in 0..8 {
                let items = drawn(&mut random, len, kind);
                let words: Vec<i64> = items.iter().map(|x| x.to_bits().cast_signed()).collect();
                check(&words, &format!("f64 {kind}"));
                let words: Vec<i32> =
                    items.iter().map(|&x| (x as f32).to_bits().cast_signed()).collect();
                check(&words, &format!("f32 {kind}"));
            }
        }
    }
}
