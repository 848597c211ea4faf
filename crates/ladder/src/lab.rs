//! Runs rungs on a device, checks what they answer, and takes their time.

use crate::data::Data;
use crate::error::{Error, Result};
use crate::question::Question;
use crate::registry;
use crate::rung::Plan;
use crate::statistics::median;
use crate::verdict::{Truth, Verdict};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use warpfold_core::op::Numbers;
use warpfold_core::{DType, Op, Scalar};
use warpfold_cuda::{
    Address, Archive, Argument, Device, Footprint, KernelId, Launch, ModuleId, Sim, Stream,
};
use warpfold_ptx::count::Counters;
use warpfold_ptx::machine::Options;

static KERNELS: Archive = Archive::new(include_bytes!("../kernels/kernels.archive"));

/// A device and the kernels that it has loaded.
pub struct Lab {
    device: Arc<dyn Device>,
    /// The same device, if it counts.
    counting: Option<Arc<Sim>>,
    archive: Archive,
    modules: Mutex<HashMap<String, ModuleId>>,
    /// The elements of the last question: rungs that follow each other are mostly
    /// asked the same.
    last: Mutex<Option<Arc<Posed>>>,
}

/// Elements and what is true of them.
struct Posed {
    dtype: DType,
    op: Op,
    n: u64,
    data: Data,
    seed: u64,
    elements: Numbers,
    truth: Truth,
}

/// How times are taken.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Intervals of the device's clock that are taken.
    pub runs: usize,
    /// Runs before, which do not count.
    pub warm_up: usize,
    /// An interval holds so many runs that together they read at least as many
    /// bytes: short launches are not measured alone.
    pub interval_bytes: u64,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing { runs: 25, warm_up: 5, interval_bytes: 256 << 20 }
    }
}

/// What a rung did.
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
    /// Whether runs found their input in the L2 cache; otherwise they took turns
    /// over more copies of it than the cache holds.
    pub in_l2: bool,
    /// What the interpreter counted in a run.
    pub counters: Option<Counters>,
}

/// A launch, and what it takes of a multiprocessor.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The kernel's name.
    pub kernel: String,
    /// Blocks.
    pub grid: u32,
    /// Threads of a block.
    pub block: u32,
    /// What the compiler made of it, if the device says.
    pub footprint: Option<Footprint>,
    /// Bytes of dynamic shared memory of a block.
    pub dynamic_shared: u32,
    /// Blocks that a multiprocessor runs at once.
    pub resident: u32,
    /// The part of a multiprocessor's warps that these have, from 0 to 1.
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

/// What the ceiling is measured on: 1 GiB of f32 and a ragged end, or an eighth of
/// the device's memory.
const CEILING_ELEMENTS: u64 = (1 << 28) + 3;
const CEILING_RUNG: &str = "vector-load";
const CEILING_BLOCKS: [u32; 4] = [128, 256, 512, 1024];

/// The most copies of an input; shorter ones are timed where they lie in L2.
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
        Lab { device, counting: None, archive, modules: Mutex::default(), last: Mutex::default() }
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
        let setup = Setup::new(self, question, &posed.elements, 1)?;
        let expected = posed.truth.expected(question, &setup.grid());
        let first = expected.judge(question, setup.answer()?);
        match first {
            Verdict::Right => Ok(expected.judge(question, setup.answer()?)),
            wrong => Ok(wrong),
        }
    }

    /// Checks a rung, takes its time, and checks it again.
    ///
    /// # Errors
    /// Those of [`check`](Self::check).
    pub fn measure(&self, question: &Question, timing: &Timing, seed: u64) -> Result<Measurement> {
        let posed = self.pose(question, Data::Representable, seed)?;
        let bytes = posed.elements.bytes().len().max(1) as u64;
        let copies = (2 * self.device.limits().l2_bytes).div_ceil(bytes).max(1);
        let in_l2 = copies > MOST_COPIES;
        let copies = if in_l2 { 1 } else { copies };
        let setup = Setup::new(self, question, &posed.elements, copies)?;
        let grid = setup.grid();
        let expected = posed.truth.expected(question, &grid);
        let steps = setup.describe()?;
        self.counters();
        let mut verdict = expected.judge(question, setup.answer()?);
        let counters = self.counters();
        let mut times = Vec::new();
        if verdict.is_right() {
            let runs = timing.interval_bytes.div_ceil(bytes).clamp(1, MOST_RUNS);
            times = setup.times(timing, runs as u32)?;
            verdict = expected.judge(question, setup.answer()?);
        }
        self.counters();
        Ok(Measurement { verdict, grid, steps, times, in_l2, counters })
    }

    /// The rate at which the device reads: the best that wide loads over much more
    /// than its cache reach in blocks of several sizes. `None` without a clock.
    ///
    /// # Errors
    /// Those of [`check`](Self::check).
    pub fn ceiling(&self, timing: &Timing, seed: u64) -> Result<Option<Ceiling>> {
        let clock = self.device.time(STREAM, &mut || Ok(()));
        if clock.map_err(|source| Error::Device { id: CEILING_RUNG, source })?.is_none() {
            return Ok(None);
        }
        let dtype = DType::F32;
        let rung = registry::find(CEILING_RUNG)
            .ok_or_else(|| Error::NoRung { id: CEILING_RUNG.into() })?;
        let n = CEILING_ELEMENTS.min(self.device.limits().memory / 8 / dtype.size() as u64);
        let mut best: Option<Ceiling> = None;
        for block in CEILING_BLOCKS {
            let question = Question::new(rung, dtype, Op::Sum, n, block)?;
            let measured = self.measure(&question, timing, seed)?;
            let mut times: Vec<f64> = measured.times.iter().map(Duration::as_secs_f64).collect();
            if times.is_empty() {
                return Ok(None);
            }
            let gbps = (n * dtype.size() as u64) as f64 / median(&mut times) / 1e9;
            if best.as_ref().is_none_or(|b| gbps > b.gbps) {
                let by = format!("{} of {n} {dtype} in blocks of {block}", rung.id);
                best = Some(Ceiling { gbps, by });
            }
        }
        Ok(best)
    }

    /// The elements of a question, and what is true of them.
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

    /// A kernel of a question's rung.
    fn kernel(&self, question: &Question, first: bool) -> Result<(String, KernelId)> {
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
                let module = self.device.load(&name, &ptx).map_err(device)?;
                modules.insert(name, module);
                module
            }
        };
        let entry = rung.entry(op, block, first);
        let kernel = self.device.kernel(module, &entry).map_err(device)?;
        Ok((entry, kernel))
    }
}

/// One launch of a run, ready to go.
struct Ready {
    name: String,
    kernel: KernelId,
    launch: Launch,
    /// What it reads; the input of the run if `None`.
    from: Option<Address>,
    /// Its other arguments.
    rest: Vec<Argument>,
}

/// Everything that a question needs on a device.
struct Setup<'a> {
    device: &'a dyn Device,
    id: &'static str,
    /// Given back in the end.
    allocated: Vec<Address>,
    /// Copies of the input.
    inputs: Vec<Address>,
    steps: Vec<Ready>,
    /// Where the answer comes to lie, and its type.
    out: Address,
    added: DType,
    /// Whether the answer must be zero before a run.
    clear: bool,
}

/// Allocations begin at multiples of this; so do copies of an input.
const ALIGNMENT: u64 = 256;

/// The stream that all is done on.
const STREAM: Stream = Stream::DEFAULT;

impl<'a> Setup<'a> {
    fn new(
        lab: &'a Lab,
        question: &Question,
        elements: &Numbers,
        copies: u64,
    ) -> Result<Setup<'a>> {
        let mut setup = Setup {
            device: lab.device(),
            id: question.rung.id,
            allocated: Vec::new(),
            inputs: Vec::new(),
            steps: Vec::new(),
            out: 0,
            added: question.added(),
            clear: question.rung.plan == Plan::Atomic,
        };
        setup.copy_in(question, elements, copies)?;
        setup.plan(lab, question)?;
        Ok(setup)
    }

    fn allocate(&mut self, bytes: u64) -> Result<Address> {
        let address = self.device.allocate(bytes);
        let address = address.map_err(|source| Error::Device { id: self.id, source })?;
        self.allocated.push(address);
        Ok(address)
    }

    fn done<T>(&self, result: warpfold_cuda::Result<T>) -> Result<T> {
        result.map_err(|source| Error::Device { id: self.id, source })
    }

    fn copy_in(&mut self, question: &Question, elements: &Numbers, copies: u64) -> Result<()> {
        let before = question.offset * question.dtype.size() as u64;
        let each = (before + elements.bytes().len() as u64).next_multiple_of(ALIGNMENT);
        let all = self.allocate(each * copies)?;
        self.inputs = (0..copies).map(|i| all + i * each + before).collect();
        for &input in &self.inputs {
            self.done(self.device.copy_in(STREAM, input, elements.bytes()))?;
        }
        Ok(())
    }

    /// Which launches make a run, and the memory that they share.
    fn plan(&mut self, lab: &Lab, question: &Question) -> Result<()> {
        let size = self.added.size() as u64;
        self.out = self.allocate(size)?;
        let (name, first) = lab.kernel(question, true)?;
        match question.rung.plan {
            Plan::Passes { global, .. } => self.plan_passes(lab, question, global),
            plan => {
                let launch = self.at_once(question, first)?;
                let n = Argument::from(question.n);
                let out = Argument::from(self.out);
                let partials = match plan {
                    Plan::Atomic => 0,
                    _ => self.allocate(size * u64::from(launch.grid[0]))?,
                };
                let rest = match plan {
                    Plan::Atomic => vec![out, n],
                    Plan::TwoLaunches => vec![partials.into(), n],
                    _ => {
                        // Kernels leave it as they find it.
                        let tickets = self.allocate(4)?;
                        self.done(self.device.fill(STREAM, tickets, 0, 4))?;
                        vec![partials.into(), out, tickets.into(), n]
                    }
                };
                self.steps.push(Ready { name, kernel: first, launch, from: None, rest });
                if plan == Plan::TwoLaunches {
                    let (name, kernel) = lab.kernel(question, false)?;
                    let rest = vec![out, u64::from(launch.grid[0]).into()];
                    let launch = self.shape(question, 1);
                    self.steps.push(Ready { name, kernel, launch, from: Some(partials), rest });
                }
                Ok(())
            }
        }
    }

    /// A block for each tile, and again over the partials, which come to lie in two
    /// places by turns.
    fn plan_passes(&mut self, lab: &Lab, question: &Question, global: bool) -> Result<()> {
        let size = self.added.size() as u64;
        let mut n = question.n;
        let mut from = None;
        let mut places = [0; 2];
        let mut work = 0;
        loop {
            let Some(blocks) = question.tiles(n) else { return Ok(()) };
            let turn = self.steps.len() % 2;
            if self.steps.is_empty() {
                // The first pass has the most blocks, the second the most of the rest.
                places[0] = self.allocate(size * blocks)?;
                let next = question.tiles(blocks).unwrap_or(1);
                places[1] = self.allocate(size * next)?;
                if global {
                    work = self.allocate(size * blocks * u64::from(question.block))?;
                }
            }
            let to = if blocks == 1 { self.out } else { places[turn] };
            let mut rest: Vec<Argument> = vec![to.into(), n.into()];
            if global {
                rest.insert(0, work.into());
            }
            let grid = u32::try_from(blocks).unwrap_or(u32::MAX);
            let (name, kernel) = lab.kernel(question, from.is_none())?;
            let launch = self.shape(question, grid);
            self.steps.push(Ready { name, kernel, launch, from, rest });
            if blocks == 1 {
                return Ok(());
            }
            from = Some(to);
            n = blocks;
        }
    }

    /// As many blocks as the device runs at once, but no more than elements keep
    /// busy.
    fn at_once(&self, question: &Question, kernel: KernelId) -> Result<Launch> {
        let launch = self.shape(question, 1);
        let resident = self.device.resident_blocks(kernel, question.block, launch.shared);
        let resident = self.done(resident)?;
        let asked = match (question.per_multiprocessor, question.rung.plan) {
            (Some(blocks), Plan::GridSync) => blocks.min(resident),
            (Some(blocks), _) => blocks,
            (None, _) => resident,
        };
        let most = u64::from(asked.max(1)) * u64::from(self.device.limits().multiprocessors);
        let busy = question.n.div_ceil(question.block.into()).clamp(1, most);
        Ok(self.shape(question, u32::try_from(busy).unwrap_or(u32::MAX)))
    }

    fn shape(&self, question: &Question, blocks: u32) -> Launch {
        let launch = Launch::linear(blocks, question.block);
        let slots = question.block * self.added.size() as u32;
        let launch = if question.rung.kernel.slots { launch.shared(slots) } else { launch };
        match question.rung.plan {
            Plan::GridSync => launch.cooperative(),
            _ => launch,
        }
    }

    /// Blocks of each launch.
    fn grid(&self) -> Vec<u32> {
        self.steps.iter().map(|step| step.launch.grid[0]).collect()
    }

    /// The launches, and what they take.
    fn describe(&self) -> Result<Vec<Step>> {
        let room = self.device.limits().threads_per_multiprocessor.max(32);
        let describe = |ready: &Ready| -> warpfold_cuda::Result<Step> {
            let Launch { grid, block, shared, .. } = ready.launch;
            let resident = self.device.resident_blocks(ready.kernel, block[0], shared)?;
            let threads = resident * block[0].next_multiple_of(32);
            Ok(Step {
                kernel: ready.name.clone(),
                grid: grid[0],
                block: block[0],
                footprint: self.device.footprint(ready.kernel)?,
                dynamic_shared: shared,
                resident,
                occupancy: f64::from(threads) / f64::from(room),
            })
        };
        self.steps.iter().map(|ready| self.done(describe(ready))).collect()
    }

    /// Puts one run on the stream, over this copy of the input.
    fn start(&self, copy: usize) -> warpfold_cuda::Result<()> {
        if self.clear {
            self.device.fill(STREAM, self.out, 0, self.added.size() as u64)?;
        }
        let input = self.inputs[copy % self.inputs.len()];
        for step in &self.steps {
            let mut arguments = vec![Argument::from(step.from.unwrap_or(input))];
            arguments.extend(&step.rest);
            // SAFETY: kernels of a plan have its parameters; they read the n values that
            // are there and write the memory that was allocated for them.
            unsafe { self.device.launch(STREAM, step.kernel, &step.launch, &arguments)? };
        }
        Ok(())
    }

    /// Runs once, and says what came of it.
    fn answer(&self) -> Result<Scalar> {
        self.done(self.start(0))?;
        self.done(self.device.wait(STREAM))?;
        let mut bits = [0; 8];
        let size = self.added.size();
        self.done(self.device.copy_out(STREAM, self.out, &mut bits[..size]))?;
        Ok(Scalar::from_bits(self.added, u64::from_le_bytes(bits)))
    }

    /// How long one run takes, in each interval of so many runs.
    fn times(&self, timing: &Timing, runs: u32) -> Result<Vec<Duration>> {
        let mut copy = 0;
        let mut interval = |runs: u32| {
            self.device.time(STREAM, &mut || {
                (0..runs).try_for_each(|_| {
                    copy += 1;
                    self.start(copy)
                })
            })
        };
        let mut times = Vec::new();
        for _ in 0..timing.warm_up {
            // A device without a clock need not run for its time.
            if self.done(interval(1))?.is_none() {
                return Ok(times);
            }
        }
        for _ in 0..timing.runs {
            times.extend(self.done(interval(runs))?.map(|time| time / runs));
        }
        Ok(times)
    }
}

impl Drop for Setup<'_> {
    fn drop(&mut self) {
        // Launches may still use it. Errors have nobody to go to.
        let _ = self.device.wait(STREAM);
        for &address in &self.allocated {
            let _ = self.device.free(address);
        }
    }
}
