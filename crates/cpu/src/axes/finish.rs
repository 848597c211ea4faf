//! From the intervals of sums to the answers of outputs, whatever was summed.

use super::round::{Interval, Narrow};
use crate::isa::Isa;
use crate::simd::{Kernel, Simd, dispatch};

/// What sums are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The sum.
    Sum,
    Mean,
    /// The sum of magnitudes or of squares.
    Second,
    /// Its square root.
    Root,
    /// The variance of sums of elements and of squares, or its square root.
    Variance {
        ddof: u64,
        root: bool,
    },
}

impl Asked {
    /// Whether the sums of the elements are needed.
    pub(super) fn first(self) -> bool {
        matches!(self, Asked::Sum | Asked::Mean | Asked::Variance { .. })
    }

    /// Whether those of magnitudes or squares are.
    pub(super) fn second(self) -> bool {
        matches!(self, Asked::Second | Asked::Root | Asked::Variance { .. })
    }
}

/// Outputs that are answered together.
pub(super) const TOGETHER: usize = 32;

/// Intervals of that many outputs, or fewer.
pub(super) struct Intervals {
    high: [f64; TOGETHER],
    low: [f64; TOGETHER],
    off: [f64; TOGETHER],
}

impl Intervals {
    pub(super) const NONE: Intervals =
        Intervals { high: [0.0; TOGETHER], low: [0.0; TOGETHER], off: [0.0; TOGETHER] };

    /// Writes the first `count` of them, without a doubt if the sums are `exact`.
    #[inline(always)]
    pub(super) fn fill(&mut self, count: usize, exact: bool, one: impl Fn(usize) -> Interval) {
        for i in 0..count.min(TOGETHER) {
            let Interval { high, low, off } = one(i);
            self.high[i] = high;
            self.low[i] = low;
            self.off[i] = if exact { 0.0 } else { off };
        }
    }

    #[inline(always)]
    fn get(&self, i: usize) -> Interval {
        Interval { high: self.high[i], low: self.low[i], off: self.off[i] }
    }
}

/// Intervals of the sums of elements, and of those of magnitudes or squares: kept from
/// call to call, as they are too many to be made anew for a few outputs.
pub(super) struct Pair {
    pub(super) first: Intervals,
    pub(super) second: Intervals,
}

impl Pair {
    pub(super) const NONE: Pair = Pair { first: Intervals::NONE, second: Intervals::NONE };
}

/// Who is asked for answers, and where those go that are missing.
pub(super) struct Request<'a> {
    pub(super) isa: Isa,
    /// The place of the first output.
    pub(super) place: usize,
    pub(super) pair: &'a mut Pair,
    /// The places of outputs without an answer.
    pub(super) missing: &'a mut Vec<usize>,
}

impl Request<'_> {
    /// Answers outputs of `len` elements by what their sums are.
    pub(super) fn finish(
        self,
        asked: Asked,
        len: u64,
        to: &mut [f64],
        sums: impl Fn(usize) -> [Interval; 2],
    ) {
        let Request { isa, mut place, pair, missing } = self;
        let mut first = 0;
        for to in to.chunks_mut(TOGETHER) {
            let count = to.len();
            pair.first.fill(count, false, |i| sums(first + i)[0]);
            if asked.second() {
                pair.second.fill(count, false, |i| sums(first + i)[1]);
            }
            dispatch(isa, Finish { asked, len, pair: &*pair, least: None, to, place, missing });
            first += count;
            place += count;
        }
    }
}

/// Answers outputs, at most [`TOGETHER`].
pub(super) struct Finish<'a, T> {
    pub(super) asked: Asked,
    /// Elements of an output.
    pub(super) len: u64,
    /// The sums that are asked for: see [`Asked::first`] and [`Asked::second`].
    pub(super) pair: &'a Pair,
    /// What the second sum is certainly above, if the first or the second is to be of use.
    pub(super) least: Option<f64>,
    pub(super) to: &'a mut [T],
    /// The place of the first of them.
    pub(super) place: usize,
    /// The places of those that are not certain.
    pub(super) missing: &'a mut Vec<usize>,
}

impl<T: Narrow> Kernel for Finish<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let len = self.len;
        match self.asked {
            Asked::Sum => self.find(|sum, _| (sum, true)),
            Asked::Second => self.find(|_, second| (second, true)),
            Asked::Mean => self.find(|sum, _| sum.divided(len)),
            Asked::Root => self.find(|_, second| second.root()),
            Asked::Variance { ddof, root } => self.find(|sum, second| {
                let (variance, sure) = Interval::variance(sum, second, len, ddof);
                let (found, real) = if root { variance.root() } else { (variance, true) };
                (found, sure & real)
            }),
        }
    }
}

impl<T: Narrow> Finish<'_, T> {
    /// Rounds the number that is made of both sums, and may not be there.
    #[inline(always)]
    fn find(self, number: impl Fn(Interval, Interval) -> (Interval, bool)) {
        let Finish { pair: Pair { first, second }, least, to, place, missing, .. } = self;
        let one = |i: usize| {
            let (sum, second) = (first.get(i), second.get(i));
            let known = least.is_none_or(|least| second.is_above(least));
            let (number, there) = number(sum, second);
            (number, known & there)
        };
        // Without a branch for each.
        let mut certain = true;
        for (i, to) in to.iter_mut().enumerate().take(TOGETHER) {
            let (number, there) = one(i);
            let (found, sure) = number.nearly::<T>();
            *to = found;
            certain &= there & sure;
        }
        if certain {
            return;
        }
        for (i, to) in to.iter_mut().enumerate().take(TOGETHER) {
            let (number, there) = one(i);
            let (found, sure) = number.nearest::<T>();
            *to = found;
            if !(there & sure) {
                missing.push(place + i);
            }
        }
    }
}
