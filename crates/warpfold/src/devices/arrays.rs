//! Arrays in the host's memory, reduced on a device.

use super::engines::{Opened, failure};
use crate::device::Device;
use std::sync::atomic::{AtomicUsize, Ordering};
use warpfold_core::layout::View;
use warpfold_core::op::{AnyState, Kind, Numbers, Op, RawRun};
use warpfold_core::{DType, Error, Result};
use warpfold_cpu::Job;
use warpfold_cuda::Stream;
use warpfold_cuda::engine::Feeder;
use warpfold_threads::scoped;

impl Opened {
    /// A feeder that is sent what suits the device; of several devices one of each in turn.
    ///
    /// # Errors
    /// A kind without a kernel; what the device says.
    pub(crate) fn feeder(&self, kinds: &[Kind], dtype: DType, arrays: usize) -> Result<Feeder> {
        let feeder = self.next().feeder(kinds, dtype, arrays).map_err(failure)?;
        Ok(feeder.with_room(self.device.best_run() * arrays))
    }

    /// The states of every output of a job, output by output in C order.
    ///
    /// # Errors
    /// Disagreeing views; what the device says.
    pub(crate) fn states(&self, job: &Job<'_>) -> Result<Vec<Vec<AnyState>>> {
        let [Some(first), second] = job.views else { return Ok(Vec::new()) };
        if let Some(second) = second {
            first.check_pair(second)?;
        }
        if job.reduced.iter().all(|&reduced| reduced)
            && let Some(items) = first.contiguous()
            && let Some(others) = second.map_or(Some(&[][..]), View::contiguous)
        {
            return Ok(vec![self.dense(job, first.dtype(), items, others)?]);
        }
        let (views, stream) = (job.views, Stream::DEFAULT);
        self.engine
            .states_of_host_views(views, job.reduced, job.kinds, job.start, stream)
            .map_err(failure)
    }

    /// The answers of operations under the default rules over some axes of an array,
    /// in C order, where the device can finish them itself. Payloads would have
    /// to be copied back and finished on the host.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn numbers(&self, ops: &[Op], job: &Job<'_>) -> Result<Option<Vec<Numbers>>> {
        let [Some(view), None] = job.views else { return Ok(None) };
        if job.reduced.iter().all(|&reduced| reduced) {
            return Ok(None);
        }
        self.engine.numbers_of_host_view(ops, view, job.reduced, Stream::DEFAULT).map_err(failure)
    }

    /// The states of elements that lie one after the other.
    fn dense(
        &self,
        job: &Job<'_>,
        dtype: DType,
        items: &[u8],
        others: &[u8],
    ) -> Result<Vec<AnyState>> {
        let step = self.device.best_run();
        let device = self.engine.device();
        let pinned = device.is_pinned(items) && (others.is_empty() || device.is_pinned(others));
        let next = AtomicUsize::new(0);
        let work = || -> Result<Vec<AnyState>> {
            let arrays = job.views.iter().flatten().count();
            let mut feeder = self.feeder(job.kinds, dtype, arrays)?;
            loop {
                let from = next.fetch_add(1, Ordering::Relaxed).saturating_mul(step);
                if from >= items.len() {
                    return feeder.take_states().map_err(failure);
                }
                let range = from..items.len().min(from + step);
                let start = job.start + (from / dtype.size()) as u64;
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
        // An interpreter runs one launch at a time, and nobody copies to pinned
        // memory what is in it. Each device is fed.
        let devices = self.count();
        let alone = pinned || matches!(self.device, Device::Sim | Device::Sims(_));
        let senders = job.threads.count().min(self.device.most_senders(devices));
        let most = if alone { devices } else { senders.max(devices) };
        let count = items.len().div_ceil(step).clamp(1, most);
        let parts = scoped(count, work);
        let mut parts = parts.into_iter().map(|part| part.unwrap_or_else(|| Err(lost())));
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
