//! Products of floats: in any order, the same bits.
//!
//! The product of elements `± m 2^e` is `± 2^E e^S`, where `E` is the sum of the exponents and
//! `S` that of the logarithms of the significands, each rounded by itself to an integer
//! ([`logarithm`](super::logarithm)). A state has these sums, whether the signs multiply to
//! minus one, and how many zeros, infinities and NaNs there were: all of them sums of integers,
//! so that neither order nor split changes a bit. Nothing overflows or underflows on the way.
//!
//! The answer is `2^E e^S` ([`antilogarithm`]), rounded once. Of `n`
//! factors, what is rounded is off by at most
//!
//! | elements | relative error | on the average |
//! |---|---|---|
//! | f64 | `n 2^-74.8` | `n 2^-78` |
//! | f32, f16, bf16 | `n 2^-57.7` | `n 2^-59` |
//!
//! A power of two has a logarithm of 0, and is off by nothing.
//!
//! *Products with few digits.* A product is a number of 53 digits, or lies in the middle
//! between two, only if the odd parts of its factors have a product below 2^54. So at most 34
//! of them are not 1, and what is rounded is off by less than 2^-69. Rounding to nearest makes
//! such a number itself of it, but a product in the middle would go to either side. Therefore
//! what is rounded is first moved to the nearest number of 60 binary digits, if that is no
//! farther away than the error of 34 factors, or of `n` if these are fewer. A product in the
//! middle then goes to the even neighbour, as IEEE 754 has it; others move by `min(n, 34)
//! 2^-73.2` or less. With 24 digits it is the same with 16 factors, 40 digits and `min(n, 16)
//! 2^-56.2`; where a product of f32 is asked for in f64, nothing is moved, and it is itself if
//! at most 13 factors are not powers of two.

use super::answer::{float_answer, nan_wins};
use super::antilogarithm;
use super::float::FloatElement;
use super::limbs::{add_limbs, add_wide};
use super::logarithm::{Lanes, LogSum, UNIT_BITS};
use super::payload::{damaged, read_words, write_u64};
use super::{Kind, Op, Rules, Run, State, Value, narrow};
use crate::DType;
use crate::element::Parts;
use crate::error::{Error, Result};
use core::marker::PhantomData;

/// Elements that are taken side by side.
const LANES: usize = 16;

/// Elements whose logarithms are added up before they go to a state.
pub const BLOCK: usize = 64 * LANES;
const _: () = assert!(BLOCK as u64 <= LANES as u64 * Lanes::<LANES>::ROOM);

const FRACTION: u64 = (1 << 52) - 1;
const ONE: u64 = 1023 << 52;

/// What some elements come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Factors {
    /// Those that are finite and not zero, and the sign of all but NaNs.
    pub sum: LogSum,
    /// How many zeros.
    pub zeros: u64,
    /// How many infinities.
    pub infs: u64,
    /// How many NaNs.
    pub nans: u64,
}

impl Factors {
    /// The factors of at most [`BLOCK`] elements; more are ignored.
    ///
    /// Always inlined, so that a caller with wider vector instructions gets the same arithmetic
    /// compiled for them.
    #[inline(always)]
    #[must_use]
    pub fn of<T: FloatElement>(items: &[T]) -> Factors {
        let items = &items[..items.len().min(BLOCK)];
        let sum = Self::sum(items);
        if sum.odd {
            return Self::of_any(items);
        }
        Factors { sum, ..Self::default() }
    }

    /// Adds the logarithms of any number of elements; [odd](LogSum::odd) ones are told.
    ///
    /// Always inlined, as [`of`](Self::of) is.
    #[inline(always)]
    pub fn add_logs<T: FloatElement>(items: &[T], to: &mut LogSum) {
        for block in items.chunks(BLOCK) {
            to.merge(&Self::sum(block));
        }
    }

    /// The sums of at most [`BLOCK`] elements.
    #[inline(always)]
    fn sum<T: FloatElement>(items: &[T]) -> LogSum {
        let mut lanes = Lanes::<LANES>::NEW;
        let (chunks, rest) = items.as_chunks::<LANES>();
        let mut wide = [1.0; LANES];
        // Loops, since closures would be compiled for other instructions.
        for items in chunks {
            crate::prefetch::ahead(items);
            for i in 0..LANES {
                wide[i] = items[i].widen().into();
            }
            lanes.add::<T, true>(&wide);
        }
        if !rest.is_empty() {
            wide = [1.0; LANES];
            for i in 0..rest.len() {
                wide[i] = rest[i].widen().into();
            }
            lanes.add::<T, true>(&wide);
        }
        LogSum { count: items.len() as u64, ..lanes.total::<T>() }
    }

    /// The factors of elements of which some are subnormal, zeros, infinities or NaNs.
    #[cold]
    #[inline(never)]
    pub fn of_any<T: FloatElement>(items: &[T]) -> Factors {
        let mut all = Self::default();
        for items in items.chunks(LANES) {
            let mut lanes = Lanes::<LANES>::NEW;
            let mut wide = [1.0; LANES];
            let (mut count, mut exponents, mut negatives) = (0, 0, 0u64);
            for (wide, x) in wide.iter_mut().zip(items) {
                let negative = match x.parts() {
                    Parts::Finite { negative, magnitude: 0, .. } => {
                        all.zeros += 1;
                        negative
                    }
                    Parts::Finite { negative, magnitude, exponent } => {
                        // Leading bit at 52: at most 53 bits are there to move.
                        let top = magnitude.ilog2();
                        *wide = f64::from_bits(magnitude << (52 - top) & FRACTION | ONE);
                        exponents += i64::from(exponent) + i64::from(top);
                        count += 1;
                        negative
                    }
                    Parts::Infinite { negative } => {
                        all.infs += 1;
                        negative
                    }
                    Parts::Nan => {
                        all.nans += 1;
                        false
                    }
                };
                negatives += u64::from(negative);
            }
            lanes.add::<T, true>(&wide);
            let sum = lanes.total::<T>();
            all.sum.count += count;
            all.sum.exponent += sum.exponent + exponents;
            all.sum.log += sum.log;
            all.sum.negative ^= negatives % 2 == 1;
        }
        all
    }
}

/// The state of a product of floats.
///
/// ```
/// use warpfold_core::op::{FloatProd, Op, Rules, Run, State};
/// let x: Vec<f32> = (0..10_000).map(|i| 1.0 + 0.01 / (i + 1) as f32).collect();
/// let mut reversed = x.clone();
/// reversed.reverse();
/// let of = |x: &[f32]| {
///     let mut state = FloatProd::<f32>::new();
///     state.absorb(Run { start: 0, items: x, others: &[] });
///     state
/// };
/// let mut halves = of(&x[777..]);
/// halves.merge(&of(&x[..777]))?;
/// assert!(of(&x) == of(&reversed) && of(&x) == halves);
/// # Ok::<(), warpfold_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FloatProd<T> {
    /// How many elements are finite and not zero.
    count: u64,
    /// The sum of their exponents.
    exponent: i128,
    /// The sum of the logarithms of their significands, in units of `2^-UNIT_BITS`: 2^64 of
    /// them stay below 2^143.
    log: [u64; 3],
    /// The product of all signs, those of zeros and infinities too.
    negative: bool,
    zeros: u64,
    infs: u64,
    nans: u64,
    element: PhantomData<T>,
}

/// Which products have few digits. In units of `2^-124`, in which they are between `2^123.2`
/// and `2^124.6`.
struct Short {
    /// Those of the answer.
    digits: u32,
    /// How many factors may be odd.
    factors: u64,
    /// The binary logarithm of the error of a factor, which is above `1.1 * 2^-75` and `0.6 *
    /// 2^-57` of the product.
    error: u32,
    /// The binary logarithm of what they are multiples of.
    unit: u32,
}

impl<T> PartialEq for FloatProd<T> {
    fn eq(&self, other: &Self) -> bool {
        let counts = |s: &Self| (s.count, s.negative, s.zeros, s.infs, s.nans);
        counts(self) == counts(other) && (self.exponent, self.log) == (other.exponent, other.log)
    }
}

impl<T: FloatElement> Default for FloatProd<T> {
    fn default() -> Self {
        FloatProd {
            count: 0,
            exponent: 0,
            log: [0; 3],
            negative: false,
            zeros: 0,
            infs: 0,
            nans: 0,
            element: PhantomData,
        }
    }
}

impl<T: FloatElement> FloatProd<T> {
    /// What products of few digits are told by.
    const SHORT: Short = if T::DIGITS > 24 {
        Short { digits: 53, factors: 34, error: 50, unit: 64 }
    } else {
        Short { digits: 24, factors: 16, error: 67, unit: 84 }
    };

    /// The state of no elements.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The bits of the product of some elements, of which none is [odd](LogSum::odd).
    #[must_use]
    pub fn product(sum: &LogSum) -> u64 {
        let mut state = Self::new();
        state.absorb_factors(&Factors { sum: *sum, ..Factors::default() });
        let (magnitude, exponent) = state.magnitude(T::DTYPE);
        let product = narrow::from_parts(T::DTYPE, state.negative, magnitude, exponent);
        product.map_or(0, |product| product.to_bits())
    }

    /// Takes in what some elements come to.
    pub fn absorb_factors(&mut self, factors: &Factors) {
        let Factors { sum, zeros, infs, nans } = *factors;
        self.count = self.count.wrapping_add(sum.count);
        self.exponent = self.exponent.wrapping_add(i128::from(sum.exponent));
        add_wide(&mut self.log, sum.log, 0);
        self.negative ^= sum.negative;
        self.zeros = self.zeros.wrapping_add(zeros);
        self.infs = self.infs.wrapping_add(infs);
        self.nans = self.nans.wrapping_add(nans);
    }

    /// Absorbs elements with a function that computes what [`Factors::of`] does, compiled for
    /// better instructions.
    pub fn absorb_with(&mut self, items: &[T], factors: impl Fn(&[T]) -> Factors) {
        for block in items.chunks(BLOCK) {
            self.absorb_factors(&factors(block));
        }
    }

    /// The magnitude of the finite factors' product, for an answer in `out`, as `magnitude
    /// 2^exponent`: the last bit says that there are more.
    fn magnitude(&self, out: DType) -> (u64, i64) {
        let (mut product, exponent) = antilogarithm::power(self.log);
        let Short { digits, factors, error, unit } = Self::SHORT;
        if digits == 53 || out != DType::F64 {
            let short = (product + (1 << (unit - 1))) >> unit << unit;
            if short.abs_diff(product) <= u128::from(self.count.min(factors)) << error {
                product = short;
            }
        }
        // Below 2^125.
        const DROPPED: u32 = 61;
        let more = product & ((1 << DROPPED) - 1) != 0;
        let exponent = self.exponent.saturating_add(exponent + i128::from(DROPPED));
        // Far outside of every type's range.
        const FAR: i128 = 1 << 40;
        ((product >> DROPPED) as u64 | u64::from(more), exponent.clamp(-FAR, FAR) as i64)
    }
}

impl<T: FloatElement> State for FloatProd<T> {
    type Item = T;

    fn kind(&self) -> Kind {
        Kind::Prod
    }

    fn identity(_kind: Kind) -> Self {
        Self::new()
    }

    fn absorb(&mut self, run: Run<'_, T>) {
        #[inline(never)]
        fn factors<T: FloatElement>(items: &[T]) -> Factors {
            Factors::of(items)
        }
        self.absorb_with(run.items, factors);
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.count = self.count.wrapping_add(other.count);
        self.exponent = self.exponent.wrapping_add(other.exponent);
        add_limbs(&mut self.log, &other.log);
        self.negative ^= other.negative;
        self.zeros = self.zeros.wrapping_add(other.zeros);
        self.infs = self.infs.wrapping_add(other.infs);
        self.nans = self.nans.wrapping_add(other.nans);
        Ok(())
    }

    /// In the element type unless another float type is asked for.
    fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        if op != Op::Prod {
            return Err(Error::UnsupportedType { op, dtype: T::DTYPE });
        }
        let nan = nan_wins(rules, self.nans, None)?;
        float_answer(op, T::DTYPE, rules, |out| {
            if nan || self.zeros > 0 && self.infs > 0 {
                narrow::nan(out)
            } else if self.infs > 0 {
                narrow::infinity(out, self.negative)
            } else if self.zeros > 0 {
                narrow::from_parts(out, self.negative, 0, 0)
            } else {
                let (magnitude, exponent) = self.magnitude(out);
                narrow::from_parts(out, self.negative, magnitude, exponent)
            }
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_u64(out, u64::from(self.negative));
        let exponent = self.exponent.cast_unsigned();
        for word in [self.count, exponent as u64, (exponent >> 64) as u64] {
            write_u64(out, word);
        }
        for word in self.log.into_iter().chain([self.zeros, self.infs, self.nans]) {
            write_u64(out, word);
        }
    }

    fn read(_kind: Kind, bytes: &[u8]) -> Result<Self> {
        let [sign, count, low, high, l0, l1, l2, zeros, infs, nans] = read_words(bytes)?;
        let (exponent, log) = (u128::from(high) << 64 | u128::from(low), [l0, l1, l2]);
        let state = FloatProd {
            count,
            exponent: exponent.cast_signed(),
            log,
            negative: sign == 1,
            zeros,
            infs,
            nans,
            element: PhantomData,
        };
        if sign > 1 || sign == 1 && (count, zeros, infs) == (0, 0, 0) {
            return Err(damaged("a product's sign is impossible"));
        }
        // The least subnormal of f64, or its largest number.
        if state.exponent.unsigned_abs() > u128::from(count) * 1074 {
            return Err(damaged("a product's exponent is impossible"));
        }
        // A logarithm is below 1/2 in magnitude, in units of 2^-80: the upper words, in
        // units of 2^-16.
        let top = (u128::from(log[2]) << 64 | u128::from(log[1])).cast_signed();
        let most = i128::from(count) << (UNIT_BITS - 64 - 1);
        if top < -most || top >= most && (count > 0 || log != [0; 3]) {
            return Err(damaged("a product's logarithm is impossible"));
        }
        Ok(state)
    }
}
