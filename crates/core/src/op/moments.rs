//! Variance and standard deviation.

use super::answer::{self, Real};
use super::payload::{self, Words};
use super::{Kind, Op, Rules, Run, State, Value, total};
use crate::element::Element;
use crate::error::Result;
use crate::exact::format::Format;
use crate::exact::{Superacc, variance};

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

impl<T: Element> Moments<T> {
    /// The variance, before it is rounded.
    fn variance(&self, rules: &Rules) -> Result<Real> {
        if total::special(&self.sum, rules)?.is_some() {
            return Ok(Real::Nan);
        }
        let n = total::terms(&self.sum);
        let variance = self.sum.with_canonical(|sum| {
            self.squares.with_canonical(|squares| {
                let (s1, s2) = (<T::Sum as Format>::LSB, <T::Dot as Format>::LSB);
                variance(
                    (sum, s1),
                    (squares, s2),
                    n,
                    (rules.ddof, f64::from_bits(rules.ddof_fraction)),
                )
            })
        });
        Ok(variance.map_or(Real::Nan, Real::Finite))
    }
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
                let out = answer::float_type(op, T::DTYPE, rules)?;
                let real = match (op, self.variance(rules)?) {
                    (Op::Std, Real::Finite(variance)) => {
                        Real::Finite(rules.squared(variance).sqrt())
                    }
                    (_, Real::Finite(variance)) => Real::Finite(rules.squared(variance)),
                    (_, variance) => variance,
                };
                Ok(Value::One(real.round(out)))
            }
            Op::Sum => total::total::<T, _>(op, &self.sum, rules),
            Op::Mean => total::mean::<T, _>(op, &self.sum, rules),
            Op::SumSq => total::total::<T, _>(op, &self.squares, rules),
            Op::Norm2 => total::root::<T, _>(op, &self.squares, rules),
            _ => Err(answer::not_answered(op, T::DTYPE)),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        payload::write_acc(out, &self.sum);
        payload::write_acc(out, &self.squares);
    }

    fn read(kind: Kind, bytes: &[u8]) -> Result<Self> {
        if kind != Kind::Moments {
            return Err(payload::wrong_kind(kind));
        }
        let mut words = Words::new(bytes);
        let unsigned = !T::DTYPE.is_float() && !T::DTYPE.is_signed_int();
        let sum = payload::read_acc::<T, T::Sum>(&mut words, unsigned)?;
        let squares = payload::read_acc::<T, T::Dot>(&mut words, true)?;
        words.end()?;
        let counters = [sum.count, sum.nans, sum.pos_infs + sum.neg_infs, 0];
        if counters != squares.counters() {
            return Err(payload::damaged(
                "its sum and its sum of squares count different elements",
            ));
        }
        Ok(Moments { sum, squares })
    }
}
