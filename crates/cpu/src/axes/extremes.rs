//! Smallest and largest elements of many outputs, and where they are.

use super::finish::Request;
use super::lanes::{Lanes, Words};
use super::words::Word;

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
    fn merge((a, ..): &mut (W, (), ()), others: (W, (), ())) {
        *a = (*a).min(others.0);
    }

    fn answer(&self, words: Words<'_, Self>, to: &mut [W], _: Request<'_>) {
        for (to, &least) in to.iter_mut().zip(words.a) {
            *to = least ^ self.flip;
        }
        if self.truth {
            to.iter_mut().for_each(|to| *to = W::of(u64::from(*to != W::of(0))));
        }
    }
}

/// Which extreme of floats is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Min,
    Max,
    /// The larger magnitude.
    Magnitude,
}

/// The least and the greatest float, NaNs included.
#[derive(Clone, Copy)]
pub(super) struct Ends<W> {
    pub(super) asked: Asked,
    /// The bits of infinity.
    pub(super) infinity: W,
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
    fn row(self, items: &[W], _: usize) -> Option<(W, W, ())> {
        if !W::FLOATS || items.len() < LONG_ROW || self.asked == Asked::Magnitude {
            return None;
        }
        // Both words are the end that is asked for.
        let key = W::end_of_floats(items, self.asked == Asked::Max)?.in_order();
        Some((key, key, ()))
    }

    fn answer(&self, words: Words<'_, Self>, to: &mut [W], request: Request<'_>) {
        let greatest = self.infinity;
        // Of negative numbers in order all bits but the sign are flipped.
        let least = greatest ^ W::of(u64::MAX);
        let mut usual = true;
        for ((to, &min), &max) in to.iter_mut().zip(words.a).zip(words.b) {
            usual &= (min >= least) & (max <= greatest);
            *to = match self.asked {
                Asked::Min => min.in_order(),
                Asked::Max => max.in_order(),
                // Without the sign bit, bits of floats are in the order of magnitudes.
                Asked::Magnitude => {
                    (min.in_order() & W::GREATEST).max(max.in_order() & W::GREATEST)
                }
            };
        }
        if !usual {
            let is_usual = |i: usize| words.a[i] >= least && words.b[i] <= greatest;
            let missing = (0..to.len()).filter(|&i| !is_usual(i));
            request.missing.extend(missing.map(|i| request.place + i));
        }
    }
}

/// An order in which the element that is sought is the least.
pub(super) trait Order: Copy + Send + Sync + 'static {
    /// The elements.
    type Word: Word;
    /// A word that is less the better the element is.
    fn key(self, x: Self::Word) -> Self::Word;
    /// Whether [`quick`](Self::quick) may know.
    const QUICK: bool = false;
    /// An element that is better than all that differ from it, where that is quickly
    /// known.
    #[inline(always)]
    fn quick(self, items: &[Self::Word]) -> Option<Self::Word> {
        let _ = items;
        None
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
}

/// Floats; a NaN is better than all others.
#[derive(Clone, Copy)]
pub(super) struct Real<W> {
    /// The bits of infinity.
    pub(super) infinity: W,
    /// What their words in order are combined with.
    pub(super) flip: W,
}

impl<W: Word> Order for Real<W> {
    type Word = W;
    #[inline(always)]
    fn key(self, x: W) -> W {
        let key = x.in_order() ^ self.flip;
        if x & W::GREATEST > self.infinity { W::LEAST } else { key }
    }
    const QUICK: bool = W::FLOATS;
    #[inline(always)]
    fn quick(self, items: &[W]) -> Option<W> {
        W::end_of_floats(items, self.flip != W::of(0))
    }
}

/// The first position of the best element; of the first NaN, if there are some.
#[derive(Clone, Copy)]
pub(super) struct First<O> {
    pub(super) order: O,
}

/// Elements of which the best is sought before its position.
const SEARCHED: usize = 1024;
/// Elements that are compared before it is asked whether one is equal.
const COMPARED: usize = 64;
/// Rows of fewer elements keep positions as they go.
const LONG_ROW: usize = 48;

/// The best key, in `N` lanes.
#[inline(always)]
fn best<O: Order, const N: usize>(order: O, items: &[O::Word]) -> O::Word {
    let mut lanes = [O::Word::GREATEST; N];
    let mut vectors = items.chunks_exact(N);
    for items in &mut vectors {
        for i in 0..N {
            lanes[i] = lanes[i].min(order.key(items[i]));
        }
    }
    for (i, &x) in vectors.remainder().iter().enumerate() {
        lanes[i] = lanes[i].min(order.key(x));
    }
    let mut n = N;
    while n > 1 {
        n /= 2;
        for i in 0..n {
            lanes[i] = lanes[i].min(lanes[i + n]);
        }
    }
    lanes[0]
}

/// Where the first element is that `is` says it is, of elements that have it.
#[inline(always)]
fn place<W: Copy>(items: &[W], is: impl Fn(W) -> bool) -> usize {
    let mut at = 0;
    for part in items.chunks(COMPARED) {
        let mut hit = false;
        for &x in part {
            hit |= is(x);
        }
        if hit {
            return at + part.iter().position(|&x| is(x)).unwrap_or(0);
        }
        at += part.len();
    }
    0
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

    #[inline(always)]
    fn take(self, a: &mut O::Word, b: &mut u32, (): &mut (), x: O::Word, at: u32) {
        let key = self.order.key(x);
        let better = key < *a;
        *a = if better { key } else { *a };
        *b = if better { at } else { *b };
    }

    #[inline(always)]
    fn merge(words: &mut (O::Word, u32, ()), others: (O::Word, u32, ())) {
        if others.0 < words.0 || (others.0 == words.0 && others.1 < words.1) {
            *words = others;
        }
    }

    #[inline(always)]
    fn row(self, items: &[O::Word], at: usize) -> Option<(O::Word, u32, ())> {
        // Keys of 64 bits are compared as quickly in one pass: AVX2 has no minimum of them.
        if items.len() < LONG_ROW || (size_of::<O::Word>() == 8 && !O::QUICK) {
            return None;
        }
        let mut found: Option<(O::Word, u32, ())> = None;
        let mut start = at;
        for items in items.chunks(SEARCHED) {
            let quick = self.order.quick(items);
            let key = match (quick, const { size_of::<O::Word>() }) {
                (Some(best), _) => self.order.key(best),
                (None, 1) => best::<O, 64>(self.order, items),
                (None, _) => best::<O, 32>(self.order, items),
            };
            if found.is_none_or(|(best, ..)| key < best) {
                let at = match quick {
                    Some(best) => place(items, |x| x == best),
                    None => place(items, |x| self.order.key(x) == key),
                };
                found = Some((key, (start + at) as u32, ()));
            }
            start += items.len();
        }
        found
    }

    #[inline(always)]
    fn spread(b: u32, lane: usize, lanes: usize, at: usize) -> u32 {
        (at + b as usize * lanes + lane) as u32
    }

    fn answer(&self, words: Words<'_, Self>, to: &mut [u64], _: Request<'_>) {
        to.iter_mut().zip(words.b).for_each(|(to, &at)| *to = u64::from(at));
    }
}
