//! Sum, mean and the sum of absolute values.

use super::payload::{self, Words};
use super::{Kind, Op, Rules, Run, State, Value, answer, total};
use crate::element::Element;
use crate::error::Result;
use crate::exact::Superacc;

/// The exact sum of elements or of their absolute values.
///
/// [`Kind::Sum`] answers [`Op::Sum`] and [`Op::Mean`], [`Kind::AbsSum`]
/// answers [`Op::Norm1`].
#[derive(Clone, Copy, Debug)]
pub struct Sums<T: Element> {
    kind: Kind,
    /// The sum; backends add to it what they have summed by other means.
    pub acc: Superacc<T::Sum>,
}

impl<T: Element> State for Sums<T> {
    type Item = T;

    fn kind(&self) -> Kind {
        self.kind
    }

    fn identity(kind: Kind) -> Self {
        assert!(matches!(kind, Kind::Sum | Kind::AbsSum));
        Sums { kind, acc: Superacc::new() }
    }

    fn absorb(&mut self, run: Run<'_, T>) {
        if self.kind == Kind::AbsSum {
            run.items.iter().for_each(|&x| self.acc.absorb_abs(x));
        } else {
            run.items.iter().for_each(|&x| self.acc.absorb(x));
        }
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        if self.kind != other.kind {
            return Err(payload::kind_mismatch(self.kind, other.kind));
        }
        self.acc.merge(&other.acc);
        Ok(())
    }

    #[inline]
    fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        match (op, self.kind) {
            (Op::Sum, Kind::Sum) | (Op::Norm1, Kind::AbsSum) => {
                total::total::<T, _>(op, &self.acc, rules)
            }
            (Op::Mean, Kind::Sum) => total::mean::<T, _>(op, &self.acc, rules),
            _ => Err(answer::not_answered(op, T::DTYPE)),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        payload::write_acc(out, &self.acc);
    }

    fn read(kind: Kind, bytes: &[u8]) -> Result<Self> {
        if !matches!(kind, Kind::Sum | Kind::AbsSum) {
            return Err(payload::wrong_kind(kind));
        }
        let mut words = Words::new(bytes);
        let unsigned = !T::DTYPE.is_float() && !T::DTYPE.is_signed_int();
        let acc = payload::read_acc::<T, _>(&mut words, kind == Kind::AbsSum || unsigned)?;
        words.end()?;
        Ok(Sums { kind, acc })
    }
}
