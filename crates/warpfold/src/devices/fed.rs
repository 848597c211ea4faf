//! States on a device that a thread feeds, and those of the CPU that help it.

use super::engines::{Opened, failure};
use crate::gaps::{Piece, around};
use warpfold_core::layout::Traversal;
use warpfold_core::op::{AnyState, Kind, RawRun};
use warpfold_core::{DType, Result};
use warpfold_cpu::isa::Isa;
use warpfold_cpu::{Worker, check_run};
use warpfold_cuda::engine::Feeder;

/// Between two missing rows a device is sent no fewer elements than this: copy
/// and launch take longer than the CPU.
const SHORT: usize = 4096;

/// The states on a device, and those of the CPU that help it.
pub(crate) struct Fed {
    feeder: Feeder,
    kinds: Vec<Kind>,
    dtype: DType,
    isa: Isa,
    /// Workers on the states with positions, for what no kernel can take; made
    /// when needed.
    beside: Vec<Worker>,
}

impl Fed {
    /// States on a device to which the CPU lends a hand, with these instructions.
    ///
    /// # Errors
    /// What the device says; a kind that the type does not have.
    pub(crate) fn new(
        opened: &Opened,
        isa: Isa,
        kinds: &[Kind],
        dtype: DType,
        arrays: usize,
    ) -> Result<Fed> {
        let feeder = opened.feeder(kinds, dtype, arrays)?;
        Ok(Fed { feeder, kinds: kinds.to_vec(), dtype, isa, beside: Vec::new() })
    }

    /// What the states are.
    pub(crate) fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Takes in a run whose positions are those of `walk` if there is one, counted
    /// from index `base`.
    ///
    /// # Errors
    /// A run that the CPU refuses as well; what the device says.
    pub(crate) fn absorb(
        &mut self,
        run: RawRun<'_>,
        walk: Option<&Traversal>,
        base: u64,
    ) -> Result<()> {
        self.check(run, walk, base)?;
        let moved = RawRun { start: run.start + base, ..run };
        match walk.filter(|walk| !walk.in_order) {
            None => self.feeder.absorb(moved).map_err(failure),
            // A kernel's indices ascend; those of this walk do not.
            Some(walk) => {
                self.feeder.absorb_for(moved, |kind| kind != Kind::ArgExtrema).map_err(failure)?;
                for worker in self.beside()? {
                    if worker.kind() == Kind::ArgExtrema {
                        worker.absorb_along(run, walk, base)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Takes in `bytes` bytes of elements from position `start` on, which `read` fetches.
    ///
    /// # Errors
    /// What the device says; inside, what `read` says.
    pub(crate) fn absorb_from<E>(
        &mut self,
        start: u64,
        bytes: usize,
        read: impl FnMut(usize, &mut [u8]) -> Result<(), E>,
    ) -> Result<Result<(), E>> {
        self.feeder.absorb_from(start, bytes, read).map_err(failure)
    }

    /// Takes in the values of rows some of which have none.
    ///
    /// # Errors
    /// Those of [`absorb`](Self::absorb).
    pub(crate) fn absorb_around(
        &mut self,
        run: RawRun<'_>,
        gaps: impl Iterator<Item = (u64, u64)> + Clone,
    ) -> Result<()> {
        self.check(run, None, 0)?;
        self.feeder.absorb_for(run, |kind| !kind.is_positional()).map_err(failure)?;
        if !self.kinds.iter().any(|kind| kind.is_positional()) {
            return Ok(());
        }
        self.beside()?;
        let (feeder, beside) = (&mut self.feeder, &mut self.beside);
        let short = SHORT * self.dtype.size();
        around(run, self.dtype, gaps, |piece| match piece {
            Piece::Values(run) if run.items.len() < short => {
                beside.iter_mut().try_for_each(|worker| worker.absorb(run))
            }
            Piece::Values(run) => feeder.absorb_for(run, Kind::is_positional).map_err(failure),
            Piece::Gap(start, len) => {
                beside.iter_mut().for_each(|worker| worker.skip(start, len));
                Ok(())
            }
        })
    }

    /// The states, one of each kind.
    ///
    /// # Errors
    /// Errors of the device for any of the runs.
    pub(crate) fn into_states(mut self) -> Result<Vec<AnyState>> {
        let mut states = self.feeder.take_states().map_err(failure)?;
        for worker in self.beside {
            let other = worker.into_state();
            if let Some(state) = states.iter_mut().find(|s| s.kind() == other.kind()) {
                state.merge(&other)?;
            }
        }
        Ok(states)
    }

    /// Refuses what is not a run, as the CPU does.
    fn check(&self, run: RawRun<'_>, walk: Option<&Traversal>, base: u64) -> Result<()> {
        self.kinds.iter().try_for_each(|&kind| check_run(kind, self.dtype, run, walk, base))
    }

    /// The workers beside the device.
    fn beside(&mut self) -> Result<&mut [Worker]> {
        if self.beside.is_empty() {
            let positional = self.kinds.iter().filter(|kind| kind.is_positional());
            self.beside = positional
                .map(|&kind| Worker::new(kind, self.dtype, self.isa))
                .collect::<Result<_>>()?;
        }
        Ok(&mut self.beside)
    }
}
