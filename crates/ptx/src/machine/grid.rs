//! Runs a grid: which blocks are resident, whose turn it is, and how it ends.
//!
//! Blocks that cannot disturb one another run in parallel. Otherwise they run on one thread: a block as long as it can, then the next. If blocks
//! that run wait for others that have not begun, more become resident, as many as the device would hold.

use super::block::Block;
use super::checks::Checks;
use super::execute::{Turn, line_at};
use super::lanes::indices;
use super::launch::{Halt, Limits, Shape, Waiting};
use super::program::{Code, Program};
use super::schedule::{Chance, Schedule};
use super::undefined::Origins;
use super::warp::{Group, Wait};
use crate::count::{Counters, KernelCounters};
use crate::finding::{Act, Fault, Findings};
use crate::ir::{Line, Module};
use crate::memory::race::Races;
use crate::memory::{Global, Region, Request};
use crate::place::{LANES, Place};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use warpfold_threads::{Pieces, Threads};

/// Steps that a group may take before others get a turn.
const TURN: i32 = 1 << 16;

/// Bytes of this machine's memory that resident blocks may take.
const RESIDENT_BYTES: u64 = 4 << 30;

/// Steps without a block coming to its end after which more blocks become resident under the random scheduler.
const RESTLESS: u64 = 1 << 16;

/// Blocks that the random scheduler mixes.
const MIXED: usize = 4;

/// Picks of the random scheduler before another block gets a turn.
const PICKS: usize = 64;

/// Turns of a block under the random scheduler, on average, until its warps' lanes stop waiting for each other at joins.
const SOME_TIME: usize = 16;

/// Warp instructions between two looks at a launch, some hundredths of a second.
const LOOK: u64 = 1 << 16;

/// Entries of a report of who waits or runs where.
const REPORTED: usize = 16;

/// How launches are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which faults are looked for.
    pub checks: Checks,
    /// The order in which lanes, warps and blocks run.
    pub schedule: Schedule,
    /// Warp instructions that a launch may execute.
    pub instructions: u64,
    /// Whether to count.
    pub counters: bool,
    /// Whether blocks may run on several threads where that changes nothing: where a kernel has no atomics, fences or strong accesses in
    /// memory that blocks share, and races are not looked for. A kernel whose blocks race for plain memory all the same
    /// may then give something else in every run.
    pub parallel: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            checks: Checks::ALL,
            schedule: Schedule::Lockstep,
            instructions: 1 << 40,
            counters: false,
            parallel: true,
        }
    }
}

/// How far a launch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headway {
    /// Blocks that have ended.
    pub finished: u64,
    /// Blocks of the grid.
    pub blocks: u64,
    /// Warp instructions executed.
    pub instructions: u64,
}

/// Looks at a launch while it runs, now and then, from the threads that run it; `Break` ends the launch with [`Halt::Stopped`].
pub type Watch = Arc<dyn Fn(Headway) -> ControlFlow<()> + Send + Sync>;

/// A launch from the device, to be run when the grid that asked for it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceLaunch {
    /// The kernel, an index of the module's functions.
    pub kernel: u32,
    /// Its shape.
    pub shape: Shape,
    /// Its arguments, laid out.
    pub arguments: Vec<u8>,
}

/// A parameter buffer that has not been launched.
#[derive(Clone, Debug)]
pub(crate) struct PendingLaunch {
    pub(crate) kernel: u32,
    pub(crate) shape: Shape,
    pub(crate) bytes: u64,
}

/// Memory that kernels allocate from: allocations that last from its beginning, and the arguments of launches, which do not last, from its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heap {
    pub(crate) next: u64,
    pub(crate) end: u64,
    /// Where the arguments begin.
    pub(crate) top: u64,
}

/// Memory that a kernel has allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocated {
    pub(crate) bytes: u64,
    pub(crate) freed: Option<(Place, Line)>,
}

/// All that a launch needs.
#[derive(Clone, Copy)]
pub(crate) struct Launch<'a> {
    pub(crate) module: &'a Module,
    pub(crate) files: &'a Arc<[Arc<str>]>,
    pub(crate) program: &'a Program,
    pub(crate) shape: Shape,
    pub(crate) arguments: &'a [u8],
    pub(crate) global: &'a Global,
    pub(crate) constant: &'a Region,
    pub(crate) heap: Option<Heap>,
    /// Where the barrier of a cooperative grid lies; 0 without one.
    pub(crate) workspace: u64,
    pub(crate) limits: &'a Limits,
    pub(crate) options: &'a Options,
    pub(crate) watch: Option<&'a Watch>,
}

/// What a launch gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The faults found.
    pub findings: Findings,
    /// The counters, if they were asked for.
    pub counters: Option<KernelCounters>,
    /// What the kernel printed.
    pub output: Vec<u8>,
    /// Warp instructions executed.
    pub instructions: u64,
    /// Instructions that lanes executed.
    pub lane_instructions: u64,
    /// Accesses that the race checker had to forget; while it is 0 every race of this run is found.
    pub forgotten: u64,
    /// Why the kernel did not come to its end; `None` if it did.
    pub halt: Option<Halt>,
    /// Launches that the kernel asked for.
    pub launches: Vec<DeviceLaunch>,
}

impl Outcome {
    /// A launch that never began.
    pub(crate) fn halted(kernel: Arc<str>, files: Arc<[Arc<str>]>, halt: Halt) -> Outcome {
        Outcome {
            findings: Findings::new(kernel, files),
            counters: None,
            output: Vec::new(),
            instructions: 0,
            lane_instructions: 0,
            forgotten: 0,
            halt: Some(halt),
            launches: Vec::new(),
        }
    }

    /// Whether the kernel came to its end and nothing was found but remarks.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let faults = self.findings.faults().next().is_some() || self.findings.left_out() > 0;
        self.halt.is_none() && !faults
    }

    /// Adds what another part of the same launch gave.
    fn merge(&mut self, other: Outcome) {
        self.findings.merge(other.findings);
        if let (Some(own), Some(other)) = (&mut self.counters, &other.counters) {
            own.merge(other);
        }
        self.output.extend(other.output);
        self.instructions += other.instructions;
        self.lane_instructions += other.lane_instructions;
        self.forgotten += other.forgotten;
        self.halt = self.halt.take().or(other.halt);
        self.launches.extend(other.launches);
    }
}

/// What executes: everything that is not a block's.
pub(crate) struct Machine<'a> {
    pub(crate) module: &'a Module,
    pub(crate) program: &'a Program,
    pub(crate) options: &'a Options,
    pub(crate) global: &'a Global,
    pub(crate) constant: &'a Region,
    pub(crate) arguments: &'a Region,
    pub(crate) races: Option<Races>,
    pub(crate) findings: Findings,
    /// Accesses whose values are undefined, and where such values are; those of the access that is under way.
    pub(crate) origins: Origins,
    pub(crate) unwritten: Vec<Fault>,
    pub(crate) counters: Option<Vec<Counters>>,
    pub(crate) output: Vec<u8>,
    pub(crate) heap: Option<Heap>,
    /// What was allocated from the heap in this launch: its bytes, and who freed it.
    pub(crate) allocated: BTreeMap<u64, Allocated>,
    pub(crate) pending: FxHashMap<u64, PendingLaunch>,
    pub(crate) launches: Vec<DeviceLaunch>,
    pub(crate) issued: u64,
    pub(crate) lane_instructions: u64,
    chance: Chance,
    joins_now: bool,
    /// What all threads of this launch have done, and how many of the instructions are this one's.
    total: &'a Total,
    watch: Option<&'a Watch>,
    blocks: u64,
    reported: u64,
}

/// What the threads that run a launch have done together.
#[derive(Debug, Default)]
struct Total {
    instructions: AtomicU64,
    /// Blocks that have ended.
    blocks: AtomicU64,
    /// Who watches wants no more.
    stopped: AtomicBool,
}

/// Takes note of a fault, if it is looked for.
pub(crate) fn told(findings: &mut Findings, checks: Checks, fault: Fault) {
    if checks.allow(fault.kind) {
        findings.report(fault);
    }
}

/// How a block's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Finished,
    /// Every thread waits for something outside the block.
    Blocked,
    /// Threads could go on.
    Spent,
}

/// Runs a launch to its end: what it gave, and what is left of the heap.
pub(crate) fn run(launch: &Launch<'_>) -> (Outcome, Option<Heap>) {
    let total = Total::default();
    let arguments = match Region::of(crate::finding::Space::Param, launch.arguments) {
        Ok(region) => region,
        Err(error) => return (failed(launch, error.into()), launch.heap),
    };
    if !may_run_in_parallel(launch) {
        let mut machine = Machine::new(launch, &arguments, &total);
        let halt = machine.run_in_order(launch).err();
        let heap = machine.heap;
        return (machine.finish(halt), heap);
    }
    let blocks = launch.shape.blocks();
    let piece = (blocks as usize).div_ceil(Threads::All.count() * 8).max(1) as u32;
    let pieces = blocks.div_ceil(piece);
    let share = Pieces::new(pieces as usize);
    let outcomes = Threads::All.run(share.count(), || {
        let mut outcomes = Vec::new();
        while let Some(i) = share.take()
            && !total.stopped.load(Relaxed)
        {
            let first = i as u32 * piece;
            let mut machine = Machine::new(launch, &arguments, &total);
            let end = first.saturating_add(piece).min(blocks);
            let halt = machine.run_alone(launch, first..end).err();
            outcomes.push((i, machine.finish(halt)));
        }
        outcomes
    });
    let mut outcomes: Vec<_> = outcomes.into_iter().flatten().collect();
    outcomes.sort_unstable_by_key(|&(i, _)| i);
    let outcomes = outcomes.into_iter().map(|(_, outcome)| outcome);
    let whole = outcomes.reduce(|mut whole, part| {
        whole.merge(part);
        whole
    });
    // A grid has at least one block.
    (whole.unwrap_or_else(|| failed(launch, deadlock(launch.program, &[]))), launch.heap)
}

fn failed(launch: &Launch<'_>, halt: Halt) -> Outcome {
    Outcome::halted(launch.program.name(), launch.files.clone(), halt)
}

fn findings(launch: &Launch<'_>) -> Findings {
    Findings::new(launch.program.functions[0].name.clone(), launch.files.clone())
}

/// Whether the order of blocks cannot matter: they share nothing but memory that each writes for itself, and no checker asks who did.
fn may_run_in_parallel(launch: &Launch<'_>) -> bool {
    launch.options.parallel
        && !launch.program.needs_order
        && !launch.options.checks.races
        && launch.shape.cluster.is_none()
        && !launch.shape.cooperative
        && launch.shape.blocks() > 1
}

impl<'a> Machine<'a> {
    fn new(launch: &Launch<'a>, arguments: &'a Region, total: &'a Total) -> Machine<'a> {
        let options = launch.options;
        let shape = &launch.shape;
        let races = options.checks.races.then(|| {
            let mut races = Races::new(shape.blocks(), shape.threads(), shape.cluster_blocks());
            if launch.program.trusts_volatile {
                races.clocks.keep_beliefs();
            }
            races
        });
        let counters =
            options.counters.then(|| vec![Counters::default(); launch.program.steps as usize]);
        Machine {
            module: launch.module,
            program: launch.program,
            options,
            global: launch.global,
            constant: launch.constant,
            arguments,
            races,
            findings: findings(launch),
            origins: Origins::default(),
            unwritten: Vec::new(),
            counters,
            output: Vec::new(),
            heap: launch.heap,
            allocated: BTreeMap::new(),
            pending: FxHashMap::default(),
            launches: Vec::new(),
            issued: 0,
            lane_instructions: 0,
            chance: Chance::new(seed(options.schedule)),
            joins_now: true,
            total,
            watch: launch.watch,
            blocks: shape.blocks().into(),
            reported: 0,
        }
    }

    fn finish(mut self, halt: Option<Halt>) -> Outcome {
        self.report_outputs();
        let (findings, checks) = (&mut self.findings, self.options.checks);
        if let Some(races) = &mut self.races {
            races.end(halt.is_none(), &mut |fault| told(findings, checks, fault));
        }
        let counters = self.counters.map(|all| {
            let mut kernel = KernelCounters::default();
            for code in &self.program.functions {
                for (pc, &line) in code.lines.iter().enumerate() {
                    kernel.add(line, &all[code.first as usize + pc]);
                }
            }
            kernel
        });
        Outcome {
            findings: self.findings,
            counters,
            output: self.output,
            instructions: self.issued,
            lane_instructions: self.lane_instructions,
            forgotten: self.races.as_ref().map_or(0, Races::forgotten),
            halt,
            launches: self.launches,
        }
    }

    /// Takes note of a fault, if it is looked for.
    pub(crate) fn report(&mut self, fault: Fault) {
        told(&mut self.findings, self.options.checks, fault);
    }

    /// Whether lanes that part meet again as soon as they can.
    pub(crate) fn joins(&mut self) -> bool {
        match self.options.schedule {
            Schedule::Lockstep => true,
            Schedule::Adversarial { .. } => false,
            Schedule::Random { .. } => self.joins_now,
        }
    }

    /// Under the random scheduler, part of a group now and then: that part is taken off.
    #[inline(always)]
    pub(crate) fn split_by_chance(&mut self, group: &mut Group) -> Option<Group> {
        if !matches!(self.options.schedule, Schedule::Random { .. }) {
            return None;
        }
        self.split_group(group)
    }

    #[cold]
    fn split_group(&mut self, group: &mut Group) -> Option<Group> {
        if group.mask.count_ones() < 2 || !self.chance.once_in(24) {
            return None;
        }
        let part = group.mask & self.chance.next() as u32;
        if part == 0 || part == group.mask {
            return None;
        }
        let mut rest = group.clone();
        rest.mask = part;
        group.mask &= !part;
        Some(rest)
    }

    #[inline(always)]
    pub(crate) fn note_step(&mut self, code: &Code, pc: u32, active: u32) {
        self.issued += 1;
        self.lane_instructions += u64::from(active.count_ones());
        if let Some(counters) = &mut self.counters {
            counters[(code.first + pc) as usize].execute(active);
        }
    }

    #[inline(always)]
    pub(crate) fn count(&mut self, step: u32, f: impl FnOnce(&mut Counters)) {
        if let Some(counters) = &mut self.counters {
            f(&mut counters[step as usize]);
        }
    }

    pub(crate) fn count_global(
        &mut self,
        request: &Request<'_>,
        access: super::access::Access<'_>,
    ) {
        self.count(access.step, |c| match request.act {
            Act::Atomic => c.global_atomics.add(request.addresses, request.active),
            act if act.writes() => {
                c.global_stores.add(request.addresses, request.active, request.size)
            }
            _ => c.global_loads.add(request.addresses, request.active, request.size),
        });
    }

    pub(crate) fn count_shared(
        &mut self,
        request: &Request<'_>,
        access: super::access::Access<'_>,
    ) {
        self.count(access.step, |c| match request.act {
            Act::Atomic => c.shared_atomics.add(request.addresses, request.active),
            act if act.writes() => {
                c.shared_stores.add(request.addresses, request.active, request.size)
            }
            _ => c.shared_loads.add(request.addresses, request.active, request.size),
        });
    }

    /// Blocks for which no other block waits, one after the other.
    fn run_alone(
        &mut self,
        launch: &Launch<'_>,
        blocks: core::ops::Range<u32>,
    ) -> Result<(), Halt> {
        let mut block = Block::new(self.program, &launch.shape, self.options.checks.uninitialised)?;
        for index in blocks {
            // A block's run depends on the seed and its number, never on who ran before.
            self.chance = Chance::new(seed(self.options.schedule) ^ (u64::from(index) << 20));
            block.begin(index, self.program, &launch.shape, launch.arguments, launch.workspace);
            loop {
                match self.run_block(&mut block)? {
                    Progress::Finished => {
                        self.total.blocks.fetch_add(1, Relaxed);
                        break;
                    }
                    Progress::Spent => {}
                    Progress::Blocked => {
                        self.report_crossed_barriers(&block);
                        return Err(deadlock(self.program, &[&block]));
                    }
                }
            }
        }
        Ok(())
    }

    /// Blocks that may wait for one another, in an order that the schedule fixes.
    fn run_in_order(&mut self, launch: &Launch<'_>) -> Result<(), Halt> {
        let mut residents = Residents::new(launch, &mut self.chance);
        let random = matches!(self.options.schedule, Schedule::Random { .. });
        let mut at = 0;
        // Blocks in a row that did not come to their end, and whether one of them could go on.
        let (mut idle, mut could_go_on) = (0, false);
        let mut since = self.issued;
        loop {
            let wanted = if random { MIXED } else { 1 };
            while residents.blocks.len() < wanted && residents.has_more() {
                residents.start(self, launch)?;
            }
            if residents.blocks.is_empty() {
                return Ok(());
            }
            at = if random {
                self.chance.below(residents.blocks.len())
            } else {
                at % residents.blocks.len()
            };
            let block = &mut residents.blocks[at];
            block.wake_from_cluster();
            match self.run_block(block)? {
                Progress::Finished => {
                    residents.end(self, at);
                    self.total.blocks.fetch_add(1, Relaxed);
                    (idle, could_go_on) = (0, false);
                    since = self.issued;
                    continue;
                }
                Progress::Spent => could_go_on = true,
                Progress::Blocked => {}
            }
            at += 1;
            idle += 1;
            let all_had_a_turn = idle >= residents.blocks.len() * if random { 8 } else { 1 };
            let restless = !random || self.issued - since > RESTLESS || !could_go_on;
            if all_had_a_turn && restless {
                if residents.has_room() && residents.has_more() {
                    // Twice as many each time: a barrier of the whole grid needs all of them.
                    for _ in 0..residents.blocks.len() {
                        if residents.has_room() && residents.has_more() {
                            residents.start(self, launch)?;
                        }
                    }
                } else if !could_go_on
                    && !residents.blocks.iter_mut().any(|b| b.wake_from_cluster() || b.has_ready())
                {
                    let blocks: Vec<&Block> = residents.blocks.iter().collect();
                    blocks.iter().for_each(|block| self.report_crossed_barriers(block));
                    return Err(deadlock(self.program, &blocks));
                }
                (idle, could_go_on) = (0, false);
                since = self.issued;
            }
        }
    }

    /// A block's turn.
    fn run_block(&mut self, block: &mut Block) -> Result<Progress, Halt> {
        loop {
            let progress = match self.options.schedule {
                Schedule::Random { .. } => self.pick_by_chance(block)?,
                _ => self.pass(block)?,
            };
            if progress != Progress::Blocked {
                return Ok(progress);
            }
            if block.is_finished() {
                return Ok(Progress::Finished);
            }
            let waits_outside =
                block.warps.iter().any(|w| w.groups.iter().any(|g| g.wait == Wait::Cluster));
            if waits_outside {
                return Ok(Progress::Blocked);
            }
            if !give_up_joins(block) && !self.give_up_lanes(block) {
                return Ok(Progress::Blocked);
            }
        }
    }

    /// Every group runs as far as it can, until none moves any more or all have used up a turn.
    fn pass(&mut self, block: &mut Block) -> Result<Progress, Halt> {
        loop {
            let (mut stopped, mut spent, mut looked) = (false, false, false);
            for i in 0..block.warps.len() {
                let w = self.warp_at(i, block.warps.len(), block.memory.index);
                block.warps[w].groups.iter_mut().for_each(|g| g.tired = false);
                while let Some(group) = self.next_group(block, w) {
                    match self.turn(block, w, group, TURN)? {
                        Turn::Stopped => stopped = true,
                        turn => {
                            spent = true;
                            looked |= turn == Turn::Looking;
                            if let Some(last) = block.warps[w].groups.last_mut() {
                                last.tired = true;
                            }
                        }
                    }
                }
            }
            // Who looks for what others do may look for lanes of its own warp that wait for it.
            if !stopped && looked && give_up_joins(block) {
                continue;
            }
            if !stopped {
                return Ok(if spent { Progress::Spent } else { Progress::Blocked });
            }
        }
    }

    /// The warp that comes as number `i`: the adversarial scheduler with a seed permutes them.
    fn warp_at(&self, i: usize, warps: usize, block: u32) -> usize {
        match self.options.schedule {
            Schedule::Adversarial { seed } if seed != 0 => {
                Permutation::new(seed ^ u64::from(block), warps as u32).at(i as u32) as usize
            }
            _ => i,
        }
    }

    /// A group that can run: taken from its warp. For the adversarial scheduler, one lane of it.
    fn next_group(&mut self, block: &mut Block, w: usize) -> Option<Group> {
        let warp = &mut block.warps[w];
        let ready = |g: &Group| g.wait == Wait::Ready && !g.tired;
        let Schedule::Adversarial { seed } = self.options.schedule else {
            let at = warp.groups.iter().position(ready)?;
            return Some(warp.groups.swap_remove(at));
        };
        let order = Permutation::new(seed ^ w as u64, LANES as u32);
        let rank = |lane: usize| if seed == 0 { lane as u32 } else { order.at(lane as u32) };
        let best = |g: &Group| indices(g.mask).min_by_key(|&lane| rank(lane));
        let (at, lane) = (warp.groups.iter().enumerate())
            .filter(|(_, g)| ready(g))
            .filter_map(|(at, g)| best(g).map(|lane| (at, lane)))
            .min_by_key(|&(_, lane)| rank(lane))?;
        if warp.groups[at].mask == 1 << lane {
            return Some(warp.groups.swap_remove(at));
        }
        let mut group = warp.groups[at].clone();
        group.mask = 1 << lane;
        warp.groups[at].mask &= !group.mask;
        Some(group)
    }

    /// Some short turns of groups picked at random.
    fn pick_by_chance(&mut self, block: &mut Block) -> Result<Progress, Halt> {
        // Lanes need not wait for one another, and those that run may wait for those that do.
        if self.chance.once_in(SOME_TIME) {
            give_up_joins(block);
        }
        for _ in 0..PICKS {
            let ready = |g: &&Group| g.wait == Wait::Ready;
            let of_warp = |b: &Block, w: usize| b.warps[w].groups.iter().filter(ready).count();
            let all: usize = (0..block.warps.len()).map(|w| of_warp(block, w)).sum();
            if all == 0 {
                return Ok(Progress::Blocked);
            }
            let mut pick = self.chance.below(all);
            let mut w = 0;
            while pick >= of_warp(block, w) {
                pick -= of_warp(block, w);
                w += 1;
            }
            let groups = &mut block.warps[w].groups;
            let at =
                groups.iter().enumerate().filter(|(_, g)| ready(g)).nth(pick).map(|(at, _)| at);
            let Some(at) = at else { continue };
            let group = groups.swap_remove(at);
            let turn = 1 + self.chance.below(48) as i32;
            self.joins_now = !self.chance.once_in(4);
            self.turn(block, w, group, turn)?;
        }
        Ok(Progress::Spent)
    }

    /// A turn of one group, and a look at the limit.
    fn turn(
        &mut self,
        block: &mut Block,
        w: usize,
        mut group: Group,
        turn: i32,
    ) -> Result<Turn, Halt> {
        group.tired = false;
        let limit = self.options.instructions;
        let done = &self.total.instructions;
        let left = limit.saturating_sub(done.load(Relaxed)).saturating_add(1);
        let turn = turn.min(i32::try_from(left).unwrap_or(i32::MAX));
        let result = self.run_group(block, w, group, turn)?;
        let news = self.issued - self.reported;
        self.reported = self.issued;
        let before = self.total.instructions.fetch_add(news, Relaxed);
        let after = before + news;
        if after > limit {
            let (finished, blocks) = (self.total.blocks.load(Relaxed), self.blocks);
            let running = waiting(self.program, &[block]);
            return Err(Halt::InstructionLimit { limit, finished, blocks, running });
        }
        if before / LOOK != after / LOOK {
            self.look(after)?;
        }
        Ok(result)
    }

    /// Lets who watches look, and perhaps stop the launch.
    #[cold]
    fn look(&self, instructions: u64) -> Result<(), Halt> {
        let Some(watch) = self.watch else { return Ok(()) };
        let (finished, blocks) = (self.total.blocks.load(Relaxed), self.blocks);
        let stopped = &self.total.stopped;
        if stopped.load(Relaxed) || watch(Headway { finished, blocks, instructions }).is_break() {
            stopped.store(true, Relaxed);
            return Err(Halt::Stopped { finished, blocks });
        }
        Ok(())
    }
}

/// Gives up the joins of all warps. Whether anybody can go on by that.
fn give_up_joins(block: &mut Block) -> bool {
    block.warps.iter_mut().fold(false, |freed, warp| warp.give_up_joins() | freed)
}

fn seed(schedule: Schedule) -> u64 {
    match schedule {
        Schedule::Lockstep => 0,
        Schedule::Random { seed } | Schedule::Adversarial { seed } => seed,
    }
}

/// An order of the numbers below `n`, without a list of them.
#[derive(Clone, Copy, Debug)]
struct Permutation {
    n: u64,
    factor: u64,
    shift: u64,
}

impl Permutation {
    fn new(seed: u64, n: u32) -> Permutation {
        let n = u64::from(n.max(1));
        let mut chance = Chance::new(seed);
        let mut factor = chance.next() % n;
        // A factor without a common divisor visits every number once.
        while gcd(factor, n) != 1 {
            factor = (factor + 1) % n.max(2);
        }
        Permutation { n, factor, shift: chance.next() % n }
    }

    fn at(self, i: u32) -> u32 {
        ((u64::from(i) * self.factor + self.shift) % self.n) as u32
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The blocks that have begun and not ended.
struct Residents {
    blocks: Vec<Block>,
    /// Blocks that have ended, for the next to use.
    spare: Vec<Block>,
    next: u32,
    clusters: u32,
    limit: usize,
    order: Option<Permutation>,
}

impl Residents {
    fn new(launch: &Launch<'_>, chance: &mut Chance) -> Residents {
        let clusters = launch.shape.blocks() / launch.shape.cluster_blocks();
        let order = match launch.options.schedule {
            Schedule::Lockstep | Schedule::Adversarial { seed: 0 } => None,
            _ => Some(Permutation::new(chance.next(), clusters)),
        };
        let resident = launch.limits.resident(&launch.shape, launch.program.static_shared) as usize;
        let affordable = RESIDENT_BYTES / launch.program.block_bytes(&launch.shape).max(1);
        let limit = resident.min(usize::try_from(affordable).unwrap_or(usize::MAX));
        Residents { blocks: Vec::new(), spare: Vec::new(), next: 0, clusters, limit, order }
    }

    fn has_more(&self) -> bool {
        self.next < self.clusters
    }

    fn has_room(&self) -> bool {
        self.blocks.len() < self.limit
    }

    /// Begins the blocks of the next cluster.
    fn start(&mut self, machine: &mut Machine<'_>, launch: &Launch<'_>) -> Result<(), Halt> {
        let shape = &launch.shape;
        let cluster = self.order.map_or(self.next, |order| order.at(self.next));
        self.next += 1;
        let first = self.blocks.len();
        for index in members(shape, cluster) {
            let mut block = match self.spare.pop() {
                Some(block) => block,
                None => Block::new(launch.program, shape, machine.options.checks.uninitialised)?,
            };
            block.begin(index, launch.program, shape, launch.arguments, launch.workspace);
            if let Some(races) = &mut machine.races {
                races.start_block(index);
            }
            self.blocks.push(block);
        }
        if shape.cluster.is_some() {
            let members = &mut self.blocks[first..];
            let peers: Vec<_> = members.iter().map(|b| b.memory.shared.clone()).collect();
            let state = Rc::new(RefCell::new(super::block::Cluster::default()));
            state.borrow_mut().live = shape.threads() * shape.cluster_blocks();
            for block in members {
                block.memory.peers.clone_from(&peers);
                block.cluster = state.clone();
            }
        }
        Ok(())
    }

    /// A block has ended.
    fn end(&mut self, machine: &mut Machine<'_>, at: usize) {
        let mut block = self.blocks.remove(at);
        if let Some(races) = &mut machine.races {
            let (findings, checks) = (&mut machine.findings, machine.options.checks);
            races.end_block(block.memory.index, &mut |fault| told(findings, checks, fault));
        }
        // Shared memory that others of the cluster still see is not used again.
        block.memory.peers.clear();
        if Rc::strong_count(&block.memory.shared) == 1 {
            self.spare.push(block);
        }
    }
}

/// The blocks of a cluster, by rank.
fn members(shape: &Shape, cluster: u32) -> Vec<u32> {
    let Some(size) = shape.cluster else { return vec![cluster] };
    let along: [u32; 3] = core::array::from_fn(|i| shape.grid[i] / size[i]);
    let place = [cluster % along[0], cluster / along[0] % along[1], cluster / along[0] / along[1]];
    let mut blocks = Vec::new();
    for z in 0..size[2] {
        for y in 0..size[1] {
            for x in 0..size[0] {
                let at = [place[0] * size[0] + x, place[1] * size[1] + y, place[2] * size[2] + z];
                blocks.push(at[0] + shape.grid[0] * (at[1] + shape.grid[1] * at[2]));
            }
        }
    }
    blocks
}

fn deadlock(program: &Program, blocks: &[&Block]) -> Halt {
    Halt::Deadlock { waiting: waiting(program, blocks) }
}

/// Who is where, and what for.
fn waiting(program: &Program, blocks: &[&Block]) -> Vec<Waiting> {
    let mut list = Vec::new();
    for block in blocks {
        for (w, warp) in block.warps.iter().enumerate() {
            for group in &warp.groups {
                if list.len() >= REPORTED {
                    return list;
                }
                let code = &program.functions[group.function as usize];
                let thread = w as u32 * LANES as u32 + group.mask.trailing_zeros();
                list.push(Waiting {
                    place: Place { block: block.memory.index, thread },
                    lanes: group.mask,
                    line: line_at(code, group.pc),
                    what: describe(block, warp.live(), group),
                });
            }
        }
    }
    list
}

fn describe(block: &Block, live: u32, group: &Group) -> String {
    match group.wait {
        Wait::Ready => "can run".to_owned(),
        Wait::Join(_) => "waits for the warp's other lanes to come out of a branch".to_owned(),
        Wait::Lanes(named) => format!("waits for lanes {:#010x}", named & live & !group.mask),
        Wait::Cluster => "waits at the cluster's barrier".to_owned(),
        Wait::Barrier(id) => {
            let barrier = &block.barriers[id as usize];
            let here: u32 = barrier
                .waiting
                .iter()
                .zip(&barrier.arrived)
                .map(|(w, a)| (w | a).count_ones())
                .sum();
            match barrier.expected.flatten() {
                Some(count) => {
                    format!("waits at barrier {id}, where {here} of {count} threads are")
                }
                None => {
                    let all: u32 = block.warps.iter().map(|w| w.live().count_ones()).sum();
                    format!("waits at barrier {id}, where {here} of {all} threads are")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_visit_every_number_once() {
        for n in [1, 2, 3, 7, 32, 100] {
            for seed in 0..20 {
                let order = Permutation::new(seed, n);
                let mut seen: Vec<u32> = (0..n).map(|i| order.at(i)).collect();
                seen.sort_unstable();
                assert!(seen.into_iter().eq(0..n), "{n} {seed}");
            }
        }
    }

    #[test]
    fn clusters_cut_the_grid_into_boxes() {
        let shape =
            Shape { cluster: Some([2, 2, 1]), ..Shape { grid: [4, 2, 1], ..Shape::linear(1, 32) } };
        assert_eq!(members(&shape, 0), [0, 1, 4, 5]);
        assert_eq!(members(&shape, 1), [2, 3, 6, 7]);
    }
}
