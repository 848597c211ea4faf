//! Running a plan: from views to states, or straight to answers.

use crate::accelerate::{Accelerate, Context};
use crate::axes::{LONG, Question, differences, most_alone};
use crate::gather::Buffers;
use crate::grid::GridSum;
use crate::isa::Isa;
use crate::plan::Plan;
use crate::scatter::{Look, Scatter};
use crate::slices::Slices;
use crate::transpose::Group;
use crate::walks::{self, Walk};
use crate::worker::{Worker, absorb_in_turn};
use warpfold_core::layout::View;
use warpfold_core::op::{AnyState, Kind, Numbers, Op, RawRun, Rules, Value};
use warpfold_core::{DType, NanPolicy, Result, Scalar, fpenv};
use warpfold_threads::{Pieces, Threads};

/// Elements of a piece of work: enough to make handing out pieces cheap.
pub(crate) const PIECE: usize = 1 << 18;
/// An array of fewer bytes is not worth a second thread.
pub const SMALL: usize = 1 << 18;

/// Bytes of a row that are read as fast in any order of the rows.
const ROW: usize = 512;

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
    pub(crate) fn dtype(&self) -> Option<DType> {
        self.views[0].map(View::dtype)
    }

    /// New workers on the states wanted.
    fn workers(&self, dtype: DType) -> Result<Vec<Worker>> {
        self.kinds.iter().map(|&kind| Worker::new(kind, dtype, self.isa)).collect()
    }

    /// The states of every output, output by output in C order.
    ///
    /// # Errors
    /// Disagreeing views.
    pub fn states(&self) -> Result<Vec<Vec<AnyState>>> {
        let (Some(plan), Some(dtype)) = (Plan::new(self.views, self.reduced)?, self.dtype()) else {
            return Ok(Vec::new());
        };
        walks::note(Walk::States);
        let mut states = self.identities(dtype, plan.outputs())?;
        self.absorb_into(&mut states)?;
        Ok(states)
    }

    /// The states of no elements for so many outputs.
    pub(crate) fn identities(&self, dtype: DType, outputs: usize) -> Result<Vec<Vec<AnyState>>> {
        let one = || self.kinds.iter().map(|&kind| AnyState::identity(kind, dtype)).collect();
        (0..outputs).map(|_| one()).collect()
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
        let (Some(plan), Some(dtype)) = (plan, self.dtype()) else {
            return Ok(ops.iter().map(|_| Outputs::Values(Vec::new())).collect());
        };
        let mut found = self.side_by_side(&plan, ops, rules)?;
        let others: Vec<usize> = (0..ops.len()).filter(|&i| found[i].is_none()).collect();
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
            let columns = job.one_by_one(&plan, dtype, &asked, rules)?;
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
    ) -> Result<Vec<Option<Outputs>>> {
        let mut found: Vec<Option<Outputs>> = ops.iter().map(|_| None).collect();
        let dtype = plan.dtype();
        let scatter = scatter(plan, rules)?;
        // Operations with one number each, and the place of what they are asked for.
        let mut halves: Vec<Op> = Vec::new();
        let mut places: Vec<usize> = Vec::new();
        for (place, &(op, _)) in ops.iter().enumerate() {
            let (one, two) = halves_of(op);
            // Differences of integers have a type that neither half has.
            if op == Op::Range && rules.out.is_some() && !dtype.is_float() {
                continue;
            }
            let alone =
                [Some(one), two].into_iter().flatten().all(|op| self.is_for(plan, op, scatter));
            if alone && self.views[1].is_some() == (op.arity() == 2) {
                halves.extend([Some(one), two].into_iter().flatten());
                places.resize(halves.len(), place);
            }
        }
        // Of one output all threads have time.
        let threads = if plan.outputs() == 1 { self.threads } else { Threads::Exactly(1) };
        let general = |half: usize, output: usize| -> Result<u64> {
            let (op, (asked, state)) = (halves[half], ops[places[half]]);
            if self.initial.is_none()
                && self.marks.is_none()
                && rules.out.is_none()
                && let Some(found) = on_grid(plan, output, op)
            {
                return Ok(found.to_bits());
            }
            let job = Job { kinds: &[self.kinds[state]], ..*self };
            let states = job.one(plan, output, dtype, threads)?;
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
            general,
        }
        .numbers()?;
        let mut numbers = numbers.into_iter().zip(&places).peekable();
        while let Some((first, &place)) = numbers.next() {
            let more = numbers.next_if(|&(_, &other)| other == place);
            found[place] = match (first, more) {
                (Some(numbers), None) => Some(Outputs::one(numbers)),
                (Some(numbers), Some((Some(second), _))) => Some(match asked[place].0 {
                    Op::Range => Outputs::one(differences(&numbers, &second)),
                    _ => Outputs::Numbers { numbers, second: Some(second) },
                }),
                _ => None,
            };
        }
        Ok(found)
    }

    /// Whether accumulators may be faster than states.
    fn is_for(&self, plan: &Plan<'_>, op: Op, scatter: Scatter) -> bool {
        if plan.outputs() != 1 || self.marks.is_some() || scatter != Scatter::Near {
            return true;
        }
        let in_order = plan.walk(true).in_order;
        let most = match op {
            // In another order than that of indices, states look at all elements that are
            // as good as the best; accumulators copy rows.
            Op::ArgMin | Op::ArgMax if !in_order && plan.has_rows_in_index_order(ROW) => usize::MAX,
            Op::ArgMin | Op::ArgMax if !in_order => LONG,
            _ => most_alone(plan.dtype(), op),
        };
        plan.len() <= most
    }

    /// The values of `ops` with a state for each output.
    fn one_by_one(
        &self,
        plan: &Plan<'_>,
        dtype: DType,
        ops: &[(Op, usize)],
        rules: &Rules,
    ) -> Result<Vec<Vec<Value>>> {
        let mut columns: Vec<Vec<Value>> = ops.iter().map(|_| Vec::new()).collect();
        if self.marks.is_some() || self.across_elements(plan, dtype) {
            for output in 0..plan.outputs() {
                let states = self.one(plan, output, dtype, self.threads)?;
                for (column, &(op, state)) in columns.iter_mut().zip(ops) {
                    column.push(states[state].finish(op, rules)?);
                }
            }
            return Ok(columns);
        }
        let shares = self.shares(plan, |outputs| {
            // As many as are absorbed together.
            let mut workers = Vec::new();
            let mut buffers = Buffers::default();
            let mut columns: Vec<Vec<Value>> = ops.iter().map(|_| Vec::new()).collect();
            let mut at = outputs.start;
            while at < outputs.end {
                let group = plan.group(at, self.indexed(), outputs.end - at);
                let together = group.map_or(1, |group| group.columns);
                while workers.len() < together {
                    workers.push(self.workers(dtype)?);
                }
                let workers = &mut workers[..together];
                workers.iter_mut().flatten().for_each(Worker::reset);
                self.absorb(plan, at, group, 0..plan.len(), workers, &mut buffers)?;
                for workers in workers {
                    self.add_initial(plan, dtype, workers)?;
                    for (column, &(op, state)) in columns.iter_mut().zip(ops) {
                        column.push(workers[state].finish(op, rules)?);
                    }
                }
                at += together;
            }
            Ok(columns)
        })?;
        for share in shares {
            for (column, values) in columns.iter_mut().zip(share) {
                column.extend(values);
            }
        }
        Ok(columns)
    }

    /// Whether the threads share each output's elements rather than the
    /// outputs.
    pub(crate) fn across_elements(&self, plan: &Plan<'_>, dtype: DType) -> bool {
        plan.len().saturating_mul(dtype.size()) >= SMALL
            && plan.outputs() < 4 * self.threads.count()
    }

    /// Runs `work` on ranges of outputs, on all threads, and puts its results
    /// in the order of the outputs.
    fn shares<R: Send>(
        &self,
        plan: &Plan<'_>,
        work: impl Fn(core::ops::Range<usize>) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let per_output = plan.len().max(1);
        // Where neighbours are absorbed together, a share has some of them.
        let most = plan.outputs().div_ceil(4 * self.threads.count()).max(1);
        let group = plan.group(0, self.indexed(), most);
        let together = group.map_or(1, |group| group.columns);
        let share = (PIECE / per_output).max(together).clamp(1, plan.outputs().max(1));
        let pieces = Pieces::new(plan.outputs().div_ceil(share));
        let most = plan.outputs().saturating_mul(per_output) / (SMALL / 8) + 1;
        let done = self.threads.run(most, || {
            let mut done = Vec::new();
            while let Some(piece) = pieces.take() {
                let outputs = piece * share..((piece + 1) * share).min(plan.outputs());
                done.push((piece, work(outputs)?));
            }
            Ok(done)
        });
        let done: Result<Vec<Vec<(usize, R)>>> = done.into_iter().collect();
        let mut done: Vec<_> = done?.into_iter().flatten().collect();
        done.sort_by_key(|&(piece, _)| piece);
        Ok(done.into_iter().map(|(_, result)| result).collect())
    }

    /// The states of one output.
    fn one(
        &self,
        plan: &Plan<'_>,
        output: usize,
        dtype: DType,
        threads: Threads,
    ) -> Result<Vec<AnyState>> {
        let len = plan.len();
        if self.marks.is_some() {
            let mut workers = self.workers(dtype)?;
            plan.for_each_marked(output, |start, marked, items| {
                if marked {
                    let run = RawRun { start, items, others: &[] };
                    return workers.iter_mut().try_for_each(|worker| worker.absorb(run));
                }
                let len = (items.len() / dtype.size()) as u64;
                workers.iter_mut().for_each(|worker| worker.skip(start, len));
                Ok(())
            })?;
            self.add_initial(plan, dtype, &mut workers)?;
            return Ok(workers.into_iter().map(Worker::into_state).collect());
        }
        let pieces = Pieces::new(len.div_ceil(PIECE));
        let most = if len.saturating_mul(dtype.size()) < SMALL { 1 } else { len.div_ceil(PIECE) };
        let partial = threads.run(most, || {
            let mut workers = self.workers(dtype)?;
            let mut buffers = Buffers::default();
            while let Some(piece) = pieces.take() {
                let positions = piece * PIECE..((piece + 1) * PIECE).min(len);
                let workers = core::slice::from_mut(&mut workers);
                self.absorb(plan, output, None, positions, workers, &mut buffers)?;
            }
            Ok(workers.into_iter().map(Worker::into_state).collect::<Vec<_>>())
        });
        let partial: Result<Vec<Vec<AnyState>>> = partial.into_iter().collect();
        let initial = match self.initial {
            Some(_) => {
                let mut workers = self.workers(dtype)?;
                self.add_initial(plan, dtype, &mut workers)?;
                Some(workers.into_iter().map(Worker::into_state).collect())
            }
            None => None,
        };
        let mut partial = partial?.into_iter().chain(initial);
        let mut states = partial.next().unwrap_or_default();
        for others in partial {
            for (state, other) in states.iter_mut().zip(&others) {
                state.merge(other)?;
            }
        }
        Ok(states)
    }

    /// Lets the workers of an output absorb the initial value, if there is one.
    fn add_initial(&self, plan: &Plan<'_>, dtype: DType, workers: &mut [Worker]) -> Result<()> {
        let Some(initial) = self.initial else { return Ok(()) };
        let mut bytes = [0; 8];
        let items = &mut bytes[..dtype.size()];
        Numbers::set_bits(items, dtype, 0, initial.to_bits());
        let run = RawRun { start: plan.len() as u64, items, others: &[] };
        workers.iter_mut().try_for_each(|worker| worker.absorb(run))
    }

    /// Lets the workers absorb some positions of an output, or of the group of
    /// outputs that begins with it.
    fn absorb(
        &self,
        plan: &Plan<'_>,
        output: usize,
        group: Option<Group>,
        positions: core::ops::Range<usize>,
        workers: &mut [Vec<Worker>],
        buffers: &mut Buffers,
    ) -> Result<()> {
        let indexed = self.indexed();
        let walk = plan.walk(indexed);
        let mut take = |place: usize, run: RawRun<'_>| {
            absorb_in_turn(&mut workers[place], run, plan.dtype(), Some(walk), self.start)
        };
        match group {
            Some(group) => plan.for_each_column(output, indexed, group, positions, buffers, take),
            None => plan.for_each_run(output, indexed, positions, buffers, |run| take(0, run)),
        }
    }
}

/// The operations with one number each that answer an operation.
fn halves_of(op: Op) -> (Op, Option<Op>) {
    match op.pair() {
        Some((one, two)) => (one, Some(two)),
        None if op == Op::Range => (Op::Min, Some(Op::Max)),
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

/// The sum or the mean of an output of a few f64, without its state.
fn on_grid(plan: &Plan<'_>, output: usize, op: Op) -> Option<f64> {
    if plan.dtype() != DType::F64 || plan.len() > LONG || !matches!(op, Op::Sum | Op::Mean) {
        return None;
    }
    let (mut found, mut buffers) = (None, Buffers::default());
    plan.for_each_run(output, false, 0..plan.len(), &mut buffers, |run| {
        let whole = run.items.len() == plan.len() * size_of::<f64>();
        if let Ok(items) = bytemuck::try_cast_slice(run.items)
            && whole
        {
            found = GridSum::of(items);
        }
        Ok(())
    })
    .ok()?;
    if op == Op::Sum { found?.rounded() } else { found?.divided(plan.len() as u64) }
}
