//! A warp: registers, and its lanes in groups that share a place in the program.
//!
//! A group is a set of lanes with one program counter and one stack of calls. A branch that its lanes disagree on splits it in two; the halves
//! remember the point where both ways meet again, a *join*, and wait for each other there. Waiting at a join is a convenience, never a
//! promise: when nothing else in the block can move, joins are given up, so that a group may go ahead and do what another one
//! waits for.

use super::discarded::Given;
use super::lanes::{FULL, Register, indices};
use super::program::{
    Code, Condition, PREDICATE_CONSTANTS, Passed, Predicate, Program, REGISTER, Slot,
};
use super::stack::Stack;
use super::undefined::{Doubt, Undefined};
use crate::ir::Line;
use crate::place::LANES;

/// Deepest chain of calls.
pub(crate) const DEEPEST_CALL: usize = 256;

/// Where a called function's caller goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) function: u32,
    /// The call.
    pub(crate) pc: u32,
    pub(crate) base: Base,
}

/// Where a frame's registers and memory begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Base {
    pub(crate) registers: u32,
    pub(crate) predicates: u32,
    pub(crate) local: u64,
    pub(crate) params: u64,
}

impl Base {
    /// The frame after one of a function.
    pub(crate) fn after(self, code: &Code) -> Base {
        Base {
            registers: self.registers + code.registers,
            predicates: self.predicates + code.predicates,
            local: self.local + code.local_bytes.next_multiple_of(16),
            params: self.params + code.param_bytes.next_multiple_of(16),
        }
    }

    #[inline(always)]
    pub(crate) fn slot(self, slot: Slot) -> usize {
        if slot & REGISTER == 0 {
            slot as usize
        } else {
            (self.registers + (slot & !REGISTER)) as usize
        }
    }

    #[inline(always)]
    pub(crate) fn predicate(self, p: Predicate) -> usize {
        if p < PREDICATE_CONSTANTS { p as usize } else { (self.predicates + p) as usize }
    }
}

/// Zeros some lanes, which are nearly always all.
fn clear<T: Copy + Default>(lanes: &mut [T; LANES], mask: u32) {
    if mask == FULL {
        *lanes = [T::default(); LANES];
    } else {
        indices(mask).for_each(|lane| lanes[lane] = T::default());
    }
}

/// What a group waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: it can run.
    Ready,
    /// The other lanes of a join.
    Join(u32),
    /// The other lanes of a warp instruction's mask.
    Lanes(u32),
    /// The other threads at a barrier.
    Barrier(u32),
    /// The other threads of the cluster.
    Cluster,
}

/// Lanes in one place.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) mask: u32,
    pub(crate) pc: u32,
    pub(crate) function: u32,
    pub(crate) base: Base,
    pub(crate) frames: Vec<Frame>,
    /// Joins ahead, the nearest last.
    pub(crate) joins: Vec<u32>,
    /// The instruction of the nearest join at this depth of calls; `u32::MAX` for none.
    pub(crate) join_at: u32,
    pub(crate) wait: Wait,
    /// It has used up its turn.
    pub(crate) tired: bool,
}

impl Group {
    /// Whether two groups are in the same place with the same way ahead.
    pub(crate) fn meets(&self, other: &Group) -> bool {
        // Both are mostly empty, for which a comparison of slices calls a function.
        self.pc == other.pc
            && self.function == other.function
            && self.joins.len() == other.joins.len()
            && self.frames.len() == other.frames.len()
            && self.joins.iter().eq(&other.joins)
            && self.frames.iter().eq(&other.frames)
    }

    /// Whether two groups are at the same instruction with the same registers.
    pub(crate) fn beside(&self, other: &Group) -> bool {
        self.pc == other.pc && self.function == other.function && self.base == other.base
    }
}

/// A point where separated lanes meet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct JoinPoint {
    pc: u32,
    depth: u32,
    /// Lanes that have not come yet.
    missing: u32,
    in_use: bool,
}

/// A warp of a block.
pub(crate) struct Warp {
    /// Constants, then frames.
    pub(crate) registers: Vec<Register>,
    pub(crate) predicates: Vec<u32>,
    /// Parameter memory of called functions, byte by byte, each for 32 lanes.
    pub(crate) params: Vec<[u8; LANES]>,
    /// Carry bits.
    pub(crate) carry: u32,
    /// What the lanes have allocated; `None` where the program allocates nothing.
    pub(crate) stack: Option<Box<Stack>>,
    /// What of all these is undefined; `None`: nothing.
    pub(crate) undefined: Option<Box<Undefined>>,
    /// Where values come from that may be thrown away.
    pub(crate) given: Given,
    /// Lanes that the block has, and those that are gone.
    pub(crate) exists: u32,
    pub(crate) exited: u32,
    /// Where each lane ended.
    pub(crate) ended_at: [Line; LANES],
    pub(crate) groups: Vec<Group>,
    joins: Vec<JoinPoint>,
    /// Arrivals of each lane at the cluster's barrier.
    pub(crate) cluster_arrivals: [u32; LANES],
}

impl Warp {
    pub(crate) fn new() -> Warp {
        Warp {
            registers: Vec::new(),
            predicates: Vec::new(),
            params: Vec::new(),
            carry: 0,
            stack: None,
            undefined: None,
            given: Given::default(),
            exists: 0,
            exited: 0,
            ended_at: [Line::default(); LANES],
            groups: Vec::new(),
            joins: Vec::new(),
            cluster_arrivals: [0; LANES],
        }
    }

    /// Begins a kernel with registers of zeros behind the constant slots.
    pub(crate) fn begin(&mut self, program: &Program, exists: u32, explicit_cluster: bool) {
        let (kernel, constants) = (&program.functions[0], program.constants.len());
        self.registers.resize(constants + kernel.registers as usize, [0; LANES]);
        self.registers[constants..].as_flattened_mut().fill(0);
        self.predicates.clear();
        self.predicates.resize((PREDICATE_CONSTANTS + kernel.predicates) as usize, 0);
        self.predicates[1] = FULL;
        self.predicates[2] = if explicit_cluster { FULL } else { 0 };
        self.params.clear();
        self.params.resize(kernel.param_bytes as usize, [0; LANES]);
        self.carry = 0;
        self.stack = program.stack().map(|bottom| Box::new(Stack::new(bottom)));
        self.undefined = None;
        self.given.clear();
        self.exists = exists;
        self.exited = 0;
        self.joins.clear();
        self.cluster_arrivals = [0; LANES];
        self.groups.clear();
        self.groups.push(Group {
            mask: exists,
            pc: 0,
            function: 0,
            base: Base { registers: constants as u32, ..Base::default() },
            frames: Vec::new(),
            joins: Vec::new(),
            join_at: u32::MAX,
            wait: Wait::Ready,
            tired: false,
        });
    }

    /// Makes room for a frame.
    pub(crate) fn reserve(&mut self, base: Base, code: &Code) {
        let end = base.after(code);
        let registers = end.registers as usize;
        if self.registers.len() < registers {
            self.registers.resize(registers, [0; LANES]);
        }
        let predicates = (end.predicates + PREDICATE_CONSTANTS) as usize;
        if self.predicates.len() < predicates {
            self.predicates.resize(predicates, 0);
        }
        if self.params.len() < end.params as usize {
            self.params.resize(end.params as usize, [0; LANES]);
        }
    }

    /// Some lanes begin a function with zeros, as a kernel does: nothing that an earlier call left in its frame.
    pub(crate) fn clear_frame(&mut self, base: Base, code: &Code, mask: u32) {
        for &slot in &code.unset.registers {
            self.clear_shadow(base, slot, mask);
            clear(&mut self.registers[base.slot(slot)], mask);
        }
        for &p in &code.unset.predicates {
            self.set_doubt(base, p, mask, Doubt::default());
            self.set_predicate(base, p, 0, mask);
        }
        for result in &code.results {
            if let Passed::Memory { offset, bytes } = *result {
                let at = base.params + offset;
                self.set_param_shadow(at, bytes, mask, None);
                let columns = self.params.get_mut(at as usize..(at + bytes) as usize);
                columns.into_iter().flatten().for_each(|column| clear(column, mask));
            }
        }
    }

    /// Lanes that still run.
    pub(crate) fn live(&self) -> u32 {
        self.exists & !self.exited
    }

    /// The lanes where a condition holds.
    #[inline(always)]
    pub(crate) fn holds(&self, base: Base, condition: Condition) -> u32 {
        let bits = self.predicates[base.predicate(condition.slot)];
        if condition.negated { !bits } else { bits }
    }

    /// Writes a predicate in some lanes.
    #[inline(always)]
    pub(crate) fn set_predicate(&mut self, base: Base, p: Predicate, bits: u32, mask: u32) {
        // `_` may stand where a predicate is expected; constants are never written.
        if p >= PREDICATE_CONSTANTS {
            let held = &mut self.predicates[base.predicate(p)];
            *held = (*held & !mask) | (bits & mask);
        }
    }

    /// A join for a group that is about to separate; its own nearest one if that is in the same place.
    pub(crate) fn add_join(&mut self, group: &mut Group, pc: u32, depth: u32) {
        if let Some(&near) = group.joins.last() {
            let near = &self.joins[near as usize];
            if near.pc == pc && near.depth == depth {
                return;
            }
        }
        let join = JoinPoint { pc, depth, missing: group.mask, in_use: true };
        let at = self.joins.iter().position(|j| !j.in_use).unwrap_or_else(|| {
            self.joins.push(JoinPoint::default());
            self.joins.len() - 1
        });
        self.joins[at] = join;
        group.joins.push(at as u32);
        self.aim(group);
    }

    /// Looks up where a group's nearest join is.
    pub(crate) fn aim(&self, group: &mut Group) {
        let near = group.joins.last().map(|&j| &self.joins[j as usize]);
        group.join_at = match near {
            Some(join) if join.depth as usize == group.frames.len() => join.pc,
            _ => u32::MAX,
        };
    }

    /// A group has come to its nearest join. The others' groups must be in [`Warp::groups`], this one not.
    pub(crate) fn arrive_at_join(&mut self, mut group: Group) {
        let Some(&id) = group.joins.last() else {
            self.groups.push(group);
            return;
        };
        self.joins[id as usize].missing &= !group.mask;
        group.wait = Wait::Join(id);
        self.groups.push(group);
        self.settle_join(id);
    }

    /// Lets the lanes of a join go on together if all have come.
    fn settle_join(&mut self, id: u32) {
        let join = self.joins[id as usize];
        if !join.in_use || join.missing != 0 {
            return;
        }
        self.joins[id as usize].in_use = false;
        let mut merged: Option<Group> = None;
        let mut i = 0;
        while i < self.groups.len() {
            if self.groups[i].wait != Wait::Join(id) {
                i += 1;
                continue;
            }
            let group = self.groups.swap_remove(i);
            match &mut merged {
                Some(merged) => merged.mask |= group.mask,
                None => merged = Some(group),
            }
        }
        if let Some(mut group) = merged {
            group.joins.pop();
            group.wait = Wait::Ready;
            self.aim(&mut group);
            self.come(group);
        }
    }

    /// A group that can run, or waits at once if it stands at its next join.
    fn come(&mut self, group: Group) {
        if group.pc == group.join_at { self.arrive_at_join(group) } else { self.groups.push(group) }
    }

    /// Lanes have ended: no lane waits for them any more.
    pub(crate) fn end_lanes(&mut self, mask: u32, line: Line) {
        self.exited |= mask;
        for lane in indices(mask) {
            self.ended_at[lane] = line;
        }
        for id in 0..self.joins.len() {
            if self.joins[id].in_use && self.joins[id].missing & mask != 0 {
                self.joins[id].missing &= !mask;
                self.settle_join(id as u32);
            }
        }
    }

    /// Gives up the joins at which groups wait: they go ahead. Whether there were any. All groups must be in [`Warp::groups`].
    pub(crate) fn give_up_joins(&mut self) -> bool {
        let mut given_up = 0;
        for id in 0..self.joins.len() as u32 {
            if !self.joins[id as usize].in_use
                || !self.groups.iter().any(|g| g.wait == Wait::Join(id))
            {
                continue;
            }
            self.joins[id as usize].in_use = false;
            given_up += 1;
            for group in &mut self.groups {
                group.joins.retain(|&j| j != id);
                if group.wait == Wait::Join(id) {
                    group.wait = Wait::Ready;
                }
            }
        }
        if given_up > 0 {
            for mut group in core::mem::take(&mut self.groups) {
                self.aim(&mut group);
                if group.wait == Wait::Ready { self.come(group) } else { self.groups.push(group) }
            }
            self.merge();
        }
        given_up > 0
    }

    /// Unites groups that can run and are in the same place.
    pub(crate) fn merge(&mut self) {
        let mut i = 0;
        while i < self.groups.len() {
            let mut j = i + 1;
            while j < self.groups.len() {
                let (left, right) = (&self.groups[i], &self.groups[j]);
                if left.wait == Wait::Ready && right.wait == Wait::Ready && left.meets(right) {
                    self.groups[i].mask |= self.groups[j].mask;
                    self.groups.swap_remove(j);
                } else {
                    j += 1;
                }
            }
            i += 1;
        }
    }

    /// Lets groups of some lanes that wait go on behind their instruction.
    pub(crate) fn release(&mut self, lanes: u32, wait: impl Fn(Wait) -> bool) {
        for mut group in core::mem::take(&mut self.groups) {
            if group.mask & lanes != 0 && wait(group.wait) {
                group.wait = Wait::Ready;
                group.pc += 1;
                self.come(group);
            } else {
                self.groups.push(group);
            }
        }
        self.merge();
    }
}
