//! From the intervals of sums to the answers of outputs, whatever was summed.

use super::lengths::Lengths;
use super::round::{Ends, Interval, Narrow};
use crate::isa::Isa;
use crate::simd::{Kernel, Simd, dispatch_accumulators};

/// What sums are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
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
    /// The logarithm of the first sum, behind an origin.
    LogSum,
}

impl Asked {
    /// Whether the sums of the elements are needed.
    pub(super) fn first(self) -> bool {
        !matches!(self, Asked::Second | Asked::Root)
    }

    /// Whether those of magnitudes or squares are, or origins.
    pub(super) fn second(self) -> bool {
        !matches!(self, Asked::Sum | Asked::Mean)
    }
}

/// Outputs that are answered together.
pub(super) const TOGETHER: usize = 64;

/// Intervals of that many outputs, or fewer.
pub(super) struct Intervals {
    high: [f64; TOGETHER],
    low: [f64; TOGETHER],
    off: [f64; TOGETHER],
}

impl Intervals {
    pub(super) const NONE: Intervals =
        Intervals { high: [0.0; TOGETHER], low: [0.0; TOGETHER], off: [0.0; TOGETHER] };

    /// Writes the first `count` of them.
    #[inline(always)]
    pub(super) fn fill(&mut self, count: usize, one: impl Fn(usize) -> Interval) {
        for i in 0..count.min(TOGETHER) {
            self.set(i, one(i));
        }
    }

    /// Writes one of them.
    #[inline(always)]
    pub(super) fn set(&mut self, i: usize, interval: Interval) {
        let Interval { high, low, off } = interval;
        self.high[i] = high;
        self.low[i] = low;
        self.off[i] = off;
    }

    #[inline(always)]
    pub(super) fn get(&self, i: usize) -> Interval {
        Interval { high: self.high[i], low: self.low[i], off: self.off[i] }
    }
}

/// Intervals of the sums of elements, and of those of magnitudes or squares.
pub(super) struct Pair {
    pub(super) first: Intervals,
    pub(super) second: Intervals,
}

/// A pair that is kept from call to call, as it is too large to be made anew for a few outputs; made
/// when it is needed.
#[derive(Default)]
pub(super) struct Scratch(Option<Box<Pair>>);

impl Scratch {
    pub(super) fn pair(&mut self) -> &mut Pair {
        const NONE: Pair = Pair { first: Intervals::NONE, second: Intervals::NONE };
        self.0.get_or_insert_with(|| Box::new(NONE))
    }
}

/// Who is asked for answers, and where those go that are missing.
pub(super) struct Request<'a> {
    pub(super) isa: Isa,
    /// The place of the first output.
    pub(super) place: usize,
    pub(super) lengths: Lengths<'a>,
    pub(super) scratch: &'a mut Scratch,
    /// The places of outputs without an answer.
    pub(super) missing: &'a mut Vec<usize>,
}

impl Request<'_> {
    /// Answers outputs by what their sums are.
    pub(super) fn finish(
        self,
        asked: Asked,
        to: &mut [f64],
        sums: impl Fn(usize) -> [Interval; 2],
    ) {
        let Request { isa, mut place, lengths, scratch, missing } = self;
        let pair = scratch.pair();
        let mut first = 0;
        let mut lens = [0.0; TOGETHER];
        for to in to.chunks_mut(TOGETHER) {
            let count = to.len();
            pair.first.fill(count, |i| sums(first + i)[0]);
            if asked.second() {
                pair.second.fill(count, |i| sums(first + i)[1]);
            }
            lengths.fill(place, &mut lens[..count]);
            let (lens, pair) = (&lens, &*pair);
            dispatch_accumulators(
                isa,
                Finish { asked, lens, pair, least: None, exponent: 0, to, place, missing },
            );
            first += count;
            place += count;
        }
    }
}

/// Answers outputs, at most [`TOGETHER`].
pub(super) struct Finish<'a, T> {
    pub(super) asked: Asked,
    /// How many elements each output has.
    pub(super) lens: &'a [f64; TOGETHER],
    /// The sums that are asked for: see [`Asked::first`] and [`Asked::second`].
    pub(super) pair: &'a Pair,
    /// What the second sum is certainly above, if the first or the second is to be of use.
    pub(super) least: Option<f64>,
    /// The elements were multiplied by this power of two.
    pub(super) exponent: i32,
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
        match self.asked {
            Asked::Sum => self.find::<SUM>(0),
            Asked::Second => self.find::<SECOND>(0),
            Asked::Mean => self.find::<MEAN>(0),
            Asked::Root => self.find::<ROOT>(0),
            Asked::Variance { ddof, root: false } => self.find::<VARIANCE>(ddof),
            Asked::Variance { ddof, root: true } => self.find::<DEVIATION>(ddof),
            // The first sums are answers: see `exponentials::Logarithms`.
            Asked::LogSum => self.find::<SUM>(0),
        }
    }
}

/// [`Asked`], known to the compiler: what is done with each output is inlined into the
/// loop over them, which has vectors only then.
const SUM: u8 = 0;
const SECOND: u8 = 1;
const MEAN: u8 = 2;
const ROOT: u8 = 3;
const VARIANCE: u8 = 4;
const DEVIATION: u8 = 5;

impl<T: Narrow> Finish<'_, T> {
    /// The number that is made of the sums of output `i`, and whether that could be had; without a
    /// branch, so that outputs are answered by vectors.
    #[inline(always)]
    fn number<const ASKED: u8>(&self, i: usize, ddof: u64) -> (Interval, bool) {
        let (sum, second) = (self.pair.first.get(i), self.pair.second.get(i));
        let known = match self.least {
            Some(least) => second.is_above(least) | second.is_zero(),
            None => true,
        };
        let (number, there) = match ASKED {
            SUM => (sum, true),
            SECOND => (second, true),
            MEAN => sum.divided(self.lens[i]),
            ROOT => second.root(),
            _ => {
                let (variance, sure) = Interval::variance(sum, second, self.lens[i], ddof);
                let (found, real) =
                    if ASKED == DEVIATION { variance.root() } else { (variance, true) };
                let special = variance.is_special();
                (found.or(variance, special), sure & (real | special))
            }
        };
        let (special, is_special) = match ASKED {
            // The mean of nothing.
            MEAN => {
                let none = self.lens[i] == 0.0;
                (if none { f64::NAN } else { sum.high }, none | sum.is_special())
            }
            SUM => (sum.high, sum.is_special()),
            SECOND | ROOT => (second.high, second.is_special()),
            // Of elements that are not all finite.
            _ => (f64::NAN, sum.is_special()),
        };
        let number = number.or(Interval::of_special(special), is_special);
        (number, is_special | (known & there))
    }

    /// Rounds these numbers.
    #[inline(always)]
    fn find<const ASKED: u8>(self, ddof: u64) {
        let count = self.to.len().min(TOGETHER);
        let mut numbers = Intervals::NONE;
        let sums = match ASKED {
            SUM if self.least.is_none() => &self.pair.first,
            SECOND if self.least.is_none() && self.exponent == 0 => &self.pair.second,
            _ => {
                for i in 0..count {
                    let (number, there) = self.number::<ASKED>(i, ddof);
                    numbers.set(i, number.only_if(there));
                }
                if self.exponent != 0 {
                    let times = if matches!(ASKED, ROOT | DEVIATION) { 1 } else { 2 };
                    for i in 0..count {
                        let number = numbers.get(i);
                        if !number.is_special() {
                            let (number, whole) = number.times_power(-times * self.exponent);
                            numbers.set(i, number.only_if(whole));
                        }
                    }
                }
                &numbers
            }
        };
        let mut doubts = [0; TOGETHER];
        let Intervals { high, low, off } = sums;
        let (to, doubts) = (&mut self.to[..count], &mut doubts[..count]);
        T::round_all(Ends { high, low, off, to: &mut *to, doubts: &mut *doubts });
        for (i, (to, &doubt)) in to.iter_mut().zip(&*doubts).enumerate() {
            if doubt != 0 {
                let (found, sure) = sums.get(i).nearest::<T>();
                *to = found;
                if !sure {
                    self.missing.push(self.place + i);
                }
            }
        }
    }
}
