//! Counts, and the logic that follows from them.

use super::{Kind, NanPolicy, Op, Rules, Run, State, Value, answer, payload};
use crate::DType;
use crate::element::Element;
use crate::error::Result;
use core::marker::PhantomData;

/// Numbers of elements.
///
/// Answers [`Op::Any`], [`Op::All`], [`Op::Count`], [`Op::CountNonzero`] and
/// [`Op::CountNan`]. NaN is not zero; under `nan = omit` NaNs are left out of
/// all but [`Op::CountNan`], which no policy makes fail.
#[derive(Clone, Copy, Debug)]
pub struct Counts<T: Element> {
    /// All elements.
    pub count: u64,
    /// Those that are not zero, NaNs included.
    pub nonzero: u64,
    /// Those that are NaN.
    pub nans: u64,
    item: PhantomData<T>,
}

impl<T: Element> State for Counts<T> {
    type Item = T;

    fn kind(&self) -> Kind {
        Kind::Counts
    }

    fn identity(kind: Kind) -> Self {
        assert_eq!(kind, Kind::Counts);
        Counts { count: 0, nonzero: 0, nans: 0, item: PhantomData }
    }

    fn absorb(&mut self, run: Run<'_, T>) {
        use crate::element::Parts;
        self.count += run.items.len() as u64;
        for x in run.items {
            match x.parts() {
                Parts::Finite { magnitude, .. } => self.nonzero += u64::from(magnitude != 0),
                Parts::Infinite { .. } => self.nonzero += 1,
                Parts::Nan => {
                    self.nonzero += 1;
                    self.nans += 1;
                }
            }
        }
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        // Saturating, so that no bytes read in can break `nans <= nonzero <= count`.
        self.count = self.count.saturating_add(other.count);
        self.nonzero = self.nonzero.saturating_add(other.nonzero);
        self.nans = self.nans.saturating_add(other.nans);
        Ok(())
    }

    fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        finish(op, T::DTYPE, [self.count, self.nonzero, self.nans], rules)
    }

    fn write(&self, out: &mut Vec<u8>) {
        [self.count, self.nonzero, self.nans].iter().for_each(|&n| payload::write_u64(out, n));
    }

    fn read(kind: Kind, bytes: &[u8]) -> Result<Self> {
        payload::check_kind(kind, &[Kind::Counts])?;
        let [count, nonzero, nans] = payload::read_words(bytes)?;
        if nans > nonzero || nonzero > count || (nans > 0 && !T::DTYPE.is_float()) {
            return Err(payload::damaged("its counts contradict each other"));
        }
        Ok(Counts { count, nonzero, nans, item: PhantomData })
    }
}

/// Compiled once for all types of elements.
fn finish(op: Op, dtype: DType, counts: [u64; 3], rules: &Rules) -> Result<Value> {
    let [count, nonzero, nans] = counts;
    if op == Op::CountNan {
        return answer::count(op, dtype, nans, rules).map(Value::One);
    }
    answer::nan_wins(rules, nans, None)?;
    let omitted = if rules.nan == NanPolicy::Omit { nans } else { 0 };
    let count = count.saturating_sub(omitted);
    let nonzero = nonzero.saturating_sub(omitted);
    match op {
        Op::Any => answer::truth(op, dtype, nonzero > 0, rules),
        Op::All => answer::truth(op, dtype, nonzero == count, rules),
        Op::Count => answer::count(op, dtype, count, rules),
        Op::CountNonzero => answer::count(op, dtype, nonzero, rules),
        _ => Err(answer::not_answered(op, dtype)),
    }
    .map(Value::One)
}
