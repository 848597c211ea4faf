//! Loads whose values may be thrown away: a race of such a load is a fault once a lane uses the value, else a remark.
//!
//! Compilers and people move loads before the condition of their use. What such a load reads is nobody's concern where the condition does not hold, and
//! neither is an order of the read and the writes beside it.

use crate::finding::{Act, Fault, Kind};
use crate::place::Place;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Faults that wait for the use of a value at a time; what is more is told at once, as if the value were used.
const MOST: usize = 1 << 16;

/// A load that was carried out, until all its lanes have used what it gave.
#[derive(Debug)]
struct Load {
    /// The instruction.
    step: u32,
    /// Lanes that have not used the value.
    unused: u32,
}

/// A race that is a fault once one of some lanes uses the value.
#[derive(Debug)]
struct Waiting {
    lanes: u32,
    fault: Fault,
}

/// The loads that are followed, by numbers from 1 on, and the races of each that wait.
#[derive(Debug, Default)]
pub(super) struct Discarded {
    loads: FxHashMap<u32, Load>,
    latest: u32,
    waiting: BTreeMap<u32, Vec<Waiting>>,
    waits: usize,
}

impl Discarded {
    /// Follows a load; its number.
    pub(super) fn begin(&mut self, step: u32, lanes: u32) -> u32 {
        loop {
            self.latest = self.latest.wrapping_add(1);
            if self.latest != 0 && !self.loads.contains_key(&self.latest) {
                break;
            }
        }
        self.loads.insert(self.latest, Load { step, unused: lanes });
        self.latest
    }

    /// Of a load's lanes, those that have not used the value; none of a load that is not followed.
    pub(super) fn unused(&self, load: u32) -> u32 {
        if load == 0 { 0 } else { self.loads.get(&load).map_or(0, |load| load.unused) }
    }

    /// Whether two loads are of one instruction: the later one wrote over what the earlier one gave to the same lane.
    pub(super) fn same_step(&self, one: u32, two: u32) -> bool {
        let step = |load| self.loads.get(&load).map(|load: &Load| load.step);
        step(one).is_some() && step(one) == step(two)
    }

    /// Some lanes count as users of a load's value, before any race of theirs.
    pub(super) fn count_as_used(&mut self, load: u32, lanes: u32) {
        if let Some(held) = self.loads.get_mut(&load) {
            held.unused &= !lanes;
            if held.unused == 0 {
                self.loads.remove(&load);
            }
        }
    }

    /// Some lanes use a load's value: races that wait for it are faults.
    pub(super) fn use_value(&mut self, load: u32, lanes: u32, report: &mut dyn FnMut(Fault)) {
        self.count_as_used(load, lanes);
        let Some(waiting) = self.waiting.get_mut(&load) else { return };
        for Waiting { lanes: those, mut fault } in
            waiting.extract_if(.., |waiting| waiting.lanes & lanes != 0)
        {
            // Where the other thread loads, it is one of several.
            if let Some(other) = &mut fault.other
                && other.act == Some(Act::Read)
            {
                let lane = (those & lanes).trailing_zeros();
                other.place = Place::of_lane(other.place.warp(), lane);
            }
            self.waits -= 1;
            report(fault);
        }
        if waiting.is_empty() {
            self.waiting.remove(&load);
        }
    }

    /// A race that is a fault if one of some lanes of a load uses the value.
    pub(super) fn wait(
        &mut self,
        load: u32,
        lanes: u32,
        fault: Fault,
        report: &mut dyn FnMut(Fault),
    ) {
        if self.waits < MOST {
            self.waits += 1;
            self.waiting.entry(load).or_default().push(Waiting { lanes, fault });
        } else {
            report(fault);
        }
    }

    /// Nobody of a block, or of all blocks, uses a value any more.
    pub(super) fn settle(&mut self, block: Option<u32>, report: &mut dyn FnMut(Fault)) {
        let ended = |fault: &Fault| {
            let loads = fault.access.is_some_and(|access| access.act == Act::Read);
            let reader = fault.other.filter(|_| !loads).map_or(fault.place, |other| other.place);
            block.is_none_or(|block| block == reader.block)
        };
        let mut settled = Vec::new();
        self.waiting.retain(|_, waiting| {
            // The races of a load have one reader.
            let over = waiting.first().is_none_or(|waiting| ended(&waiting.fault));
            if over {
                settled.append(waiting);
            }
            !over
        });
        self.waits -= settled.len();
        for Waiting { fault, .. } in settled {
            report(Fault { kind: Kind::DiscardedRead, missing: None, ..fault });
        }
    }

    /// What was not settled may be a fault: the kernel did not come to its end.
    pub(super) fn give_up(&mut self, report: &mut dyn FnMut(Fault)) {
        let waiting = core::mem::take(&mut self.waiting);
        waiting.into_values().flatten().for_each(|waiting| report(waiting.fault));
    }

    /// Follows no longer what no access refers to.
    pub(super) fn keep(&mut self, referred: &FxHashSet<u32>) {
        let (latest, waiting) = (self.latest, &self.waiting);
        self.loads.retain(|load, _| {
            *load == latest || referred.contains(load) || waiting.contains_key(load)
        });
    }

    /// The bytes it takes, about.
    pub(super) fn bytes(&self) -> usize {
        self.loads.capacity() * (size_of::<(u32, Load)>() + 1) + self.waits * size_of::<Waiting>()
    }
}
