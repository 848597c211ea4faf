//! What lanes of a warp do at the same time: `bar.warp.sync`, shuffles, votes, matches, reductions.
//!
//! Such an instruction waits until every lane that its mask names, and that has not ended, is there. Lanes may come in several groups: the instruction
//! is carried out for all of them at once, and each group goes on by its own way.

use super::block::Block;
use super::execute::{line_at, place_of};
use super::grid::Machine;
use super::lanes::{Register, indices};
use super::program::{Code, Condition, Shuffle, Slot, Step};
use super::undefined::{Doubt, Shadow};
use super::warp::{Base, Group, Wait, Warp};
use crate::finding::{Fault, Kind, Party};
use crate::ir::{FloatBinary, FloatMode, Line, ReduxOp, ShuffleMode, Type, VoteMode};
use crate::place::{LANES, Place};
use crate::value::float;

/// The slot of a step's mask; `None` for the forms without one.
fn mask_slot(step: &Step) -> Option<Slot> {
    match step {
        Step::WarpBarrier { mask }
        | Step::Match { mask, .. }
        | Step::Redux { mask, .. }
        | Step::Elect { mask, .. } => Some(*mask),
        Step::Shuffle(shuffle) => shuffle.mask,
        Step::Matrix(matrix) => Some(matrix.mask),
        Step::Vote { mask, .. } => *mask,
        _ => None,
    }
}

impl Machine<'_> {
    /// The group comes to an instruction of several lanes. It comes back if it may go on, else it is put away.
    pub(crate) fn together(
        &mut self,
        block: &mut Block,
        w: usize,
        mut group: Group,
        code: &Code,
        step: &Step,
    ) -> Option<Group> {
        self.count(code.first + group.pc, |c| c.warp_barriers += 1);
        let line = line_at(code, group.pc);
        let at = (line, code.first + group.pc);
        let Some(slot) = mask_slot(step) else {
            // The old forms without a mask: all lanes that execute them together.
            self.carry_out(block, w, group.base, group.mask, None, at, step);
            return Some(group);
        };
        let masks = &block.warps[w].registers[group.base.slot(slot)];
        let named = masks[group.mask.trailing_zeros() as usize] as u32;
        let same =
            indices(group.mask).filter(|&l| masks[l] as u32 == named).fold(0, |m, l| m | 1 << l);
        if same != group.mask {
            let mut rest = group.clone();
            rest.mask &= !same;
            group.mask = same;
            block.warps[w].groups.push(rest);
        }
        let omitted = group.mask & !named;
        if omitted != 0 {
            // What happens is undefined; here these lanes do it among themselves.
            let detail = format!("mask {named:#010x}, executing lanes {:#010x}", group.mask);
            let place = place_of(block, w, omitted);
            self.report(Fault::of_control(Kind::MaskOmitsLane, line, place, detail));
            let mut alone = group.clone();
            alone.mask = omitted;
            group.mask &= named;
            self.carry_out(block, w, group.base, omitted, None, at, step);
            if group.mask == 0 {
                return Some(alone);
            }
            alone.pc += 1;
            block.warps[w].groups.push(alone);
        }
        let needed = named & block.warps[w].live();
        if needed == group.mask {
            self.carry_out(block, w, group.base, group.mask, Some(named), at, step);
            return Some(group);
        }
        group.wait = Wait::Lanes(named);
        let warp = &mut block.warps[w];
        warp.groups.push(group);
        // Who waits for others than these has waited for them before.
        let last = warp.groups.len() - 1;
        if self.all_are_here(&block.warps[w], last) {
            self.meet(block, w, last);
        }
        None
    }

    /// Carries out what enough lanes have come to.
    pub(crate) fn settle_lanes(&mut self, block: &mut Block, w: usize) {
        loop {
            let warp = &block.warps[w];
            let ready = (0..warp.groups.len()).find(|&at| self.all_are_here(warp, at));
            let Some(at) = ready else { return };
            self.meet(block, w, at);
        }
    }

    /// Whether all lanes that a group waits for wait with it.
    fn all_are_here(&self, warp: &Warp, at: usize) -> bool {
        let group = &warp.groups[at];
        let Wait::Lanes(named) = group.wait else { return false };
        named & warp.live() & !self.lanes_with(warp, group, named) == 0
    }

    /// Lanes of a warp that wait for the same others as a group does.
    fn lanes_with(&self, warp: &Warp, group: &Group, named: u32) -> u32 {
        let is_barrier = |g: &Group| {
            matches!(
                self.program.functions[g.function as usize].steps[g.pc as usize].step,
                Step::WarpBarrier { .. }
            )
        };
        // `bar.warp.sync` may be reached in several places.
        let anywhere = is_barrier(group);
        let with = |g: &&Group| {
            g.wait == Wait::Lanes(named) && (g.beside(group) || (anywhere && is_barrier(g)))
        };
        warp.groups.iter().filter(with).fold(0, |mask, g| mask | g.mask)
    }

    /// Carries out an instruction for the lanes that wait at it like the group `at`, and lets them go on.
    fn meet(&mut self, block: &mut Block, w: usize, at: usize) {
        let warp = &block.warps[w];
        let group = warp.groups[at].clone();
        let Wait::Lanes(named) = group.wait else { return };
        let lanes = self.lanes_with(warp, &group, named);
        let program = self.program;
        let code = &program.functions[group.function as usize];
        let step = &code.steps[group.pc as usize].step;
        let at = (line_at(code, group.pc), code.first + group.pc);
        self.carry_out(block, w, group.base, lanes, Some(named), at, step);
        block.warps[w].release(lanes, |wait| wait == Wait::Lanes(named));
    }

    /// No thread can continue, and some wait for lanes that will not arrive. Reports that, and lets them continue without these lanes.
    pub(crate) fn give_up_lanes(&mut self, block: &mut Block) -> bool {
        for w in 0..block.warps.len() {
            let warp = &block.warps[w];
            let Some(at) = warp.groups.iter().position(|g| matches!(g.wait, Wait::Lanes(_))) else {
                continue;
            };
            let group = &warp.groups[at];
            let Wait::Lanes(named) = group.wait else { continue };
            let lanes = self.lanes_with(warp, group, named);
            let line = line_at(&self.program.functions[group.function as usize], group.pc);
            let absent = named & warp.live() & !lanes;
            let elsewhere = warp.groups.iter().find(|g| g.mask & absent != 0).map(|g| {
                let code = &self.program.functions[g.function as usize];
                let lane = (g.mask & absent).trailing_zeros();
                let place =
                    Place { block: block.memory.index, thread: w as u32 * LANES as u32 + lane };
                Party { place, line: line_at(code, g.pc), act: None }
            });
            let place = place_of(block, w, group.mask);
            let detail = format!("mask {named:#010x}, executing lanes {lanes:#010x}");
            let fault = Fault::of_control(Kind::MaskNamesAbsentLane, line, place, detail);
            self.report(Fault { other: elsewhere, ..fault });
            self.meet(block, w, at);
            return true;
        }
        false
    }

    /// Does it: `lanes` execute, `named` is their mask, if they have one that names them.
    #[expect(clippy::too_many_arguments, reason = "an instruction, its lanes and its place")]
    fn carry_out(
        &mut self,
        block: &mut Block,
        w: usize,
        base: Base,
        lanes: u32,
        named: Option<u32>,
        at: (Line, u32),
        step: &Step,
    ) {
        let (line, _) = at;
        if let Some(races) = &mut self.races {
            let warp = crate::place::Warp { block: block.memory.index, warp: w as u32 };
            // Lanes that have ended are not waited for, and what they did came before.
            let ended = named.map_or(0, |named| named & block.warps[w].exited);
            races.clocks.sync_warp(warp, lanes | ended);
        }
        if let Some(named) = named
            && !matches!(step, Step::WarpBarrier { .. } | Step::Matrix(_))
        {
            self.report_ended(block, w, lanes, named, line);
        }
        if let Step::Matrix(matrix) = step {
            return self.matrix(block, w, base, lanes, at, matrix);
        }
        let warp = &mut block.warps[w];
        match step {
            Step::Shuffle(shuffle) => {
                let absent = carry_shuffle(warp, base, lanes, shuffle);
                let checked = named.is_some() && self.options.checks.masks;
                for (lane, from) in absent.into_iter().filter(|_| checked) {
                    let thread = (w * LANES) as u32 + lane;
                    let place = Place { block: block.memory.index, thread };
                    let detail = format!("from lane {from}, executing lanes {lanes:#010x}");
                    let fault = Fault::of_control(Kind::ShuffleFromInactive, line, place, detail);
                    let origin = self.origins.number(fault);
                    let doubt = Doubt { lanes: 1 << lane, origin };
                    warp.set_all(base, shuffle.dst, doubt.lanes, doubt);
                }
            }
            Step::Vote { mode, dst, pred, a, .. } => {
                let votes = warp.holds(base, *a) & lanes;
                if warp.is_in_doubt() {
                    follow_vote(warp, base, lanes, *mode, *dst, *pred, *a);
                }
                let answer = match mode {
                    VoteMode::Ballot => {
                        let dst = &mut warp.registers[base.slot(*dst)];
                        indices(lanes).for_each(|lane| dst[lane] = u64::from(votes));
                        return;
                    }
                    VoteMode::All => votes == lanes,
                    VoteMode::Any => votes != 0,
                    VoteMode::Uniform => votes == lanes || votes == 0,
                };
                warp.set_predicate(base, *pred, if answer { u32::MAX } else { 0 }, lanes);
            }
            Step::Match { all, dst, pred, a, .. } => {
                follow_all(warp, base, lanes, *a, *dst, *pred);
                carry_match(warp, base, lanes, *all, *dst, *pred, *a)
            }
            Step::Redux { op, signed, float, dst, a, .. } => {
                follow_all(warp, base, lanes, *a, *dst, None);
                let a = warp.registers[base.slot(*a)];
                let answer = match float {
                    Some((magnitudes, nan)) => redux_floats(*op, *magnitudes, *nan, &a, lanes),
                    None => redux(*op, *signed, &a, lanes),
                };
                let dst = &mut warp.registers[base.slot(*dst)];
                indices(lanes).for_each(|lane| dst[lane] = answer);
            }
            Step::Elect { dst, pred, .. } => {
                warp.clear_shadow(base, *dst, lanes);
                warp.set_doubt(base, *pred, lanes, Doubt::default());
                let leader = lanes.trailing_zeros();
                let dst = &mut warp.registers[base.slot(*dst)];
                indices(lanes).for_each(|lane| dst[lane] = u64::from(leader));
                warp.set_predicate(base, *pred, 1 << leader, lanes);
            }
            _ => {}
        }
    }

    /// Reports lanes that the mask names but that have ended.
    fn report_ended(&mut self, block: &Block, w: usize, lanes: u32, named: u32, line: Line) {
        let warp = &block.warps[w];
        let ended = named & warp.exited & !lanes;
        if ended != 0 {
            let lane = ended.trailing_zeros();
            let other = Party {
                place: Place { block: block.memory.index, thread: w as u32 * LANES as u32 + lane },
                line: warp.ended_at[lane as usize],
                act: None,
            };
            let detail =
                format!("mask {named:#010x}, executing lanes {lanes:#010x}; others have ended");
            let place = place_of(block, w, lanes);
            let fault = Fault::of_control(Kind::MaskNamesEndedLane, line, place, detail);
            self.report(Fault { other: Some(other), ..fault });
        }
    }
}

/// Where a lane takes its value from, and whether that is within its segment.
fn source_lane(mode: ShuffleMode, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (clamp, segment) = (c & 31, (c >> 8) & 31);
    let highest = (lane & segment) | (clamp & !segment);
    let b = b & 31;
    let (from, within) = match mode {
        ShuffleMode::Up => {
            let from = lane as i32 - b as i32;
            (from, from >= highest as i32)
        }
        ShuffleMode::Down => ((lane + b) as i32, lane + b <= highest),
        ShuffleMode::Butterfly => ((lane ^ b) as i32, lane ^ b <= highest),
        ShuffleMode::Index => {
            let from = (lane & segment) | (b & !segment);
            (from as i32, from <= highest)
        }
    };
    if within { (from as u32 & 31, true) } else { (lane, false) }
}

/// What a vote gives is undefined where a vote is that decides it.
fn follow_vote(
    warp: &mut Warp,
    base: Base,
    lanes: u32,
    mode: VoteMode,
    dst: Slot,
    pred: u32,
    a: Condition,
) {
    let (votes, doubt) = (warp.holds(base, a) & lanes, warp.doubt(base, a.slot).within(lanes));
    if mode == VoteMode::Ballot {
        let mut shadow = Shadow::CLEAR;
        if doubt.lanes != 0 {
            shadow = Shadow { bits: [doubt.lanes.into(); LANES], origins: [doubt.origin; LANES] };
        }
        warp.set_shadow(base, dst, lanes, &shadow);
        return;
    }
    let sure = lanes & !doubt.lanes;
    let decided = match mode {
        VoteMode::All => votes & sure != sure,
        VoteMode::Any => votes & sure != 0,
        _ => votes & sure != 0 && votes & sure != sure,
    };
    let everybody = if decided || doubt.lanes == 0 { 0 } else { lanes };
    warp.set_doubt(base, pred, lanes, Doubt { lanes: everybody, ..doubt });
}

/// What lanes compute from all their values is undefined if one of these is.
fn follow_all(warp: &mut Warp, base: Base, lanes: u32, a: Slot, dst: Slot, pred: Option<u32>) {
    if !warp.is_in_doubt() {
        return;
    }
    let doubt = warp.in_either(base, &[a], lanes);
    let everybody = Doubt { lanes: if doubt.lanes == 0 { 0 } else { lanes }, ..doubt };
    warp.set_all(base, dst, lanes, everybody);
    if let Some(pred) = pred {
        warp.set_doubt(base, pred, lanes, everybody);
    }
}

/// Moves values between lanes; the lanes that read from one that takes no part, and that one.
fn carry_shuffle(warp: &mut Warp, base: Base, lanes: u32, shuffle: &Shuffle) -> Vec<(u32, u32)> {
    let [a, b, c] = [shuffle.a, shuffle.b, shuffle.c].map(|s| warp.registers[base.slot(s)]);
    let (mut within, mut absent) = (0, Vec::new());
    if warp.is_in_doubt() {
        let source = warp.shadow(base, shuffle.a).cloned().unwrap_or(Shadow::CLEAR);
        let mut moved = Shadow::CLEAR;
        for lane in indices(lanes) {
            let (from, _) = source_lane(shuffle.mode, lane as u32, b[lane] as u32, c[lane] as u32);
            moved.bits[lane] = source.bits[from as usize];
            moved.origins[lane] = source.origins[from as usize];
        }
        // Where to is told by the lane's own registers.
        let lost = warp.in_either(base, &[shuffle.b, shuffle.c], lanes);
        for lane in indices(lost.lanes) {
            moved.bits[lane] = u64::MAX;
            moved.origins[lane] = lost.origin;
        }
        warp.set_shadow(base, shuffle.dst, lanes, &moved);
        if let Some(pred) = shuffle.pred {
            warp.set_doubt(base, pred, lanes, lost);
        }
    }
    let dst = &mut warp.registers[base.slot(shuffle.dst)];
    for lane in indices(lanes) {
        let (from, inside) = source_lane(shuffle.mode, lane as u32, b[lane] as u32, c[lane] as u32);
        within |= u32::from(inside) << lane;
        if lanes >> from & 1 == 0 {
            absent.push((lane as u32, from));
        }
        // The value of a lane that takes no part is undefined; here it is what its register holds.
        dst[lane] = a[from as usize];
    }
    if let Some(pred) = shuffle.pred {
        warp.set_predicate(base, pred, within, lanes);
    }
    absent
}

fn carry_match(
    warp: &mut Warp,
    base: Base,
    lanes: u32,
    all: bool,
    dst: Slot,
    pred: Option<u32>,
    a: Slot,
) {
    let a = warp.registers[base.slot(a)];
    let alike =
        |lane: usize| indices(lanes).filter(|&l| a[l] == a[lane]).fold(0u32, |m, l| m | 1 << l);
    let dst = &mut warp.registers[base.slot(dst)];
    let mut unanimous = true;
    for lane in indices(lanes) {
        let same = alike(lane);
        unanimous = same == lanes;
        dst[lane] = u64::from(if all && !unanimous { 0 } else { same });
    }
    if let Some(pred) = pred {
        warp.set_predicate(base, pred, if unanimous { u32::MAX } else { 0 }, lanes);
    }
}

fn redux_floats(op: ReduxOp, magnitudes: bool, nan: bool, a: &Register, lanes: u32) -> u64 {
    let which = if op == ReduxOp::Min { FloatBinary::Min } else { FloatBinary::Max };
    let mode = FloatMode { nan, ..FloatMode::default() };
    let mask = if magnitudes { 0x7fff_ffff } else { 0xffff_ffff };
    let values = indices(lanes).map(|lane| a[lane] & mask);
    values.reduce(|x, y| float::binary(which, Type::F32, mode, x, y)).unwrap_or(0)
}

fn redux(op: ReduxOp, signed: bool, a: &Register, lanes: u32) -> u64 {
    let values = indices(lanes).map(|lane| a[lane] as u32);
    let by_sign = |x: &u32| i64::from(*x as i32);
    let answer = match op {
        ReduxOp::Add => values.fold(0, u32::wrapping_add),
        ReduxOp::And => values.fold(u32::MAX, |x, y| x & y),
        ReduxOp::Or => values.fold(0, |x, y| x | y),
        ReduxOp::Xor => values.fold(0, |x, y| x ^ y),
        ReduxOp::Min if signed => values.min_by_key(by_sign).unwrap_or(0),
        ReduxOp::Max if signed => values.max_by_key(by_sign).unwrap_or(0),
        ReduxOp::Min => values.min().unwrap_or(0),
        ReduxOp::Max => values.max().unwrap_or(0),
    };
    answer.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the CUDA intrinsics pass for a whole warp and for segments.
    const WHOLE: u32 = 0x1f;
    const WHOLE_UP: u32 = 0;
    const EIGHTS: u32 = (32 - 8) << 8 | 0x1f;

    #[test]
    fn values_come_from_the_lane_that_the_mode_names() {
        assert_eq!(source_lane(ShuffleMode::Down, 3, 4, WHOLE), (7, true));
        assert_eq!(source_lane(ShuffleMode::Down, 30, 4, WHOLE), (30, false));
        assert_eq!(source_lane(ShuffleMode::Up, 3, 4, WHOLE_UP), (3, false));
        assert_eq!(source_lane(ShuffleMode::Up, 9, 4, WHOLE_UP), (5, true));
        assert_eq!(source_lane(ShuffleMode::Butterfly, 5, 16, WHOLE), (21, true));
        assert_eq!(source_lane(ShuffleMode::Index, 5, 35, WHOLE), (3, true));
    }

    #[test]
    fn segments_keep_their_lanes() {
        assert_eq!(source_lane(ShuffleMode::Down, 6, 4, EIGHTS), (6, false));
        assert_eq!(source_lane(ShuffleMode::Down, 10, 4, EIGHTS), (14, true));
        assert_eq!(source_lane(ShuffleMode::Index, 10, 1, EIGHTS), (9, true));
        assert_eq!(source_lane(ShuffleMode::Up, 9, 2, (32 - 8) << 8), (9, false));
    }

    #[test]
    fn reductions_know_the_sign() {
        let a: Register =
            core::array::from_fn(|lane| if lane == 3 { 0xffff_ffff } else { lane as u64 });
        assert_eq!(redux(ReduxOp::Min, true, &a, 0xf), 0xffff_ffff);
        assert_eq!(redux(ReduxOp::Min, false, &a, 0xf), 0);
        assert_eq!(redux(ReduxOp::Max, false, &a, 0xf), 0xffff_ffff);
        assert_eq!(redux(ReduxOp::Add, false, &a, 0xf), 2);
    }
}
