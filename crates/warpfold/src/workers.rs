//! States at work on one thread, on whichever device.

use crate::engines::{Opened, failure};
use core::fmt;
use warpfold_core::layout::Traversal;
use warpfold_core::op::{AnyState, Kind, RawRun};
use warpfold_core::{DType, Result};
use warpfold_cpu::isa::Isa;
use warpfold_cpu::{Worker, absorb_in_turn};
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
    /// Where elements are read that no device copies from.
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

/// A device's states, and what the CPU does beside it.
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

    /// Takes in a run of aligned elements.
    ///
    /// # Errors
    /// What the device says, of earlier runs, too: it does not wait for each.
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
        let fed = match &mut self.at {
            At::Cpu(workers) => {
                absorb_in_turn(workers, run, self.dtype, walk, base);
                return Ok(());
            }
            At::Device(fed) => fed,
        };
        let moved = RawRun { start: run.start + base, ..run };
        match walk.filter(|walk| !walk.in_order) {
            None => fed.feeder.absorb(moved).map_err(failure),
            // A kernel's indices ascend; those of this walk do not.
            Some(walk) => {
                fed.feeder.absorb_for(moved, |kind| kind != Kind::ArgExtrema).map_err(failure)?;
                for worker in fed.beside(self.dtype)? {
                    if worker.kind() == Kind::ArgExtrema {
                        worker.absorb_along(run, walk, base);
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
        if let (At::Device(fed), None) = (&mut self.at, walk.filter(|walk| !walk.in_order)) {
            return fed.feeder.absorb_from(start + base, bytes, read).map_err(failure);
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

    /// Takes in the values of rows some of which have none: `gaps` are the first
    /// row of each gap, counted from the run's start, and its length, ascending.
    /// Only states that know positions care.
    ///
    /// # Errors
    /// Those of [`absorb`](Self::absorb).
    pub fn absorb_around(
        &mut self,
        run: RawRun<'_>,
        gaps: impl Iterator<Item = (u64, u64)> + Clone,
    ) -> Result<()> {
        match &mut self.at {
            At::Cpu(workers) => {
                for worker in workers.iter_mut().filter(|w| !w.kind().is_positional()) {
                    worker.absorb(run);
                }
                for worker in workers.iter_mut().filter(|w| w.kind().is_positional()) {
                    around(run, self.dtype, gaps.clone(), |piece| match piece {
                        Piece::Values(run) => worker.absorb(run),
                        Piece::Gap(start, len) => worker.skip(start, len),
                    });
                }
                Ok(())
            }
            At::Device(fed) => {
                fed.feeder.absorb_for(run, |kind| !kind.is_positional()).map_err(failure)?;
                if !fed.kinds.iter().any(|kind| kind.is_positional()) {
                    return Ok(());
                }
                fed.beside(self.dtype)?;
                let (feeder, beside) = (&mut fed.feeder, &mut fed.beside);
                let short = SHORT * self.dtype.size();
                let mut done = Ok(());
                around(run, self.dtype, gaps, |piece| match piece {
                    Piece::Values(run) if run.items.len() < short => {
                        beside.iter_mut().for_each(|worker| worker.absorb(run));
                    }
                    Piece::Values(run) if done.is_ok() => {
                        done = feeder.absorb_for(run, Kind::is_positional);
                    }
                    Piece::Values(_) => {}
                    Piece::Gap(start, len) => {
                        beside.iter_mut().for_each(|worker| worker.skip(start, len));
                    }
                });
                done.map_err(failure)
            }
        }
    }

    /// The states, one of each kind.
    ///
    /// # Errors
    /// What the device says of any of the runs.
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
    mut sink: impl FnMut(Piece<'a>),
) {
    let mut values = run.items;
    let mut row = 0;
    for (first, len) in gaps {
        let before = first.saturating_sub(row) as usize * dtype.size();
        let (items, rest) = values.split_at(before.min(values.len()));
        sink(Piece::Values(RawRun { start: run.start + row, items, others: &[] }));
        sink(Piece::Gap(run.start + first, len));
        values = rest;
        row = first + len;
    }
    sink(Piece::Values(RawRun { start: run.start + row, items: values, others: &[] }));
}
