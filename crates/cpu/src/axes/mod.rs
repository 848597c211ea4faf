//! Answers for many outputs at a time, straight from memory.
//!
//! The general path keeps a state for each output, which costs more than a short row
//! has elements, and copies what does not lie in one piece. Here a [`walk`] says in
//! which order memory is read, [`run`] hands tables of elements to the accumulators of
//! a [`fold`], and these answer, or leave an output to the general path. Walks know
//! layouts and no operations; accumulators know operations and no layouts.

mod choice;
mod counts;
pub(crate) mod direct;
mod ends;
mod exponentials;
mod extremes;
mod factors;
mod finish;
mod floats;
mod fold;
mod integers;
mod lanes;
mod lengths;
mod lift;
mod measures;
mod places;
mod prepare;
mod products;
mod ranged;
mod round;
mod run;
mod short;
mod squares;
mod strips;
mod sums;
mod survey;
mod turned;
mod walk;
mod widened;
mod words;

pub use choice::position;
pub(crate) use choice::{Choice, Chosen, LONG, most_alone};
pub(crate) use extremes::of_both_ends;
pub(crate) use fold::{OfSegments, RaggedCells};
pub(crate) use lengths::Lengths;
pub(crate) use prepare::leave_nans;

use crate::isa::Isa;
use crate::plan::Plan;
use crate::scatter::Scatter;
use crate::walks;
use core::alloc::Layout;
use fold::{OfTables, Part, Use};
use prepare::Preparation;
use run::{Asked, Run, Stage};
use walk::{Form, Walk};
use warpfold_core::layout::{Axis, PerAxis};
use warpfold_core::op::{Numbers, Rules, Several, Unwritten};
use warpfold_core::{DType, NanPolicy, Op, Result, Scalar};
use warpfold_threads::Threads;

/// A question of every output of a plan over one array, or over two for `dot`.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) plan: &'a Plan<'a>,
    pub(crate) ops: &'a [Op],
    pub(crate) rules: &'a Rules,
    pub(crate) isa: Isa,
    pub(crate) threads: Threads,
    /// Whether the second array has a byte for each element of the first, which is 0 where that does
    /// not count.
    pub(crate) marked: bool,
    /// How far apart the elements of a single output are.
    pub(crate) scatter: Scatter,
    /// The bits of an element that takes part in each output.
    pub(crate) initial: Option<u64>,
    /// Whether the operations are two sums, and their answers the two f64 that each sum of floats is
    /// exactly.
    pub(crate) halves: bool,
    /// Answers an operation, by its place, for one output, by its index, in the general way.
    pub(crate) general: &'a (dyn Fn(usize, usize) -> Result<u64> + Sync),
}

/// Elements of an output that take less time to read than to answer.
const FEW: usize = 16;

/// What the two sums are where halves are asked for.
const HALVES: [finish::Asked; 2] = [finish::Asked::High, finish::Asked::Low];

/// The accumulators of an operation.
struct Column {
    /// The operation's place.
    place: usize,
    stages: Several<Stage>,
    /// Whether the reduced axes are walked in the order of their indices.
    indexed: bool,
    /// The type of the answers.
    answer: DType,
}

impl Column {
    /// Columns with the same one share a walk, which they begin alike. Outputs of a few elements that
    /// are answered from registers do not wait for others, which take longer than to read these twice.
    fn walk(&self, len: usize) -> [bool; 4] {
        let Stage { fold, preparation, .. } = &self.stages[0];
        let quick = len <= FEW && preparation.is_none() && fold.is_quick(len);
        let omits = preparation.is_some_and(|first| first.omits);
        [self.indexed, preparation.is_some(), omits, quick]
    }
}

impl Question<'_> {
    /// The answers to each operation; `None` if the general path has to give all of them.
    ///
    /// # Errors
    /// Those of `general`.
    pub(crate) fn numbers(&self) -> Result<Several<Option<Numbers>>> {
        let Question { plan, ops, .. } = *self;
        let mut numbers: Several<Option<Numbers>> = ops.iter().map(|_| None).collect();
        if plan.len() == 0 || plan.outputs() == 0 {
            return Ok(numbers);
        }
        let columns = (0..ops.len()).filter_map(|place| self.column(place));
        let mut columns: Several<Column> = columns.collect();
        // Those that walk alike share a walk.
        let walk = |column: &Column| column.walk(plan.len());
        columns.sort_by_key(walk);
        for columns in columns.chunk_by(|a, b| walk(a) == walk(b)) {
            let Some(found) = self.walked(columns)? else { continue };
            for (column, found) in columns.iter().zip(found) {
                numbers[column.place] = Some(found);
            }
        }
        Ok(numbers)
    }

    /// The accumulators of an operation, if it has some.
    fn column(&self, place: usize) -> Option<Column> {
        let Question { plan, ops, rules, isa, threads, .. } = *self;
        let (op, dtype, len) = (ops[place], plan.dtype(), plan.len());
        if self.halves {
            let (most, half) = (len, HALVES[place.min(1)]);
            let choice =
                Choice { of: OfTables, dtype, widened: false, op, rules, isa, most, usual: len };
            let Chosen { stages, indexed } = choice.half_of_sum(half)?;
            let stage = |fold| Stage { fold, preparation: None, leaves_nans: None };
            let stages = stages.into_iter().map(stage).collect();
            return Some(Column { place, stages, indexed, answer: DType::F64 });
        }
        // Positions of NaNs are left out by the order of elements.
        let may_omit = op.arity() == 1 && !matches!(op, Op::CountNan | Op::ArgMin | Op::ArgMax);
        let omits = dtype.is_float() && rules.nan == NanPolicy::Omit && may_omit;
        let mut seen = *rules;
        // Floats are f64, and so are their answers.
        let widened = rules.out == Some(DType::F64)
            && matches!(dtype, DType::F16 | DType::BF16 | DType::F32)
            && has_wider_answers(op);
        if widened || rules.out == Some(op.answer_type(dtype)) {
            seen.out = None;
        }
        let taken = if widened { DType::F64 } else { dtype };
        let most = len + usize::from(self.initial.is_some());
        let chosen = |rules: &Rules| {
            let choice =
                Choice { of: OfTables, dtype: taken, widened, op, rules, isa, most, usual: len };
            let mut chosen = choice.chosen()?;
            if widened {
                let wide = |fold| OfTables.widened(isa, [dtype, taken], fold);
                chosen.stages = chosen.stages.into_iter().map(wide).collect();
            }
            Some(chosen)
        };
        let prepared =
            |omits: bool| (omits || self.marked).then_some(Preparation { isa, dtype, omits });
        let mut stages = Several::new();
        // A single output that is not found is worth its state: of that all threads add elements, and
        // of other stages one.
        let alone = self.scatter != Scatter::Near && threads.count() == 1;
        let single = plan.outputs() == 1 && len > LONG && !self.marked && !alone;
        if omits && !self.marked && !single {
            // Accumulators that answer nothing where there are NaNs come first.
            let usual = chosen(&seen).and_then(|chosen| chosen.stages.into_iter().next());
            stages.extend(usual.map(|fold| Stage {
                fold,
                preparation: None,
                leaves_nans: Some(isa),
            }));
        }
        if omits {
            seen = seen.nan(NanPolicy::Propagate);
        }
        let Chosen { stages: folds, indexed } = chosen(&seen)?;
        if (omits || self.marked) && !folds.iter().all(|fold| fold.has_neutral()) {
            return None;
        }
        let preparation = prepared(omits);
        let answer = op.answer_type(taken);
        let nans = seen.nan == NanPolicy::Propagate || !answer.is_float();
        let leaves_nans = (!nans).then_some(isa);
        stages.extend(folds.into_iter().map(|fold| Stage { fold, preparation, leaves_nans }));
        // Of f64 a survey knows infinities and NaNs, which comes last and takes one thread.
        let knows = taken != DType::F64 || op == Op::Prod;
        if self.scatter == Scatter::Special && !knows && stages.len() > 1 {
            if single {
                return None;
            }
            if threads.count() == 1 {
                stages.drain(..stages.len() - 1);
            }
        }
        if single {
            stages.truncate(1);
        }
        Some(Column { place, stages, indexed, answer })
    }

    /// Another of the operations that knows the answers of one, and which part of it these are.
    fn known(&self, columns: &[Column], one: &Column) -> Option<(usize, Part)> {
        if self.halves {
            return (one.place == 1).then_some((0, Part::Sums(HALVES[1])));
        }
        if !self.plan.dtype().is_float() {
            return None;
        }
        let op = |column: &Column| self.ops[column.place];
        let deviation = |op: Op| matches!(op, Op::Var | Op::Std);
        let end = |op: Op| matches!(op, Op::Min | Op::Max | Op::NormInf);
        let first = |is: &dyn Fn(Op) -> bool| columns.iter().position(|column| is(op(column)));
        let sums = || first(&deviation).filter(|&leader| columns[leader].stages[0].fold.has_sums());
        let (leader, part) = match op(one) {
            Op::Sum => (sums()?, Part::Sums(finish::Asked::Sum)),
            Op::Mean => (sums()?, Part::Sums(finish::Asked::Mean)),
            Op::Var | Op::Std => {
                let (ddof, root) = (self.rules.ddof, op(one) == Op::Std);
                (first(&deviation)?, Part::Sums(finish::Asked::Variance { ddof, root }))
            }
            Op::Min => (first(&end)?, Part::Ends(extremes::Asked::Min)),
            Op::Max => (first(&end)?, Part::Ends(extremes::Asked::Max)),
            Op::NormInf => (first(&end)?, Part::Ends(extremes::Asked::Magnitude)),
            _ => return None,
        };
        // Nobody follows who leads, nor those whose neutral element is another where some is needed.
        let leads = columns[leader].place == one.place;
        let omits = one.stages[0].preparation.is_some_and(|first| first.omits);
        let alone = leads || (omits || self.marked) && end(op(one));
        (!alone).then_some((leader, part))
    }

    /// The answers to operations that walk alike; `None` if the elements are not aligned.
    fn walked(&self, columns: &[Column]) -> Result<Option<Several<Numbers>>> {
        let Question { plan, ops, threads, general, .. } = *self;
        let Some(first) = columns.first() else { return Ok(None) };
        let in_order;
        let traversal = if first.indexed {
            // Positions are indices: the reduced axes are walked in their own order.
            in_order = plan.in_index_order();
            &in_order
        } else {
            plan.plain()
        };
        let item = first.stages[0].fold.item();
        let reduced: PerAxis<Axis> = traversal.dims.iter().map(|d| (d.len, d.strides)).collect();
        let origins = [0, 1]
            .map(|i| plan.origins().nth(i).map(|o| o.wrapping_byte_offset(traversal.offsets[i])));
        let aligned = |bytes: usize| bytes.is_multiple_of(item.align());
        // Marks are bytes.
        let arrays = if self.marked { 1 } else { 2 };
        let strides =
            plan.kept().iter().chain(&reduced).flat_map(|(_, strides)| &strides[..arrays]);
        if !origins[..arrays].iter().flatten().all(|origin| aligned(origin.addr()))
            || !strides.map(|stride| stride.unsigned_abs()).all(aligned)
        {
            return Ok(None);
        }
        let marks = self.marked.then(Layout::new::<u8>);
        let second = plan.origins().nth(1).map(|_| marks.unwrap_or(item));
        let (size, second_size) = (item.size(), second.map(|item| item.size()));
        let walk = Walk::new(plan.kept(), &reduced, size, second_size, first.indexed);
        walks::note(match (walk.form, walk.copied == [false; 2]) {
            (Form::Rows, true) => walks::Walk::Rows,
            (Form::Columns, true) => walks::Walk::Columns,
            (Form::Rows, false) => walks::Walk::CopiedRows,
            (Form::Columns, false) => walks::Walk::CopiedColumns,
        });
        // SAFETY: the plan's elements, which may be read; the kept axes and the walk over
        // the reduced ones lead to no others.
        let items = [item, second.unwrap_or(item)];
        // SAFETY: as above.
        let mut run = unsafe { Run::new(walk, origins, items, threads) };
        run.ordered = first.indexed;
        let from = plan.dtype();
        let initial = self.initial.map(|bits| Scalar::from_bits(from, bits));
        let omits = self.rules.nan == NanPolicy::Omit;
        if let Some(initial) = initial.filter(|x| !(omits && x.to_f64().is_nan())) {
            run = run.with_initial(initial.to_bits(), from);
        }
        let answers = columns.iter().map(|column| Unwritten::new(column.answer, plan.outputs()));
        let others: Several<_> = columns
            .iter()
            .map(|column| move |output: usize| general(column.place, output))
            .collect();
        let asked: Several<Asked<'_>> = columns
            .iter()
            .zip(&others)
            .map(|(column, general)| Asked {
                stages: &column.stages,
                general,
                of_some: matches!(ops[column.place], Op::Min | Op::Max),
                known: self.known(columns, column),
            })
            .collect();
        run.answers(&asked, answers.collect()).map(Some)
    }
}

/// Whether answers in f64 are those of elements brought to f64.
fn has_wider_answers(op: Op) -> bool {
    use Op::{Max, Mean, Min, Norm1, Norm2, NormInf, Std, Sum, SumSq, Var};
    matches!(op, Sum | Mean | Var | Std | Norm1 | Norm2 | SumSq | Min | Max | NormInf)
}
