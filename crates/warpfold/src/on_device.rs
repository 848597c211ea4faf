//! Arrays in the host's memory, reduced on a device.

use crate::device::Device;
use crate::engines::failure;
use crate::workers::best_run;
use core::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use warpfold_core::layout::View;
use warpfold_core::op::{AnyState, Kind, RawRun};
use warpfold_core::{DType, Error, Result};
use warpfold_cuda::Engine;
use warpfold_cuda::engine::Feeder;

/// Threads that copy to pinned memory: a few keep up with the bus.
const MOST_FEEDERS: usize = 8;

/// A reduction that a device can run.
pub(crate) struct Job<'a> {
    pub(crate) engine: &'a Arc<Engine>,
    pub(crate) device: Device,
    /// The array, and for `dot` the second one.
    pub(crate) views: [Option<&'a View<'a>>; 2],
    /// Which axes are reduced.
    pub(crate) reduced: &'a [bool],
    /// The states wanted of each output.
    pub(crate) kinds: &'a [Kind],
    /// What the index of the first element counts as.
    pub(crate) start: u64,
    /// How many threads there are to copy.
    pub(crate) threads: usize,
}

impl Job<'_> {
    /// The states of every output, output by output in C order.
    ///
    /// # Errors
    /// Disagreeing views; what the device says.
    pub(crate) fn states(&self) -> Result<Vec<Vec<AnyState>>> {
        let [Some(first), second] = self.views else { return Ok(Vec::new()) };
        if let Some(second) = second {
            first.check_pair(second)?;
        }
        if self.reduced.iter().all(|&reduced| reduced)
            && let Some(items) = first.contiguous()
            && let Some(others) = second.map_or(Some(&[][..]), View::contiguous)
        {
            return Ok(vec![self.dense(first.dtype(), items, others)?]);
        }
        self.gathered(first, second)
    }

    pub(crate) fn feeder(&self, dtype: DType) -> Result<Feeder> {
        let arrays = self.views.iter().flatten().count();
        let feeder = self.engine.feeder(self.kinds, dtype, arrays).map_err(failure)?;
        Ok(feeder.with_room(best_run(self.device) * arrays))
    }

    /// The states of elements that lie one after the other.
    fn dense(&self, dtype: DType, items: &[u8], others: &[u8]) -> Result<Vec<AnyState>> {
        let step = best_run(self.device);
        let device = self.engine.device();
        let pinned = device.is_pinned(items) && (others.is_empty() || device.is_pinned(others));
        let next = AtomicUsize::new(0);
        let work = || -> Result<Vec<AnyState>> {
            let mut feeder = self.feeder(dtype)?;
            loop {
                let from = next.fetch_add(1, Ordering::Relaxed).saturating_mul(step);
                if from >= items.len() {
                    return feeder.take_states().map_err(failure);
                }
                let range: Range<usize> = from..items.len().min(from + step);
                let start = self.start + (from / dtype.size()) as u64;
                let others = others.get(range.clone()).unwrap_or(&[]);
                let run = RawRun { start, items: &items[range], others };
                if pinned {
                    // SAFETY: the views borrow the bytes for longer than the
                    // feeder lives.
                    unsafe { feeder.absorb_in_place(run) }.map_err(failure)?;
                } else {
                    feeder.absorb(run).map_err(failure)?;
                }
            }
        };
        // The interpreter runs one launch at a time, and nobody copies to pinned
        // memory what is in it.
        let alone = pinned || self.device == Device::Sim;
        let most = if alone { 1 } else { self.threads.min(MOST_FEEDERS) };
        let count = items.len().div_ceil(step).clamp(1, most.max(1));
        let parts: Vec<Result<Vec<AnyState>>> = thread::scope(|scope| {
            let others: Vec<_> = (1..count).map(|_| scope.spawn(work)).collect();
            let mut parts = vec![work()];
            parts.extend(others.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(lost()))));
            parts
        });
        let mut parts = parts.into_iter();
        let mut states = parts.next().unwrap_or_else(|| Err(lost()))?;
        for part in parts {
            for (state, other) in states.iter_mut().zip(&part?) {
                state.merge(other)?;
            }
        }
        Ok(states)
    }
}

fn lost() -> Error {
    Error::Device {
        what: "a thread that feeds the device failed".into(),
        hint: "please report it".into(),
    }
}
