//! From the intervals of sums to the answers of outputs, whatever was summed.

use super::lengths::Lengths;
use super::round::{Ends, Interval, MOST_BELOW, Narrow};
use crate::exact::exponent_of;
use crate::isa::Isa;
use crate::simd::{Kernel, Simd, dispatch_accumulators};
use core::ops::Range;
use warpfold_core::DType;
use warpfold_core::element::{bf16, f16};

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
    /// One of two f64 that are the sum together, exactly: the rounded one, or what is left.
    High,
    Low,
}

impl Asked {
    /// Whether the sums of the elements are needed.
    pub(super) fn first(self) -> bool {
        !matches!(self, Asked::Second | Asked::Root)
    }

    /// Whether those of magnitudes or squares are, or origins.
    pub(super) fn second(self) -> bool {
        !matches!(self, Asked::Sum | Asked::Mean) && !self.is_half()
    }

    /// Whether answers are f64, whatever the elements are.
    pub(super) fn is_half(self) -> bool {
        matches!(self, Asked::High | Asked::Low)
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

/// What is kept from call to call, as it is too large to be made anew for a few outputs; made when it
/// is needed.
#[derive(Default)]
pub(super) struct Scratch(Option<Box<Sums>>);

struct Sums {
    pair: Pair,
    /// What is made of them.
    numbers: Intervals,
    lens: [f64; TOGETHER],
}

impl Scratch {
    fn sums(&mut self) -> &mut Sums {
        const NONE: Sums = Sums {
            pair: Pair { first: Intervals::NONE, second: Intervals::NONE },
            numbers: Intervals::NONE,
            lens: [0.0; TOGETHER],
        };
        self.0.get_or_insert_with(|| Box::new(NONE))
    }
}

/// Who is asked for answers, and where those go that are missing.
pub(super) struct Request<'a> {
    pub(super) isa: Isa,
    pub(super) lengths: Lengths<'a>,
    pub(super) scratch: &'a mut Scratch,
    /// The places of outputs without an answer.
    pub(super) missing: &'a mut Vec<usize>,
}

/// What is asked of sums.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) asked: Asked,
    /// The type of the answers.
    pub(super) dtype: DType,
    /// What the second sum is certainly above, if the first or the second is to be of use.
    pub(super) least: Option<f64>,
    /// The elements of each output were multiplied by its power of two.
    pub(super) scales: Option<Scales<'a>>,
}

/// What elements were multiplied by before they were added.
#[derive(Clone, Copy)]
pub(super) struct Scales<'a> {
    /// A power of two for each output.
    pub(super) of: &'a [f64],
    /// Whether the second sums are of squares.
    pub(super) squares: bool,
}

/// Writes the sums of outputs, which are counted from the first of a request, and is told how many
/// elements each has.
pub(super) type SumsOf<'a> = dyn FnMut(Range<usize>, &[f64; TOGETHER], &mut Pair) + 'a;

impl Request<'_> {
    /// Answers as many outputs as `to` has room for, by what their sums are.
    pub(super) fn finish(self, wanted: Wanted<'_>, to: &mut [u8], sums: &mut SumsOf<'_>) {
        let Request { isa, lengths, scratch, missing } = self;
        let Sums { pair, numbers, lens } = scratch.sums();
        let Wanted { asked, dtype, least, scales } = wanted;
        let size = dtype.size();
        let mut first = 0;
        for to in to.chunks_mut(TOGETHER * size) {
            let count = to.len() / size;
            lengths.fill(first, &mut lens[..count]);
            sums(first..first + count, lens, pair);
            let found = match asked {
                // The first sums are answers: see `exponentials::Logarithms`.
                Asked::Sum | Asked::LogSum if scales.is_none() => &pair.first,
                Asked::Second if least.is_none() && scales.is_none() => &pair.second,
                _ => {
                    let (lens, pair, numbers) = (&*lens, &*pair, &mut *numbers);
                    let scales = scales
                        .map(|scales| Scales { of: &scales.of[first..first + count], ..scales });
                    let finish = Finish { asked, lens, pair, least, scales, count, numbers };
                    dispatch_accumulators(isa, finish);
                    &*numbers
                }
            };
            let mut answers = Answers { isa, found, place: first, missing: &mut *missing };
            match dtype {
                DType::F16 => answers.round::<f16>(to),
                DType::BF16 => answers.round::<bf16>(to),
                DType::F32 => answers.round::<f32>(to),
                _ => answers.round::<f64>(to),
            }
            first += count;
        }
    }

    /// The same of outputs whose two sums are told one by one, with answers in f64.
    pub(super) fn finish_each(
        self,
        asked: Asked,
        to: &mut [u64],
        sums: impl Fn(usize) -> [Interval; 2],
    ) {
        let wanted = Wanted { asked, dtype: DType::F64, least: None, scales: None };
        self.finish(wanted, bytemuck::cast_slice_mut(to), &mut |outputs, _, pair| {
            for (i, output) in outputs.enumerate() {
                let [first, second] = sums(output);
                pair.first.set(i, first);
                if asked.second() {
                    pair.second.set(i, second);
                }
            }
        });
    }
}

/// Numbers that become answers.
struct Answers<'a> {
    isa: Isa,
    found: &'a Intervals,
    /// The place of the first of them.
    place: usize,
    missing: &'a mut Vec<usize>,
}

impl Answers<'_> {
    /// Rounds them to elements of this type, and says which ones are not certain.
    fn round<T: Narrow>(&mut self, to: &mut [u8]) {
        let to: &mut [T] = bytemuck::cast_slice_mut(to);
        let mut doubts = [0; TOGETHER];
        let Intervals { high, low, off } = self.found;
        let doubts = &mut doubts[..to.len()];
        dispatch_accumulators(
            self.isa,
            Rounded(Ends { high, low, off, to: &mut *to, doubts: &mut *doubts }),
        );
        for (i, (to, &doubt)) in to.iter_mut().zip(&*doubts).enumerate() {
            if doubt != 0 {
                let (found, sure) = self.found.get(i).nearest::<T>();
                *to = found;
                if !sure {
                    self.missing.push(self.place + i);
                }
            }
        }
    }
}

/// Rounds numbers.
struct Rounded<'a, T>(Ends<'a, T>);

impl<T: Narrow> Kernel for Rounded<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        T::round_all(self.0);
    }
}

/// Makes numbers of the sums of outputs, at most [`TOGETHER`].
struct Finish<'a> {
    asked: Asked,
    /// How many elements each output has.
    lens: &'a [f64; TOGETHER],
    /// The sums that are asked for: see [`Asked::first`] and [`Asked::second`].
    pair: &'a Pair,
    least: Option<f64>,
    scales: Option<Scales<'a>>,
    count: usize,
    numbers: &'a mut Intervals,
}

impl Kernel for Finish<'_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        match self.asked {
            Asked::Sum | Asked::LogSum => self.find::<SUM>(0),
            Asked::Second => self.find::<SECOND>(0),
            Asked::Mean => self.find::<MEAN>(0),
            Asked::Root => self.find::<ROOT>(0),
            Asked::Variance { ddof, root: false } => self.find::<VARIANCE>(ddof),
            Asked::Variance { ddof, root: true } => self.find::<DEVIATION>(ddof),
            Asked::High => self.find::<HIGH>(0),
            Asked::Low => self.find::<LOW>(0),
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
const HIGH: u8 = 6;
const LOW: u8 = 7;

impl Finish<'_> {
    /// The number that is made of the sums of output `i`, and whether that could be had; without a
    /// branch, so that outputs are answered by vectors.
    #[inline(always)]
    fn number<const ASKED: u8>(&self, i: usize, ddof: u64, inverse: f64) -> (Interval, bool) {
        let (sum, second) = (self.pair.first.get(i), self.pair.second.get(i));
        let known = match self.least {
            Some(least) => second.is_above(least) | second.is_zero(),
            None => true,
        };
        let (number, there) = match ASKED {
            SUM => (sum, true),
            SECOND => (second, true),
            MEAN => sum.divided(self.lens[i], inverse),
            ROOT => second.root(),
            HIGH | LOW => {
                let half = if ASKED == HIGH { sum.high } else { sum.low };
                let exact = (sum.off == 0.0) & sum.high.is_finite();
                (Interval { high: half, low: 0.0, off: 0.0 }, exact)
            }
            _ => {
                let (variance, sure) =
                    Interval::variance(sum, second, [self.lens[i], inverse], ddof);
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
            HIGH | LOW => (0.0, false),
            SECOND | ROOT => (second.high, second.is_special()),
            // Of elements that are not all finite.
            _ => (f64::NAN, sum.is_special()),
        };
        let number = number.or(Interval::of_special(special), is_special);
        (number, is_special | (known & there))
    }

    /// Makes these numbers.
    #[inline(always)]
    fn find<const ASKED: u8>(self, ddof: u64) {
        let count = self.count.min(TOGETHER);
        // Outputs have as many elements each, as a rule.
        let divisor = |n: f64| if ASKED == MEAN { n } else { n * (n - ddof as f64) };
        let mut inverses = [1.0 / divisor(self.lens[0]); TOGETHER];
        if self.lens[..count].iter().fold(false, |other, &n| other | (n != self.lens[0])) {
            for (inverse, &n) in inverses.iter_mut().zip(self.lens) {
                *inverse = 1.0 / divisor(n);
            }
        }
        for (i, &inverse) in inverses[..count].iter().enumerate() {
            let (number, there) = self.number::<ASKED>(i, ddof, inverse);
            self.numbers.set(i, number.only_if(there));
        }
        if ASKED == MEAN {
            for i in 0..count {
                let is_small = self.pair.first.high[i].abs() < MOST_BELOW;
                if self.numbers.off[i] == f64::INFINITY && is_small {
                    let (number, there) = self.pair.first.get(i).divided_below(self.lens[i]);
                    self.numbers.set(i, number.only_if(there));
                }
            }
        }
        if let Some(scales) = self.scales {
            let squared = ASKED == VARIANCE || ASKED == SECOND && scales.squares;
            let times = if squared { 2 } else { 1 };
            for (i, &scale) in scales.of.iter().enumerate() {
                let (number, exponent) = (self.numbers.get(i), exponent_of(scale));
                if exponent != 0 && !number.is_special() {
                    let (number, whole) = number.times_power(-times * exponent);
                    self.numbers.set(i, number.only_if(whole));
                }
            }
        }
    }
}
