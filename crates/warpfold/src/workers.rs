//! States that absorb runs on one thread, on the CPU or a device.

use crate::devices::{Fed, Opened};
use crate::gaps::{Piece, around};
use core::fmt;
use warpfold_core::layout::Traversal;
use warpfold_core::op::wide::Wide;
use warpfold_core::op::{AnyState, Kind, RawRun};
use warpfold_core::{DType, Error, Result, fpenv};
use warpfold_cpu::isa::Isa;
use warpfold_cpu::walks::{self, Walk};
use warpfold_cpu::{Worker, absorb_in_turn, check_run};

/// States of several kinds over elements of one type, which absorb runs on one
/// thread: a reader of files or streams feeds them.
///
/// [`ForReaders::workers`](crate::internal::ForReaders::workers) makes them, and
/// [`ForReaders::gather`](crate::internal::ForReaders::gather) takes what they have made.
pub struct Workers {
    dtype: DType,
    at: At,
    /// The buffer for elements that no device copies from.
    buffer: Vec<u64>,
    /// The states of elements beyond 64 bits, one of each kind, once there are such.
    wide: Vec<Wide>,
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kinds, place): (Vec<Kind>, _) = match &self.at {
            At::Cpu(workers) => (workers.iter().map(Worker::kind).collect(), "cpu"),
            At::Device(fed) => (fed.kinds().to_vec(), "device"),
        };
        write!(f, "Workers({kinds:?} of {}, {place})", self.dtype)
    }
}

enum At {
    Cpu(Vec<Worker>),
    Device(Box<Fed>),
}

impl Workers {
    /// Workers on the CPU, with these instructions, or on a device that it lends a
    /// hand.
    ///
    /// # Errors
    /// What the device says, or a kind that the type does not have.
    pub(crate) fn new(
        opened: Option<&Opened>,
        isa: Isa,
        kinds: &[Kind],
        dtype: DType,
        arrays: usize,
    ) -> Result<Workers> {
        let at = match opened {
            None => {
                walks::note(Walk::Runs);
                let workers = kinds.iter().map(|&kind| Worker::new(kind, dtype, isa));
                At::Cpu(workers.collect::<Result<_>>()?)
            }
            Some(opened) => At::Device(Box::new(Fed::new(opened, isa, kinds, dtype, arrays)?)),
        };
        Ok(Workers { dtype, at, buffer: Vec::new(), wide: Vec::new() })
    }

    /// Takes in a run of elements, whose bytes may lie at any address.
    ///
    /// # Errors
    /// A run that ends within an element, a second array that is missing, not as
    /// long or not asked for, positions beyond 64 bits: nothing of such a run is
    /// absorbed. What the device says, of earlier runs, too: it does not wait for
    /// each.
    pub fn absorb(&mut self, run: RawRun<'_>) -> Result<()> {
        self.absorb_along(run, None, 0)
    }

    /// Takes in a run whose positions are those of `walk` if there is one,
    /// counted from index `base`.
    ///
    /// # Errors
    /// Those of [`absorb`](Self::absorb).
    pub fn absorb_along(
        &mut self,
        run: RawRun<'_>,
        walk: Option<&Traversal>,
        base: u64,
    ) -> Result<()> {
        fpenv::usual(|| self.along(run, walk, base))
    }

    fn along(&mut self, run: RawRun<'_>, walk: Option<&Traversal>, base: u64) -> Result<()> {
        match &mut self.at {
            At::Cpu(workers) => absorb_in_turn(workers, run, self.dtype, walk, base),
            At::Device(fed) => fed.absorb(run, walk, base),
        }
    }

    /// Takes in `bytes` bytes of elements that `read` fetches, from position `start`
    /// on, as [`absorb_along`](Self::absorb_along) does. `read` is told how many
    /// bytes come before, and fills what it is given. Its error ends the reading,
    /// and then the states lack elements.
    ///
    /// # Errors
    /// Those of [`absorb`](Self::absorb); inside, what `read` says.
    pub fn absorb_from<E>(
        &mut self,
        start: u64,
        bytes: usize,
        walk: Option<&Traversal>,
        base: u64,
        mut read: impl FnMut(usize, &mut [u8]) -> Result<(), E>,
    ) -> Result<Result<(), E>> {
        if !bytes.is_multiple_of(self.dtype.size()) {
            return Err(Error::PartialElement { bytes, dtype: self.dtype });
        }
        if let (At::Device(fed), None) = (&mut self.at, walk.filter(|walk| !walk.in_order)) {
            let start = start.saturating_add(base);
            return fpenv::usual(|| fed.absorb_from(start, bytes, read));
        }
        let mut words = core::mem::take(&mut self.buffer);
        if words.len() * 8 < bytes {
            words.resize(bytes.div_ceil(8), 0);
        }
        let items: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut words)[..bytes];
        let done = match read(0, items) {
            Ok(()) => self.absorb_along(RawRun { start, items, others: &[] }, walk, base).map(Ok),
            Err(error) => Ok(Err(error)),
        };
        self.buffer = words;
        done
    }

    /// Takes in the values of rows some of which have none: `gaps` are the first row of
    /// each gap, counted from the run's start, and its length, ascending. Only states
    /// with positions use them.
    ///
    /// # Errors
    /// Those of [`absorb`](Self::absorb).
    pub fn absorb_around(
        &mut self,
        run: RawRun<'_>,
        gaps: impl Iterator<Item = (u64, u64)> + Clone,
    ) -> Result<()> {
        fpenv::usual(|| self.values_and_gaps(run, gaps))
    }

    fn values_and_gaps(
        &mut self,
        run: RawRun<'_>,
        gaps: impl Iterator<Item = (u64, u64)> + Clone,
    ) -> Result<()> {
        match &mut self.at {
            At::Cpu(workers) => {
                for worker in workers.iter() {
                    check_run(worker.kind(), self.dtype, run, None, 0)?;
                }
                for worker in workers.iter_mut().filter(|w| !w.kind().is_positional()) {
                    worker.absorb(run)?;
                }
                for worker in workers.iter_mut().filter(|w| w.kind().is_positional()) {
                    around(run, self.dtype, gaps.clone(), |piece| match piece {
                        Piece::Values(run) => worker.absorb(run),
                        Piece::Gap(start, len) => {
                            worker.skip(start, len);
                            Ok(())
                        }
                    })?;
                }
                Ok(())
            }
            At::Device(fed) => fed.absorb_around(run, gaps),
        }
    }

    /// Takes in decimals beyond 64 bits with their positions, which are among the gaps of runs.
    pub fn absorb_wide(&mut self, decimals: impl Iterator<Item = (u64, i128)> + Clone) {
        if self.wide.is_empty() {
            self.wide = match &self.at {
                At::Cpu(workers) => workers.iter().map(|it| Wide::new(it.kind())).collect(),
                At::Device(fed) => fed.kinds().iter().map(|&kind| Wide::new(kind)).collect(),
            };
        }
        for wide in &mut self.wide {
            decimals.clone().for_each(|(at, decimal)| wide.absorb(decimal, at));
        }
    }

    /// The states, one of each kind.
    ///
    /// # Errors
    /// Errors of the device for any of the runs.
    pub(crate) fn into_states(self) -> Result<Vec<AnyState>> {
        let mut states: Vec<AnyState> = match self.at {
            At::Cpu(workers) => workers.into_iter().map(Worker::into_state).collect(),
            At::Device(fed) => fed.into_states()?,
        };
        for (state, wide) in states.iter_mut().zip(self.wide) {
            state.merge(&wide.into())?;
        }
        Ok(states)
    }
}
