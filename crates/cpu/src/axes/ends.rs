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
const MOST_LANES: usize = 64 / size_of::<i32>();
/// Bytes of elements that are compared at a time: few enough to stay in the second cache, where
/// their signs are sought.
const BLOCK: usize = 64 << 10;

/// Words that are the bits of floats that [`Simd`] has vectors of.
pub(super) trait FloatWord: Word {
    /// The bits of infinity.
    const INFINITY: Self;
    /// The bits of the least normal number.
    const LEAST_NORMAL: Self;
    type Vector<S: Simd>: Copy;

    /// Lanes of a vector.
    fn lanes<S: Simd>() -> usize {
        S::LANES * size_of::<f64>() / size_of::<Self>()
    }
    /// # Safety
    /// See [`Simd`], here and below.
    unsafe fn splat<S: Simd>(self) -> Self::Vector<S>;
    unsafe fn load<S: Simd>(p: *const Self) -> Self::Vector<S>;
    unsafe fn store<S: Simd>(v: Self::Vector<S>, p: *mut Self);
    unsafe fn xor<S: Simd>(a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// [`Simd::min`].
    unsafe fn least<S: Simd>(a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// [`Simd::max`].
    unsafe fn greatest<S: Simd>(a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// [`Simd::or_unordered`].
    unsafe fn or_unordered<S: Simd>(
        acc: Self::Vector<S>,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
    ) -> Self::Vector<S>;
}

macro_rules! float_word {
    ($Word:ident, $Float:ident, $Vector:ident, |$bits:ident| $lane:expr, $Lane:ident,
     $splat:ident, $load:ident, $store:ident, |$S:ident, $a:ident, $b:ident| $xor:expr,
     $least:ident, $greatest:ident, $or_unordered:ident) => {
        // SAFETY, for every block: passed on from the caller; a pointer to words is one to lanes.
        #[expect(clippy::undocumented_unsafe_blocks, reason = "one argument for all, above")]
        impl FloatWord for $Word {
            const INFINITY: Self = $Float::INFINITY.to_bits().cast_signed();
            const LEAST_NORMAL: Self = $Float::MIN_POSITIVE.to_bits().cast_signed();
            type Vector<S: Simd> = S::$Vector;

            #[inline(always)]
            unsafe fn splat<S: Simd>(self) -> S::$Vector {
                let $bits = self.cast_unsigned();
                unsafe { S::$splat($lane) }
            }
            #[inline(always)]
            unsafe fn load<S: Simd>(p: *const Self) -> S::$Vector {
                unsafe { S::$load(p.cast::<$Lane>()) }
            }
            #[inline(always)]
            unsafe fn store<S: Simd>(v: S::$Vector, p: *mut Self) {
                unsafe { S::$store(v, p.cast::<$Lane>()) }
            }
            #[inline(always)]
            unsafe fn xor<$S: Simd>($a: $S::$Vector, $b: $S::$Vector) -> $S::$Vector {
                unsafe { $xor }
            }
            #[inline(always)]
            unsafe fn least<S: Simd>(a: S::$Vector, b: S::$Vector) -> S::$Vector {
                unsafe { S::$least(a, b) }
            }
            #[inline(always)]
            unsafe fn greatest<S: Simd>(a: S::$Vector, b: S::$Vector) -> S::$Vector {
                unsafe { S::$greatest(a, b) }
            }
            #[inline(always)]
            unsafe fn or_unordered<S: Simd>(
                acc: S::$Vector,
                a: S::$Vector,
                b: S::$Vector,
            ) -> S::$Vector {
                unsafe { S::$or_unordered(acc, a, b) }
            }
        }
    };
}
float_word!(
    i32,
    f32,
    W,
    |bits| bits,
    u32,
    wsplat,
    wload,
    wstore,
    |S, a, b| S::wxor(a, b),
    wleast,
    wgreatest,
    wor_unordered
);
float_word!(
    i64,
    f64,
    F,
    |bits| f64::from_bits(bits),
    f64,
    splat,
    load,
    store,
    |S, a, b| S::or_xor(S::splat(0.0), a, b),
    min,
    max,
    or_unordered
);

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

/// [`least`], of words of any width, likewise.
///
/// # Safety
/// See [`Simd`].
#[inline(always)]
pub(super) unsafe fn least_of_words<S: Simd, W: Word>(
    items: &[W],
    greatest: bool,
) -> Option<(W, bool)> {
    // SAFETY: passed on from the caller.
    let (least, odd) = unsafe {
        match size_of::<W>() {
            4 => {
                let items = bytemuck::try_cast_slice::<_, i32>(items).ok()?;
                let (least, odd) = least::<S, i32>(items, greatest)?;
                (i64::from(least), odd)
            }
            8 => least::<S, i64>(bytemuck::try_cast_slice(items).ok()?, greatest)?,
            _ => return None,
        }
    };
    Some((W::of(least.cast_unsigned()), odd))
}

/// The bits of the least of floats, or of the least of their opposites where the greatest is sought,
/// and whether there is a NaN, which it is not: infinity of nothing else. `None` as of [`ends`]. The
/// sign of a zero may be either.
///
/// # Safety
/// See [`Simd`].
#[inline(always)]
unsafe fn least<S: Simd, W: FloatWord>(items: &[W], greatest: bool) -> Option<(W, bool)> {
    let (lanes, len, p) = (W::lanes::<S>(), items.len(), items.as_ptr());
    let last = len.checked_sub(lanes)?;
    let [mut lows, mut odd] = [W::INFINITY, W::of(0)].map(|none| [none; MOST_LANES]);
    // SAFETY: the caller vouches for the instructions; every vector is within the elements, of which
    // there is one vector at least, or within arrays of as many lanes as the widest one has.
    unsafe {
        let flip = W::splat::<S>(if greatest { W::LEAST } else { W::of(0) });
        let mut odds = W::splat::<S>(W::of(0));
        let mut least = [W::splat::<S>(W::INFINITY); GROUP];
        let helps = prefetch::is_wanted();
        for first in (0..len).step_by(GROUP * lanes) {
            let group = p.add(first);
            if helps {
                prefetch::ahead_always(core::slice::from_raw_parts(group, GROUP * lanes));
            }
            for v in (0..GROUP).step_by(2) {
                // The last vectors are those at the end, which change nothing again.
                let (one, two) = (first + v * lanes, first + (v + 1) * lanes);
                let x = W::xor::<S>(W::load::<S>(p.add(one.min(last))), flip);
                let y = W::xor::<S>(W::load::<S>(p.add(two.min(last))), flip);
                odds = W::or_unordered::<S>(odds, x, y);
                least[v] = W::least::<S>(x, least[v]);
                least[v + 1] = W::least::<S>(y, least[v + 1]);
            }
        }
        for v in 1..GROUP {
            least[0] = W::least::<S>(least[v], least[0]);
        }
        W::store::<S>(least[0], lows.as_mut_ptr());
        W::store::<S>(odds, odd.as_mut_ptr());
    }
    let mut half = MOST_LANES / 2;
    while half > 0 {
        for i in 0..half {
            lows[i] = if lows[i].is_at_most(lows[i + half]) { lows[i] } else { lows[i + half] };
            odd[i] = odd[i] | odd[i + half];
        }
        half /= 2;
    }
    let is_flushed = lows[0] & W::GREATEST < W::LEAST_NORMAL && !fpenv::is_usual();
    (!is_flushed).then_some((lows[0], odd[0] != W::of(0)))
}

/// The least and the greatest element of words that are the bits of floats, as words in order; the
/// ends of that order where there is a NaN. `None` where there are fewer elements than a vector
/// has, and where subnormals are taken for zeros and are the least or the greatest.
///
/// # Safety
/// See [`Simd`].
#[inline(always)]
unsafe fn ends<S: Simd, W: FloatWord>(items: &[W]) -> Option<[W; 2]> {
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
    let highest = W::INFINITY | W::LEAST;
    let [mut lows, mut highs, mut odd] =
        [W::INFINITY, highest, W::of(0)].map(|none| [none; MOST_LANES]);
    // SAFETY: the caller vouches for the instructions; every vector is within the elements, of which
    // there is one vector at least, or within arrays of as many lanes as the widest one has.
    unsafe {
        let mut odds = W::splat::<S>(W::of(0));
        let mut least = [W::splat::<S>(W::INFINITY); GROUP];
        let mut greatest = [W::splat::<S>(highest); GROUP];
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
        for (v, to) in [(least[0], &mut lows), (greatest[0], &mut highs), (odds, &mut odd)] {
            W::store::<S>(v, to.as_mut_ptr());
        }
    }
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
