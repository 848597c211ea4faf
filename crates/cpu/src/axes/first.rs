//! The place of the best float, in one pass without a branch.
//!
//! Two passes, for the best element and then for its place, end the second one early: at a
//! branch that processors cannot foresee, which costs as much as a few hundred elements. Here
//! each lane keeps its best element and with which group of vectors it came, and nothing depends
//! on the data. It is written by instructions: of the same loop over arrays compilers made 3 to 5
//! GB/s with AVX2, for want of registers, and half a dozen forms of it differed six times over.

use super::words::Word;
use crate::simd::Simd;
use core::mem::MaybeUninit;
use warpfold_core::{fpenv, prefetch};

/// The most elements that are searched at a time: after each of so many it is known whether a NaN
/// ends the search, and groups of vectors are counted in 32 bits.
pub(super) const MOST: usize = 8192;

/// Vectors of a group. Each has a best element and a number in registers.
const GROUP: usize = 4;
/// Lanes of a group at most, of 64 bytes a vector.
const MOST_LANES: usize = GROUP * 64 / size_of::<i32>();

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
    /// [`Simd::earliest`].
    unsafe fn earliest<S: Simd>(
        best: [Self::Vector<S>; 2],
        x: Self::Vector<S>,
        at: Self::Vector<S>,
    ) -> [Self::Vector<S>; 2];
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
     $least:ident, $greatest:ident, $earliest:ident, $or_unordered:ident) => {
        // SAFETY, for every block: passed on from the caller; a pointer to words is one to lanes.
        #[expect(clippy::undocumented_unsafe_blocks, reason = "one argument for all, above")]
        impl FloatWord for $Word {
            const INFINITY: Self = $Float::INFINITY.to_bits().cast_signed();
            const LEAST_NORMAL: Self = $Float::MIN_POSITIVE.to_bits().cast_signed();
            type Vector<$S: Simd> = $S::$Vector;

            #[inline(always)]
            unsafe fn splat<$S: Simd>(self) -> $S::$Vector {
                let $bits = self.cast_unsigned();
                unsafe { $S::$splat($lane) }
            }
            #[inline(always)]
            unsafe fn load<$S: Simd>(p: *const Self) -> $S::$Vector {
                unsafe { $S::$load(p.cast::<$Lane>()) }
            }
            #[inline(always)]
            unsafe fn store<$S: Simd>(v: $S::$Vector, p: *mut Self) {
                unsafe { $S::$store(v, p.cast::<$Lane>()) }
            }
            #[inline(always)]
            unsafe fn xor<$S: Simd>($a: $S::$Vector, $b: $S::$Vector) -> $S::$Vector {
                unsafe { $xor }
            }
            #[inline(always)]
            unsafe fn least<$S: Simd>($a: $S::$Vector, $b: $S::$Vector) -> $S::$Vector {
                unsafe { $S::$least($a, $b) }
            }
            #[inline(always)]
            unsafe fn greatest<$S: Simd>($a: $S::$Vector, $b: $S::$Vector) -> $S::$Vector {
                unsafe { $S::$greatest($a, $b) }
            }
            #[inline(always)]
            unsafe fn earliest<$S: Simd>(
                best: [$S::$Vector; 2],
                x: $S::$Vector,
                at: $S::$Vector,
            ) -> [$S::$Vector; 2] {
                unsafe { $S::$earliest(best, x, at) }
            }
            #[inline(always)]
            unsafe fn or_unordered<$S: Simd>(
                acc: $S::$Vector,
                a: $S::$Vector,
                b: $S::$Vector,
            ) -> $S::$Vector {
                unsafe { $S::$or_unordered(acc, a, b) }
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
    wearliest,
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
    earliest,
    or_unordered
);

/// [`first`], of words of any width: `None`, too, where there are no vectors of such floats.
///
/// # Safety
/// See [`Simd`].
#[inline(always)]
pub(super) unsafe fn of_words<S: Simd, W: Word>(
    items: &[W],
    greatest: bool,
    omits: bool,
) -> Option<usize> {
    // SAFETY: passed on from the caller.
    unsafe {
        match size_of::<W>() {
            4 => first::<S, i32>(bytemuck::try_cast_slice(items).ok()?, greatest, omits),
            8 => first::<S, i64>(bytemuck::try_cast_slice(items).ok()?, greatest, omits),
            _ => None,
        }
    }
}

/// The place of the first of the least elements, or of the greatest; NaNs are left out where it
/// `omits` them. `None` where there are fewer elements than a vector has, where there is a NaN that
/// is not left out, where nothing may be left, and where subnormals are taken for zeros and would
/// be found.
///
/// # Safety
/// See [`Simd`].
#[inline(always)]
pub(super) unsafe fn first<S: Simd, W: FloatWord>(
    items: &[W],
    greatest: bool,
    omits: bool,
) -> Option<usize> {
    let (lanes, len, p) = (W::lanes::<S>(), items.len(), items.as_ptr());
    let in_group = GROUP * lanes;
    if len < lanes {
        return None;
    }
    let (zero, whole) = (W::of(0), len / in_group);
    // The least elements and the numbers of their groups, lane by lane; the least of those of the
    // vectors, and which lanes had a NaN.
    let [mut bests, mut groups] = [[const { MaybeUninit::<W>::uninit() }; MOST_LANES]; 2];
    let [mut leasts, mut odd] = [[const { MaybeUninit::<W>::uninit() }; MOST_LANES / GROUP]; 2];
    // SAFETY: the caller vouches for the instructions; every vector is within the elements, of which
    // there is one vector at least, or within arrays of so many lanes, of which those are read that
    // were written.
    let (bests, groups, leasts, odd) = unsafe {
        // The greatest is the least of the opposite numbers.
        let flip = W::splat::<S>(if greatest { W::LEAST } else { zero });
        let mut odds = W::splat::<S>(zero);
        // Each a variable of its own, two vectors at a time: all stay in the 16 registers of AVX2.
        let [mut a, mut b, mut c, mut d] = [[W::splat::<S>(W::INFINITY), odds]; GROUP];
        // A macro: a closure would be called, with its vectors in memory.
        macro_rules! flipped {
            ($p:expr) => {
                W::xor::<S>(W::load::<S>($p), flip)
            };
        }
        let helps = prefetch::is_wanted();
        for group in 0..whole {
            let at = W::splat::<S>(W::of(group as u64));
            let first = p.add(group * in_group);
            if helps {
                prefetch::ahead_always(core::slice::from_raw_parts(first, in_group));
            }
            let (x, y) = (flipped!(first), flipped!(first.add(lanes)));
            odds = W::or_unordered::<S>(odds, x, y);
            (a, b) = (W::earliest::<S>(a, x, at), W::earliest::<S>(b, y, at));
            let (x, y) = (flipped!(first.add(2 * lanes)), flipped!(first.add(3 * lanes)));
            odds = W::or_unordered::<S>(odds, x, y);
            (c, d) = (W::earliest::<S>(c, x, at), W::earliest::<S>(d, y, at));
        }
        let mut best = [a, b, c, d];
        let mut next = whole * in_group;
        let at = W::splat::<S>(W::of(whole as u64));
        for (v, best) in best.iter_mut().enumerate() {
            if next == len {
                break;
            }
            // The last one with some of the elements before it, which are not less than themselves.
            let is_last = v == GROUP - 1;
            if !is_last && len - next < lanes {
                continue;
            }
            let from = if is_last { len - lanes } else { next };
            let x = flipped!(p.add(from));
            odds = W::or_unordered::<S>(odds, x, x);
            *best = W::earliest::<S>(*best, x, at);
            next = from + lanes;
        }
        let mut least = best[0];
        for (v, [element, group]) in best.into_iter().enumerate() {
            least = W::earliest::<S>(least, element, group);
            W::store::<S>(element, bests.as_mut_ptr().cast::<W>().add(v * lanes));
            W::store::<S>(group, groups.as_mut_ptr().cast::<W>().add(v * lanes));
        }
        W::store::<S>(least[0], leasts.as_mut_ptr().cast());
        W::store::<S>(odds, odd.as_mut_ptr().cast());
        (
            core::slice::from_raw_parts(bests.as_ptr().cast::<W>(), in_group),
            core::slice::from_raw_parts(groups.as_ptr().cast::<W>(), in_group),
            core::slice::from_raw_parts(leasts.as_ptr().cast::<W>(), lanes),
            core::slice::from_raw_parts(odd.as_ptr().cast::<W>(), lanes),
        )
    };
    let least = leasts.iter().fold(W::INFINITY, |least, x| least.min(x.by_value()));
    let mut place = u32::MAX;
    for (lane, (best, group)) in bests.iter().zip(groups).enumerate() {
        let here = group.wide() as u32 * in_group as u32 + lane as u32;
        place = place.min(if best.by_value() == least { here } else { u32::MAX });
    }
    // The last vector of a group that is not whole ends with the elements.
    let mut place = place as usize;
    if place >= whole * in_group + (GROUP - 1) * lanes {
        place = place + len - (whole + 1) * in_group;
    }
    let is_flushed = least.wide().abs() < W::LEAST_NORMAL.wide() && !fpenv::is_usual();
    let is_missing = if omits {
        least == W::INFINITY
    } else {
        odd.iter().fold(zero, |any, &lane| any | lane) != zero
    };
    (!is_missing && !is_flushed).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::super::ends::{self, ends};
    use super::*;
    use crate::isa::Isa;
    use crate::simd::{Kernel, dispatch};

    /// What is asked, and of what.
    struct Call<'a, W>(&'a [W], bool, bool);

    impl<W: FloatWord> Kernel for Call<'_, W> {
        type Out = (Option<usize>, Option<[W; 2]>, usize);
        #[inline(always)]
        unsafe fn run<S: Simd>(self) -> Self::Out {
            let Call(items, greatest, omits) = self;
            // SAFETY: passed on from the caller.
            unsafe { (first::<S, W>(items, greatest, omits), ends::<S, W>(items), W::lanes::<S>()) }
        }
    }

    /// The place of the best of numbers that are no NaNs, of which [`first`] may know nothing.
    fn want(items: &[f64], greatest: bool, omits: bool) -> Option<usize> {
        let numbers = items.iter().enumerate().filter(|(_, x)| !x.is_nan());
        let better = |x: f64, best: f64| if greatest { x > best } else { x < best };
        let found = numbers.fold(None, |best: Option<(usize, f64)>, (i, &x)| match best {
            Some((_, least)) if !better(x, least) => best,
            _ => Some((i, x)),
        });
        let (place, best) = found?;
        let worst = if greatest { f64::NEG_INFINITY } else { f64::INFINITY };
        let is_known = if omits { best != worst } else { items.iter().all(|x| !x.is_nan()) };
        is_known.then_some(place)
    }

    /// Checks what is found of words that are the bits of numbers.
    fn check<W: FloatWord>(words: &[W], items: &[f64], about: &str) {
        let keys = || words.iter().map(|x| x.in_order());
        let low_high = match (keys().min(), keys().max()) {
            (Some(low), Some(high)) if !items.iter().any(|x| x.is_nan()) => [low, high],
            _ => [W::LEAST, W::GREATEST],
        };
        for isa in Isa::available() {
            for (greatest, omits) in [(false, false), (true, false), (false, true), (true, true)] {
                let (place, ends, lanes) = dispatch(isa, Call(words, greatest, omits));
                let is_vector = words.len() >= lanes;
                let wanted = want(items, greatest, omits).filter(|_| is_vector);
                assert_eq!(place, wanted, "{about} {isa} {greatest} {omits}");
                assert_eq!(ends, is_vector.then_some(low_high), "{about} {isa}");
            }
        }
    }

    #[test]
    fn the_first_and_the_ends_are_found_wherever_vectors_end() {
        let mut random = fastrand::Rng::with_seed(1);
        let nan = f64::NAN;
        let odd = [nan, -nan, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1e-40, -1.0];
        let block = ends::BLOCK / size_of::<i32>();
        let long = [500, MOST - 1, MOST, block - 1, block + 1, block + ends::MOST_LANES];
        for len in (1..300).chain(long) {
            for kind in 0..8 {
                let mut items: Vec<f64> = (0..len)
                    .map(|_| match kind {
                        0 => f64::from(random.i32(-1000..1000)),
                        1 => f64::from(random.i32(0..3)),
                        2 => f64::INFINITY,
                        3 => -f64::from(random.i32(0..2)),
                        _ => f64::from(random.f32()) - 0.5,
                    })
                    .collect();
                // At the ends of groups and of vectors, too.
                for _ in 0..kind % 4 {
                    let at = [0, len - 1, random.usize(..len)][random.usize(..3)];
                    items[at] = odd[random.usize(if kind < 6 { 2 } else { 0 }..odd.len())];
                }
                let words: Vec<i64> = items.iter().map(|x| x.to_bits().cast_signed()).collect();
                check(&words, &items, &format!("f64 {len} {kind}"));
                let short = items.iter().map(|&x| (x as f32).to_bits().cast_signed());
                check(&short.collect::<Vec<i32>>(), &items, &format!("f32 {len} {kind}"));
            }
        }
    }
}
