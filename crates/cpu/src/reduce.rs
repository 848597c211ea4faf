//! Running a plan: from views to states, or straight to answers.

use crate::absorb::Intake;
use crate::accelerate::{Accelerate, Context};
use crate::axes::{LONG, Question, most_alone, of_both_ends};
use crate::gather::Buffers;
use crate::isa::Isa;
use crate::plan::Plan;
use crate::scatter::{Look, Scatter};
use crate::slices::Slices;
use crate::walks::{self, Walk};
use warpfold_core::layout::View;
use warpfold_core::op::{AnyState, Kind, Numbers, Op, Rules, Several, Value};
use warpfold_core::{DType, NanPolicy, Result, Scalar, fpenv};
use warpfold_threads::{Pieces, Threads};

/// Elements of a piece of work: enough to make handing out pieces cheap.
pub(crate) const PIECE: usize = 1 << 18;
/// An array of fewer bytes is not worth a second thread.
pub const SMALL: usize = 1 << 18;

/// Bytes of a row that are read as fast in any order of the rows.
const ROW: usize = 512;

/// Elements that are in a near cache once they are copied in the order of their indices.
const IN_CACHE: usize = 1 << 16;

/// The answers to one operation, output by output in C order.
#[derive(Clone, Debug)]
pub enum Outputs {
    /// As values.
    Values(Vec<Value>),
    /// As numbers of the operation's type.
    Numbers {
        /// The first, or the only one, of each answer.
        numbers: Numbers,
        /// The second ones of `minmax` and `argminmax`.
        second: Option<Numbers>,
    },
}

impl Outputs {
    /// Answers of one number each.
    pub(crate) fn one(numbers: Numbers) -> Outputs {
        Outputs::Numbers { numbers, second: None }
    }
}

/// The state of a slice, or of two for `dot`: without allocation if one thread
/// is enough.
#[must_use]
pub fn accelerated<S: Accelerate>(
    kind: Kind,
    slices: Slices<'_, S::Item>,
    isa: Isa,
    threads: Threads,
) -> S {
    if size_of_val(slices.items()) < SMALL {
        let mut state = S::identity(kind);
        state.accelerate(0, slices, &mut Context::new(isa));
        return state;
    }
    // Threads that are started take over the environment.
    fpenv::usual(|| shared(kind, slices, isa, threads))
}

/// The same on several threads.
fn shared<S: Accelerate>(kind: Kind, slices: Slices<'_, S::Item>, isa: Isa, threads: Threads) -> S {
    let pieces = Pieces::new(slices.len().div_ceil(PIECE));
    let mut states = threads
        .run(pieces.count(), || {
            let mut state = S::identity(kind);
            let mut context = Context::new(isa);
            while let Some(piece) = pieces.take() {
                let start = piece * PIECE;
                let part = slices.range(start..(start + PIECE).min(slices.len()));
                state.accelerate(start as u64, part, &mut context);
            }
            state
        })
        .into_iter();
    let mut state = states.next().unwrap_or_else(|| S::identity(kind));
    for other in states {
        // The pieces of one slice are of one kind and share no position.
        let merged = state.merge(&other);
        assert!(merged.is_ok(), "pieces that were handed out once overlap");
    }
    state
}

/// A reduction that the CPU can run.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The array, and for `dot` the second one.
    pub views: [Option<&'a View<'a>>; 2],
    /// Which axes are reduced.
    pub reduced: &'a [bool],
    /// The states wanted of each output.
    pub kinds: &'a [Kind],
    /// What the index of the first element counts as.
    pub start: u64,
    /// An element that takes part in each output, behind its own, of their type; of values, and not
    /// of states.
    pub initial: Option<Scalar>,
    /// Truth values of the array's shape, if some elements do not count: those whose own is false.
    /// Of values of one array, likewise.
    pub marks: Option<&'a View<'a>>,
    /// The instruction set.
    pub isa: Isa,
    /// The threads.
    pub threads: Threads,
}

impl Job<'_> {
    /// The states of every output, output by output in C order.
    ///
    /// # Errors
    /// Disagreeing views.
    pub fn states(&self) -> Result<Vec<Vec<AnyState>>> {
        let Some(plan) = Plan::new(self.views, self.reduced)? else { return Ok(Vec::new()) };
        walks::note(Walk::States);
        let mut states = Intake::new(self, &plan)?.identities(plan.outputs())?;
        self.absorb_into(&mut states)?;
        Ok(states)
    }

    /// Whether some of the states ask for indices: all states of a job walk the
    /// same way, so that each block is read once.
    pub(crate) fn indexed(&self) -> bool {
        self.kinds.iter().any(|kind| kind.has_positions())
    }

    /// The values of `ops` for every output, by operation; each operation
    /// comes with its state's place in `kinds`.
    ///
    /// # Errors
    /// Disagreeing views, and the errors of finishing.
    pub fn values(&self, ops: &[(Op, usize)], rules: &Rules) -> Result<Vec<Outputs>> {
        if let Some(found) = self.values_of_few(ops, rules)? {
            return Ok(found);
        }
        let plan = match (self.views[0], self.marks) {
            (Some(view), Some(marks)) => Some(Plan::marked(view, marks, self.reduced)?),
            _ => Plan::new(self.views, self.reduced)?,
        };
        let Some(plan) = plan else {
            return Ok(ops.iter().map(|_| Outputs::Values(Vec::new())).collect());
        };
        let mut found = self.side_by_side(&plan, ops, rules)?;
        let others: Several<usize> = (0..ops.len()).filter(|&i| found[i].is_none()).collect();
        if !others.is_empty() {
            walks::note(Walk::States);
            // Of these the states alone.
            let mut kinds: Vec<Kind> = Vec::new();
            let asked: Vec<(Op, usize)> = others
                .iter()
                .map(|&i| {
                    let (op, kind) = (ops[i].0, self.kinds[ops[i].1]);
                    let place = kinds.iter().position(|&other| other == kind);
                    kinds.extend(place.is_none().then_some(kind));
                    (op, place.unwrap_or(kinds.len() - 1))
                })
                .collect();
            let job = Job { kinds: &kinds, ..*self };
            let columns = Intake::new(&job, &plan)?.values(&asked, rules)?;
            for (i, values) in others.into_iter().zip(columns) {
                found[i] = Some(Outputs::Values(values));
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// The answers to each operation straight from memory, where that has accumulators.
    fn side_by_side(
        &self,
        plan: &Plan<'_>,
        ops: &[(Op, usize)],
        rules: &Rules,
    ) -> Result<Several<Option<Outputs>>> {
        let mut found: Several<Option<Outputs>> = ops.iter().map(|_| None).collect();
        let dtype = plan.dtype();
        let scatter = scatter(plan, rules)?;
        // Where one operation is worth a state, others of the same state have it, too.
        let fits = |&(op, _): &(Op, usize)| {
            let (one, two) = halves_of(op, dtype);
            [Some(one), two].into_iter().flatten().all(|op| self.is_for(plan, op, rules, scatter))
        };
        let fits: Several<bool> = ops.iter().map(fits).collect();
        let alone =
            |state: usize| ops.iter().zip(&fits).all(|(other, &fits)| other.1 != state || fits);
        // Operations with one number each, and the place of what they are asked for.
        let mut halves: Several<Op> = Several::new();
        let mut places: Several<usize> = Several::new();
        for (place, &(op, state)) in ops.iter().enumerate() {
            let (one, two) = halves_of(op, dtype);
            // What is made of both ends of integers has a type that neither half has, and of nothing
            // there is a largest magnitude.
            let made = two.is_some() && op.pair().is_none() && !dtype.is_float();
            if made && (rules.out.is_some() || op == Op::NormInf && self.marks.is_some()) {
                continue;
            }
            if alone(state) && self.views[1].is_some() == (op.arity() == 2) {
                halves.extend([Some(one), two].into_iter().flatten());
                places.resize(halves.len(), place);
            }
        }
        // Of one output all threads have time.
        let threads = if plan.outputs() == 1 { self.threads } else { Threads::Exactly(1) };
        let general = |half: usize, output: usize| -> Result<u64> {
            let (op, (asked, state)) = (halves[half], ops[places[half]]);
            let job = Job { kinds: &[self.kinds[state]], ..*self };
            let states = Intake::new(&job, plan)?.states_of(output, threads)?;
            let number = states[0].finish(op, rules).map(|value| value.first().to_bits());
            // An error is one of the operation that was asked, and not of a half of it.
            number.map_err(|error| states[0].finish(asked, rules).err().unwrap_or(error))
        };
        let Job { isa, threads, .. } = *self;
        let initial = self.initial.map(Scalar::to_bits);
        let (asked, ops, general) = (ops, &halves[..], &general);
        let numbers = Question {
            plan,
            ops,
            rules,
            isa,
            threads,
            marked: self.marks.is_some(),
            scatter,
            initial,
            halves: false,
            general,
        }
        .numbers()?;
        let mut numbers = numbers.into_iter().zip(&places).peekable();
        while let Some((first, &place)) = numbers.next() {
            let more = numbers.next_if(|&(_, &other)| other == place);
            found[place] = match (first, more) {
                (Some(numbers), None) => Some(Outputs::one(numbers)),
                (Some(numbers), Some((Some(second), _))) => Some(match asked[place].0 {
                    op if op.pair().is_some() => Outputs::Numbers { numbers, second: Some(second) },
                    op => Outputs::one(of_both_ends(op, &numbers, &second)),
                }),
                _ => None,
            };
        }
        Ok(found)
    }

    /// Whether accumulators may be faster than states.
    fn is_for(&self, plan: &Plan<'_>, op: Op, rules: &Rules, scatter: Scatter) -> bool {
        if plan.outputs() != 1 || self.marks.is_some() || scatter != Scatter::Near {
            return true;
        }
        let in_order = plan.walk(true).in_order;
        let most = match op {
            // In another order than that of indices, states look at all elements that are
            // as good as the best; accumulators copy rows.
            Op::ArgMin | Op::ArgMax if !in_order && plan.has_rows_in_index_order(ROW) => usize::MAX,
            Op::ArgMin | Op::ArgMax if !in_order => IN_CACHE,
            _ => {
                let dtype = plan.dtype();
                let widened = rules.out == Some(DType::F64) && dtype != DType::F64;
                most_alone(dtype, op, widened)
            }
        };
        plan.len() <= most
    }
}

/// The operations with one number each that answer an operation.
fn halves_of(op: Op, dtype: DType) -> (Op, Option<Op>) {
    match op.pair() {
        Some((one, two)) => (one, Some(two)),
        None if op == Op::Range => (Op::Min, Some(Op::Max)),
        None if op == Op::NormInf && !dtype.is_float() => (Op::Min, Some(Op::Max)),
        None => (op, None),
    }
}

/// How far apart the elements of a single long output are, as far as some of them tell.
fn scatter(plan: &Plan<'_>, rules: &Rules) -> Result<Scatter> {
    let (len, mut looked, mut buffers) = (plan.len(), Look::at(plan.dtype()), Buffers::default());
    if plan.outputs() == 1 && len > LONG && plan.dtype().is_float() {
        for from in Look::places(len) {
            plan.for_each_run(0, false, from, &mut buffers, |run| {
                looked.take(run.items);
                Ok(())
            })?;
        }
    }
    // What is left out is nothing to the others.
    let scatter = looked.scatter();
    let omitted = scatter == Scatter::Special && rules.nan == NanPolicy::Omit;
    Ok(if omitted { Scatter::Near } else { scatter })
}
