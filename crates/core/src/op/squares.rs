//! Sum of squares, Euclidean norm and dot product.

use super::{Kind, Op, Rules, Run, State, Value, answer, payload, total};
use crate::element::Element;
use crate::error::Result;
use crate::exact::Superacc;

/// The exact sum of squares, or of products of two arrays.
///
/// [`Kind::SquareSum`] answers [`Op::SumSq`] and [`Op::Norm2`], [`Kind::Dot`]
/// answers [`Op::Dot`]. The terms are the products. A NaN that
/// [`NanPolicy`](super::NanPolicy) speaks of is a product of which a factor is NaN:
/// what zero times infinity makes is not in the data, and the sum is NaN under every policy.
#[derive(Clone, Copy, Debug)]
pub struct Squares<T: Element> {
    kind: Kind,
    /// The sum; backends add to it what they have summed by other means.
    pub acc: Superacc<T::Dot>,
}

impl<T: Element> State for Squares<T> {
    type Item = T;

    fn kind(&self) -> Kind {
        self.kind
    }

    fn identity(kind: Kind) -> Self {
        assert!(matches!(kind, Kind::SquareSum | Kind::Dot));
        Squares { kind, acc: Superacc::new() }
    }

    fn absorb(&mut self, run: Run<'_, T>) {
        if self.kind == Kind::Dot {
            assert_eq!(run.items.len(), run.others.len(), "arrays of one length make pairs");
            run.items.iter().zip(run.others).for_each(|(&x, &y)| self.acc.absorb_product(x, y));
        } else {
            run.items.iter().for_each(|&x| self.acc.absorb_product(x, x));
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
            (Op::SumSq | Op::Norm2, Kind::SquareSum) | (Op::Dot, Kind::Dot) => {
                total::finish(op, T::DTYPE, &self.acc, rules)
            }
            _ => Err(answer::not_answered(op, T::DTYPE)),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        payload::write_acc(out, &self.acc);
    }

    fn read(kind: Kind, bytes: &[u8]) -> Result<Self> {
        payload::check_kind(kind, &[Kind::SquareSum, Kind::Dot])?;
        let acc = payload::read_one(bytes, T::DTYPE, kind == Kind::SquareSum)?;
        Ok(Squares { kind, acc })
    }
}
