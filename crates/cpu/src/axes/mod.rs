//! Answers for many outputs at a time, straight from memory.
//!
//! The general path keeps a state for each output, which costs more than a short row
//! has elements, and copies what does not lie in one piece. Here a [`walk`] says in
//! which order memory is read, [`run`] hands tables of elements to the accumulators of
//! a [`fold`], and these answer, or leave an output to the general path. Walks know
//! layouts and no operations; accumulators know operations and no layouts.

mod choice;
mod columnar;
mod counts;
pub(crate) mod direct;
mod extremes;
mod factors;
mod few;
mod finish;
mod first;
mod floats;
mod fold;
mod integers;
mod lanes;
mod lengths;
mod measures;
mod places;
mod products;
mod ranged;
mod round;
mod run;
mod side;
mod states;
mod strips;
mod tables;
mod turned;
mod walk;
mod words;

pub(crate) use choice::{Choice, Chosen, LONG, most_alone, position};
pub(crate) use fold::{OfSegments, RaggedCells, RaggedFold};
pub(crate) use lengths::Lengths;
pub(crate) use states::Spread;

use crate::isa::Isa;
use crate::plan::Plan;
use crate::walks;
use fold::OfTables;
use run::{Folds, Run};
use walk::{Form, Walk};
use warpfold_core::op::{Numbers, Rules};
use warpfold_core::{Op, Result};
use warpfold_threads::Threads;

/// A question of every output of a plan over one array, or over two for `dot`.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) plan: &'a Plan<'a>,
    pub(crate) op: Op,
    pub(crate) rules: &'a Rules,
    pub(crate) isa: Isa,
    pub(crate) threads: Threads,
    /// Answers one output, by its index, in the general way.
    pub(crate) otherwise: &'a (dyn Fn(usize) -> Result<u64> + Sync),
}

impl Question<'_> {
    /// The answers; `None` if the general path has to give all of them.
    ///
    /// # Errors
    /// Those of `otherwise`.
    pub(crate) fn numbers(&self) -> Result<Option<Numbers>> {
        let Question { plan, op, rules, isa, threads, otherwise } = *self;
        let (len, outputs) = (plan.len(), plan.outputs());
        if len == 0 || outputs == 0 {
            return Ok(None);
        }
        let dtype = plan.dtype();
        let choice = Choice { of: OfTables, dtype, op, rules, isa, most: len, usual: len };
        let Some(Chosen { fold, again, indexed }) = choice.chosen() else { return Ok(None) };
        let in_order;
        let traversal = if indexed {
            // Positions are indices: the reduced axes are walked in their own order.
            in_order = plan.in_index_order();
            &in_order
        } else {
            plan.plain()
        };
        // A single output that is not found is worth its state.
        let again = again.filter(|_| outputs > 1 || len <= LONG);
        let item = fold.item();
        let reduced: Vec<(usize, [isize; 2])> =
            traversal.dims.iter().map(|d| (d.len, d.strides)).collect();
        let arrays = self.op.arity();
        let origins = [0, 1]
            .map(|i| plan.origins().nth(i).map(|o| o.wrapping_byte_offset(traversal.offsets[i])));
        let aligned = |bytes: usize| bytes.is_multiple_of(item.align());
        let strides = plan.kept().iter().chain(&reduced).flat_map(|(_, strides)| strides);
        if !origins.iter().flatten().all(|origin| aligned(origin.addr()))
            || !strides.map(|stride| stride.unsigned_abs()).all(aligned)
        {
            return Ok(None);
        }
        let walk = Walk::new(plan.kept(), &reduced, item.size(), arrays);
        walks::note(match (walk.form, walk.copied == [false; 2]) {
            (Form::Rows, true) => walks::Walk::Rows,
            (Form::Columns, true) => walks::Walk::Columns,
            (Form::Rows, false) => walks::Walk::CopiedRows,
            (Form::Columns, false) => walks::Walk::CopiedColumns,
        });
        let mut numbers = Numbers::zeros(op.answer_type(dtype), outputs);
        // SAFETY: the plan's elements, which may be read; the kept axes and the walk over
        // the reduced ones lead to no others.
        let run = unsafe { Run::new(walk, origins, item, plan.has_readable_gaps(), threads) };
        run.answers(Folds { fold: &*fold, again: again.as_deref(), otherwise }, &mut numbers)?;
        Ok(Some(numbers))
    }
}
