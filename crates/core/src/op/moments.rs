//! Variance and standard deviation.

use super::{Kind, Op, Rules, Run, State, Value, answer, payload, total};
use crate::element::Element;
use crate::error::Result;
use crate::exact::Superacc;

/// The exact sum and the exact sum of squares.
///
/// Answers [`Op::Var`] and [`Op::Std`], and also [`Op::Sum`], [`Op::Mean`],
/// [`Op::SumSq`] and [`Op::Norm2`].
#[derive(Clone, Copy, Debug)]
pub struct Moments<T: Element> {
    /// The sum of the elements.
    pub sum: Superacc<T::Sum>,
    /// The sum of their squares, with counters of its own: as many terms and
    /// NaNs as in [`sum`](Self::sum), and all infinities positive.
    pub squares: Superacc<T::Dot>,
}

impl<T: Element> State for Moments<T> {
    type Item = T;

    fn kind(&self) -> Kind {
        Kind::Moments
    }

    fn identity(kind: Kind) -> Self {
        assert_eq!(kind, Kind::Moments);
        Moments { sum: Superacc::new(), squares: Superacc::new() }
    }

    fn absorb(&mut self, run: Run<'_, T>) {
        for &x in run.items {
            self.sum.absorb(x);
            self.squares.absorb_product(x, x);
        }
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.sum.merge(&other.sum);
        self.squares.merge(&other.squares);
        Ok(())
    }

    fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        match op {
            Op::Var | Op::Std => {
                total::finish_spread(op, T::DTYPE, (&self.sum, &self.squares), rules)
            }
            Op::Sum | Op::Mean => total::finish(op, T::DTYPE, &self.sum, rules),
            Op::SumSq | Op::Norm2 => total::finish(op, T::DTYPE, &self.squares, rules),
            _ => Err(answer::not_answered(op, T::DTYPE)),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        payload::write_acc(out, &self.sum);
        payload::write_acc(out, &self.squares);
    }

    fn read(kind: Kind, bytes: &[u8]) -> Result<Self> {
        payload::check_kind(kind, &[Kind::Moments])?;
        let (sum, squares) = payload::read_moments(bytes, T::DTYPE)?;
        Ok(Moments { sum, squares })
    }
}
