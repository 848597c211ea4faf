//! Segments that a device answers as far as it can, and the CPU for the rest.

use super::Segmented;
use crate::answer::{Answer, Column};
use crate::devices;
use crate::initial;
use crate::reduction::Reduction;
use warpfold_core::layout::View;
use warpfold_core::op::Numbers;
use warpfold_core::{DType, Error, Op, Result, Scalar};
use warpfold_cpu::Bounds;

/// For each operation the numbers that answer it, where a device makes them: of its halves, or
/// minima and maxima.
pub(crate) type Made = Vec<Option<Vec<Numbers>>>;

/// The numbers of two columns in turns.
fn in_turns(first: &Numbers, second: &Numbers) -> Numbers {
    let size = first.dtype().size();
    let mut all = Numbers::zeros(first.dtype(), 2 * first.len());
    let both = first.bytes().chunks_exact(size).zip(second.bytes().chunks_exact(size));
    for (to, (a, b)) in all.bytes_mut().chunks_exact_mut(2 * size).zip(both) {
        to[..size].copy_from_slice(a);
        to[size..].copy_from_slice(b);
    }
    all
}

impl Reduction {
    /// The answers to an operation, of its parts.
    fn joined(&self, op: Op, parts: Vec<Numbers>) -> Result<Option<Column>> {
        let mut parts = parts.into_iter();
        let (Some(numbers), second) = (parts.next(), parts.next()) else { return Ok(None) };
        let (Op::Range | Op::NormInf, Some(second)) = (op, &second) else {
            return Ok(Some(Column { op, numbers, second }));
        };
        let pairs = in_turns(&numbers, second);
        let view = View::from_bytes(pairs.dtype(), pairs.bytes(), &[pairs.len()])?;
        let mut question = self.with_ops(vec![op]);
        question.initial = None;
        let each = question.segments(super::Segments::Fixed(2));
        Ok(each.on_cpu([Some(&view), None], None)?.into_columns().into_iter().next())
    }
}

impl Segmented<'_> {
    /// The answers, those that a device makes by `ask` and the others by `on_cpu`. Where a
    /// segment has no answer no device makes one, so that the CPU says why.
    pub(crate) fn shared(
        &self,
        dtype: DType,
        shape: &[usize],
        ask: impl FnOnce(&[Op], &Bounds<'_>, Option<Scalar>) -> Result<Made>,
        on_cpu: impl FnOnce(&Segmented<'_>) -> Result<Answer>,
    ) -> Result<Answer> {
        let Segmented { reduction, segments } = self;
        let initial = initial::of(reduction, dtype)?;
        let usual = |op: &&Op| devices::knows(**op, dtype, &reduction.rules);
        let asked: Vec<Op> = reduction.ops().iter().filter(usual).copied().collect();
        let made = if shape.len() == 1 && !asked.is_empty() {
            ask(&asked, &segments.bounds(), initial)?
        } else {
            Vec::new()
        };
        let mut made = made.into_iter();
        let mut columns: Vec<Option<Column>> = Vec::with_capacity(reduction.ops().len());
        for op in reduction.ops() {
            let its = if asked.contains(op) { made.next().flatten() } else { None };
            columns.push(match its {
                Some(parts) => reduction.joined(*op, parts)?,
                None => None,
            });
        }
        let lacking = reduction.ops().iter().zip(&columns).filter(|(_, column)| column.is_none());
        let rest: Vec<Op> = lacking.map(|(&op, _)| op).collect();
        if columns.is_empty() || !rest.is_empty() {
            let question = Segmented { reduction: reduction.with_ops(rest), segments: *segments };
            let answer = on_cpu(&question)?;
            if columns.is_empty() {
                return Ok(answer);
            }
            let mut others = answer.into_columns().into_iter();
            for column in columns.iter_mut().filter(|column| column.is_none()) {
                *column = others.next();
            }
        }
        let columns: Vec<Column> = columns.into_iter().flatten().collect();
        let count = columns.first().map_or(0, |column| column.numbers.len());
        Ok(Answer { shape: vec![count], columns })
    }

    /// Refuses axes that segments do not reduce.
    pub(crate) fn check_axes(&self, shape: &[usize]) -> Result<()> {
        if shape.len() == 1 && self.reduction.named_axes().resolve(1)?[..] != [true] {
            return Err(Error::BadSegments {
                what: "segments reduce the only axis, which is not to be reduced".into(),
                hint: "leave the axes out",
            });
        }
        Ok(())
    }
}
