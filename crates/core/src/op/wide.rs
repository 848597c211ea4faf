//! States over decimals some of which are beyond 64 bits.
//!
//! Decimals are integers of 64 bits wherever these suffice, and all that is quick reduces them
//! as such. The first one beyond them makes the state a [`Wide`]: its numbers are of any size,
//! and it takes in states over 64 bits. States over the same elements are alike, however these
//! were split, since an element beyond 64 bits never leaves.

use super::answer::{self, Real};
use super::any::AnyState;
use super::payload::{self, Words, damaged};
use super::{
    Counts, Decimal, Extrema, Kind, Moments, Op, Rules, Run, Scalar, Spans, State, Sums, Value,
    total,
};
use crate::DType;
use crate::error::{Error, Result};
use crate::exact::round::Truncated;
use crate::exact::to_big;
use num_bigint::BigInt;

/// What the elements of a state come to, of one kind.
#[derive(Clone, Debug)]
pub struct Wide {
    kind: Kind,
    count: u64,
    nonzero: u64,
    /// Of the elements, or of their absolute values.
    sum: BigInt,
    squares: BigInt,
    /// The smallest and the largest element, and where each comes first.
    ends: Option<[(i128, u64); 2]>,
    /// The positions seen, of [`Kind::ArgExtrema`].
    seen: Spans,
}

impl Wide {
    /// The state of no elements.
    #[must_use]
    pub fn new(kind: Kind) -> Wide {
        let sum = BigInt::ZERO;
        let (squares, seen) = (sum.clone(), Spans::new());
        Wide { kind, count: 0, nonzero: 0, sum, squares, ends: None, seen }
    }

    /// Takes in an element at a position, which some state has [seen](State::skip) already.
    pub fn absorb(&mut self, element: i128, at: u64) {
        self.count = self.count.saturating_add(1);
        match self.kind {
            Kind::Counts => self.nonzero = self.nonzero.saturating_add(u64::from(element != 0)),
            Kind::Sum => self.sum += element,
            Kind::AbsSum => self.sum += element.unsigned_abs(),
            Kind::Moments => {
                self.sum += element;
                self.squares += BigInt::from(element) * element;
            }
            Kind::Extrema => self.extend([(element, 0); 2]),
            Kind::ArgExtrema => self.extend([(element, at); 2]),
            _ => {}
        }
    }

    /// What a table of groups answers of one, whose elements have 64 bits.
    ///
    /// # Errors
    /// Those of `answer`.
    pub fn of_answers(
        kind: Kind,
        count: u64,
        answer: impl Fn(Op) -> Result<Value>,
    ) -> Result<Wide> {
        let mut wide = Wide::new(kind);
        wide.count = count;
        let integer = |op| answer(op).map(|value| integer(value.first()));
        match kind {
            _ if count == 0 => {}
            Kind::Sum => wide.sum = integer(Op::Sum)?,
            Kind::AbsSum => wide.sum = integer(Op::Norm1)?,
            Kind::Moments => (wide.sum, wide.squares) = (integer(Op::Sum)?, integer(Op::SumSq)?),
            Kind::Counts => wide.nonzero = answer(Op::CountNonzero)?.first().to_bits(),
            Kind::Extrema | Kind::ArgExtrema => {
                let place = |op| match kind {
                    Kind::ArgExtrema => answer(op).map(|place| place.first().to_bits()),
                    _ => Ok(0),
                };
                let end = |op, at| Ok((answer(op)?.first().to_bits() as i64 as i128, place(at)?));
                wide.ends = Some([end(Op::Min, Op::ArgMin)?, end(Op::Max, Op::ArgMax)?]);
            }
            _ => {}
        }
        Ok(wide)
    }

    /// The same as another state; `None` for one over other elements than i64.
    pub(super) fn of(state: &AnyState) -> Option<Wide> {
        if let Some(wide) = state.wide() {
            return Some(wide.clone());
        }
        let mut wide = Wide::new(state.kind());
        if let Some(sums) = state.downcast_ref::<Sums<i64>>() {
            wide.count = sums.acc.count.cast_unsigned();
            wide.sum = sums.acc.with_canonical(to_big);
        } else if let Some(moments) = state.downcast_ref::<Moments<i64>>() {
            wide.count = moments.sum.count.cast_unsigned();
            wide.sum = moments.sum.with_canonical(to_big);
            wide.squares = moments.squares.with_canonical(to_big);
        } else if let Some(counts) = state.downcast_ref::<Counts<i64>>() {
            (wide.count, wide.nonzero) = (counts.count, counts.nonzero);
        } else if let Some(extrema) = state.downcast_ref::<Extrema<i64>>() {
            wide.count = extrema.count();
            let place = |at| if wide.kind == Kind::ArgExtrema { at } else { 0 };
            wide.ends = extrema.places().map(|ends| ends.map(|(end, at)| (end.into(), place(at))));
            wide.seen = extrema.seen().clone();
        } else if state.dtype() != DType::I64 {
            return None;
        }
        // Of other kinds decimals have no answers, so that nothing is kept.
        Some(wide)
    }

    fn extend(&mut self, ends: [(i128, u64); 2]) {
        let [(mut min, mut max), (least, greatest)] = match self.ends {
            Some([min, max]) => [(min, max), (ends[0], ends[1])],
            None => [(ends[0], ends[1]); 2],
        };
        min = min.min(least);
        // Of equal elements the one at the smaller position.
        if (greatest.0, max.1) > (max.0, greatest.1) {
            max = greatest;
        }
        self.ends = Some([min, max]);
    }

    /// The state over the same elements, each times `factor`; `None` if one leaves 128 bits.
    #[must_use]
    pub fn scaled(&self, factor: u64) -> Option<Wide> {
        let mut scaled = self.clone();
        scaled.sum *= factor;
        scaled.squares = scaled.squares * factor * factor;
        for (end, _) in scaled.ends.iter_mut().flatten() {
            *end = end.checked_mul(factor.into())?;
        }
        Some(scaled)
    }
}

/// An exact answer, of 64 bits where it fits them.
fn exact(op: Op, value: &BigInt, natural: DType, rules: &Rules) -> Result<Scalar> {
    let out = rules.out.unwrap_or(natural);
    if out.is_float() {
        let truncated = Truncated::of_fixed(&limbs(value), 0);
        return Ok(Real::Finite(rules.pointed(truncated)).round(out));
    }
    match i128::try_from(value) {
        Ok(value) => answer::integer(op, DType::I64, value, natural, rules),
        Err(_) => answer::beyond(op, value, out, rules),
    }
}

/// The integer that a number of decimals counts.
fn integer(number: Scalar) -> BigInt {
    match number {
        Scalar::Int(integer, _) => integer.into(),
        Scalar::UInt(integer, _) => integer.into(),
        Scalar::Decimal(decimal) => Decimal::to_big(decimal),
        _ => BigInt::ZERO,
    }
}

/// A canonical fixed-point integer.
fn limbs(integer: &BigInt) -> Vec<i64> {
    let mut bytes = integer.to_signed_bytes_le();
    let sign = if *integer < BigInt::ZERO { 0xff } else { 0 };
    // The last limb has a sign of its own.
    bytes.resize(bytes.len() / 4 * 4 + 8, sign);
    let digit = |four: &[u8]| four.iter().rfold(0, |word, &byte| word << 8 | i64::from(byte));
    let mut limbs: Vec<i64> = bytes.chunks_exact(4).map(digit).collect();
    if let (255, Some(top)) = (sign, limbs.last_mut()) {
        *top -= 1 << 32;
    }
    limbs
}

impl State for Wide {
    type Item = i64;

    fn kind(&self) -> Kind {
        self.kind
    }

    fn identity(kind: Kind) -> Self {
        Wide::new(kind)
    }

    fn absorb(&mut self, run: Run<'_, i64>) {
        self.skip(run.start, run.items.len() as u64);
        (run.start..).zip(run.items).for_each(|(at, &x)| Wide::absorb(self, x.into(), at));
    }

    fn most_bytes(positions: u64) -> usize {
        <Extrema<i64> as State>::most_bytes(positions) + size_of::<Wide>()
    }

    fn skip(&mut self, start: u64, len: u64) {
        if self.kind == Kind::ArgExtrema {
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
        self.check_merge(other)?;
        self.seen.merge(&other.seen)?;
        self.count = self.count.saturating_add(other.count);
        self.nonzero = self.nonzero.saturating_add(other.nonzero);
        self.sum += &other.sum;
        self.squares += &other.squares;
        if let Some(ends) = other.ends {
            self.extend(ends);
        }
        Ok(())
    }

    fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        let dtype = DType::I64;
        if let Some((from, to)) = self.seen.first_gap() {
            return Err(Error::Gap { from, to });
        }
        let ends = || self.ends.ok_or(Error::Empty { op });
        let exact = |value: BigInt, natural| exact(op, &value, natural, rules);
        let place = |at| answer::count(op, dtype, at, rules);
        Ok(Value::One(match (op, self.kind) {
            (Op::Sum | Op::Mean, Kind::Sum | Kind::Moments)
            | (Op::Var | Op::Std, Kind::Moments)
            | (Op::Norm1, Kind::AbsSum) => {
                let sums = [&self.sum, &self.squares].map(limbs);
                // What is exact has no need to wrap.
                let rules = rules.wrap(false);
                return total::finish_integers(op, dtype, &sums, self.count, &rules);
            }
            (Op::Min, Kind::Extrema | Kind::ArgExtrema) => exact(ends()?[0].0.into(), dtype)?,
            (Op::Max, Kind::Extrema | Kind::ArgExtrema) => exact(ends()?[1].0.into(), dtype)?,
            (Op::MinMax, Kind::Extrema | Kind::ArgExtrema) => {
                let [(min, _), (max, _)] = ends()?;
                return Ok(Value::Pair(exact(min.into(), dtype)?, exact(max.into(), dtype)?));
            }
            (Op::Range, Kind::Extrema | Kind::ArgExtrema) => {
                let [(min, _), (max, _)] = ends()?;
                exact(BigInt::from(max) - min, DType::U64)?
            }
            (Op::NormInf, Kind::Extrema | Kind::ArgExtrema) => {
                let ends = self.ends.map_or([0; 2], |ends| ends.map(|(end, _)| end.unsigned_abs()));
                exact(ends[0].max(ends[1]).into(), DType::U64)?
            }
            (Op::ArgMin, Kind::ArgExtrema) => place(ends()?[0].1)?,
            (Op::ArgMax, Kind::ArgExtrema) => place(ends()?[1].1)?,
            (Op::ArgMinMax, Kind::ArgExtrema) => {
                let [(_, min), (_, max)] = ends()?;
                return Ok(Value::Pair(place(min)?, place(max)?));
            }
            (_, Kind::Counts) => {
                let mut counts = Counts::<i64>::identity(Kind::Counts);
                (counts.count, counts.nonzero) = (self.count, self.nonzero);
                return State::finish(&counts, op, rules);
            }
            _ => return Err(answer::not_answered(op, dtype)),
        }))
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut word = |word| payload::write_u64(out, word);
        word(self.count);
        word(self.nonzero);
        for sum in [&self.sum, &self.squares] {
            let words: Vec<u64> = sum.iter_u64_digits().collect();
            word((words.len() as u64) << 1 | u64::from(*sum < BigInt::ZERO));
            words.into_iter().for_each(&mut word);
        }
        word(u64::from(self.ends.is_some()));
        for (end, at) in self.ends.iter().flatten() {
            [*end as u64, (end >> 64) as u64, *at].into_iter().for_each(&mut word);
        }
        self.seen.write(out);
    }

    fn read(kind: Kind, bytes: &[u8]) -> Result<Self> {
        let mut words = Words::new(bytes);
        let mut wide = Wide::new(kind);
        (wide.count, wide.nonzero) = (words.next()?, words.next()?);
        for sum in [&mut wide.sum, &mut wide.squares] {
            let head = words.next()?;
            if head >> 1 > words.left() as u64 {
                return Err(damaged("its payload ends early"));
            }
            let mut bytes = Vec::new();
            for _ in 0..head >> 1 {
                bytes.extend(words.next()?.to_le_bytes());
            }
            let sign = if head & 1 == 1 { num_bigint::Sign::Minus } else { num_bigint::Sign::Plus };
            *sum = BigInt::from_bytes_le(sign, &bytes);
        }
        if words.next()? == 1 {
            let mut end = || -> Result<(i128, u64)> {
                let (low, high) = (words.next()?, words.next()?);
                Ok((i128::from(high.cast_signed()) << 64 | i128::from(low), words.next()?))
            };
            wide.ends = Some([end()?, end()?]);
        }
        wide.seen = Spans::read(&mut words)?;
        words.end()?;
        let mut again = Vec::new();
        wide.write(&mut again);
        let ordered = wide.ends.is_none_or(|[min, max]| min.0 <= max.0 && wide.count > 0);
        if again != bytes || wide.nonzero > wide.count || !ordered || wide.squares < BigInt::ZERO {
            return Err(damaged("its numbers contradict each other"));
        }
        Ok(wide)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 6] =
        [Kind::Sum, Kind::AbsSum, Kind::Moments, Kind::Extrema, Kind::ArgExtrema, Kind::Counts];
    const OPS: [Op; 15] = [
        Op::Sum,
        Op::Mean,
        Op::Norm1,
        Op::NormInf,
        Op::Var,
        Op::Std,
        Op::Min,
        Op::Max,
        Op::MinMax,
        Op::Range,
        Op::ArgMin,
        Op::ArgMax,
        Op::ArgMinMax,
        Op::Any,
        Op::CountNonzero,
    ];

    /// As workers and readers make it: elements of 64 bits by a state over these, others beside.
    fn state_of(kind: Kind, start: u64, elements: &[i128]) -> AnyState {
        fn narrow<S: State<Item = i64>>(kind: Kind, start: u64, elements: &[i128]) -> AnyState {
            let mut state = S::identity(kind);
            for (at, &element) in (start..).zip(elements) {
                match i64::try_from(element) {
                    Ok(item) => state.absorb(Run { start: at, items: &[item], others: &[] }),
                    Err(_) => state.skip(at, 1),
                }
            }
            state.into()
        }
        let mut state = match kind {
            Kind::Sum | Kind::AbsSum => narrow::<Sums<i64>>(kind, start, elements),
            Kind::Moments => narrow::<Moments<i64>>(kind, start, elements),
            Kind::Counts => narrow::<Counts<i64>>(kind, start, elements),
            _ => narrow::<Extrema<i64>>(kind, start, elements),
        };
        let mut wide = Wide::new(kind);
        let mut any = false;
        for (at, &element) in (start..).zip(elements).filter(|(_, x)| i64::try_from(**x).is_err()) {
            wide.absorb(element, at);
            any = true;
        }
        if any {
            state.merge(&wide.into()).unwrap();
        }
        state
    }

    fn drawn(seed: &mut u64) -> i128 {
        let mut next = || {
            *seed ^= *seed << 13;
            *seed ^= *seed >> 7;
            *seed ^= *seed << 17;
            *seed
        };
        let wide = i128::from(next()) << 64 | i128::from(next());
        match next() % 5 {
            0 => wide >> (next() % 128),
            1 => i128::from(next().cast_signed() >> (next() % 64)),
            2 => i128::from(i64::MAX) + i128::from(next() % 3),
            3 => i128::from(i64::MIN) - i128::from(next() % 3),
            _ => 0,
        }
    }

    #[test]
    fn any_split_has_the_bytes_and_the_answers_of_the_whole() {
        let mut seed = 0x9e37_79b9_7f4a_7c15;
        let mut wide = 0;
        for round in 0..200 {
            let elements: Vec<i128> = (0..round % 9).map(|_| drawn(&mut seed)).collect();
            for kind in KINDS {
                let whole = state_of(kind, 0, &elements);
                wide += u32::from(whole.is_wide());
                let bytes = whole.to_bytes();
                assert_eq!(AnyState::from_bytes(&bytes), Ok(whole.clone()), "{kind:?}");
                for cut in 0..=elements.len() {
                    let (left, right) = elements.split_at(cut);
                    for turned in [false, true] {
                        let mut a = state_of(kind, 0, left);
                        let mut b = state_of(kind, cut as u64, right);
                        if turned {
                            core::mem::swap(&mut a, &mut b);
                        }
                        a.check_merge(&b).unwrap();
                        a.merge(&b).unwrap();
                        assert_eq!(a.to_bytes(), bytes, "{kind:?} of {elements:?} at {cut}");
                    }
                }
            }
        }
        assert!(wide > 500, "{wide}");
    }

    /// The same elements, answered by integers of any size.
    #[test]
    fn answers_are_exact() {
        let mut seed = 0x0123_4567_89ab_cdef;
        for round in 0..300 {
            let elements: Vec<i128> = (0..1 + round % 7).map(|_| drawn(&mut seed) >> 1).collect();
            let rules = Rules::new().decimals((round % 39) as u8);
            let big = |values: &[i128]| values.iter().map(|&x| BigInt::from(x)).sum::<BigInt>();
            let shown = |value: &BigInt| rules.shown(value);
            let one = |op, kind| {
                let value = state_of(kind, 0, &elements).finish(op, &rules).unwrap();
                match value.first() {
                    Scalar::Decimal(decimal) => decimal.to_string(),
                    Scalar::Int(integer, _) => rules.shown(&integer),
                    Scalar::UInt(integer, _) if kind != Kind::ArgExtrema => rules.shown(&integer),
                    other => other.to_string(),
                }
            };
            let min = *elements.iter().min().unwrap();
            let max = *elements.iter().max().unwrap();
            let magnitudes: Vec<i128> = elements.iter().map(|x| x.abs()).collect();
            let place = |of: i128| elements.iter().position(|&x| x == of).unwrap().to_string();
            assert_eq!(one(Op::Sum, Kind::Sum), shown(&big(&elements)));
            assert_eq!(one(Op::Sum, Kind::Moments), shown(&big(&elements)));
            assert_eq!(one(Op::Norm1, Kind::AbsSum), shown(&big(&magnitudes)));
            assert_eq!(one(Op::Min, Kind::Extrema), shown(&min.into()));
            assert_eq!(one(Op::Max, Kind::ArgExtrema), shown(&max.into()));
            assert_eq!(one(Op::Range, Kind::Extrema), shown(&(BigInt::from(max) - min)));
            assert_eq!(one(Op::ArgMin, Kind::ArgExtrema), place(min));
            assert_eq!(one(Op::ArgMax, Kind::ArgExtrema), place(max));
            // Of a mean and a variance the fraction is known, and is parsed where it ends.
            let n = elements.len() as u64;
            if n.is_power_of_two() {
                let (sum, shift) = (big(&elements), n.trailing_zeros());
                let five = BigInt::from(5u8).pow(shift);
                let mean = format!(
                    "{}e-{}",
                    sum.clone() * &five,
                    u32::from(rules.decimals.unwrap()) + shift
                );
                assert_eq!(
                    one(Op::Mean, Kind::Sum),
                    crate::Scalar::F64(mean.parse().unwrap()).to_string()
                );
                let squares: BigInt = elements.iter().map(|&x| BigInt::from(x) * x).sum();
                let numerator = squares * n - &sum * &sum;
                let exponent = 2 * (u32::from(rules.decimals.unwrap()) + shift);
                let var = format!("{}e-{exponent}", numerator * five.pow(2));
                assert_eq!(
                    one(Op::Var, Kind::Moments),
                    crate::Scalar::F64(var.parse().unwrap()).to_string()
                );
            }
        }
    }

    #[test]
    fn decimals_have_variances_however_large_they_are() {
        for unit in [1i128, i128::from(i64::MAX), 1 << 100] {
            let elements = [2, 4, 4, 4, 5, 5, 7, 9].map(|x| x * unit);
            for digits in [0, 2, 20, 38] {
                let rules = Rules::new().decimals(digits);
                let state = state_of(Kind::Moments, 0, &elements);
                let text = format!("{unit}e-{digits}");
                let std = Scalar::F64(format!("{}e-{digits}", 2 * unit).parse().unwrap());
                assert_eq!(state.finish(Op::Std, &rules), Ok(Value::One(std)), "{text}");
                let var = BigInt::from(unit) * unit * 4;
                let var = Scalar::F64(format!("{var}e-{}", 2 * u32::from(digits)).parse().unwrap());
                assert_eq!(state.finish(Op::Var, &rules), Ok(Value::One(var)), "{text}");
            }
        }
    }

    #[test]
    fn sums_of_64_bits_that_leave_them_are_decimals() {
        let state = state_of(Kind::Sum, 0, &[i64::MAX.into(); 4]);
        assert!(!state.is_wide());
        let sum = state.finish(Op::Sum, &Rules::new().decimals(2)).unwrap().first();
        assert_eq!(sum.to_string(), "368934881474191032.28");
        let error = state.finish(Op::Sum, &Rules::new()).unwrap_err();
        assert!(matches!(error, Error::Overflow { .. }), "{error}");
        let asked = Rules::new().decimals(2).out(DType::I64);
        let error = state.finish(Op::Sum, &asked).unwrap_err();
        assert!(error.to_string().contains("368934881474191032.28"), "{error}");
    }

    #[test]
    fn states_without_elements_and_damaged_ones() {
        let rules = Rules::new().decimals(1);
        for kind in KINDS {
            let wide = state_of(kind, 0, &[1 << 80, 5]);
            for op in OPS {
                // Whatever it is, it does not panic, and is what i64 has an answer to.
                let narrow = state_of(kind, 0, &[1, 5]).finish(op, &rules);
                assert_eq!(wide.finish(op, &rules).is_ok(), narrow.is_ok(), "{op} {kind:?}");
                let none = AnyState::from(Wide::new(kind)).finish(op, &rules);
                let nothing = AnyState::identity(kind, DType::I64).unwrap().finish(op, &rules);
                assert_eq!(none.map(|x| x.to_string()), nothing.map(|x| x.to_string()), "{op}");
            }
            let bytes = wide.payload();
            for cut in 0..bytes.len() {
                assert!(Wide::read(kind, &bytes[..cut]).is_err(), "{kind:?} {cut}");
                let mut changed = bytes.clone();
                changed[cut] ^= 0x80;
                let _ = Wide::read(kind, &changed);
            }
            assert!(wide.to_vector().is_none() && wide.unsigned().is_err());
        }
        let a = state_of(Kind::ArgExtrema, 0, &[1 << 80, 5]);
        assert_eq!(a.clone().merge(&a), Err(Error::Overlap { at: 0 }));
        let sums = state_of(Kind::Sum, 0, &[1 << 80]);
        assert!(sums.clone().merge(&a).is_err());
        // Where an answer is asked for it is refused, and not before.
        let mut prod = AnyState::identity(Kind::Prod, DType::I64).unwrap();
        let mut other = Wide::new(Kind::Prod);
        other.absorb(1 << 80, 0);
        prod.merge(&other.into()).unwrap();
        let error = prod.finish(Op::Prod, &rules).unwrap_err();
        assert!(matches!(error, Error::UnsupportedType { .. }), "{error}");
        assert!(sums.clone().merge(&AnyState::identity(Kind::Sum, DType::F64).unwrap()).is_err());
        let thousand = state_of(Kind::Moments, 0, &[1000 << 80, 1 << 70]);
        assert!(thousand.scaled(10).is_some());
        assert!(state_of(Kind::Extrema, 0, &[1 << 126]).scaled(10).is_none());
    }
}
