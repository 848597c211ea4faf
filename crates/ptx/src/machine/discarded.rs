//! Loads whose values some lanes may throw away: which they are, and when a lane uses what such a load gave it.
//!
//! Of most loads the value is read on every way to the end of the kernel. The others are *open*: they are followed, value by value, so that the race checker can
//! tell a race of a value that is used from one of a value that is not. Only steps that touch a register of an open load pay for it. A value counts as
//! used where a lane executes a step that reads it, whatever becomes of the result.

use super::grid::{Machine, told};
use super::lanes::indices;
use super::operands::{Frame, Touch};
use super::program::{Guarded, Load, REGISTER, Slot, Step};
use super::warp::Warp;
use crate::flow::Flow;
use crate::ir::{Order, Space};
use crate::place::LANES;
use rustc_hash::FxHashMap;

/// Bits of the sets that are worth the search; in larger kernels every value counts as used.
const MOST_BITS: usize = 1 << 26;

/// The numbers of the loads that gave the values of a warp's registers, lane by lane; 0: none that is followed.
pub(crate) type Given = FxHashMap<Slot, [u32; LANES]>;

/// Marks the open loads of a kernel, and all steps that touch what they give.
pub(crate) fn mark(steps: &mut [Guarded], flow: &Flow, frame: &Frame) {
    let registers = frame.registers();
    let Some(read) = SurelyRead::new(steps, flow, registers) else { return };
    let mut given = vec![false; registers];
    for (number, block) in flow.blocks().iter().enumerate() {
        let mut set = read.behind(flow, number);
        for guarded in steps[block.start as usize..block.end as usize].iter_mut().rev() {
            if let Step::Load(load) = &mut guarded.step
                && may_race(load)
                && !load.dsts.iter().any(|&dst| holds(&set, dst))
            {
                load.open = true;
                let dsts = load.dsts.iter().filter_map(|&dst| register(dst));
                dsts.for_each(|dst| given[dst] = true);
            }
            pass(&mut set, guarded);
        }
    }
    for guarded in steps {
        let mut touches = false;
        guarded.step.touch(&mut |touch| {
            if let Touch::Read(slot) | Touch::Write(slot) = touch {
                touches |= register(slot).is_some_and(|slot| given[slot]);
            }
        });
        guarded.touches_open = touches;
    }
}

fn may_race(load: &Load) -> bool {
    let shared =
        matches!(load.space, Space::Global | Space::Shared | Space::SharedCluster | Space::Generic);
    shared && load.order == Order::Weak
}

fn register(slot: Slot) -> Option<usize> {
    (slot & REGISTER != 0).then_some((slot & !REGISTER) as usize)
}

fn holds(set: &[u64], slot: Slot) -> bool {
    register(slot).is_some_and(|at| set[at / 64] >> (at % 64) & 1 == 1)
}

/// From behind a step to before it.
fn pass(set: &mut [u64], guarded: &Guarded) {
    let mut put = |slot: Slot, on: bool| {
        let Some(at) = register(slot) else { return };
        let mask = 1 << (at % 64);
        if on { set[at / 64] |= mask } else { set[at / 64] &= !mask }
    };
    guarded.step.touch(&mut |touch| {
        if let Touch::Write(slot) = touch {
            put(slot, false);
        }
    });
    guarded.step.touch(&mut |touch| {
        // What is guarded may be skipped.
        if let (Touch::Read(slot), None) = (touch, guarded.guard) {
            put(slot, true);
        }
    });
}

/// The registers whose values every way from the beginning of a block on reads.
struct SurelyRead {
    words: usize,
    /// A set for each block.
    sets: Vec<u64>,
}

impl SurelyRead {
    /// `None` where sets would be too large.
    fn new(steps: &[Guarded], flow: &Flow, registers: usize) -> Option<SurelyRead> {
        let blocks = flow.blocks();
        let words = registers.div_ceil(64);
        if registers.saturating_mul(blocks.len()) > MOST_BITS {
            return None;
        }
        let mut read = SurelyRead { words, sets: vec![u64::MAX; words * blocks.len()] };
        // From the end on, until no set loses a register.
        let mut changed = true;
        while changed {
            changed = false;
            for (number, block) in blocks.iter().enumerate().rev() {
                let mut set = read.behind(flow, number);
                let steps = &steps[block.start as usize..block.end as usize];
                steps.iter().rev().for_each(|guarded| pass(&mut set, guarded));
                let of = &mut read.sets[number * words..(number + 1) * words];
                changed |= of != set;
                of.copy_from_slice(&set);
            }
        }
        Some(read)
    }

    /// What every way reads behind a block.
    fn behind(&self, flow: &Flow, block: usize) -> Vec<u64> {
        let mut set = vec![u64::MAX; self.words];
        for next in flow.after(block) {
            match next {
                Some(next) => {
                    let of = &self.sets[next * self.words..(next + 1) * self.words];
                    set.iter_mut().zip(of).for_each(|(to, from)| *to &= from);
                }
                None => set.fill(0),
            }
        }
        set
    }
}

impl Machine<'_> {
    /// The number of an open load that is about to be carried out; 0 where nobody asks.
    pub(crate) fn begin_load(&mut self, load: &Load, step: u32, lanes: u32) -> u32 {
        match &mut self.races {
            Some(races) if load.open => races.begin_load(step, lanes),
            _ => 0,
        }
    }

    /// Looks at a step of the kernel that touches what open loads give, before it is carried out.
    #[cold]
    pub(crate) fn look_at_use(&mut self, warp: &mut Warp, active: u32, step: &Step) {
        let Some(races) = &mut self.races else { return };
        let (findings, checks) = (&mut self.findings, self.options.checks);
        step.touch(&mut |touch| {
            let (Touch::Read(slot) | Touch::Write(slot)) = touch else { return };
            let Some(given) = warp.given.get_mut(&slot) else { return };
            for lane in indices(active) {
                let load = core::mem::take(&mut given[lane]);
                if load != 0 && matches!(touch, Touch::Read(_)) {
                    races.use_value(load, 1 << lane, &mut |fault| told(findings, checks, fault));
                }
            }
        });
    }
}

impl Warp {
    /// What an open load gives to some lanes.
    pub(crate) fn give(&mut self, load: u32, dsts: &[Slot], lanes: u32) {
        for &dst in dsts {
            let given = self.given.entry(dst).or_insert([0; LANES]);
            indices(lanes).for_each(|lane| given[lane] = load);
        }
    }
}
