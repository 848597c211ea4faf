//! Compares an answer with the exact one.

use crate::data::{self, Data};
use crate::error::Result;
use crate::host::RECURSIVE;
use crate::question::Question;
use crate::rung::Plan;
use core::fmt;
use warpfold_core::op::Numbers;
use warpfold_core::{DType, Op, Scalar};

/// Whether an answer is right.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It is.
    Right,
    /// It is not.
    Wrong(Mismatch),
}

impl Verdict {
    /// Whether the answer is right.
    #[must_use]
    pub const fn is_right(&self) -> bool {
        matches!(self, Verdict::Right)
    }
}

/// A wrong answer.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// The question.
    pub question: Question,
    /// The rung's answer.
    pub got: Scalar,
    /// What is true.
    pub wanted: Scalar,
    /// The largest error allowed.
    pub tolerance: f64,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Question { rung, dtype, op, n, block, .. } = self.question;
        let (got, wanted) = (number(self.got), number(self.wanted));
        write!(f, "{}: {op} of {n} {dtype} in blocks of {block}: got {got}", rung.id)?;
        write!(f, ", wanted {wanted}")?;
        if self.tolerance > 0.0 {
            write!(f, " within {:e}", self.tolerance)?;
        }
        Ok(())
    }
}

/// A number as messages show it.
fn number(scalar: Scalar) -> String {
    match scalar {
        Scalar::Int(i, _) => i.to_string(),
        Scalar::UInt(u, _) => u.to_string(),
        other => format!("{:?}", other.to_f64()),
    }
}

/// The exact answer for some elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truth {
    wanted: Scalar,
    /// The sum of absolute values, if sums round.
    absolute: Option<f64>,
}

impl Truth {
    /// Of these elements.
    pub(crate) fn of(question: &Question, elements: &Numbers, data: Data) -> Result<Truth> {
        let wanted = data::exact(elements, question.op)?;
        let rounds = data == Data::Random && question.op == Op::Sum && question.dtype.is_float();
        let absolute = rounds.then(|| data::absolute(elements)).transpose()?;
        Ok(Truth { wanted, absolute })
    }

    /// What a rung must answer; `grid` are the blocks of each launch.
    pub(crate) fn expected(&self, question: &Question, grid: &[u32]) -> Expected {
        let tolerance = self.absolute.map_or(0.0, |absolute| bound(question, absolute, grid));
        Expected { wanted: self.wanted, tolerance }
    }
}

/// The answer that a rung must give.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    wanted: Scalar,
    tolerance: f64,
}

impl Expected {
    /// Whether `got`, in the type that was added in, is right.
    pub(crate) fn judge(&self, question: &Question, got: Scalar) -> Verdict {
        let right = if question.dtype.is_float() {
            // Equal numbers, so that -0 is 0; a NaN is not right.
            (got.to_f64() - self.wanted.to_f64()).abs() <= self.tolerance
        } else {
            got == self.wanted
        };
        if right {
            return Verdict::Right;
        }
        let Expected { wanted, tolerance } = *self;
        Verdict::Wrong(Mismatch { question: *question, got, wanted, tolerance })
    }
}

/// How far a sum of elements whose absolute values add up to `absolute` can be
/// from the true one.
///
/// A sum in any order is a tree of additions, each of which rounds to nearest. If
/// no element passes through more than h of them, the error is at most
/// h u / (1 - h u) times the sum of absolute values (Higham, "Accuracy and
/// Stability of Numerical Algorithms", section 4.2). u is 2^-24 for f32 and 2^-53
/// for f64; additions cannot underflow.
///
/// In each launch a thread adds its own values one after the other: the number of values divided by the number
/// of threads, rounded up, and at most 16 more for vectors and ends. The fold of a block has at most 10 levels,
/// since it has at most 1024 threads, and that of a cluster 5 more. An atomic adds once for each block. The
/// exact answer is itself rounded to f64, and so is the sum of absolute values: 2 more.
///
/// The host adds n elements in f64, one after the other at worst, or halves. The
/// library's sum is the true one, rounded to f64.
fn bound(question: &Question, absolute: f64, grid: &[u32]) -> f64 {
    if question.rung.plan == Plan::Library {
        return 0.0;
    }
    let mut values = question.n;
    let mut height = 2;
    for &blocks in grid {
        let threads = u64::from(blocks) * u64::from(question.block);
        height += values.div_ceil(threads) + 16 + 10;
        values = blocks.into();
    }
    // What a single launch does with the partials of its blocks.
    height += match question.rung.plan {
        Plan::Atomic => values,
        Plan::LastBlock | Plan::GridSync => values.div_ceil(question.block.into()) + 10,
        Plan::Clusters(_) => values.div_ceil(question.block.into()) + 15,
        // Who adds what is its own affair: at worst one after the other.
        Plan::Cub => values,
        // The recursive one has few levels, in the type that is added in.
        Plan::Host if question.rung.id == RECURSIVE => 64,
        Plan::Host => values,
        Plan::Passes { .. } | Plan::TailLaunches { .. } | Plan::TwoLaunches | Plan::Library => 0,
    };
    let serial = question.rung.plan == Plan::Host && question.rung.id != RECURSIVE;
    let unit = if serial || question.added() == DType::F64 { 53 } else { 24 };
    let part = height as f64 / (1u64 << unit) as f64;
    if part < 0.5 { absolute * part / (1.0 - part) } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;

    fn expected(dtype: DType, n: u64, data: Data) -> (Question, Expected) {
        let question = Question::new(find("two-pass-shared").unwrap(), dtype, Op::Sum, n, 64);
        let question = question.unwrap();
        let elements = data.elements(&question, 5);
        (question, Truth::of(&question, &elements, data).unwrap().expected(&question, &[8, 1]))
    }

    #[test]
    fn one_unit_in_the_last_place_is_wrong_where_sums_are_exact() {
        for dtype in [DType::F16, DType::F32, DType::F64] {
            let (question, expected) = expected(dtype, 1000, Data::Representable);
            let right = expected.wanted.to_f64();
            assert!(right != 0.0);
            assert!(expected.judge(&question, Scalar::F64(right)).is_right());
            let off = f64::from(f32::from_bits((right as f32).to_bits() + 1));
            assert!(!expected.judge(&question, Scalar::F64(off)).is_right());
            assert!(!expected.judge(&question, Scalar::F64(f64::NAN)).is_right());
        }
        let (question, expected) = expected(DType::U64, 1000, Data::Random);
        let right = expected.wanted.to_bits();
        assert!(expected.judge(&question, Scalar::from_bits(DType::U64, right)).is_right());
        assert!(!expected.judge(&question, Scalar::from_bits(DType::U64, right ^ 1)).is_right());
    }

    #[test]
    fn a_missing_element_is_outside_the_bound() {
        let (question, expected) = expected(DType::F32, 5000, Data::Random);
        let right = expected.wanted.to_f64();
        assert!(expected.tolerance > 0.0 && expected.tolerance < 0.02, "{}", expected.tolerance);
        assert!(
            expected.judge(&question, Scalar::F64(right + 0.5 * expected.tolerance)).is_right()
        );
        assert!(!expected.judge(&question, Scalar::F64(right + 0.5)).is_right());
    }

    /// What the equality check rests on: no partial sum rounds, in two orders.
    #[test]
    fn representable_sums_are_exact_in_f32() {
        for n in [1, 777, 3 << 20, (1 << 22) + 1] {
            let (question, expected) = expected(DType::F32, n, Data::Representable);
            let elements = Data::Representable.elements(&question, 5);
            let items = elements.as_slice::<f32>().unwrap();
            let forth: f32 = items.iter().sum();
            let back: f32 = items.iter().rev().sum();
            let grown = items.iter().fold(0.0f32, |sum, x| sum + x.abs());
            assert!(grown <= 2f32.powi(21), "no partial sum is larger");
            assert_eq!((forth, back), (forth, forth));
            assert_eq!(f64::from(forth), expected.wanted.to_f64());
            assert!(items.iter().any(|x| *x != 0.0));
        }
    }
}
