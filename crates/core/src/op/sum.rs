//! Sum, mean and the sum of absolute values.

use super::{Kind, Op, Rules, Run, State, Value, answer, payload, total};
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
        self.check_merge(other)?;
        self.acc.merge(&other.acc);
        Ok(())
    }

    #[inline]
    fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        match (op, self.kind) {
            (Op::Sum | Op::Mean, Kind::Sum) | (Op::Norm1, Kind::AbsSum) => {
                total::finish(op, T::DTYPE, &self.acc, rules)
            }
            _ => Err(answer::not_answered(op, T::DTYPE)),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        payload::write_acc(out, &self.acc);
    }

    fn read(kind: Kind, bytes: &[u8]) -> Result<Self> {
        payload::check_kind(kind, &[Kind::Sum, Kind::AbsSum])?;
        let acc = payload::read_one(bytes, T::DTYPE, kind == Kind::AbsSum)?;
        Ok(Sums { kind, acc })
    }
}
