//! Smallest and largest elements, and where they are.

use super::answer::{self, Real};
use super::payload::{self, Words};
use super::{Kind, Op, Rules, Run, Scalar, Spans, State, Value};
use crate::DType;
use crate::element::{Element, Key, Parts};
use crate::error::{Error, Result};
use crate::exact::Superacc;
use crate::exact::format::Format;
use crate::exact::round::Truncated;

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
    kind: Kind,
    count: u64,
    nans: u64,
    first_nan: u64,
    /// The greatest key, nowhere, while there are only NaNs.
    min: (T::Key, u64),
    /// The least key, nowhere, while there are only NaNs.
    max: (T::Key, u64),
    /// The positions seen; empty for [`Kind::Extrema`].
    seen: Spans,
}

impl Extrema<i64> {
    /// Those of the same elements, each times `factor`, if both ends fit.
    pub(super) fn scaled(&self, factor: u64) -> Option<Self> {
        let mut scaled = self.clone();
        if self.count > 0 {
            let factor = i64::try_from(factor).ok()?;
            scaled.min.0 = self.min.0.checked_mul(factor)?;
            scaled.max.0 = self.max.0.checked_mul(factor)?;
        }
        Some(scaled)
    }

    /// The smallest and the largest element, and where each comes first.
    pub(super) fn places(&self) -> Option<[(i64, u64); 2]> {
        let (min, max) = self.ends()?;
        Some([(min, self.min.1), (max, self.max.1)])
    }

    /// The positions seen.
    pub(super) fn seen(&self) -> &Spans {
        &self.seen
    }
}

impl<T: Element> Extrema<T> {
    fn new(kind: Kind) -> Self {
        Extrema {
            kind,
            count: 0,
            nans: 0,
            first_nan: NOWHERE,
            min: (T::Key::GREATEST, NOWHERE),
            max: (T::Key::LEAST, NOWHERE),
            seen: Spans::new(),
        }
    }

    fn positional(&self) -> bool {
        self.kind == Kind::ArgExtrema
    }

    /// Moves the positions that are answers: what it found at `p` lies at
    /// `place(p)`. The set of positions held stays.
    ///
    /// This is for elements that were absorbed in another order than that of
    /// the positions, piece by piece. Within a piece `place` must be
    /// increasing, so that first occurrences stay first; over all pieces it
    /// must be a permutation, so that the set held in the end is right.
    pub fn relocate(&mut self, place: impl Fn(u64) -> u64) {
        for at in [&mut self.first_nan, &mut self.min.1, &mut self.max.1] {
            if *at != NOWHERE && self.kind == Kind::ArgExtrema {
                *at = place(*at);
            }
        }
    }

    /// How many elements were absorbed, NaNs included.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many of them were NaN.
    #[must_use]
    pub fn nans(&self) -> u64 {
        self.nans
    }

    /// Takes in a run that a backend has looked through. The run must be one
    /// that was not absorbed before.
    #[inline]
    pub fn absorb_summary(&mut self, run: Summary<T::Key>) {
        self.count = self.count.saturating_add(run.count);
        self.nans = self.nans.saturating_add(run.nans);
        if self.positional() {
            self.seen.insert(run.start, run.count);
            self.first_nan = self.first_nan.min(run.first_nan.unwrap_or(NOWHERE));
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
        let (key, own) = (T::numeric(key), T::numeric(self.min.0));
        key < own || key == own && from < self.min.1
    }

    /// The same for the largest.
    #[must_use]
    pub fn may_raise(&self, key: T::Key, from: u64) -> bool {
        let (key, own) = (T::numeric(key), T::numeric(self.max.0));
        key > own || key == own && from < self.max.1
    }

    #[inline]
    fn lower(&mut self, (key, at): (T::Key, u64)) {
        if self.positional() && self.may_lower(key, at) {
            self.min.1 = at;
        }
        self.min.0 = self.min.0.min(key);
    }

    #[inline]
    fn raise(&mut self, (key, at): (T::Key, u64)) {
        if self.positional() && self.may_raise(key, at) {
            self.max.1 = at;
        }
        self.max.0 = self.max.0.max(key);
    }

    /// The smallest and the largest element that is not NaN.
    fn ends(&self) -> Option<(T, T)> {
        (self.count > self.nans).then(|| (T::from_key(self.min.0), T::from_key(self.max.0)))
    }

    fn finish_float(&self, op: Op, rules: &Rules, nan: bool) -> Result<Value> {
        let out = answer::float_type(op, T::DTYPE, rules)?;
        if nan {
            let nan = Real::Nan.round(out);
            return Ok(if op == Op::MinMax { Value::Pair(nan, nan) } else { Value::One(nan) });
        }
        let (min, max) = match self.ends() {
            Some(ends) => ends,
            None if op == Op::NormInf => {
                return Ok(Value::One(Real::Finite(Truncated::ZERO).round(out)));
            }
            None => return Err(Error::Empty { op }),
        };
        Ok(match op {
            Op::Min => Value::One(Real::of(min).round(out)),
            Op::Max => Value::One(Real::of(max).round(out)),
            Op::MinMax => Value::Pair(Real::of(min).round(out), Real::of(max).round(out)),
            Op::Range => Value::One(difference(max, min).round(out)),
            _ => Value::One(larger_magnitude(min, max).round(out)),
        })
    }

    fn finish_integer(&self, op: Op, rules: &Rules) -> Result<Value> {
        let dtype = T::DTYPE;
        let one = |value, natural| answer::integer(op, dtype, value, natural, rules);
        let (min, max) = match self.ends() {
            Some((min, max)) => (integer(min), integer(max)),
            None if op == Op::NormInf => return one(0, DType::U64).map(Value::One),
            None => return Err(Error::Empty { op }),
        };
        Ok(match op {
            Op::Min => Value::One(one(min, dtype)?),
            Op::Max => Value::One(one(max, dtype)?),
            Op::MinMax => Value::Pair(one(min, dtype)?, one(max, dtype)?),
            Op::Range => Value::One(one(max - min, DType::U64)?),
            _ => Value::One(one(min.abs().max(max.abs()), DType::U64)?),
        })
    }

    fn finish_position(&self, op: Op, rules: &Rules, nan: bool) -> Result<Value> {
        let at = |position| -> Result<Scalar> { answer::count(op, T::DTYPE, position, rules) };
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

    /// Whether a state read from bytes is one that elements can produce.
    fn is_sound(&self) -> bool {
        let (least, greatest) = T::key_range();
        if self.nans > self.count || (self.nans > 0 && !T::DTYPE.is_float()) {
            return false;
        }
        let values = if self.count == self.nans {
            self.min == (T::Key::GREATEST, NOWHERE) && self.max == (T::Key::LEAST, NOWHERE)
        } else {
            let held = |at| !self.positional() || self.seen.contains(at);
            least <= self.min.0
                && self.min.0 <= self.max.0
                && self.max.0 <= greatest
                && (self.min.0 < self.max.0 || self.min.1 == self.max.1)
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
fn integer<T: Element>(x: T) -> i128 {
    match x.parts() {
        Parts::Finite { negative: true, magnitude, .. } => -i128::from(magnitude),
        Parts::Finite { magnitude, .. } => i128::from(magnitude),
        _ => 0,
    }
}

/// `max - min` of floats that are not NaN.
fn difference<T: Element>(max: T, min: T) -> Real {
    match (Real::of(max), Real::of(min)) {
        (Real::Finite(high), Real::Finite(low)) => {
            let mut acc = Superacc::<T::Sum>::new();
            acc.deposit(high.negative, high.window as u64, high.exponent);
            acc.deposit(!low.negative, low.window as u64, low.exponent);
            let lsb = <T::Sum as Format>::LSB;
            Real::Finite(acc.with_canonical(|limbs| Truncated::of_fixed(limbs, lsb)))
        }
        (Real::Infinite { negative: a }, Real::Infinite { negative: b }) if a == b => Real::Nan,
        // One end is infinite, or both and of different signs.
        _ => Real::Infinite { negative: false },
    }
}

/// The larger of `|min|` and `|max|`, for floats `min <= max`.
fn larger_magnitude<T: Element>(min: T, max: T) -> Real {
    // Without the sign bit, the bits of floats are in the order of magnitudes.
    let sign = 1u64 << (8 * T::DTYPE.size() - 1);
    Real::of(T::from_bits((min.bits() & !sign).max(max.bits() & !sign)))
}

impl<T: Element> State for Extrema<T> {
    type Item = T;

    fn kind(&self) -> Kind {
        self.kind
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
        if self.positional() {
            self.seen.insert(start, len);
        }
    }

    fn end(&self) -> u64 {
        self.seen.end()
    }

    fn check_merge(&self, other: &Self) -> Result<()> {
        if self.kind != other.kind {
            return Err(payload::kind_mismatch(self.kind, other.kind));
        }
        match self.seen.first_common(&other.seen) {
            Some(at) => Err(Error::Overlap { at }),
            None => Ok(()),
        }
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        if self.kind != other.kind {
            return Err(payload::kind_mismatch(self.kind, other.kind));
        }
        // Changes nothing if it fails.
        self.seen.merge(&other.seen)?;
        self.count = self.count.saturating_add(other.count);
        self.nans = self.nans.saturating_add(other.nans);
        self.first_nan = self.first_nan.min(other.first_nan);
        self.lower(other.min);
        self.raise(other.max);
        Ok(())
    }

    fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        if let Some((from, to)) = self.seen.first_gap() {
            return Err(Error::Gap { from, to });
        }
        let first = (self.first_nan != NOWHERE).then_some(self.first_nan);
        let nan = answer::nan_wins(rules, self.nans, first)?;
        match op {
            Op::Min | Op::Max | Op::MinMax | Op::Range | Op::NormInf => {
                if T::DTYPE.is_float() {
                    self.finish_float(op, rules, nan)
                } else {
                    self.finish_integer(op, rules)
                }
            }
            Op::ArgMin | Op::ArgMax | Op::ArgMinMax if self.positional() => {
                self.finish_position(op, rules, nan)
            }
            _ => Err(answer::not_answered(op, T::DTYPE)),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let keys = [self.min.0.to_bits64(), self.max.0.to_bits64()];
        [self.count, self.nans, keys[0], keys[1]].iter().for_each(|&w| payload::write_u64(out, w));
        if self.positional() {
            let positions = [self.first_nan, self.min.1, self.max.1];
            positions.iter().for_each(|&w| payload::write_u64(out, w));
            self.seen.write(out);
        }
    }

    fn read(kind: Kind, bytes: &[u8]) -> Result<Self> {
        if !matches!(kind, Kind::Extrema | Kind::ArgExtrema) {
            return Err(payload::wrong_kind(kind));
        }
        let mut words = Words::new(bytes);
        let mut state = Extrema::<T>::new(kind);
        state.count = words.next()?;
        state.nans = words.next()?;
        let keys = [words.next()?, words.next()?];
        state.min.0 = T::Key::from_bits64(keys[0]);
        state.max.0 = T::Key::from_bits64(keys[1]);
        if state.positional() {
            state.first_nan = words.next()?;
            state.min.1 = words.next()?;
            state.max.1 = words.next()?;
            state.seen = Spans::read(&mut words)?;
        }
        words.end()?;
        let excess = [state.min.0.to_bits64(), state.max.0.to_bits64()] != keys;
        if excess || !state.is_sound() {
            return Err(payload::damaged("its extremes contradict its counts"));
        }
        Ok(state)
    }
}
