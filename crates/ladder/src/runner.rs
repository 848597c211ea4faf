//! Runners: a rung prepared for a question, which answers and can be timed.

use crate::cub::Cub;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::lab::{Lab, Posed, STREAM, Step, Timing};
use crate::launches::Launches;
use crate::library::Library;
use crate::memory::Memory;
use crate::question::Question;
use crate::rung::Plan;
use std::time::Duration;
use warpfold_core::Scalar;
use warpfold_cuda::Device;

/// Answers a question.
pub(crate) trait Runner {
    /// Blocks of each launch, as far as they are known.
    fn grid(&self) -> Vec<u32> {
        Vec::new()
    }

    /// The launches, and what they take.
    fn steps(&self) -> Result<Vec<Step>> {
        Ok(Vec::new())
    }

    /// Runs once, and returns the answer.
    fn answer(&self) -> Result<Scalar>;

    /// How long one run takes, in each interval of this many runs.
    fn times(&self, timing: &Timing, runs: u32) -> Result<Vec<Duration>>;
}

/// The runner of a question. Several copies of its input take turns.
pub(crate) fn of<'a>(
    lab: &'a Lab,
    question: &Question,
    posed: &'a Posed,
    copies: u64,
) -> Result<Box<dyn Runner + 'a>> {
    Ok(match question.rung.plan {
        Plan::Host => Box::new(Host::new(question, &posed.elements)),
        Plan::Library => Box::new(Library::new(lab, question, &posed.elements, copies)?),
        Plan::Cub => Box::new(Cub::new(lab, question, &posed.elements, copies)?),
        _ => {
            let memory = Memory::new(lab.device(), question, &posed.elements, copies)?;
            Box::new(Launches::new(lab, question, memory)?)
        }
    })
}

/// The approximate longest interval, where runs are slow.
const LONG: Duration = Duration::from_millis(200);

/// Times intervals on a device. `start` puts a run on the stream, over the copy of its
/// input with this number.
pub(crate) fn on_device(
    device: &dyn Device,
    id: &'static str,
    timing: &Timing,
    runs: u32,
    start: &dyn Fn(usize) -> warpfold_cuda::Result<()>,
) -> Result<Vec<Duration>> {
    let mut copy = 0;
    let mut interval = |runs: u32| {
        let time = device.time(STREAM, &mut || {
            (0..runs).try_for_each(|_| {
                copy += 1;
                start(copy)
            })
        });
        time.map_err(|source| Error::Device { id, source })
    };
    let mut times = Vec::new();
    let mut runs = runs;
    for _ in 0..timing.warm_up {
        // A device without a clock need not run for its time.
        let Some(time) = interval(1)? else { return Ok(times) };
        runs = runs.min(at_most(time));
    }
    for _ in 0..timing.runs {
        times.extend(interval(runs)?.map(|time| time / runs));
    }
    Ok(times)
}

/// How many runs of this length an interval holds at most.
fn at_most(time: Duration) -> u32 {
    let runs = LONG.as_nanos() / time.as_nanos().max(1);
    u32::try_from(runs).unwrap_or(u32::MAX).max(1)
}
