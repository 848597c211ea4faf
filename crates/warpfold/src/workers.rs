//! States that absorb runs on one thread, on the CPU or a device.

use crate::engines::{Opened, failure};
use core::fmt;
use warpfold_core::layout::Traversal;
use warpfold_core::op::{AnyState, Kind, RawRun};
use warpfold_core::{DType, Error, Result, fpenv};
use warpfold_cpu::isa::Isa;
use warpfold_cpu::{Worker, absorb_in_turn, check_run};
use warpfold_cuda::engine::Feeder;

/// Between two missing rows a device is sent no fewer elements than this: copy
/// and launch take longer than the CPU.
const SHORT: usize = 4096;

/// States of several kinds over elements of one type, which absorb runs on one
/// thread: a reader of files or streams feeds them.
///
/// [`Reduction::workers`](crate::Reduction::workers) makes them, and
/// [`Reduction::gather`](crate::Reduction::gather) takes what they have made.
pub struct Workers {
    dtype: DType,
    at: At,
    /// The buffer for elements that no device copies from.
    buffer: Vec<u64>,
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kinds, place): (Vec<Kind>, _) = match &self.at {
            At::Cpu(workers) => (workers.iter().map(Worker::kind).collect(), "cpu"),
            At::Device(fed) => (fed.kinds.clone(), "device"),
        };
        write!(f, "Workers({kinds:?} of {}, {place})", self.dtype)
    }
}

enum At {
    Cpu(Vec<Worker>),
    Device(Box<Fed>),
}

/// The states on a device, and those of the CPU that help it.
struct Fed {
    feeder: Feeder,
    kinds: Vec<Kind>,
    isa: Isa,
    /// Workers on the states with positions, for what no kernel can take; made
    /// when needed.
    beside: Vec<Worker>,
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
            None => At::Cpu(
                kinds.iter().map(|&kind| Worker::new(kind, dtype, isa)).collect::<Result<_>>()?,
            ),
            Some(opened) => {
                let feeder = opened.feeder(kinds, dtype, arrays)?;
                let kinds = kinds.to_vec();
                At::Device(Box::new(Fed { feeder, kinds, isa, beside: Vec::new() }))
            }
        };
        Ok(Workers { dtype, at, buffer: Vec::new() })
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
        let fed = match &mut self.at {
            At::Cpu(workers) => return absorb_in_turn(workers, run, self.dtype, walk, base),
            At::Device(fed) => fed,
        };
        fed.check(run, self.dtype, walk, base)?;
        let moved = RawRun { start: run.start + base, ..run };
        match walk.filter(|walk| !walk.in_order) {
            None => fed.feeder.absorb(moved).map_err(failure),
            // A kernel's indices ascend; those of this walk do not.
            Some(walk) => {
                fed.feeder.absorb_for(moved, |kind| !kind.has_positions()).map_err(failure)?;
                for worker in fed.beside(self.dtype)? {
                    if worker.kind().has_positions() {
                        worker.absorb_along(run, walk, base)?;
                    }
                }
                Ok(())
            }
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
            return fpenv::usual(|| fed.feeder.absorb_from(start, bytes, read)).map_err(failure);
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
            At::Device(fed) => {
                fed.check(run, self.dtype, None, 0)?;
                fed.feeder.absorb_for(run, |kind| !kind.is_positional()).map_err(failure)?;
                if !fed.kinds.iter().any(|kind| kind.is_positional()) {
                    return Ok(());
                }
                fed.beside(self.dtype)?;
                let (feeder, beside) = (&mut fed.feeder, &mut fed.beside);
                let short = SHORT * self.dtype.size();
                around(run, self.dtype, gaps, |piece| match piece {
                    Piece::Values(run) if run.items.len() < short => {
                        beside.iter_mut().try_for_each(|worker| worker.absorb(run))
                    }
                    Piece::Values(run) => {
                        feeder.absorb_for(run, Kind::is_positional).map_err(failure)
                    }
                    Piece::Gap(start, len) => {
                        beside.iter_mut().for_each(|worker| worker.skip(start, len));
                        Ok(())
                    }
                })
            }
        }
    }

    /// The states, one of each kind.
    ///
    /// # Errors
    /// Errors of the device for any of the runs.
    pub(crate) fn into_states(self) -> Result<Vec<AnyState>> {
        match self.at {
            At::Cpu(workers) => Ok(workers.into_iter().map(Worker::into_state).collect()),
            At::Device(mut fed) => {
                let mut states = fed.feeder.take_states().map_err(failure)?;
                for worker in fed.beside {
                    let other = worker.into_state();
                    if let Some(state) = states.iter_mut().find(|s| s.kind() == other.kind()) {
                        state.merge(&other)?;
                    }
                }
                Ok(states)
            }
        }
    }
}

impl Fed {
    /// Refuses what is not a run, as the CPU does.
    fn check(
        &self,
        run: RawRun<'_>,
        dtype: DType,
        walk: Option<&Traversal>,
        base: u64,
    ) -> Result<()> {
        self.kinds.iter().try_for_each(|&kind| check_run(kind, dtype, run, walk, base))
    }

    /// The workers beside the device.
    fn beside(&mut self, dtype: DType) -> Result<&mut [Worker]> {
        if self.beside.is_empty() {
            let positional = self.kinds.iter().filter(|kind| kind.is_positional());
            self.beside = positional
                .map(|&kind| Worker::new(kind, dtype, self.isa))
                .collect::<Result<_>>()?;
        }
        Ok(&mut self.beside)
    }
}

/// A part of rows some of which have no value.
enum Piece<'a> {
    /// Rows with values.
    Values(RawRun<'a>),
    /// Rows without: the first, and how many.
    Gap(u64, u64),
}

/// Cuts rows up at their gaps.
fn around<'a>(
    run: RawRun<'a>,
    dtype: DType,
    gaps: impl Iterator<Item = (u64, u64)>,
    mut sink: impl FnMut(Piece<'a>) -> Result<()>,
) -> Result<()> {
    let mut values = run.items;
    let mut row = 0;
    for (first, len) in gaps {
        // Gaps from outside may lie anywhere: positions that do not exist are an
        // error of whoever absorbs them.
        let before = usize::try_from(first.saturating_sub(row)).unwrap_or(usize::MAX);
        let before = before.saturating_mul(dtype.size());
        let (items, rest) = values.split_at(before.min(values.len()));
        sink(Piece::Values(RawRun { start: run.start.saturating_add(row), items, others: &[] }))?;
        sink(Piece::Gap(run.start.saturating_add(first), len))?;
        values = rest;
        row = first.saturating_add(len);
    }
    let start = run.start.saturating_add(row);
    sink(Piece::Values(RawRun { start, items: values, others: &[] }))
}
