//! A run as launches of a rung's kernels.

use crate::error::Result;
use crate::lab::{Lab, STREAM, Step, Timing};
use crate::memory::Memory;
use crate::question::Question;
use crate::rung::{Plan, Shared};
use crate::runner::{self, Runner};
use std::time::Duration;
use warpfold_core::{DType, Scalar};
use warpfold_cuda::{Address, Argument, KernelId, Launch};

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

/// The launches that answer a question.
pub(crate) struct Launches<'a> {
    memory: Memory<'a>,
    id: &'static str,
    steps: Vec<Ready>,
    /// Where the answer comes to lie, and its type.
    out: Address,
    added: DType,
    /// Whether the answer must be zero before a run.
    clear: bool,
}

impl<'a> Launches<'a> {
    pub(crate) fn new(
        lab: &'a Lab,
        question: &Question,
        memory: Memory<'a>,
    ) -> Result<Launches<'a>> {
        let mut launches = Launches {
            memory,
            id: question.rung.id,
            steps: Vec::new(),
            out: 0,
            added: question.added(),
            clear: question.rung.plan == Plan::Atomic,
        };
        launches.plan(lab, question)?;
        Ok(launches)
    }

    /// Which launches make a run, and the memory that they share.
    fn plan(&mut self, lab: &Lab, question: &Question) -> Result<()> {
        let size = self.added.size() as u64;
        self.out = self.memory.allocate(size)?;
        let (name, first) = lab.kernel(question, true)?;
        match question.rung.plan {
            Plan::Passes { global, .. } => self.plan_passes(lab, question, global),
            Plan::TailLaunches { .. } => self.plan_passes(lab, question, true),
            plan => {
                let launch = self.at_once(question, first)?;
                let n = Argument::from(question.n);
                let out = || Argument::from(self.out);
                let partials = match plan {
                    Plan::Atomic => 0,
                    _ => self.memory.allocate(size * u64::from(launch.grid[0]))?,
                };
                let rest = match plan {
                    Plan::Atomic => vec![out(), n],
                    Plan::TwoLaunches => vec![partials.into(), n],
                    _ => {
                        // Kernels leave it as they find it.
                        let tickets = self.memory.allocate(4)?;
                        self.memory.done(self.memory.clear(tickets, 4))?;
                        vec![partials.into(), out(), tickets.into(), n]
                    }
                };
                self.steps.push(Ready { name, kernel: first, launch, from: None, rest });
                if plan == Plan::TwoLaunches {
                    let (name, kernel) = lab.kernel(question, false)?;
                    let rest = vec![out(), u64::from(launch.grid[0]).into()];
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
                places[0] = self.memory.allocate(size * blocks)?;
                let next = question.tiles(blocks).unwrap_or(1);
                places[1] = self.memory.allocate(size * next)?;
                if global {
                    work = self.memory.allocate(size * blocks * u64::from(question.block))?;
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
        // Of clusters there are whole ones.
        let unit = match question.rung.plan {
            Plan::Clusters(blocks) => blocks,
            _ => 1,
        };
        let launch = self.shape(question, unit);
        let resident = self.memory.device.resident_blocks(kernel, question.block, launch.shared);
        let resident = self.memory.done(resident)?;
        let asked = match (question.per_multiprocessor, question.rung.plan) {
            (Some(blocks), Plan::GridSync) => blocks.min(resident),
            (Some(blocks), _) => blocks,
            (None, _) => resident,
        };
        let most = u64::from(asked.max(1)) * u64::from(self.memory.device.limits().multiprocessors);
        let busy = question.n.div_ceil(question.block.into()).clamp(1, most);
        let whole =
            busy.next_multiple_of(unit.into()).min(most / u64::from(unit) * u64::from(unit));
        let blocks = u32::try_from(whole).unwrap_or(u32::MAX);
        Ok(self.shape(question, blocks.max(unit)))
    }

    fn shape(&self, question: &Question, blocks: u32) -> Launch {
        let launch = Launch::linear(blocks, question.block);
        let launch = match question.rung.kernel.shared {
            Shared::None => launch,
            Shared::Slots => launch.shared(question.block * self.added.size() as u32),
            Shared::Stages(stages) => launch.shared(question.block * 16 * stages),
        };
        match question.rung.plan {
            Plan::GridSync => launch.cooperative(),
            Plan::Clusters(blocks) => launch.clusters(blocks),
            _ => launch,
        }
    }

    /// Puts one run on the stream, over this copy of the input.
    fn start(&self, copy: usize) -> warpfold_cuda::Result<()> {
        if self.clear {
            self.memory.clear(self.out, self.added.size() as u64)?;
        }
        let input = self.memory.input(copy);
        for step in &self.steps {
            let mut arguments = vec![Argument::from(step.from.unwrap_or(input))];
            arguments.extend(step.rest.iter().cloned());
            // SAFETY: kernels of a plan have its parameters; they read the n values that
            // are there and write the memory that was allocated for them.
            unsafe { self.memory.device.launch(STREAM, step.kernel, &step.launch, &arguments)? };
        }
        Ok(())
    }
}

impl Runner for Launches<'_> {
    fn grid(&self) -> Vec<u32> {
        self.steps.iter().map(|step| step.launch.grid[0]).collect()
    }

    fn steps(&self) -> Result<Vec<Step>> {
        let room = self.memory.device.limits().threads_per_multiprocessor.max(32);
        let describe = |ready: &Ready| -> warpfold_cuda::Result<Step> {
            let Launch { grid, block, shared, .. } = ready.launch;
            let resident = self.memory.device.resident_blocks(ready.kernel, block[0], shared)?;
            let threads = resident * block[0].next_multiple_of(32);
            Ok(Step {
                kernel: ready.name.clone(),
                grid: grid[0],
                block: block[0],
                footprint: self.memory.device.footprint(ready.kernel)?,
                dynamic_shared: shared,
                resident,
                occupancy: f64::from(threads) / f64::from(room),
            })
        };
        self.steps.iter().map(|ready| self.memory.done(describe(ready))).collect()
    }

    fn answer(&self) -> Result<Scalar> {
        self.memory.done(self.start(0))?;
        self.memory.done(self.memory.device.wait(STREAM))?;
        let mut bits = [0; 8];
        let size = self.added.size();
        self.memory.read(self.out, &mut bits[..size])?;
        Ok(Scalar::from_bits(self.added, u64::from_le_bytes(bits)))
    }

    fn times(&self, timing: &Timing, runs: u32) -> Result<Vec<Duration>> {
        runner::on_device(self.memory.device, self.id, timing, runs, &|copy| self.start(copy))
    }
}
