//! Smallest and largest elements of many outputs, and where they are.

use super::ends as float_ends;
use super::fold::Part;
use super::lanes::{Lanes, ShortAsked};
use super::round::Narrow;
use super::words::{Word, with_word};
use crate::isa::Isa;
use crate::order::ends;
use crate::simd::{Kernel, Simd, dispatch_accumulators};
use warpfold_core::element::{Key, Known, bf16, f16};
use warpfold_core::op::Numbers;
use warpfold_core::{Op, fpenv};

/// The least of integers, in the order of their words combined with `flip`: the
/// greatest is the least in the opposite order.
#[derive(Clone, Copy)]
pub(super) struct Least<W> {
    pub(super) flip: W,
    /// Whether the elements are truth values, which are true whatever their bits.
    pub(super) truth: bool,
}

impl<W: Word> Lanes for Least<W> {
    type Item = W;
    type Out = W;
    type A = W;
    type B = ();
    type C = ();
    const START: (W, (), ()) = (W::GREATEST, (), ());

    #[inline(always)]
    fn take(self, a: &mut W, (): &mut (), (): &mut (), x: W, _: u32) {
        *a = (*a).min(x ^ self.flip);
    }

    #[inline(always)]
    fn take_all<const N: usize>(
        self,
        a: &mut [W; N],
        _: &mut [(); N],
        _: &mut [(); N],
        items: &[W; N],
        _: u32,
    ) {
        // All keys first: compilers make vectors of that, and not always of both in one.
        let mut keys = *items;
        for i in 0..N {
            keys[i] = items[i] ^ self.flip;
        }
        for i in 0..N {
            a[i] = a[i].min(keys[i]);
        }
    }

    #[inline(always)]
    unsafe fn row<S: Simd>(self, items: &[W], _: usize) -> Option<(W, (), ())> {
        // SAFETY: passed on from the caller.
        Some((unsafe { Whole(self.flip).best::<S>(items) }, (), ()))
    }

    #[inline(always)]
    fn merge((a, ..): &mut (W, (), ()), others: (W, (), ())) {
        *a = (*a).min(others.0);
    }

    fn neutral(&self) -> Option<W> {
        (!self.truth).then_some(W::GREATEST ^ self.flip)
    }

    fn short(&self) -> Option<ShortAsked> {
        Some(ShortAsked::Words)
    }

    #[inline(always)]
    fn finish<const MEAN: bool>(self, (least, ..): (W, (), ()), _: u64) -> (W, bool) {
        let word = least ^ self.flip;
        let truth = const { size_of::<W>() == 1 } && self.truth;
        (if truth & (word != W::of(0)) { W::of(1) } else { word }, true)
    }
}

/// Which extreme of floats is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Min,
    Max,
    /// The larger magnitude.
    Magnitude,
}

/// The least and the greatest float, NaNs included.
#[derive(Clone, Copy)]
pub(super) struct Ends<W> {
    pub(super) asked: Asked,
    /// What is asked for if nothing else is.
    pub(super) own: Asked,
    /// The bits of infinity.
    pub(super) infinity: W,
    /// Those of NaN.
    pub(super) nan: W,
}

impl<W: Word> Lanes for Ends<W> {
    type Item = W;
    type Out = W;
    type A = W;
    type B = W;
    type C = ();
    const START: (W, W, ()) = (W::GREATEST, W::LEAST, ());

    #[inline(always)]
    fn take(self, a: &mut W, b: &mut W, (): &mut (), x: W, _: u32) {
        let key = x.in_order();
        *a = (*a).min(key);
        *b = (*b).max(key);
    }

    #[inline(always)]
    fn merge((a, b, ()): &mut (W, W, ()), others: (W, W, ())) {
        *a = (*a).min(others.0);
        *b = (*b).max(others.1);
    }

    #[inline(always)]
    fn take_all<const N: usize>(
        self,
        a: &mut [W; N],
        b: &mut [W; N],
        _: &mut [(); N],
        items: &[W; N],
        _: u32,
    ) {
        let mut keys = *items;
        for i in 0..N {
            keys[i] = items[i].in_order();
        }
        for i in 0..N {
            a[i] = a[i].min(keys[i]);
            b[i] = b[i].max(keys[i]);
        }
    }

    #[inline(always)]
    unsafe fn row<S: Simd>(self, items: &[W], _: usize) -> Option<(W, W, ())> {
        // SAFETY: passed on from the caller.
        if let Some([least, greatest]) = unsafe { float_ends::ends::<S, W>(items) } {
            return Some((least, greatest, ()));
        }
        let (least, greatest) = ends::<_, _, true>(items, |x: W| x.in_order());
        Some((least, greatest, ()))
    }

    fn ask(&mut self, question: Part) -> bool {
        self.asked = match question {
            Part::Own => self.own,
            Part::Ends(asked) => asked,
            Part::Sums(_) => return false,
        };
        true
    }

    fn neutral(&self) -> Option<W> {
        Some(match self.asked {
            Asked::Min => self.infinity,
            Asked::Max => self.infinity | W::LEAST,
            Asked::Magnitude => W::of(0),
        })
    }

    fn short(&self) -> Option<ShortAsked> {
        // Floats are compared as such: where subnormals are zero there is no telling.
        (size_of::<W>() == 2 || fpenv::is_usual()).then_some(ShortAsked::Words)
    }

    #[inline(always)]
    unsafe fn few_ends<const N: usize>(
        self,
        rows: &[*const W],
        column: usize,
        to: &mut [W; N],
    ) -> bool {
        // Of words of 64 bits compilers make no vectors here: those are compared, as several rows are.
        if let ([row], ..8) = (rows, size_of::<W>()) {
            // SAFETY: the caller vouches for the elements.
            let row = unsafe { &*row.add(column).cast::<[W; N]>() };
            let mask = if self.asked == Asked::Magnitude { W::GREATEST } else { W::of(u64::MAX) };
            for i in 0..N {
                let is_nan = (row[i] & W::GREATEST).is_above(self.infinity);
                to[i] = (row[i] & mask & !is_nan) | (self.nan & is_nan);
            }
            return true;
        }
        // SAFETY: passed on from the caller.
        unsafe { W::few_ends(rows, column, (self.asked, self.nan), to) }
    }

    #[inline(always)]
    fn finish<const MEAN: bool>(self, (min, max, ()): (W, W, ()), _: u64) -> (W, bool) {
        let greatest = self.infinity;
        // Of negative numbers in order all bits but the sign are flipped.
        let least = greatest ^ W::of(u64::MAX);
        let end = match self.asked {
            Asked::Min => min.in_order(),
            Asked::Max => max.in_order(),
            // Without the sign bit, bits of floats are in the order of magnitudes.
            Asked::Magnitude => (min.in_order() & W::GREATEST).max(max.in_order() & W::GREATEST),
        };
        let odd = least.is_above(min) | max.is_above(greatest);
        ((end & !odd) | (self.nan & odd), true)
    }
}

/// The largest elements less the smallest ones, or the largest magnitudes of integers.
///
/// Of integers the difference has as many bits as they do, without a sign. Of floats it is rounded
/// to f64 first, which has more than twice the digits of shorter ones, and two more: rounding that
/// again leads to the number that rounding once does (Figueroa, "When is double rounding
/// innocuous?", 1995).
pub(crate) fn of_both_ends(op: Op, smallest: &Numbers, largest: &Numbers) -> Numbers {
    let dtype = smallest.dtype();
    let mut found = Numbers::zeros(op.answer_type(dtype), smallest.len());
    let (low, high, to) = (smallest.bytes(), largest.bytes(), found.bytes_mut());
    fpenv::usual(|| match dtype.known() {
        Known::F16 => float_differences::<f16>(low, high, to),
        Known::BF16 => float_differences::<bf16>(low, high, to),
        Known::F32 => float_differences::<f32>(low, high, to),
        Known::F64 => float_differences::<f64>(low, high, to),
        _ => with_word!(dtype.size(), W => {
            let [low, high]: [&[W]; 2] = [low, high].map(bytemuck::cast_slice);
            let to: &mut [u64] = bytemuck::cast_slice_mut(to);
            let bits = u64::MAX >> (64 - 8 * dtype.size());
            for ((to, low), high) in to.iter_mut().zip(low).zip(high) {
                let [low, high] = [low.wide(), high.wide()];
                *to = match op {
                    Op::NormInf if dtype.is_signed_int() => {
                        low.unsigned_abs().max(high.unsigned_abs())
                    }
                    Op::NormInf => high.cast_unsigned() & bits,
                    _ => high.wrapping_sub(low).cast_unsigned() & bits,
                };
            }
        }),
    });
    found
}

fn float_differences<T: Narrow>(low: &[u8], high: &[u8], to: &mut [u8]) {
    let [low, high]: [&[T]; 2] = [low, high].map(bytemuck::cast_slice);
    let to: &mut [T] = bytemuck::cast_slice_mut(to);
    for ((to, low), high) in to.iter_mut().zip(low).zip(high) {
        let difference = high.wide() - low.wide();
        let usual = !difference.is_nan();
        *to = if usual { T::at_once(difference) } else { T::from_bits(T::NAN_BITS) };
    }
}

/// An order in which the element that is sought is the least.
pub(super) trait Order: Copy + Send + Sync + 'static {
    /// The elements.
    type Word: Word;
    /// A word that is less the better the element is.
    fn key(self, x: Self::Word) -> Self::Word;
    /// The key of an element that none is better than: a NaN's, or that of the end of the type.
    #[inline(always)]
    fn end(self) -> Self::Word {
        Self::Word::LEAST
    }
    /// The best key.
    ///
    /// # Safety
    /// See [`Simd`].
    #[inline(always)]
    unsafe fn best<S: Simd>(self, items: &[Self::Word]) -> Self::Word {
        ends::<_, _, false>(items, |x| self.key(x)).0
    }
    /// Whether a key is that of elements that are left out.
    fn is_none(self, key: Self::Word) -> bool {
        let _ = key;
        false
    }
    /// The place of a part of elements that may have a better one than those with a key: none before it
    /// has.
    #[inline(always)]
    fn better(self, items: &[Self::Word], key: Self::Word) -> Option<usize> {
        part::<_, PART>(items, |x| self.key(x) < key)
    }
    /// The place of the first element with a key, of elements that have it.
    #[inline(always)]
    fn place(self, items: &[Self::Word], key: Self::Word) -> usize {
        place(items, |x| self.key(x) == key)
    }
}

/// Integers, in the order of their words combined with this one.
#[derive(Clone, Copy)]
pub(super) struct Whole<W>(pub(super) W);

impl<W: Word> Order for Whole<W> {
    type Word = W;
    #[inline(always)]
    fn key(self, x: W) -> W {
        x ^ self.0
    }
}

/// Truth values, in the order of 0 and 1 combined with this word.
#[derive(Clone, Copy)]
pub(super) struct Truth(pub(super) i8);

impl Order for Truth {
    type Word = i8;
    #[inline(always)]
    fn key(self, x: i8) -> i8 {
        i8::from(x != 0) ^ self.0
    }
    #[inline(always)]
    fn end(self) -> i8 {
        self.key(i8::from(self.0 != 0))
    }
}

/// Floats, of which -0 and +0 are equal; a NaN is better than all others, or worse.
#[derive(Clone, Copy)]
pub(super) struct Real<W> {
    /// The bits of infinity.
    pub(super) infinity: W,
    /// What their words in order are combined with.
    pub(super) flip: W,
    /// The key of NaNs: the least, or the greatest where they are left out.
    pub(super) nan: W,
}

impl<W: Word> Order for Real<W> {
    type Word = W;
    #[inline(always)]
    fn key(self, x: W) -> W {
        // By arithmetic: compilers make no vectors of the choice.
        let nan = (x & W::GREATEST).is_above(self.infinity);
        ((x.by_value() ^ self.flip) & !nan) | (self.nan & nan)
    }
    fn is_none(self, key: W) -> bool {
        self.nan == W::GREATEST && key == W::GREATEST
    }

    #[inline(always)]
    unsafe fn best<S: Simd>(self, items: &[W]) -> W {
        let greatest = self.flip != W::of(0);
        // SAFETY: passed on from the caller.
        if let Some((least, odd)) = unsafe { float_ends::least::<S, W>(items, greatest) } {
            if odd && self.nan == W::LEAST {
                return self.nan;
            }
            // What is left out is not told from infinities.
            if !odd || least != self.infinity {
                return self.key(if greatest { least ^ W::LEAST } else { least });
            }
        }
        ends::<_, _, false>(items, |x| self.key(x)).0
    }

    #[inline(always)]
    fn better(self, items: &[W], key: W) -> Option<usize> {
        if size_of::<W>() < 4 {
            return part::<_, PART>(items, |x| self.key(x) < key);
        }
        if key == W::GREATEST || !fpenv::is_usual() {
            return (!items.is_empty()).then_some(0);
        }
        // Compared as floats, or as their opposites: a NaN that is not left out is better than all
        // others.
        let flip = if self.flip == W::of(0) { W::of(0) } else { W::LEAST };
        let best = self.bits(key) ^ flip;
        if self.nan == W::LEAST {
            part::<_, PART>(items, |x| !best.is_at_most(x ^ flip))
        } else {
            part::<_, PART>(items, |x| (x ^ flip).is_at_most(best) & !best.is_at_most(x ^ flip))
        }
    }

    #[inline(always)]
    fn place(self, items: &[W], key: W) -> usize {
        if key == self.nan {
            return place(items, |x| self.is_nan(x));
        }
        // Compared as bits, of which those of the two zeros differ by the sign.
        let bits = self.bits(key);
        let mask = if bits == W::of(0) { W::GREATEST } else { W::of(u64::MAX) };
        place(items, |x| x & mask == bits)
    }
}

impl<W: Word> Real<W> {
    #[inline(always)]
    fn is_nan(self, x: W) -> bool {
        x & W::GREATEST > self.infinity
    }

    /// The bits of elements with a key that is no NaN's.
    #[inline(always)]
    fn bits(self, key: W) -> W {
        (key ^ self.flip).by_value()
    }
}

/// The first position of the best element; of the first NaN, if there are some.
#[derive(Clone, Copy)]
pub(super) struct First<O> {
    pub(super) order: O,
}

/// Bytes of elements of which the best is sought at first.
const GLANCE: usize = 2 << 10;
/// The same where one of them is known to be better: few enough to stay in the first cache, where
/// its place is sought, many enough that it costs little where all elements are better.
const SEARCHED: usize = 8 << 10;
/// Elements that are compared before it is asked whether one is better.
const PART: usize = 128;
/// The same before it is asked whether one is equal; words count them.
const COMPARED: usize = 32;
/// Bytes of rows from which on their positions are sought afterwards, and not kept as they go. Shorter
/// rows come turned.
const LONG_ROW: usize = 256;

/// Where the first part of `N` elements is, or of fewer at the end, that has one that `is` says it is.
#[inline(always)]
fn part<W: Word, const N: usize>(items: &[W], is: impl Fn(W) -> bool) -> Option<usize> {
    let parts = items.as_chunks::<N>().0;
    // Loops, since closures would be compiled for other instructions.
    for (number, part) in parts.iter().enumerate() {
        if part.iter().fold(false, |hit, &x| hit | is(x)) {
            return Some(number * N);
        }
    }
    // With some of the elements before them, which are none: loops of a known length are the faster.
    let start = parts.len() * N;
    let rest = items.last_chunk::<N>().map_or(&items[start..], |last| &last[..]);
    (start < items.len() && rest.iter().fold(false, |hit, &x| hit | is(x))).then_some(start)
}

/// Where the first element is that `is` says it is, of elements that have it.
#[inline(always)]
fn place<W: Word>(items: &[W], is: impl Fn(W) -> bool) -> usize {
    let start = part::<_, COMPARED>(items, &is).unwrap_or(0);
    let start = start.min(items.len().saturating_sub(COMPARED));
    let few = items[start..].first_chunk::<COMPARED>().map_or(&items[start..], |few| &few[..]);
    // The least place of all: where to stop is not known to processors either.
    let mut place = W::GREATEST;
    for (i, &x) in few.iter().enumerate() {
        place = place.min(if is(x) { W::of(i as u64) } else { W::GREATEST });
    }
    start + place.wide() as usize
}

/// Finds the best key of a row, and the place of the first element that has it.
struct Search<'a, O: Order>(O, &'a [O::Word]);

impl<O: Order> Kernel for Search<'_, O> {
    type Out = (O::Word, usize);

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> (O::Word, usize) {
        let Search(order, items) = self;
        let size = size_of::<O::Word>();
        let (glance, searched) = (GLANCE / size, SEARCHED / size);
        let mut first = items.len();
        if first >= 2 * glance {
            first = glance;
            // What nothing is better than ends the search: a NaN, of which there may be many.
            let few = &items[..COMPARED];
            if few.iter().fold(false, |any, &x| any | (order.key(x) == order.end())) {
                return (order.end(), order.place(few, order.end()));
            }
        }
        let (mut key, mut found, mut next) = (O::Word::GREATEST, 0..first, 0..first);
        loop {
            // SAFETY: passed on from the caller.
            let best = unsafe { order.best::<S>(&items[next.clone()]) };
            if best < key {
                (key, found) = (best, next.clone());
            }
            if key == order.end() {
                break;
            }
            let Some(further) = order.better(&items[next.end..], key) else { break };
            let start = next.end + further;
            next = start..items.len().min(start + searched);
        }
        // Of elements that are all the worst there are, the first is the answer.
        (key, found.start + order.place(&items[found], key))
    }
}

/// The position of the best of some elements, of which there is one at least, where
/// [`Isa::has_accumulators`].
pub(super) fn position<O: Order>(order: O, items: &[O::Word], isa: Isa) -> u64 {
    dispatch_accumulators(isa, Search(order, items)).1 as u64
}

impl<O: Order> Lanes for First<O> {
    type Item = O::Word;
    type Out = u64;
    type A = O::Word;
    // Of elements none of which is better than the worst key, the first is the answer:
    // a position of 0.
    type B = u32;
    type C = ();
    const START: (O::Word, u32, ()) = (O::Word::GREATEST, 0, ());
    // Of several outputs all would have to be.
    const MOST_SETTLED: usize = 1;

    fn is_settled(self, a: O::Word) -> bool {
        a == self.order.end()
    }

    #[inline(always)]
    fn take(self, a: &mut O::Word, b: &mut u32, (): &mut (), x: O::Word, at: u32) {
        let key = self.order.key(x);
        let better = key < *a;
        *a = if better { key } else { *a };
        *b = if better { at } else { *b };
    }

    #[inline(always)]
    fn take_all<const N: usize>(
        self,
        a: &mut [O::Word; N],
        b: &mut [u32; N],
        _: &mut [(); N],
        items: &[O::Word; N],
        at: u32,
    ) {
        // One loop for each width of words: compilers make vectors of those.
        let mut better = [false; N];
        for i in 0..N {
            better[i] = self.order.key(items[i]) < a[i];
        }
        for i in 0..N {
            a[i] = a[i].min(self.order.key(items[i]));
        }
        for i in 0..N {
            b[i] = if better[i] { at } else { b[i] };
        }
    }

    #[inline(always)]
    fn merge(words: &mut (O::Word, u32, ()), others: (O::Word, u32, ())) {
        if others.0 < words.0 || (others.0 == words.0 && others.1 < words.1) {
            *words = others;
        }
    }

    #[inline(always)]
    unsafe fn row<S: Simd>(self, items: &[O::Word], at: usize) -> Option<(O::Word, u32, ())> {
        if size_of_val(items) < LONG_ROW {
            return None;
        }
        // SAFETY: passed on from the caller.
        let (key, place) = unsafe { S::call(Search(self.order, items)) };
        Some((key, (at + place) as u32, ()))
    }

    #[inline(always)]
    fn spread(b: u32, lane: usize, lanes: usize, at: usize) -> u32 {
        (at + b as usize * lanes + lane) as u32
    }

    #[inline(always)]
    fn finish<const MEAN: bool>(self, (key, at, ()): (O::Word, u32, ()), _: u64) -> (u64, bool) {
        (u64::from(at), !self.order.is_none(key))
    }
}
