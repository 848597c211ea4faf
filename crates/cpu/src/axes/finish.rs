//! From the intervals of sums to the answers of outputs, whatever was summed.

use super::round::{Interval, Narrow};
use crate::isa::Isa;
use crate::simd::{Kernel, Simd, dispatch};

/// What sums are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Sum,
    Mean,
    /// The square root of a sum.
    Root,
    /// The sum of squares where that of the elements is found, too.
    Squares,
    /// Its square root.
    RootOfSquares,
    /// The variance of sums of elements and of squares, or its square root.
    Variance {
        ddof: u64,
        root: bool,
    },
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
            if matches!(asked, Asked::Variance { .. }) {
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
    pub(super) pair: &'a Pair,
    /// What a sum of squares is certainly above, if it is to be of use.
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
        for i in 0..self.to.len() {
            match self.one(i) {
                Some(found) => self.to[i] = found,
                None => self.missing.push(self.place + i),
            }
        }
    }
}

impl<T: Narrow> Finish<'_, T> {
    #[inline(always)]
    fn one(&self, i: usize) -> Option<T> {
        let (sum, second) = (self.pair.first.get(i), self.pair.second.get(i));
        let both = matches!(self.asked, Asked::Variance { .. });
        let squares = if both { second } else { sum };
        if self.least.is_some_and(|least| !squares.is_above(least)) {
            return None;
        }
        let found = match self.asked {
            Asked::Sum => sum,
            Asked::Mean => sum.divided(self.len)?,
            Asked::Root => sum.root()?,
            Asked::Squares => second,
            Asked::RootOfSquares => second.root()?,
            Asked::Variance { ddof, root } => {
                let variance = Interval::variance(sum, second, self.len, ddof)?;
                if root { variance.root()? } else { variance }
            }
        };
        found.rounded()
    }
}
