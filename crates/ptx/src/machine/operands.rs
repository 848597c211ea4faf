//! The registers and predicates that a step reads and writes, those of a function that are read before anything was written, and those that may share a slot.

use super::program::{
    Argument, BarrierKind, BulkWay, Callee, Condition, Guarded, Join, MatrixStep,
    PREDICATE_CONSTANTS, Passed, Place, PlaceBase, Predicate, Product, REGISTER, Slot, Step,
};
use crate::flow::Flow;
use crate::ir::BarrierFold;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a step does with a register, or a constant's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    Read(Slot),
    Write(Slot),
    ReadPredicate(Predicate),
    WritePredicate(Predicate),
}

use Touch::{Read, ReadPredicate, Write, WritePredicate};

/// Calls a function for all that a step reads and writes.
struct Visitor<'a>(&'a mut dyn FnMut(Touch));

impl Visitor<'_> {
    fn reads(&mut self, slots: &[Slot]) {
        slots.iter().for_each(|&slot| (self.0)(Read(slot)));
    }

    fn writes(&mut self, slots: &[Slot]) {
        slots.iter().for_each(|&slot| (self.0)(Write(slot)));
    }

    fn holds(&mut self, condition: Condition) {
        (self.0)(ReadPredicate(condition.slot));
    }

    fn join(&mut self, join: &Join) {
        join.iter().for_each(|(_, condition)| self.holds(*condition));
    }

    fn decides(&mut self, p: Predicate) {
        (self.0)(WritePredicate(p));
    }

    fn address(&mut self, place: &Place) {
        if let PlaceBase::Slot(slot) = place.base {
            (self.0)(Read(slot));
        }
    }

    fn way(&mut self, way: &BulkWay) {
        match way {
            BulkWay::GlobalToShared { mbarrier, multicast } => {
                self.address(mbarrier);
                self.reads(multicast.as_slice());
            }
            BulkWay::SharedToCluster { mbarrier } => self.address(mbarrier),
            BulkWay::SharedToGlobal => {}
        }
    }

    fn product(&mut self, product: &Product) {
        self.reads(&product.a);
        self.reads(&product.b);
        self.reads(&product.c);
        self.writes(&product.dsts);
    }
}

impl Step {
    /// Calls `f` for all that the step reads, then for all that it writes.
    pub(crate) fn touch(&self, f: &mut dyn FnMut(Touch)) {
        let mut v = Visitor(f);
        match self {
            Step::Nothing
            | Step::Fence { .. }
            | Step::Branch { .. }
            | Step::Return
            | Step::Exit
            | Step::Trap
            | Step::Sleep
            | Step::Unsupported(_)
            | Step::ClusterArrive
            | Step::ClusterWait
            | Step::CopyCommit { .. }
            | Step::CopyWait { .. } => {}
            Step::Unary { dst, a, .. } => {
                v.reads(&[*a]);
                v.writes(&[*dst]);
            }
            Step::Binary { dst, a, b, .. } => {
                v.reads(&[*a, *b]);
                v.writes(&[*dst]);
            }
            Step::Ternary { dst, a, b, c, .. } => {
                v.reads(&[*a, *b, *c]);
                v.writes(&[*dst]);
            }
            Step::Carry { dst, sources, .. } => {
                v.reads(sources);
                v.writes(&[*dst]);
            }
            Step::Compare { dst, other, a, b, join, .. } => {
                v.reads(&[*a, *b]);
                v.join(join);
                v.decides(*dst);
                other.iter().for_each(|&other| v.decides(other));
            }
            Step::CompareInto { dst, a, b, join, .. } => {
                v.reads(&[*a, *b]);
                v.join(join);
                v.writes(&[*dst]);
            }
            Step::Ask { dst, a, .. } => {
                v.reads(&[*a]);
                v.decides(*dst);
            }
            Step::Select { dst, a, b, pred } => {
                v.reads(&[*a, *b]);
                (v.0)(ReadPredicate(*pred));
                v.writes(&[*dst]);
            }
            Step::MovePredicate { dst, a, .. } => {
                (v.0)(ReadPredicate(*a));
                v.decides(*dst);
            }
            Step::JoinPredicates { dst, a, b, .. } => {
                [*a, *b].iter().for_each(|&p| (v.0)(ReadPredicate(p)));
                v.decides(*dst);
            }
            Step::SelectPredicate { dst, a, b, pred } => {
                [*a, *b, *pred].iter().for_each(|&p| (v.0)(ReadPredicate(p)));
                v.decides(*dst);
            }
            Step::Lop3Test { dst, sources, pred, with, .. } => {
                v.reads(sources);
                v.holds(*with);
                v.writes(&[*dst]);
                v.decides(*pred);
            }
            Step::InsertBits { dst, sources, .. } => {
                v.reads(sources);
                v.writes(&[*dst]);
            }
            Step::Pack { dst, parts, .. } => {
                v.reads(parts);
                v.writes(&[*dst]);
            }
            Step::Unpack { dsts, a, .. } => {
                v.reads(&[*a]);
                v.writes(dsts);
            }
            Step::FrameAddress { dst, .. }
            | Step::Clock { dst, .. }
            | Step::StackSave { dst }
            | Step::ActiveMask { dst } => v.writes(&[*dst]),
            Step::Load(load) => {
                v.address(&load.address);
                v.writes(&load.dsts);
            }
            Step::Store(store) => {
                v.address(&store.address);
                v.reads(&store.values);
            }
            Step::Atomic(atomic) => {
                v.address(&atomic.address);
                v.reads(&[atomic.a, atomic.b]);
                v.reads(atomic.upper.map(|u| [u.a, u.b]).as_slice().as_flattened());
                v.writes(atomic.dst.as_slice());
                v.writes(atomic.upper.map(|u| u.dst).as_slice());
            }
            Step::Texture(texture) => {
                v.reads(&texture.at);
                v.reads(&[texture.image]);
                v.writes(&texture.dsts);
            }
            Step::SurfaceLoad(access) => {
                v.reads(&access.at);
                v.reads(&[access.image]);
                v.writes(&access.slots);
            }
            Step::SurfaceStore(access) => {
                v.reads(&access.at);
                v.reads(&[access.image]);
                v.reads(&access.slots);
            }
            Step::ImageExtent { dst, image, .. } => {
                v.reads(&[*image]);
                v.writes(&[*dst]);
            }
            Step::Allocate { dst, size, .. } => {
                v.reads(&[*size]);
                v.writes(&[*dst]);
            }
            Step::StackRestore { a } => v.reads(&[*a]),
            Step::BranchTable { index, .. } => v.reads(&[*index]),
            Step::Call(call) => {
                let slots = |list: &[Argument]| -> Vec<Slot> {
                    let values = list.iter().filter_map(|argument| match argument {
                        Argument::Value { slot } => Some(*slot),
                        Argument::Memory { .. } => None,
                    });
                    values.collect()
                };
                if let Callee::Indirect(slot) = call.callee {
                    v.reads(&[slot]);
                }
                v.reads(&slots(&call.arguments));
                v.writes(&slots(&call.results));
            }
            Step::WarpBarrier { mask } => v.reads(&[*mask]),
            Step::Shuffle(shuffle) => {
                v.reads(&[shuffle.a, shuffle.b, shuffle.c]);
                v.reads(shuffle.mask.as_slice());
                v.writes(&[shuffle.dst]);
                shuffle.pred.iter().for_each(|&p| v.decides(p));
            }
            Step::Vote { mode, dst, pred, a, mask } => {
                v.holds(*a);
                v.reads(mask.as_slice());
                if *mode == crate::ir::VoteMode::Ballot {
                    v.writes(&[*dst]);
                } else {
                    v.decides(*pred);
                }
            }
            Step::Match { dst, pred, a, mask, .. } => {
                v.reads(&[*a, *mask]);
                v.writes(&[*dst]);
                pred.iter().for_each(|&p| v.decides(p));
            }
            Step::Redux { dst, a, mask, .. } => {
                v.reads(&[*a, *mask]);
                v.writes(&[*dst]);
            }
            Step::Matrix(matrix) => {
                v.reads(&[matrix.mask]);
                match &matrix.what {
                    MatrixStep::Load { dsts, address, .. } => {
                        v.address(address);
                        v.writes(dsts);
                    }
                    MatrixStep::Store { values, address, .. } => {
                        v.address(address);
                        v.reads(values);
                    }
                    MatrixStep::Transpose { dst, a } => {
                        v.reads(&[*a]);
                        v.writes(&[*dst]);
                    }
                    MatrixStep::Multiply(product) | MatrixStep::MultiplyFragments(product) => {
                        v.product(product);
                    }
                    MatrixStep::LoadFragment { table, dsts } => {
                        v.address(&table.address);
                        v.reads(table.stride.as_slice());
                        v.writes(dsts);
                    }
                    MatrixStep::StoreFragment { table, values } => {
                        v.address(&table.address);
                        v.reads(table.stride.as_slice());
                        v.reads(values);
                    }
                }
            }
            Step::Elect { dst, pred, mask } => {
                v.reads(&[*mask]);
                v.writes(&[*dst]);
                v.decides(*pred);
            }
            Step::Barrier(barrier) => {
                v.reads(&[barrier.id]);
                v.reads(barrier.count.as_slice());
                if let BarrierKind::Reduce { fold, dst, pred } = barrier.kind {
                    v.holds(pred);
                    match fold {
                        BarrierFold::Popc => v.writes(&[dst]),
                        _ => v.decides(dst),
                    }
                }
            }
            Step::CopyAsync(copy) => {
                v.address(&copy.dst);
                v.address(&copy.src);
                v.reads(copy.src_size.as_slice());
                copy.ignore.iter().for_each(|&condition| v.holds(condition));
            }
            Step::CopyArrive { address, .. } | Step::MbarrierInvalidate { address, .. } => {
                v.address(address);
            }
            Step::CopyBulk(copy) => {
                v.address(&copy.dst);
                v.address(&copy.src);
                v.reads(&[copy.size]);
                v.way(&copy.way);
            }
            Step::CopyTensor(copy) => {
                v.address(&copy.map);
                v.address(&copy.tile);
                v.reads(&copy.at);
                v.reads(copy.offsets.as_deref().unwrap_or_default());
                v.way(&copy.way);
            }
            Step::StoreAsync(store) => {
                v.address(&store.dst);
                v.address(&store.mbarrier);
                v.reads(&store.values);
            }
            Step::MbarrierInit { address, count, .. } => {
                v.address(address);
                v.reads(&[*count]);
            }
            Step::MbarrierArrive(arrival) => {
                v.address(&arrival.address);
                v.reads(arrival.count.as_slice());
                v.reads(arrival.expect.as_slice());
                v.writes(arrival.dst.as_slice());
            }
            Step::MbarrierTransaction { address, bytes, .. } => {
                v.address(address);
                v.reads(&[*bytes]);
            }
            Step::MbarrierWait(wait) => {
                v.address(&wait.address);
                v.reads(&[wait.phase]);
                v.decides(wait.dst);
            }
        }
    }
}

/// Registers and predicates of a frame that a function may read before it has written them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unset {
    pub(crate) registers: Box<[Slot]>,
    pub(crate) predicates: Box<[Predicate]>,
}

/// Bits of the sets that are worth the search; of larger functions all registers count as read.
const MOST_BITS: usize = 1 << 26;

/// Registers that need not share slots.
const FEW: usize = 32;

/// The registers of a function, then its predicates, as bits of a set; which of them are parameters, and which results.
pub(crate) struct Frame {
    registers: usize,
    predicates: usize,
    parameters: Vec<usize>,
    results: Vec<usize>,
}

impl Frame {
    pub(crate) fn new(
        (registers, predicates): (u32, u32),
        parameters: &[Passed],
        results: &[Passed],
    ) -> Frame {
        let passed = |list: &[Passed]| -> Vec<usize> {
            let slots = list.iter().filter_map(|passed| match passed {
                Passed::Register(slot) => Some((slot & !REGISTER) as usize),
                Passed::Memory { .. } => None,
            });
            slots.collect()
        };
        Frame {
            registers: registers as usize,
            predicates: predicates as usize,
            parameters: passed(parameters),
            results: passed(results),
        }
    }

    /// Its registers, without predicates.
    pub(crate) fn registers(&self) -> usize {
        self.registers
    }

    fn all(&self) -> usize {
        self.registers + self.predicates
    }

    fn bit(&self, touch: Touch) -> Option<usize> {
        match touch {
            Read(slot) | Write(slot) => {
                (slot & REGISTER != 0).then_some((slot & !REGISTER) as usize)
            }
            ReadPredicate(p) | WritePredicate(p) => {
                p.checked_sub(PREDICATE_CONSTANTS).map(|p| self.registers + p as usize)
            }
        }
    }
}

impl Unset {
    /// Looks at a function.
    pub(crate) fn new(steps: &[Guarded], flow: &Flow, frame: &Frame) -> Unset {
        let (registers, all) = (frame.registers, frame.all());
        let live = Live::new(steps, flow, frame);
        let mut entry: Vec<bool> =
            (0..all).map(|i| live.as_ref().is_none_or(|live| live.at(0, i))).collect();
        frame.parameters.iter().for_each(|&parameter| entry[parameter] = false);
        let set = |range: core::ops::Range<usize>, first: usize, base: u32| -> Box<[u32]> {
            range.filter(|&i| entry[i]).map(|i| (i - first) as u32 + base).collect()
        };
        Unset {
            registers: set(0..registers, 0, 0).iter().map(|slot| slot | REGISTER).collect(),
            predicates: set(registers..all, registers, PREDICATE_CONSTANTS),
        }
    }
}

/// The registers whose values some way from the beginning of a block on reads.
struct Live {
    words: usize,
    /// A set for each block, and one for the end of the function.
    sets: Vec<u64>,
}

impl Live {
    /// `None` where sets would be too large.
    fn new(steps: &[Guarded], flow: &Flow, frame: &Frame) -> Option<Live> {
        let blocks = flow.blocks();
        let words = frame.all().div_ceil(64);
        if frame.all().saturating_mul(blocks.len()) > MOST_BITS {
            return None;
        }
        let mut live = Live { words, sets: vec![0; words * (blocks.len() + 1)] };
        let put = |set: &mut [u64], i: usize, on: bool| {
            let mask = 1 << (i % 64);
            if on { set[i / 64] |= mask } else { set[i / 64] &= !mask }
        };
        frame.results.iter().for_each(|&i| put(&mut live.sets[words * blocks.len()..], i, true));
        let mut before = vec![Vec::new(); blocks.len()];
        for block in 0..blocks.len() {
            flow.after(block).iter().flatten().for_each(|&next| before[next].push(block));
        }
        // From the end on: a block is looked at again when what follows it reads more.
        let mut waiting: Vec<usize> = (0..blocks.len()).collect();
        let mut waits = vec![true; blocks.len()];
        while let Some(number) = waiting.pop() {
            waits[number] = false;
            let mut set = live.behind(flow, number);
            let block = &blocks[number];
            for guarded in steps[block.start as usize..block.end as usize].iter().rev() {
                guarded.step.touch(&mut |touch| {
                    // What is guarded may be skipped.
                    if matches!(touch, Write(_) | WritePredicate(_)) && guarded.guard.is_none() {
                        frame.bit(touch).into_iter().for_each(|i| put(&mut set, i, false));
                    }
                });
                guarded.step.touch(&mut |touch| {
                    if matches!(touch, Read(_) | ReadPredicate(_)) {
                        frame.bit(touch).into_iter().for_each(|i| put(&mut set, i, true));
                    }
                });
                if let Some(guard) = guarded.guard {
                    let read = frame.bit(ReadPredicate(guard.slot));
                    read.into_iter().for_each(|i| put(&mut set, i, true));
                }
            }
            let of = &mut live.sets[number * words..(number + 1) * words];
            if of != set {
                of.copy_from_slice(&set);
                for &block in &before[number] {
                    if !core::mem::replace(&mut waits[block], true) {
                        waiting.push(block);
                    }
                }
            }
        }
        Some(live)
    }

    fn set(&self, block: usize) -> &[u64] {
        &self.sets[block * self.words..(block + 1) * self.words]
    }

    fn at(&self, block: usize, i: usize) -> bool {
        self.set(block).get(i / 64).is_some_and(|word| word >> (i % 64) & 1 == 1)
    }

    /// What is read behind a block.
    fn behind(&self, flow: &Flow, block: usize) -> Vec<u64> {
        let mut set = vec![0; self.words];
        for next in flow.after(block) {
            let of = self.set(next.unwrap_or(flow.blocks().len()));
            set.iter_mut().zip(of).for_each(|(to, from)| *to |= from);
        }
        set
    }
}

/// Slots for the registers of a function, of which those share one that never hold a value at the same time: compilers give each value a register of
/// its own, thousands of 256 bytes for a warp. How many slots there are, and each register's; `None` where the search is not worth it.
pub(crate) fn shared_slots(
    steps: &[Guarded],
    flow: &Flow,
    frame: &Frame,
) -> Option<(u32, Vec<Slot>)> {
    let registers = frame.registers;
    if registers < FEW {
        return None;
    }
    let live = Live::new(steps, flow, frame)?;
    // The first and the last step at which each one is needed.
    let mut spans = vec![(u32::MAX, 0); registers];
    let mut need = |i: usize, at: u32| {
        if let Some((first, last)) = spans.get_mut(i) {
            (*first, *last) = ((*first).min(at), (*last).max(at));
        }
    };
    let need_all = |set: &[u64], at: u32, need: &mut dyn FnMut(usize, u32)| {
        for (word, &bits) in set.iter().enumerate() {
            let mut rest = bits;
            while rest != 0 {
                need(word * 64 + rest.trailing_zeros() as usize, at);
                rest &= rest - 1;
            }
        }
    };
    frame.parameters.iter().for_each(|&i| need(i, 0));
    for (number, block) in flow.blocks().iter().enumerate() {
        need_all(live.set(number), block.start, &mut need);
        need_all(&live.behind(flow, number), block.end - 1, &mut need);
    }
    for (at, guarded) in (0..).zip(steps) {
        guarded.step.touch(&mut |touch| {
            if let Read(slot) | Write(slot) = touch {
                frame.bit(Read(slot)).into_iter().for_each(|i| need(i, at));
            }
        });
        // A lane that takes no part gives away what its register holds, however old that is.
        if let Step::Shuffle(shuffle) = &guarded.step {
            frame.bit(Read(shuffle.a)).into_iter().for_each(|i| {
                need(i, 0);
                need(i, u32::MAX);
            });
        }
    }
    let mut order: Vec<usize> = (0..registers).filter(|&i| spans[i].0 != u32::MAX).collect();
    order.sort_by_key(|&i| spans[i]);
    let (mut slots, mut count) = (vec![0; registers], 0);
    // Those in use, the one that is free first on top.
    let mut used: BinaryHeap<Reverse<(u32, Slot)>> = BinaryHeap::new();
    for i in order {
        let (first, last) = spans[i];
        let slot = match used.peek() {
            Some(&Reverse((end, slot))) if end < first => {
                used.pop();
                slot
            }
            _ => {
                count += 1;
                count - 1
            }
        };
        slots[i] = slot;
        used.push(Reverse((last, slot)));
    }
    Some((count.max(1), slots))
}
