//! Runs rungs on a device, checks their answers, and times them.

use crate::data::Data;
use crate::error::{Error, Result};
use crate::launches::Launches;
use crate::memory::Memory;
use crate::question::Question;
use crate::registry;
use crate::rung::Plan;
use crate::runner::{self, Runner};
use crate::statistics::median;
use crate::verdict::{Truth, Verdict};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use warpfold_core::op::Numbers;
use warpfold_core::{DType, Op};
use warpfold_cuda::{Archive, Device, Engine, Footprint, KernelId, ModuleId, Sim, Stream};
use warpfold_ptx::count::Counters;
use warpfold_ptx::machine::Options;

pub(crate) static KERNELS: Archive = Archive::new(include_bytes!("../kernels/kernels.archive"));

/// A device and the kernels that it has loaded.
pub struct Lab {
    device: Arc<dyn Device>,
    /// The same device, if it is the interpreter.
    counting: Option<Arc<Sim>>,
    archive: Archive,
    modules: Mutex<HashMap<String, ModuleId>>,
    engine: OnceLock<Arc<Engine>>,
    /// The elements of the last question, since consecutive rungs mostly get the same
    /// one.
    last: Mutex<Option<Arc<Posed>>>,
}

/// Elements and their exact answer.
pub(crate) struct Posed {
    dtype: DType,
    op: Op,
    n: u64,
    data: Data,
    seed: u64,
    pub(crate) elements: Numbers,
    truth: Truth,
}

/// How runs are timed.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The number of timed intervals.
    pub runs: usize,
    /// Warm-up runs, which are not timed.
    pub warm_up: usize,
    /// An interval holds enough runs to read at least this many bytes: short launches
    /// are not timed alone.
    pub interval_bytes: u64,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing { runs: 25, warm_up: 5, interval_bytes: 256 << 20 }
    }
}

/// The results of a rung.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// Whether its answers were right: the first, and the one after all runs.
    pub verdict: Verdict,
    /// Blocks of each launch, in order.
    pub grid: Vec<u32>,
    /// The launches of a run, in order.
    pub steps: Vec<Step>,
    /// How long one run took, in each interval; none on a device without a clock.
    pub times: Vec<Duration>,
    /// Whether the host ran it, and its clock timed it.
    pub on_host: bool,
    /// Whether runs found their input in the L2 cache. Otherwise they took turns over
    /// more copies of it than fit in the cache.
    pub in_l2: bool,
    /// The interpreter's counters of a run.
    pub counters: Option<Counters>,
}

/// A launch, and the resources that it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The kernel's name.
    pub kernel: String,
    /// Blocks.
    pub grid: u32,
    /// Threads of a block.
    pub block: u32,
    /// The kernel's resources, if the device knows them.
    pub footprint: Option<Footprint>,
    /// Bytes of dynamic shared memory of a block.
    pub dynamic_shared: u32,
    /// Blocks that a multiprocessor runs at once.
    pub resident: u32,
    /// The occupancy of these blocks, from 0 to 1.
    pub occupancy: f64,
}

/// The rate at which this device reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// Bytes for each nanosecond.
    pub gbps: f64,
    /// What was measured.
    pub by: String,
}

/// The array that the ceiling is measured on: 1 GiB of f32 and a ragged end, or an
/// eighth of the device's memory.
const CEILING_ELEMENTS: u64 = (1 << 28) + 3;
const CEILING_RUNG: &str = "vector-load";
const CEILING_BLOCKS: [u32; 4] = [128, 256, 512, 1024];

/// The stream of all work.
pub(crate) const STREAM: Stream = Stream::DEFAULT;

/// The most copies of an input. Shorter inputs are timed in the L2 cache.
const MOST_COPIES: u64 = 256;

/// The most runs in an interval.
const MOST_RUNS: u64 = 100;

impl Lab {
    /// A lab on a device, with the ladder's kernels.
    #[must_use]
    pub fn new(device: Arc<dyn Device>) -> Lab {
        Lab::with_kernels(device, KERNELS)
    }

    /// A lab on a device, with other kernels of the same names.
    #[must_use]
    pub fn with_kernels(device: Arc<dyn Device>, archive: Archive) -> Lab {
        Lab {
            device,
            counting: None,
            archive,
            modules: Mutex::default(),
            engine: OnceLock::new(),
            last: Mutex::default(),
        }
    }

    /// A lab on the interpreter, which checks every access and counts.
    #[must_use]
    pub fn simulated() -> Lab {
        let sim = Arc::new(Sim::new(Options { counters: true, ..Options::default() }));
        Lab { counting: Some(Arc::clone(&sim)), ..Lab::new(sim) }
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Runs a rung twice over the same array, and compares both answers with the
    /// exact one. `seed` chooses the elements.
    ///
    /// # Errors
    /// A device that is too old, or fails; a simulated one fails when it finds a
    /// fault.
    pub fn check(&self, question: &Question, data: Data, seed: u64) -> Result<Verdict> {
        let posed = self.pose(question, data, seed)?;
        let runner = runner::of(self, question, &posed, 1)?;
        let expected = posed.truth.expected(question, &runner.grid());
        let first = expected.judge(question, runner.answer()?);
        match first {
            Verdict::Right => Ok(expected.judge(question, runner.answer()?)),
            wrong => Ok(wrong),
        }
    }

    /// Runs a rung once, for a profiler.
    ///
    /// # Errors
    /// Those of [`check`](Self::check).
    pub fn once(&self, question: &Question, seed: u64) -> Result<Verdict> {
        let posed = self.pose(question, Data::Representable, seed)?;
        let runner = runner::of(self, question, &posed, 1)?;
        let expected = posed.truth.expected(question, &runner.grid());
        Ok(expected.judge(question, runner.answer()?))
    }

    /// Checks a rung, times it, and checks it again.
    ///
    /// # Errors
    /// Those of [`check`](Self::check).
    pub fn measure(&self, question: &Question, timing: &Timing, seed: u64) -> Result<Measurement> {
        let posed = self.pose(question, Data::Representable, seed)?;
        let bytes = posed.elements.bytes().len().max(1) as u64;
        let copies = (2 * self.device.limits().l2_bytes).div_ceil(bytes).max(1);
        let in_l2 = copies > MOST_COPIES;
        let copies = if in_l2 { 1 } else { copies };
        let runner = runner::of(self, question, &posed, copies)?;
        let grid = runner.grid();
        let expected = posed.truth.expected(question, &grid);
        let steps = runner.steps()?;
        self.counters();
        let mut verdict = expected.judge(question, runner.answer()?);
        let counters = self.counters();
        let mut times = Vec::new();
        if verdict.is_right() && self.has_clock(question)? {
            let runs = timing.interval_bytes.div_ceil(bytes).clamp(1, MOST_RUNS);
            times = runner.times(timing, runs as u32)?;
            verdict = expected.judge(question, runner.answer()?);
        }
        self.counters();
        let on_host = question.rung.plan == Plan::Host;
        let counters = counters.filter(|_| !on_host);
        let in_l2 = in_l2 && !on_host;
        Ok(Measurement { verdict, grid, steps, times, on_host, in_l2, counters })
    }

    /// Whether the device has a clock. Without one the host's clock is not read either,
    /// since there is nothing to compare with.
    pub(crate) fn has_clock(&self, question: &Question) -> Result<bool> {
        let time = self.device.time(STREAM, &mut || Ok(()));
        time.map(|time| time.is_some())
            .map_err(|source| Error::Device { id: question.rung.id, source })
    }

    /// The read rate of the device: the best of wide loads in blocks of several sizes,
    /// over an array much larger than its cache. `None` without a clock.
    ///
    /// # Errors
    /// Those of [`check`](Self::check).
    pub fn ceiling(&self, timing: &Timing) -> Result<Option<Ceiling>> {
        let dtype = DType::F32;
        let rung = registry::find(CEILING_RUNG)
            .ok_or_else(|| Error::NoRung { id: CEILING_RUNG.into() })?;
        let n = CEILING_ELEMENTS.min(self.device.limits().memory / 8 / dtype.size() as u64);
        let mut best: Option<Ceiling> = None;
        for block in CEILING_BLOCKS {
            let question = Question::new(rung, dtype, Op::Sum, n, block)?;
            if !self.has_clock(&question)? {
                return Ok(None);
            }
            let memory = Memory::zeros(self.device(), &question)?;
            let launches = Launches::new(self, &question, memory)?;
            let times = launches.times(timing, 1)?;
            let mut times: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
            let gbps = (n * dtype.size() as u64) as f64 / median(&mut times) / 1e9;
            if best.as_ref().is_none_or(|b| gbps > b.gbps) {
                let by = format!("{} of {n} {dtype} in blocks of {block}", rung.id);
                best = Some(Ceiling { gbps, by });
            }
        }
        Ok(best)
    }

    /// The elements of a question, and their exact answer.
    fn pose(&self, question: &Question, data: Data, seed: u64) -> Result<Arc<Posed>> {
        let Question { dtype, op, n, .. } = *question;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(posed) = &*last
            && (posed.dtype, posed.op, posed.n) == (dtype, op, n)
            && (posed.data, posed.seed) == (data, seed)
        {
            return Ok(Arc::clone(posed));
        }
        // Two of them may not fit.
        *last = None;
        let elements = data.elements(question, seed);
        let truth = Truth::of(question, &elements, data)?;
        let posed = Arc::new(Posed { dtype, op, n, data, seed, elements, truth });
        *last = Some(Arc::clone(&posed));
        Ok(posed)
    }

    /// What the interpreter has counted since the last call.
    fn counters(&self) -> Option<Counters> {
        let mut total = Counters::default();
        for report in self.counting.as_ref()?.take_reports() {
            total.merge(&report.outcome.counters?.total());
        }
        Some(total)
    }

    /// The library's engine on this device.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        self.engine.get_or_init(|| Arc::new(Engine::new(Arc::clone(&self.device))))
    }

    /// A kernel of a question's rung.
    pub(crate) fn kernel(&self, question: &Question, first: bool) -> Result<(String, KernelId)> {
        let Question { rung, dtype, op, block, .. } = *question;
        let device = |source| Error::Device { id: rung.id, source };
        let name = format!("{}_{dtype}", rung.module(op));
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let module = match modules.get(&name) {
            Some(&module) => module,
            None => {
                let has = self.device.limits().capability;
                let ptx = self.archive.module(&name, has).ok_or_else(|| {
                    match self.archive.oldest(&name) {
                        Some(needs) if needs > has => Error::Capability { rung, needs, has },
                        _ => Error::NoModule { rung, dtype },
                    }
                })?;
                let module = self.device.load(&name, &ptx).map_err(|source| match source {
                    warpfold_cuda::Error::Library { why, hint } => {
                        Error::Missing { rung, why, hint }
                    }
                    source => device(source),
                })?;
                modules.insert(name, module);
                module
            }
        };
        let entry = rung.entry(op, block, first);
        let kernel = self.device.kernel(module, &entry).map_err(device)?;
        Ok((entry, kernel))
    }
}
