//! The states of all outputs, as they come.

use super::Engine;
use crate::{Error, Result};
use warpfold_core::DType;
use warpfold_core::op::{AnyState, Kind};

/// The states of all outputs, in C order.
pub(super) struct Collector<'a> {
    dtype: DType,
    kinds: &'a [Kind],
    outputs: usize,
    states: Vec<Option<AnyState>>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(dtype: DType, kinds: &'a [Kind], outputs: usize) -> Result<Self> {
        let count = outputs.saturating_mul(kinds.len());
        let mut states = Vec::new();
        let too_many = |_| warpfold_core::Error::TooManyOutputs { outputs };
        states.try_reserve_exact(count).map_err(too_many)?;
        states.resize_with(count, || None);
        Ok(Collector { dtype, kinds, outputs, states })
    }

    /// Takes the state of a piece of an output, of the kind with this place.
    pub(super) fn put(&mut self, output: usize, kind: usize, state: AnyState) -> Result<()> {
        match &mut self.states[output * self.kinds.len() + kind] {
            Some(before) => before.merge(&state)?,
            empty => *empty = Some(state),
        }
        Ok(())
    }

    /// The states, output by output; of no elements where none came.
    ///
    /// # Errors
    /// [`Error::NoKernel`] where there is no such state.
    pub(super) fn finish(self) -> Result<Vec<Vec<AnyState>>> {
        let Collector { dtype, kinds, outputs, states } = self;
        let mut states = states.into_iter();
        let one = |(state, &kind): (Option<AnyState>, &Kind)| match state {
            Some(state) => Ok(state),
            None if Engine::supports(kind, dtype) => Ok(AnyState::identity(kind, dtype)?),
            None => Err(Error::NoKernel { kind, dtype }),
        };
        (0..outputs)
            .map(|_| states.by_ref().take(kinds.len()).zip(kinds).map(one).collect())
            .collect()
    }
}
