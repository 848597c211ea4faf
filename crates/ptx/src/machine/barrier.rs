//! Barriers of a block and of a cluster.
//!
//! A barrier for all threads of a block ends when every thread that has not ended waits at it: since compute capability 7.0 those that have ended
//! count as arrived. That there are some is a remark.

use super::block::{BARRIERS, Block};
use super::execute::{line_at, place_of};
use super::grid::Machine;
use super::lanes::{indices, uniform};
use super::program::{Barrier, BarrierKind, Code, Step};
use super::warp::{Group, Wait};
use crate::finding::{Fault, Kind, Party};
use crate::ir::{BarrierFold, Line};
use crate::place::{LANES, Place, Warp};

impl Machine<'_> {
    /// `bar`: the group waits, and is put away, or has arrived and comes back.
    pub(crate) fn barrier(
        &mut self,
        block: &mut Block,
        w: usize,
        mut group: Group,
        code: &Code,
        step: &Barrier,
    ) -> Option<Group> {
        let ids = block.warps[w].registers[group.base.slot(step.id)];
        let id = ids[group.mask.trailing_zeros() as usize] as u32;
        if uniform(&ids, group.mask).is_none() {
            // Lanes that name another barrier come in a turn of their own.
            let same =
                indices(group.mask).filter(|&l| ids[l] as u32 == id).fold(0, |m, l| m | 1 << l);
            let mut rest = group.clone();
            rest.mask &= !same;
            group.mask = same;
            block.warps[w].groups.push(rest);
        }
        self.count(code.first + group.pc, |c| c.barriers += 1);
        let line = line_at(code, group.pc);
        let place = place_of(block, w, group.mask);
        let count = step.count.map(|slot| {
            block.warps[w].registers[group.base.slot(slot)][group.mask.trailing_zeros() as usize]
                as u32
        });
        if id as usize >= BARRIERS {
            let detail = format!("there are barriers 0 to {}, not {id}", BARRIERS - 1);
            self.report(Fault::of_control(Kind::BarrierMismatch, line, place, detail));
            return Some(group);
        }
        self.agree(block, id as usize, count, line, place);
        let barrier = &mut block.barriers[id as usize];
        if matches!(step.kind, BarrierKind::Arrive) {
            barrier.arrived[w] |= group.mask;
            if let Some(races) = &mut self.races {
                let warp = Warp { block: block.memory.index, warp: w as u32 };
                races.clocks.arrive(&mut barrier.gate, warp, group.mask);
            }
            // The group itself counts among those that may be released, so it is put away first.
            group.pc += 1;
            block.warps[w].groups.push(group);
            self.settle_barrier(block, id as usize);
            return None;
        }
        barrier.waiting[w] |= group.mask;
        group.wait = Wait::Barrier(id);
        block.warps[w].groups.push(group);
        self.settle_barrier(block, id as usize);
        None
    }

    /// Whether a thread asks for what the first one at the barrier did.
    fn agree(
        &mut self,
        block: &mut Block,
        id: usize,
        count: Option<u32>,
        line: Line,
        place: Place,
    ) {
        let barrier = &mut block.barriers[id];
        let Some(expected) = barrier.expected else {
            barrier.expected = Some(count);
            barrier.first = Some((place, line));
            return;
        };
        let all = |count: Option<u32>| count.map_or("all".to_owned(), |n| n.to_string());
        if expected != count
            && let Some((other, other_line)) = barrier.first
        {
            let detail = format!(
                "barrier {id} for {} threads, where another waits for {}",
                all(count),
                all(expected)
            );
            let other = Some(Party { place: other, line: other_line, act: None });
            let fault = Fault::of_control(Kind::BarrierMismatch, line, place, detail);
            self.report(Fault { other, ..fault });
        }
    }

    /// Looks at every barrier in use: threads that have ended are waited for no more.
    pub(crate) fn settle_barriers(&mut self, block: &mut Block) {
        for id in 0..BARRIERS {
            if block.barriers[id].is_in_use() {
                self.settle_barrier(block, id);
            }
        }
    }

    fn settle_barrier(&mut self, block: &mut Block, id: usize) {
        let barrier = &block.barriers[id];
        let Some(expected) = barrier.expected else { return };
        let here = |w: usize| barrier.waiting[w] | barrier.arrived[w];
        let complete = match expected {
            None => {
                block.warps.iter().enumerate().all(|(w, warp)| here(w) & warp.live() == warp.live())
            }
            Some(count) => {
                // A warp counts in full once all its living lanes are there.
                let of = |(w, warp): (usize, &super::warp::Warp)| match here(w) {
                    0 => 0,
                    lanes if lanes & warp.live() == warp.live() => LANES as u32,
                    lanes => lanes.count_ones(),
                };
                block.warps.iter().enumerate().map(of).sum::<u32>() >= count
            }
        };
        // With all threads gone, arrivals without waiters mean nothing any more.
        if !complete || barrier.waiting.iter().chain(&barrier.arrived).all(|&m| m == 0) {
            return;
        }
        self.open(block, id, expected);
    }

    /// A barrier is complete: reports, answers, and lets everybody go on.
    fn open(&mut self, block: &mut Block, id: usize, expected: Option<u32>) {
        self.report_uneven(block, id, expected);
        self.answer(block, id);
        let barrier = block.clear_barrier(id);
        if let Some(races) = &mut self.races {
            let arrived = barrier.arrived.iter().any(|&m| m != 0).then_some(&barrier.gate);
            // Threads that have ended count as arrived at a barrier for all.
            let ended = |warp: &super::warp::Warp| if expected.is_none() { warp.exited } else { 0 };
            let met: Vec<u32> =
                block.warps.iter().zip(&barrier.waiting).map(|(w, m)| m | ended(w)).collect();
            races.clocks.sync_block(block.memory.index, &met, arrived);
        }
        for (warp, &lanes) in block.warps.iter_mut().zip(&barrier.waiting) {
            warp.release(lanes, |wait| wait == Wait::Barrier(id as u32));
        }
    }

    /// Reports threads that have ended without the barrier, and lanes that came to it in several places.
    fn report_uneven(&mut self, block: &mut Block, id: usize, expected: Option<u32>) {
        if expected.is_some() {
            return;
        }
        let barrier = &block.barriers[id];
        let Some((place, line)) = barrier.first else { return };
        let index = block.memory.index;
        let (mut ended, mut elsewhere) = (None, None);
        let mut absent = 0;
        for (w, warp) in block.warps.iter().enumerate() {
            let gone = warp.exited & !(barrier.waiting[w] | barrier.arrived[w]);
            absent += gone.count_ones();
            if gone != 0 && ended.is_none() {
                let lane = gone.trailing_zeros();
                let thread = Place { block: index, thread: w as u32 * LANES as u32 + lane };
                ended =
                    Some(Party { place: thread, line: warp.ended_at[lane as usize], act: None });
            }
            for group in warp.groups.iter().filter(|g| g.wait == Wait::Barrier(id as u32)) {
                let code = &self.program.functions[group.function as usize];
                let its = line_at(code, group.pc);
                let aligned = matches!(
                    code.steps.get(group.pc as usize).map(|s| &s.step),
                    Some(Step::Barrier(b)) if b.aligned
                );
                if its != line && aligned {
                    let lane = group.mask.trailing_zeros();
                    let thread = Place { block: index, thread: w as u32 * LANES as u32 + lane };
                    elsewhere = Some(Party { place: thread, line: its, act: None });
                }
            }
        }
        if let Some(other) = ended {
            let detail = format!("{absent} threads of the block ended before it");
            let fault = Fault::of_control(Kind::PartialBarrier, line, place, detail);
            self.report(Fault { other: Some(other), ..fault });
        }
        if let Some(other) = elsewhere {
            let detail = format!("threads wait at barrier {id} in two places");
            let fault = Fault::of_control(Kind::BarrierMismatch, line, place, detail);
            self.report(Fault { other: Some(other), ..fault });
        }
    }

    /// No thread can continue: reports threads of a block that wait at different barriers.
    pub(crate) fn report_crossed_barriers(&mut self, block: &Block) {
        let mut in_use = block
            .barriers
            .iter()
            .enumerate()
            .filter_map(|(id, b)| b.first.map(|first| (id, first)));
        let Some((id, (place, line))) = in_use.next() else { return };
        for (other, (its_place, its_line)) in in_use {
            let detail = format!("at barrier {id}, while others wait at barrier {other}");
            let party = Party { place: its_place, line: its_line, act: None };
            let fault = Fault::of_control(Kind::BarrierMismatch, line, place, detail);
            self.report(Fault { other: Some(party), ..fault });
        }
    }

    /// `bar.red`: everybody gets what the predicates fold to.
    fn answer(&mut self, block: &mut Block, id: usize) {
        let wait = Wait::Barrier(id as u32);
        let functions = &self.program.functions;
        let reduction =
            |group: &Group| match &functions[group.function as usize].steps[group.pc as usize].step
            {
                Step::Barrier(b) => match b.kind {
                    BarrierKind::Reduce { fold, dst, pred } => Some((fold, dst, pred)),
                    _ => None,
                },
                _ => None,
            };
        let (mut hold, mut votes) = (0, 0);
        for warp in &block.warps {
            for group in warp.groups.iter().filter(|g| g.wait == wait) {
                if let Some((_, _, pred)) = reduction(group) {
                    hold += (warp.holds(group.base, pred) & group.mask).count_ones();
                    votes += group.mask.count_ones();
                }
            }
        }
        if votes == 0 {
            return;
        }
        for warp in &mut block.warps {
            for i in 0..warp.groups.len() {
                let group = &warp.groups[i];
                if group.wait != wait {
                    continue;
                }
                let Some((fold, dst, _)) = reduction(group) else { continue };
                let (base, mask) = (group.base, group.mask);
                let all_if = |yes: bool| if yes { u32::MAX } else { 0 };
                match fold {
                    BarrierFold::And => warp.set_predicate(base, dst, all_if(hold == votes), mask),
                    BarrierFold::Or => warp.set_predicate(base, dst, all_if(hold > 0), mask),
                    BarrierFold::Popc => {
                        let dst = &mut warp.registers[base.slot(dst)];
                        indices(mask).for_each(|lane| dst[lane] = u64::from(hold));
                    }
                }
            }
        }
    }

    /// `barrier.cluster.arrive`.
    pub(crate) fn cluster_arrive(&mut self, block: &mut Block, w: usize, mask: u32) {
        let mut cluster = block.cluster.borrow_mut();
        cluster.arrived += mask.count_ones();
        let round = cluster.rounds + 1;
        indices(mask).for_each(|lane| block.warps[w].cluster_arrivals[lane] = round);
        if let Some(races) = &mut self.races {
            let warp = Warp { block: block.memory.index, warp: w as u32 };
            races.clocks.arrive(&mut cluster.present, warp, mask);
        }
        cluster.settle();
    }

    /// `barrier.cluster.wait`: whether the round that these lanes arrived in is complete.
    pub(crate) fn cluster_wait(&mut self, block: &mut Block, w: usize, mask: u32) -> bool {
        let cluster = block.cluster.borrow();
        if indices(mask).any(|lane| block.warps[w].cluster_arrivals[lane] > cluster.rounds) {
            return false;
        }
        if let Some(races) = &mut self.races {
            let warp = Warp { block: block.memory.index, warp: w as u32 };
            races.clocks.depart(&cluster.complete, warp, mask);
        }
        true
    }
}
