//! Smallest and largest elements, and where they are.

use super::answer::{self, Real};
use super::payload::{self, Words};
use super::{Kind, Op, Rules, Run, Scalar, Spans, State, Value, narrow};
use crate::element::{Element, Key, Parts};
use crate::error::{Error, Result};
use crate::exact::Superacc;
use crate::exact::format::{F64Sum, Format};
use crate::exact::round::Truncated;
use crate::{DType, with_element};
use core::marker::PhantomData;

/// What a backend has found in a run of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary<K> {
    /// The position of the run's first element.
    pub start: u64,
    /// How many elements, NaNs included.
    pub count: u64,
    /// How many are NaN.
    pub nans: u64,
    /// The position of the first NaN, in the whole array; only
    /// [`Kind::ArgExtrema`] looks at it.
    pub first_nan: Option<u64>,
    /// The smallest key of an element that is not NaN, and the first position in the whole
    /// array of an element that equals it, as -0 equals +0; only [`Kind::ArgExtrema`] looks
    /// at the position.
    pub min: Option<(K, u64)>,
    /// The same for the largest key.
    pub max: Option<(K, u64)>,
}

/// The sentinel for no position.
const NOWHERE: u64 = u64::MAX;

/// The smallest and the largest element that is not NaN, by
/// [`Element::key`]: `-0` is smaller than `+0`.
///
/// [`Kind::Extrema`] answers [`Op::Min`], [`Op::Max`], [`Op::MinMax`],
/// [`Op::Range`] and [`Op::NormInf`]; [`Kind::ArgExtrema`] also
/// [`Op::ArgMin`], [`Op::ArgMax`] and [`Op::ArgMinMax`], and only it compares
/// and writes positions. Of equal elements the one at the smaller position
/// wins, and for positions `-0` and `+0` are [equal](Element::numeric): the key may be
/// that of a later one. Positions that are missing between others are an error; a piece
/// from anywhere has an answer.
#[derive(Clone, Debug)]
pub struct Extrema<T: Element> {
    found: Found,
    element: PhantomData<T>,
}

/// Extrema of elements whose type is known at run time: what is done once for a state is
/// compiled once for all types. Keys are kept in 64 bits.
#[derive(Clone, Debug)]
struct Found {
    dtype: DType,
    kind: Kind,
    count: u64,
    nans: u64,
    first_nan: u64,
    /// The greatest key, nowhere, while there are only NaNs.
    min: (u64, u64),
    /// The least key, nowhere, while there are only NaNs.
    max: (u64, u64),
    /// The positions seen; empty for [`Kind::Extrema`].
    seen: Spans,
}

impl Extrema<i64> {
    /// Those of the same elements, each times `factor`, if both ends fit.
    pub(super) fn scaled(&self, factor: u64) -> Option<Self> {
        let mut scaled = self.clone();
        if self.count() > 0 {
            let factor = i64::try_from(factor).ok()?;
            for (key, _) in [&mut scaled.found.min, &mut scaled.found.max] {
                *key = key.cast_signed().checked_mul(factor)?.cast_unsigned();
            }
        }
        Some(scaled)
    }

    /// The smallest and the largest element, and where each comes first.
    pub(super) fn places(&self) -> Option<[(i64, u64); 2]> {
        let Found { min, max, .. } = self.found;
        (self.count() > 0).then_some([min, max].map(|(key, at)| (key.cast_signed(), at)))
    }

    /// The positions seen.
    pub(super) fn seen(&self) -> &Spans {
        &self.found.seen
    }
}

impl<T: Element> Extrema<T> {
    fn new(kind: Kind) -> Self {
        let found = Found {
            dtype: T::DTYPE,
            kind,
            count: 0,
            nans: 0,
            first_nan: NOWHERE,
            min: (T::Key::GREATEST.to_bits64(), NOWHERE),
            max: (T::Key::LEAST.to_bits64(), NOWHERE),
            seen: Spans::new(),
        };
        Extrema { found, element: PhantomData }
    }

    /// Moves the positions that are answers: what it found at `p` lies at
    /// `place(p)`. The set of positions held stays.
    ///
    /// This is for elements that were absorbed in another order than that of
    /// the positions, piece by piece. Within a piece `place` must be
    /// increasing, so that first occurrences stay first; over all pieces it
    /// must be a permutation, so that the set held in the end is right.
    pub fn relocate(&mut self, place: impl Fn(u64) -> u64) {
        let Found { first_nan, min, max, kind, .. } = &mut self.found;
        for at in [first_nan, &mut min.1, &mut max.1] {
            if *at != NOWHERE && *kind == Kind::ArgExtrema {
                *at = place(*at);
            }
        }
    }

    /// How many elements were absorbed, NaNs included.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.found.count
    }

    /// How many of them were NaN.
    #[must_use]
    pub fn nans(&self) -> u64 {
        self.found.nans
    }

    /// The smallest and the largest element; the usual NaN both times if there is one. `None` of
    /// nothing.
    #[must_use]
    #[inline]
    pub fn ends(&self) -> Option<[T; 2]> {
        if self.found.nans > 0 {
            return narrow::nan(T::DTYPE).map(|nan| [T::from_bits(nan.to_bits()); 2]);
        }
        (self.found.count > 0).then(|| [self.min(), self.max()].map(T::from_key))
    }

    /// Takes in a run that a backend has looked through. The run must be one
    /// that was not absorbed before.
    #[inline]
    pub fn absorb_summary(&mut self, run: Summary<T::Key>) {
        let found = &mut self.found;
        found.count = found.count.saturating_add(run.count);
        found.nans = found.nans.saturating_add(run.nans);
        if found.positional() {
            found.seen.insert(run.start, run.count);
            found.first_nan = found.first_nan.min(run.first_nan.unwrap_or(NOWHERE));
        }
        if let Some(min) = run.min {
            self.lower(min);
        }
        if let Some(max) = run.max {
            self.raise(max);
        }
    }

    /// Whether an element with `key` at a position from `from` on could be the first of the
    /// smallest: what a backend asks before it looks for positions.
    #[must_use]
    pub fn may_lower(&self, key: T::Key, from: u64) -> bool {
        let (key, own) = (T::numeric(key), T::numeric(self.min()));
        key < own || key == own && from < self.found.min.1
    }

    /// The same for the largest.
    #[must_use]
    pub fn may_raise(&self, key: T::Key, from: u64) -> bool {
        let (key, own) = (T::numeric(key), T::numeric(self.max()));
        key > own || key == own && from < self.found.max.1
    }

    #[inline]
    fn lower(&mut self, (key, at): (T::Key, u64)) {
        if self.found.positional() && self.may_lower(key, at) {
            self.found.min.1 = at;
        }
        self.found.min.0 = self.min().min(key).to_bits64();
    }

    #[inline]
    fn raise(&mut self, (key, at): (T::Key, u64)) {
        if self.found.positional() && self.may_raise(key, at) {
            self.found.max.1 = at;
        }
        self.found.max.0 = self.max().max(key).to_bits64();
    }

    #[inline]
    fn min(&self) -> T::Key {
        T::Key::from_bits64(self.found.min.0)
    }

    #[inline]
    fn max(&self) -> T::Key {
        T::Key::from_bits64(self.found.max.0)
    }
}

impl Found {
    fn positional(&self) -> bool {
        self.kind == Kind::ArgExtrema
    }

    fn is_empty(&self) -> bool {
        self.count <= self.nans
    }

    /// The largest magnitude of nothing is 0, and nothing else is an answer.
    fn check_some(&self, op: Op) -> Result<()> {
        if self.is_empty() && op != Op::NormInf { Err(Error::Empty { op }) } else { Ok(()) }
    }

    /// The element with a key; of no elements 0.
    fn parts(&self, key: u64) -> Parts {
        if self.is_empty() {
            return Parts::Finite { negative: false, magnitude: 0, exponent: 0 };
        }
        with_element!(self.dtype, T => {
            <T as Element>::from_key(<T as Element>::Key::from_bits64(key)).parts()
        })
    }

    fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        if let Some((from, to)) = self.seen.first_gap() {
            return Err(Error::Gap { from, to });
        }
        let first = (self.first_nan != NOWHERE).then_some(self.first_nan);
        let nan = answer::nan_wins(rules, self.nans, first)?;
        match op {
            Op::Min | Op::Max | Op::MinMax | Op::Range | Op::NormInf => {
                if self.dtype.is_float() {
                    self.finish_float(op, rules, nan)
                } else {
                    self.finish_integer(op, rules)
                }
            }
            Op::ArgMin | Op::ArgMax | Op::ArgMinMax if self.positional() => {
                self.finish_position(op, rules, nan)
            }
            _ => Err(answer::not_answered(op, self.dtype)),
        }
    }

    fn finish_float(&self, op: Op, rules: &Rules, nan: bool) -> Result<Value> {
        let out = answer::float_type(op, self.dtype, rules)?;
        if nan {
            let nan = Real::Nan.round(out);
            return Ok(if op == Op::MinMax { Value::Pair(nan, nan) } else { Value::One(nan) });
        }
        self.check_some(op)?;
        let (min, max) = (|| self.parts(self.min.0), || self.parts(self.max.0));
        let one = |parts| Real::of(parts).round(out);
        Ok(match op {
            Op::Min => Value::One(one(min())),
            Op::Max => Value::One(one(max())),
            Op::MinMax => Value::Pair(one(min()), one(max())),
            Op::Range => Value::One(difference(Real::of(max()), Real::of(min())).round(out)),
            _ => Value::One(one(larger_magnitude(min(), max()))),
        })
    }

    fn finish_integer(&self, op: Op, rules: &Rules) -> Result<Value> {
        let dtype = self.dtype;
        let one = |value, natural| answer::integer(op, dtype, value, natural, rules);
        self.check_some(op)?;
        let min = || integer(self.parts(self.min.0));
        let max = || integer(self.parts(self.max.0));
        Ok(match op {
            Op::Min => Value::One(one(min(), dtype)?),
            Op::Max => Value::One(one(max(), dtype)?),
            Op::MinMax => Value::Pair(one(min(), dtype)?, one(max(), dtype)?),
            Op::Range => Value::One(one(max() - min(), DType::U64)?),
            _ => Value::One(one(min().abs().max(max().abs()), DType::U64)?),
        })
    }

    fn finish_position(&self, op: Op, rules: &Rules, nan: bool) -> Result<Value> {
        let at = |position| -> Result<Scalar> { answer::count(op, self.dtype, position, rules) };
        let (min, max) = if nan {
            (self.first_nan, self.first_nan)
        } else if self.count > self.nans {
            (self.min.1, self.max.1)
        } else {
            return Err(Error::Empty { op });
        };
        Ok(match op {
            Op::ArgMin => Value::One(at(min)?),
            Op::ArgMax => Value::One(at(max)?),
            _ => Value::Pair(at(min)?, at(max)?),
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let words = [self.count, self.nans, self.min.0, self.max.0];
        words.iter().for_each(|&w| payload::write_u64(out, w));
        if self.positional() {
            let positions = [self.first_nan, self.min.1, self.max.1];
            positions.iter().for_each(|&w| payload::write_u64(out, w));
            self.seen.write(out);
        }
    }

    /// Reads a state that is this one, which is of no elements, but for the elements; `range`
    /// are the least and the greatest key.
    fn read(&self, bytes: &[u8], range: [u64; 2]) -> Result<Found> {
        let (mut words, mut found) = (Words::new(bytes), self.clone());
        [found.count, found.nans, found.min.0, found.max.0] = words.take()?;
        if found.positional() {
            [found.first_nan, found.min.1, found.max.1] = words.take()?;
            found.seen = Spans::read(&mut words)?;
        }
        words.end()?;
        match found.is_sound(range, self) {
            true => Ok(found),
            false => Err(payload::damaged("its extremes contradict its counts")),
        }
    }

    /// Whether a state read from bytes is one that elements can produce.
    fn is_sound(&self, range: [u64; 2], empty: &Found) -> bool {
        if self.nans > self.count || (self.nans > 0 && !self.dtype.is_float()) {
            return false;
        }
        let signed = self.dtype.is_float() || self.dtype.is_signed_int();
        // The order of keys.
        let order = |key: u64| if signed { key ^ 1 << 63 } else { key };
        let ([least, greatest], min, max) =
            (range.map(order), order(self.min.0), order(self.max.0));
        let values = if self.count == self.nans {
            (self.min, self.max) == (empty.min, empty.max)
        } else {
            let held = |at| !self.positional() || self.seen.contains(at);
            least <= min
                && min <= max
                && max <= greatest
                && (min < max || self.min.1 == self.max.1)
                && held(self.min.1)
                && held(self.max.1)
        };
        let nan = if self.nans == 0 || !self.positional() {
            self.first_nan == NOWHERE
        } else {
            self.seen.contains(self.first_nan)
        };
        values && nan && (!self.positional() || self.count <= self.seen.len())
    }
}

/// An integer element's value.
fn integer(parts: Parts) -> i128 {
    match parts {
        Parts::Finite { negative: true, magnitude, .. } => -i128::from(magnitude),
        Parts::Finite { magnitude, .. } => i128::from(magnitude),
        _ => 0,
    }
}

/// `max - min` of floats that are not NaN.
fn difference(max: Real, min: Real) -> Real {
    match (max, min) {
        (Real::Finite(high), Real::Finite(low)) => {
            // It holds the floats of every type.
            let mut acc = Superacc::<F64Sum>::new();
            acc.deposit(high.negative, high.window as u64, high.exponent);
            acc.deposit(!low.negative, low.window as u64, low.exponent);
            Real::Finite(acc.with_canonical(|limbs| Truncated::of_fixed(limbs, F64Sum::LSB)))
        }
        (Real::Infinite { negative: a }, Real::Infinite { negative: b }) if a == b => Real::Nan,
        // One end is infinite, or both and of different signs.
        _ => Real::Infinite { negative: false },
    }
}

/// The larger of `|min|` and `|max|`, for floats `min <= max` of one type.
fn larger_magnitude(min: Parts, max: Parts) -> Parts {
    // Of floats the one of the larger exponent is larger, but a zero or a subnormal has the least.
    let size = |parts| match parts {
        Parts::Finite { magnitude, exponent, .. } => (exponent, magnitude),
        _ => (i32::MAX, 0),
    };
    let larger = if size(min) > size(max) { min } else { max };
    match larger {
        Parts::Finite { magnitude, exponent, .. } => {
            Parts::Finite { negative: false, magnitude, exponent }
        }
        _ => Parts::Infinite { negative: false },
    }
}

impl<T: Element> State for Extrema<T> {
    type Item = T;

    fn kind(&self) -> Kind {
        self.found.kind
    }

    fn identity(kind: Kind) -> Self {
        assert!(matches!(kind, Kind::Extrema | Kind::ArgExtrema));
        Extrema::new(kind)
    }

    fn absorb(&mut self, run: Run<'_, T>) {
        let mut nans = 0;
        let mut first_nan = None;
        for (i, x) in run.items.iter().enumerate() {
            let at = run.start.wrapping_add(i as u64);
            if x.is_nan() {
                nans += 1;
                first_nan = first_nan.or(Some(at));
            } else {
                let key = x.key();
                self.lower((key, at));
                self.raise((key, at));
            }
        }
        let count = run.items.len() as u64;
        let start = run.start;
        self.absorb_summary(Summary { start, count, nans, first_nan, min: None, max: None });
    }

    fn skip(&mut self, start: u64, len: u64) {
        if self.found.positional() {
            self.found.seen.insert(start, len);
        }
    }

    fn end(&self) -> u64 {
        self.found.seen.end()
    }

    fn check_merge(&self, other: &Self) -> Result<()> {
        let (left, right) = (&self.found, &other.found);
        if left.kind != right.kind {
            return Err(payload::kind_mismatch(left.kind, right.kind));
        }
        match left.seen.first_common(&right.seen) {
            Some(at) => Err(Error::Overlap { at }),
            None => Ok(()),
        }
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        let (found, more) = (&mut self.found, &other.found);
        if found.kind != more.kind {
            return Err(payload::kind_mismatch(found.kind, more.kind));
        }
        // Changes nothing if it fails.
        found.seen.merge(&more.seen)?;
        found.count = found.count.saturating_add(more.count);
        found.nans = found.nans.saturating_add(more.nans);
        found.first_nan = found.first_nan.min(more.first_nan);
        self.lower((other.min(), more.min.1));
        self.raise((other.max(), more.max.1));
        Ok(())
    }

    fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        self.found.finish(op, rules)
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.found.write(out);
    }

    fn read(kind: Kind, bytes: &[u8]) -> Result<Self> {
        payload::check_kind(kind, &[Kind::Extrema, Kind::ArgExtrema])?;
        let (least, greatest) = T::key_range();
        let range = [least.to_bits64(), greatest.to_bits64()];
        let found = Extrema::<T>::new(kind).found.read(bytes, range)?;
        Ok(Extrema { found, element: PhantomData })
    }
}
