//! Letting states absorb the elements of an array, many outputs at a time.

use crate::gather::Buffers;
use crate::plan::Plan;
use crate::reduce::{Job, PIECE, SMALL};
use crate::summaries::Summaries;
use crate::worker::{Absorber, check_run, in_turn};
use core::ops::Range;
use std::sync::{Mutex, PoisonError};
use warpfold_core::op::{AnyState, Numbers, Op, RawRun, Rules, Value};
use warpfold_core::{Error, Result};
use warpfold_threads::{Pieces, Threads};

/// Outputs whose states are kept at a time, where they are answered at once.
const TOGETHER: usize = 1024;

/// What a thread keeps: kernels, each with the place of its states among those of an output, and
/// memory for copies.
struct Hands {
    absorbers: Vec<(usize, Absorber)>,
    buffers: Buffers,
}

/// A job's elements on their way into states, those of the job's kinds.
#[derive(Clone, Copy)]
pub(crate) struct Intake<'a> {
    job: &'a Job<'a>,
    plan: &'a Plan<'a>,
}

impl Job<'_> {
    /// Lets the states of every output, output by output in C order, absorb its
    /// elements, as if the job's own [`states`](Self::states) were merged into
    /// them. They are of the job's kinds; those with positions hold none of the
    /// job's. After an error nothing is absorbed.
    ///
    /// # Errors
    /// Disagreeing views; [`Error::StateMismatch`] if the states are others;
    /// [`Error::StartTooLarge`] and [`Error::Arity`].
    pub fn absorb_into(&self, states: &mut [Vec<AnyState>]) -> Result<()> {
        let Some(plan) = Plan::new(self.views, self.reduced)? else { return Ok(()) };
        let intake = Intake::new(self, &plan)?;
        intake.check(states)?;
        // Elements without an output may be more than can be walked over.
        if states.is_empty() || plan.len() == 0 {
            return Ok(());
        }
        let mut places = Vec::new();
        for (place, &kind) in self.kinds.iter().enumerate() {
            let Some(found) = Summaries::of(self, &plan, kind) else {
                places.push(place);
                continue;
            };
            found.absorb(states, place);
            let mut hands = intake.hands([place])?;
            for &output in &found.left {
                let states = &mut states[output..=output];
                intake.absorb(&mut hands, output, states, 0..plan.len())?;
            }
        }
        if places.is_empty() {
            Ok(())
        } else if intake.shares_elements() {
            intake.across(0, states, &places, self.threads)
        } else {
            intake.outputs(states, &places)
        }
    }
}

impl<'a> Intake<'a> {
    /// # Errors
    /// Those of [`check_run`]: the job's states cannot absorb its elements.
    pub(crate) fn new(job: &'a Job<'a>, plan: &'a Plan<'a>) -> Result<Intake<'a>> {
        // A run of one element, to learn whether the kinds take it.
        let element = &[0; 8][..plan.dtype().size() * plan.len().min(1)];
        let others = if job.views[1].is_some() { element } else { &[] };
        let (run, walk) = (RawRun { start: 0, items: element, others }, plan.walk(job.indexed()));
        let mut kinds = job.kinds.iter();
        kinds.try_for_each(|&kind| check_run(kind, plan.dtype(), run, Some(walk), job.start))?;
        Ok(Intake { job, plan })
    }

    /// Checks that there are the states that the job's outputs take.
    fn check(&self, states: &[Vec<AnyState>]) -> Result<()> {
        let Intake { job, plan } = *self;
        let dtype = plan.dtype();
        let mismatch =
            |what, left: String, right: String| Err(Error::StateMismatch { what, left, right });
        if states.len() != plan.outputs() {
            let (left, right) = (states.len().to_string(), plan.outputs().to_string());
            return mismatch("number of outputs", left, right);
        }
        for states in states {
            let have = || states.iter().map(|state| (state.kind(), state.dtype()));
            if !have().eq(job.kinds.iter().map(|&kind| (kind, dtype))) {
                let left = format!("{:?}", have().collect::<Vec<_>>());
                return mismatch("state", left, format!("{:?} of {dtype}", job.kinds));
            }
        }
        Ok(())
    }

    /// The states of no elements for so many outputs.
    pub(crate) fn identities(&self, outputs: usize) -> Result<Vec<Vec<AnyState>>> {
        let Intake { job, plan } = *self;
        let identity = |&kind: &_| AnyState::identity(kind, plan.dtype());
        (0..outputs).map(|_| job.kinds.iter().map(identity).collect()).collect()
    }

    /// For the states at these places.
    fn hands(&self, places: impl IntoIterator<Item = usize>) -> Result<Hands> {
        let Intake { job, plan } = *self;
        let one = |place: usize| -> Result<(usize, Absorber)> {
            Ok((place, Absorber::new(job.kinds[place], plan.dtype(), job.isa)?))
        };
        let absorbers = places.into_iter().map(one).collect::<Result<_>>()?;
        Ok(Hands { absorbers, buffers: Buffers::default() })
    }

    /// The places of all states of an output.
    fn all(&self) -> Vec<usize> {
        (0..self.job.kinds.len()).collect()
    }

    /// Whether the threads share each output's elements rather than the
    /// outputs.
    fn shares_elements(&self) -> bool {
        self.plan.is_worth_threads() && self.plan.outputs() < 4 * self.job.threads.count()
    }

    /// How many outputs a thread takes at a time: where neighbours are copied together, many of
    /// these.
    fn share(&self) -> usize {
        let Intake { job, plan } = *self;
        let most = plan.outputs().div_ceil(4 * job.threads.count()).max(1);
        let together = plan.together(0, job.indexed(), most);
        let share = if together == 1 { 1 } else { most.next_multiple_of(together) };
        (PIECE / plan.len().max(1)).max(share).clamp(1, plan.outputs().max(1))
    }

    /// Every thread takes some of the outputs.
    fn outputs(&self, states: &mut [Vec<AnyState>], places: &[usize]) -> Result<()> {
        let share = self.share();
        // A thread takes each share once.
        let shares: Vec<_> = states.chunks_mut(share).map(|some| Mutex::new(Some(some))).collect();
        let pieces = Pieces::new(shares.len());
        let done = self.job.threads.run(shares.len(), || {
            let mut hands = self.hands(places.iter().copied())?;
            while let Some(piece) = pieces.take() {
                let taken = shares[piece].lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(states) = taken {
                    self.absorb(&mut hands, piece * share, states, 0..self.plan.len())?;
                }
            }
            Ok(())
        });
        done.into_iter().collect()
    }

    /// Every thread takes some of the elements of each output from `first` on, of which there are
    /// few.
    fn across(
        &self,
        first: usize,
        states: &mut [Vec<AnyState>],
        places: &[usize],
        threads: Threads,
    ) -> Result<()> {
        let len = self.plan.len();
        let pieces = Pieces::new(len.div_ceil(PIECE));
        if pieces.count() == 1 || threads.count() == 1 || !self.plan.is_worth_threads() {
            return self.absorb(&mut self.hands(places.iter().copied())?, first, states, 0..len);
        }
        let done = threads.run(pieces.count(), || {
            let mut hands = self.hands(places.iter().copied())?;
            let mut states = self.identities(states.len())?;
            while let Some(piece) = pieces.take() {
                let positions = piece * PIECE..((piece + 1) * PIECE).min(len);
                self.absorb(&mut hands, first, &mut states, positions)?;
            }
            Ok(states)
        });
        let done: Result<Vec<Vec<Vec<AnyState>>>> = done.into_iter().collect();
        for others in done? {
            for (states, others) in states.iter_mut().zip(&others) {
                places.iter().try_for_each(|&place| states[place].merge(&others[place]))?;
            }
        }
        Ok(())
    }

    /// Absorbs some positions of the outputs from `first` on.
    fn absorb(
        &self,
        hands: &mut Hands,
        first: usize,
        states: &mut [Vec<AnyState>],
        positions: Range<usize>,
    ) -> Result<()> {
        let Intake { job, plan } = *self;
        let indexed = job.indexed();
        let walk = plan.walk(indexed);
        let Hands { absorbers, buffers } = hands;
        let outputs = first..first + states.len();
        plan.for_each_output(outputs, indexed, positions, buffers, |output, run| {
            in_turn(run, plan.dtype(), absorbers.len(), |block| {
                for (place, absorber) in absorbers.iter_mut() {
                    absorber.absorb(&mut states[output][*place], block, Some(walk), job.start)?;
                }
                Ok(())
            })
        })
    }

    /// Absorbs those elements of an output of a marked plan that count.
    fn absorb_marked(&self, output: usize, states: &mut [AnyState]) -> Result<()> {
        let (mut hands, size) = (self.hands(self.all())?, self.plan.dtype().size());
        self.plan.for_each_marked(output, |start, marked, items| {
            for (place, absorber) in &mut hands.absorbers {
                let state = &mut states[*place];
                if marked {
                    absorber.absorb(state, RawRun { start, items, others: &[] }, None, 0)?;
                } else {
                    state.skip(start, (items.len() / size) as u64);
                }
            }
            Ok(())
        })
    }

    /// Absorbs the initial value of an output, if there is one.
    fn absorb_initial(&self, hands: &mut Hands, states: &mut [AnyState]) -> Result<()> {
        let Some(initial) = self.job.initial else { return Ok(()) };
        let dtype = self.plan.dtype();
        let mut bytes = [0; 8];
        let items = &mut bytes[..dtype.size()];
        Numbers::set_bits(items, dtype, 0, initial.to_bits());
        let run = RawRun { start: self.plan.len() as u64, items, others: &[] };
        let mut each = hands.absorbers.iter_mut();
        each.try_for_each(|(place, absorber)| absorber.absorb(&mut states[*place], run, None, 0))
    }

    /// The values of `ops`, by operation, with a state for each output.
    pub(crate) fn values(&self, ops: &[(Op, usize)], rules: &Rules) -> Result<Vec<Vec<Value>>> {
        let Intake { job, plan } = *self;
        let finish = |columns: &mut [Vec<Value>], states: &[AnyState]| -> Result<()> {
            columns.iter_mut().zip(ops).try_for_each(|(column, &(op, state))| {
                column.push(states[state].finish(op, rules)?);
                Ok(())
            })
        };
        let blank = || -> Vec<Vec<Value>> { ops.iter().map(|_| Vec::new()).collect() };
        let mut columns = blank();
        if job.marks.is_some() || self.shares_elements() {
            for output in 0..plan.outputs() {
                finish(&mut columns, &self.states_of(output, job.threads)?)?;
            }
            return Ok(columns);
        }
        let share = self.share();
        let pieces = Pieces::new(plan.outputs().div_ceil(share));
        let most = plan.outputs().saturating_mul(plan.len().max(1)) / (SMALL / 8) + 1;
        let done = job.threads.run(most, || -> Result<Vec<_>> {
            let mut hands = self.hands(self.all())?;
            let mut states = Vec::new();
            let mut done = Vec::new();
            while let Some(piece) = pieces.take() {
                let outputs = piece * share..((piece + 1) * share).min(plan.outputs());
                let mut columns = blank();
                for first in outputs.clone().step_by(TOGETHER) {
                    let count = TOGETHER.min(outputs.end - first);
                    if states.len() < count {
                        states = self.identities(count)?;
                    }
                    let states = &mut states[..count];
                    states.iter_mut().flatten().for_each(AnyState::reset);
                    self.absorb(&mut hands, first, states, 0..plan.len())?;
                    for states in states {
                        self.absorb_initial(&mut hands, states)?;
                        finish(&mut columns, states)?;
                    }
                }
                done.push((piece, columns));
            }
            Ok(done)
        });
        let mut shares = Vec::new();
        for done in done {
            shares.extend(done?);
        }
        shares.sort_unstable_by_key(|&(piece, _)| piece);
        for (_, share) in shares {
            columns.iter_mut().zip(share).for_each(|(column, values)| column.extend(values));
        }
        Ok(columns)
    }

    /// The states of one output, whose elements `threads` share.
    pub(crate) fn states_of(&self, output: usize, threads: Threads) -> Result<Vec<AnyState>> {
        let mut states = self.identities(1)?;
        if self.job.marks.is_some() {
            self.absorb_marked(output, &mut states[0])?;
        } else {
            self.across(output, &mut states, &self.all(), threads)?;
        }
        if self.job.initial.is_some() {
            self.absorb_initial(&mut self.hands(self.all())?, &mut states[0])?;
        }
        Ok(states.remove(0))
    }
}
