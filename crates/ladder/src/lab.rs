//! Runs rungs on a device, checks what they answer, and takes their time.

use crate::data::Data;
use crate::error::{Error, Result};
use crate::question::Question;
use crate::rung::Plan;
use crate::verdict::{Expected, Verdict};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use warpfold_core::op::Numbers;
use warpfold_core::{DType, Scalar};
use warpfold_cuda::{Address, Archive, Argument, Device, KernelId, Launch, ModuleId, Stream};

static KERNELS: Archive = Archive::new(include_bytes!("../kernels/kernels.archive"));

/// A device and the kernels that it has loaded.
pub struct Lab {
    device: Arc<dyn Device>,
    archive: Archive,
    modules: Mutex<HashMap<String, ModuleId>>,
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
    /// How long one run took, in each interval; none on a device without a clock.
    pub times: Vec<Duration>,
    /// Whether runs found their input in the L2 cache; otherwise they took turns
    /// over more copies of it than the cache holds.
    pub in_l2: bool,
}

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
        Lab { device, archive, modules: Mutex::default() }
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
        let elements = data.elements(question, seed);
        let setup = Setup::new(self, question, &elements, 1)?;
        let expected = Expected::of(question, &elements, data, &setup.grid())?;
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
        let elements = Data::Representable.elements(question, seed);
        let bytes = elements.bytes().len().max(1) as u64;
        let copies = (2 * self.device.limits().l2_bytes).div_ceil(bytes).max(1);
        let in_l2 = copies > MOST_COPIES;
        let copies = if in_l2 { 1 } else { copies };
        let setup = Setup::new(self, question, &elements, copies)?;
        let grid = setup.grid();
        let expected = Expected::of(question, &elements, Data::Representable, &grid)?;
        let mut verdict = expected.judge(question, setup.answer()?);
        let mut times = Vec::new();
        if verdict.is_right() {
            let runs = timing.interval_bytes.div_ceil(bytes).clamp(1, MOST_RUNS);
            times = setup.times(timing, runs as u32)?;
            verdict = expected.judge(question, setup.answer()?);
        }
        Ok(Measurement { verdict, grid, times, in_l2 })
    }

    /// A kernel of a question's rung.
    fn kernel(&self, question: &Question, first: bool) -> Result<KernelId> {
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
        self.device.kernel(module, &rung.entry(op, block, first)).map_err(device)
    }
}

/// One launch of a run.
struct Step {
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
    steps: Vec<Step>,
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
        let first = lab.kernel(question, true)?;
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
                self.steps.push(Step { kernel: first, launch, from: None, rest });
                if plan == Plan::TwoLaunches {
                    let kernel = lab.kernel(question, false)?;
                    let rest = vec![out, u64::from(launch.grid[0]).into()];
                    let launch = self.shape(question, 1);
                    self.steps.push(Step { kernel, launch, from: Some(partials), rest });
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
            let kernel = lab.kernel(question, from.is_none())?;
            let launch = self.shape(question, grid);
            self.steps.push(Step { kernel, launch, from, rest });
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
        let resident = u64::from(self.done(resident)?);
        let most = resident.max(1) * u64::from(self.device.limits().multiprocessors);
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
