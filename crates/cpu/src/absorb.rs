//! Absorbing an array into states that are there: no new states, no merges.

use crate::axes::Spread;
use crate::gather::Buffers;
use crate::plan::Plan;
use crate::reduce::{Job, PIECE};
use crate::transpose::Group;
use crate::worker::{Absorber, check_run, in_turn};
use core::ops::Range;
use warpfold_core::op::{AnyState, Kind, RawRun};
use warpfold_core::{DType, Error, Result, with_element};
use warpfold_threads::Pieces;

/// What a thread keeps.
struct Space {
    absorbers: Vec<Absorber>,
    buffers: Buffers,
}

/// A job's elements on their way into states.
struct Into<'a> {
    job: &'a Job<'a>,
    plan: &'a Plan<'a>,
    /// Which of each output's states absorb in the general way.
    places: &'a [usize],
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
        let (Some(plan), Some(dtype)) = (Plan::new(self.views, self.reduced)?, self.dtype()) else {
            return Ok(());
        };
        self.check_states(&plan, dtype, states)?;
        // Elements without an output may be more than can be walked over.
        if states.is_empty() || plan.len() == 0 {
            return Ok(());
        }
        let mut places = Vec::new();
        for (place, &kind) in self.kinds.iter().enumerate() {
            if !self.add_columns(&plan, kind, states, place)? {
                places.push(place);
            }
        }
        if places.is_empty() {
            return Ok(());
        }
        let into = Into { job: self, plan: &plan, places: &places };
        if self.across_elements(&plan, dtype) { into.across(states) } else { into.shares(states) }
    }

    /// Checks that there are the states that the job's outputs take, and that
    /// they can absorb their elements.
    fn check_states(&self, plan: &Plan<'_>, dtype: DType, states: &[Vec<AnyState>]) -> Result<()> {
        let mismatch =
            |what, left: String, right: String| Err(Error::StateMismatch { what, left, right });
        if states.len() != plan.outputs() {
            let (left, right) = (states.len().to_string(), plan.outputs().to_string());
            return mismatch("number of outputs", left, right);
        }
        for states in states {
            let have = || states.iter().map(|state| (state.kind(), state.dtype()));
            if !have().eq(self.kinds.iter().map(|&kind| (kind, dtype))) {
                let left = format!("{:?}", have().collect::<Vec<_>>());
                return mismatch("state", left, format!("{:?} of {dtype}", self.kinds));
            }
        }
        // A run of one element, to learn whether the kinds take it.
        let element = &[0; 8][..dtype.size()];
        let others = if self.views[1].is_some() { element } else { &[] };
        let run = RawRun { start: 0, items: element, others };
        let walk = plan.walk(self.indexed());
        let run = if plan.len() == 0 { RawRun { start: 0, items: &[], others: &[] } } else { run };
        self.kinds.iter().try_for_each(|&kind| check_run(kind, dtype, run, Some(walk), self.start))
    }

    /// Absorbs by the kernels for many outputs, if one fits.
    fn add_columns(
        &self,
        plan: &Plan<'_>,
        kind: Kind,
        states: &mut [Vec<AnyState>],
        place: usize,
    ) -> Result<bool> {
        let spread = Spread { isa: self.isa, threads: self.threads };
        match (kind, plan.dtype()) {
            (Kind::Sum, DType::F32) => spread.add_sums::<f32>(plan, states, place),
            (Kind::Sum, DType::F64) => spread.add_sums::<f64>(plan, states, place),
            (Kind::Extrema, dtype) => {
                with_element!(dtype, T => spread.add_extremes::<T>(plan, states, place))
            }
            _ => Ok(false),
        }
    }
}

impl Into<'_> {
    fn space(&self) -> Result<Space> {
        let new =
            |&place: &usize| Absorber::new(self.job.kinds[place], self.plan.dtype(), self.job.isa);
        let absorbers = self.places.iter().map(new).collect::<Result<_>>()?;
        Ok(Space { absorbers, buffers: Buffers::default() })
    }

    /// Every thread takes some of the outputs.
    fn shares(&self, states: &mut [Vec<AnyState>]) -> Result<()> {
        let Job { isa, threads, .. } = *self.job;
        let share = (PIECE / self.plan.len()).clamp(1, self.plan.outputs().max(1));
        // Where neighbours are absorbed together, a share has some of them.
        let most = self.plan.outputs().div_ceil(4 * threads.count()).max(1);
        let beside = self.group(0, usize::MAX).map_or(1, |group| group.columns);
        let share = share.max(beside.min(most));
        Spread { isa, threads }.share(
            states,
            share,
            || self.space(),
            |space, first, states| match space {
                Ok(space) => self.absorb(space, first, states, 0..self.plan.len()),
                Err(error) => Err(error.clone()),
            },
        )
    }

    /// Every thread takes some of the elements of all outputs, of which there
    /// are few.
    fn across(&self, states: &mut [Vec<AnyState>]) -> Result<()> {
        let len = self.plan.len();
        let pieces = Pieces::new(len.div_ceil(PIECE));
        if pieces.count() == 1 || self.job.threads.count() == 1 {
            return self.absorb(&mut self.space()?, 0, states, 0..len);
        }
        let dtype = self.plan.dtype();
        let done = self.job.threads.run(pieces.count(), || {
            let mut space = self.space()?;
            let mut states = self.job.identities(dtype, self.plan.outputs())?;
            while let Some(piece) = pieces.take() {
                let positions = piece * PIECE..((piece + 1) * PIECE).min(len);
                self.absorb(&mut space, 0, &mut states, positions)?;
            }
            Ok(states)
        });
        let done: Result<Vec<Vec<Vec<AnyState>>>> = done.into_iter().collect();
        for others in done? {
            for (states, others) in states.iter_mut().zip(&others) {
                for &place in self.places {
                    states[place].merge(&others[place])?;
                }
            }
        }
        Ok(())
    }

    /// The outputs from `first` on, at most `most`, that are absorbed together.
    fn group(&self, first: usize, most: usize) -> Option<Group> {
        self.plan.group(first, self.job.indexed(), most)
    }

    /// Absorbs some positions of the outputs from `first` on.
    fn absorb(
        &self,
        space: &mut Space,
        first: usize,
        states: &mut [Vec<AnyState>],
        positions: Range<usize>,
    ) -> Result<()> {
        let indexed = self.job.indexed();
        let walk = self.plan.walk(indexed);
        let (dtype, takers) = (self.plan.dtype(), self.places.len());
        let Space { absorbers, buffers } = space;
        let mut take = |states: &mut Vec<AnyState>, run: RawRun<'_>| {
            in_turn(run, dtype, takers, |block| {
                for (absorber, &place) in absorbers.iter_mut().zip(self.places) {
                    absorber.absorb(&mut states[place], block, Some(walk), self.job.start)?;
                }
                Ok(())
            })
        };
        let mut at = 0;
        while at < states.len() {
            let positions = positions.clone();
            match self.group(first + at, states.len() - at) {
                Some(group) => {
                    let plan = self.plan;
                    plan.for_each_column(
                        first + at,
                        indexed,
                        group,
                        positions,
                        buffers,
                        |i, run| take(&mut states[at + i], run),
                    )?;
                    at += group.columns;
                }
                None => {
                    self.plan.for_each_run(first + at, indexed, positions, buffers, |run| {
                        take(&mut states[at], run)
                    })?;
                    at += 1;
                }
            }
        }
        Ok(())
    }
}
