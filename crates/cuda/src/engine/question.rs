//! What is asked of a view: which number of each output.

use super::answer::Answer;
use super::layout::Layout;
use super::route::is_for_strides;
use super::table::{Order, Table};
use super::view::DeviceView;
use crate::Result;
use warpfold_core::layout::Split;
use warpfold_core::op::Op;

/// What is answered with numbers.
pub(super) struct Question {
    pub(super) answer: Answer,
    pub(super) table: Table,
    /// The same as kernels know any view, if that is how it is walked.
    pub(super) layout: Option<Layout>,
}

impl Question {
    /// The question, if it may be one that kernels answer. `views` says whether it is
    /// walked as any view is; without it, whatever is faster is done.
    pub(super) fn of(
        op: Op,
        view: &DeviceView,
        reduced: &[bool],
        views: Option<bool>,
    ) -> Result<Option<Question>> {
        let split = Split::new(&view.shape, [&view.strides, &[]], reduced)?;
        let Some(answer) = Answer::of(op, view.dtype) else { return Ok(None) };
        if view.is_empty() {
            return Ok(None);
        }
        let at = [Some(view.address), None];
        let order = Order::of(answer.kind);
        let table = Table::new(view.dtype, at, &split.kept, &split.reduced, order);
        let numbered = order == Order::Index;
        let tally = answer.tally().filter(|_| table.is_aligned());
        let is_walked = tally.is_some_and(|tally| {
            !tally.has_tables() || views.unwrap_or_else(|| is_for_strides(answer, &table))
        });
        let layout = if is_walked {
            Layout::new(view.address, view.dtype.size(), &split.kept, &split.reduced, numbered)
        } else {
            None
        };
        Ok(Some(Question { answer, table, layout }))
    }

    /// Whether an answer may not fit its type.
    pub(super) fn may_overflow(&self) -> bool {
        self.answer.may_overflow(self.table.elements.len)
    }

    /// The bytes of all answers.
    pub(super) fn bytes(&self) -> u64 {
        (self.table.outputs.len as u64).saturating_mul(self.answer.out.size() as u64)
    }
}
