//! Elements that are not zero, for many outputs: how many, whether any, whether all; and NaNs.

use super::finish::{Asked, Request};
use super::lanes::{Lanes, ShortAsked, Words};
use super::round::Interval;
use super::words::Word;
use crate::simd::Simd;

/// How many elements are not zero, as NaNs are not, or how many are NaN. Of truth values the
/// former is their sum, and that of their squares.
#[derive(Clone, Copy)]
pub(super) struct Counted<W, const NANS: bool> {
    /// The bits that say whether an element is zero; those of infinity where NaNs are counted.
    pub(super) bits: W,
    pub(super) asked: Asked,
}

impl<W: Word, const NANS: bool> Lanes for Counted<W, NANS> {
    type Item = W;
    type Out = u64;
    type A = u32;
    type B = ();
    type C = ();
    const START: (u32, (), ()) = (0, (), ());

    #[inline(always)]
    fn take(self, a: &mut u32, (): &mut (), (): &mut (), x: W, _: u32) {
        let counts = if NANS { x & W::GREATEST > self.bits } else { x & self.bits != W::of(0) };
        *a += u32::from(counts);
    }

    #[inline(always)]
    fn merge((a, ..): &mut (u32, (), ()), others: (u32, (), ())) {
        *a += others.0;
    }

    fn neutral(&self) -> Option<W> {
        Some(W::of(0))
    }

    fn short(&self) -> Option<ShortAsked> {
        (self.asked == Asked::Sum).then_some(ShortAsked::Words)
    }

    #[inline(always)]
    fn finish<const MEAN: bool>(self, (count, ..): (u32, (), ()), _: u64) -> (u64, bool) {
        (u64::from(count), true)
    }

    fn answer(&self, words: Words<'_, Self>, to: &mut [u64], request: Request<'_>) {
        if self.asked == Asked::Sum {
            return self.answer_each(words, to, request);
        }
        let sums = |i: usize| [Interval::of_i64(i64::from(words.a[i])); 2];
        request.finish_each(self.asked, to, sums);
    }
}

/// Elements of a row that are looked at before it is asked whether one was found.
const AT_ONCE: usize = 1024;

/// Whether any is not zero, or whether all are not.
#[derive(Clone, Copy)]
pub(super) struct Found<W> {
    /// The bits that say whether an element is zero.
    pub(super) bits: W,
    /// 1 if zeros are looked for: that there are none is then the answer.
    pub(super) zeros: u8,
}

impl<W: Word> Lanes for Found<W> {
    type Item = W;
    type Out = u8;
    type A = u8;
    type B = ();
    type C = ();
    const START: (u8, (), ()) = (0, (), ());
    const MOST_SETTLED: usize = usize::MAX;

    #[inline(always)]
    fn take(self, a: &mut u8, (): &mut (), (): &mut (), x: W, _: u32) {
        *a |= u8::from(x & self.bits != W::of(0)) ^ self.zeros;
    }

    #[inline(always)]
    unsafe fn row<S: Simd>(self, items: &[W], _: usize) -> Option<(u8, (), ())> {
        let mut found = 0;
        for items in items.chunks(AT_ONCE) {
            for &x in items {
                self.take(&mut found, &mut (), &mut (), x, 0);
            }
            if found != 0 {
                break;
            }
        }
        Some((found, (), ()))
    }

    #[inline(always)]
    fn merge((a, ..): &mut (u8, (), ()), others: (u8, (), ())) {
        *a |= others.0;
    }

    fn is_settled(self, a: u8) -> bool {
        a != 0
    }

    fn neutral(&self) -> Option<W> {
        Some(if self.zeros == 0 { W::of(0) } else { self.bits })
    }

    fn short(&self) -> Option<ShortAsked> {
        Some(ShortAsked::Words)
    }

    #[inline(always)]
    fn finish<const MEAN: bool>(self, (found, ..): (u8, (), ()), _: u64) -> (u8, bool) {
        (found ^ self.zeros, true)
    }
}
