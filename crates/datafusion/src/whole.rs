//! An aggregate without groups.

use crate::arrays::{column, elements, mask, states, wrong};
use crate::function::Question;
use datafusion_common::arrow::array::{Array, ArrayRef};
use datafusion_common::arrow::compute::filter;
use datafusion_common::{Result, ScalarValue, exec_err};
use datafusion_expr::Accumulator;
use std::sync::{Mutex, PoisonError};
use warpfold_core::fpenv;
use warpfold_core::op::{AnyState, Numbers, RawRun};
use warpfold_cpu::Worker;
use warpfold_cpu::isa::Isa;

/// The state of all values so far.
pub(crate) struct Whole {
    question: Question,
    /// Absorbs values of this partition. Nobody locks it: DataFusion shares no accumulator, but
    /// asks that it could.
    worker: Mutex<Worker>,
    /// What other partitions have sent, merged.
    others: AnyState,
    count: u64,
}

impl std::fmt::Debug for Whole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Whole { question, count, .. } = self;
        f.debug_struct("Whole").field("question", question).field("count", count).finish()
    }
}

fn worker(question: &Question) -> warpfold_core::Result<Mutex<Worker>> {
    Worker::new(question.op.kind(), question.dtype, Isa::active()?).map(Mutex::new)
}

impl Whole {
    pub(crate) fn new(question: Question) -> Result<Whole> {
        let worker = worker(&question).map_err(wrong)?;
        let others = AnyState::identity(question.op.kind(), question.dtype).map_err(wrong)?;
        Ok(Whole { question, worker, others, count: 0 })
    }

    /// The state of everything, which stays.
    fn settle(&mut self) -> Result<&AnyState> {
        let fresh = worker(&self.question).map_err(wrong)?;
        let made = core::mem::replace(&mut self.worker, fresh).into_inner();
        let made = made.unwrap_or_else(PoisonError::into_inner).into_state();
        self.others.merge(&made).map_err(wrong)?;
        Ok(&self.others)
    }
}

impl Accumulator for Whole {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(values) = values.first() else { return exec_err!("no column of values") };
        let present = match mask(values, None) {
            Some(mask) => filter(values, &mask)?,
            None => ArrayRef::clone(values),
        };
        let items = elements(&present, self.question.dtype)?;
        let run = RawRun { start: self.count, items, others: &[] };
        let worker = self.worker.get_mut().unwrap_or_else(PoisonError::into_inner);
        fpenv::usual(|| worker.absorb(run)).map_err(wrong)?;
        self.count += present.len() as u64;
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let Question { op, dtype, rules, least } = self.question;
        let answer = Numbers::zeros(op.answer_type(dtype), 1);
        if self.count < least {
            let none = column(&answer, None)?;
            return ScalarValue::try_from(none.data_type());
        }
        let value = fpenv::usual(|| self.settle().map(|state| state.finish(op, &rules)));
        let value = value?.map_err(wrong)?.first();
        let mut answer = answer;
        Numbers::set_bits(answer.bytes_mut(), value.dtype(), 0, value.to_bits());
        ScalarValue::try_from_array(&column(&answer, None)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + 2 * self.others.most_bytes(0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let bytes = self.settle()?.to_bytes();
        Ok(vec![ScalarValue::Binary(Some(bytes)), ScalarValue::UInt64(Some(self.count))])
    }

    fn merge_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let (bytes, counts) = states(columns)?;
        for (bytes, count) in bytes.iter().zip(counts) {
            let Some(bytes) = bytes else { continue };
            let state = AnyState::from_bytes(bytes).map_err(wrong)?;
            self.others.merge(&state).map_err(wrong)?;
            self.count += count;
        }
        Ok(())
    }
}
