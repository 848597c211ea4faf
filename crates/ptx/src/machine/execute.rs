//! Runs a group of lanes: control, and everything that only registers are needed for.

use super::block::Block;
use super::grid::Machine;
use super::lanes::{Register, from_one, from_three, from_two, indices, join_masks, uniform};
use super::launch::Halt;
use super::program::{Argument, Call, Callee, Code, Passed, Slot, Step};
use super::space;
use super::undefined::Shadow;
use super::warp::{Base, DEEPEST_CALL, Frame, Group, Wait, Warp};
use crate::ir::{CarryOp, Line, Special};
use crate::place::{LANES, Place};
use crate::value::{compare, int};

/// What a strong load, or a rest, costs of a turn: a loop that waits for others gives up its turn soon.
const PATIENCE: i32 = 64;

/// Registers, and bytes of parameters, of all frames of a warp.
const MOST_REGISTERS: u32 = 1 << 18;

/// How a group's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It waits, has separated, or has ended.
    Stopped,
    /// It could go on.
    Spent,
    /// It could go on, but most of its turn went into looking whether others have done something.
    Looking,
}

/// What the loop does after a step.
enum Next {
    /// The step behind.
    Step,
    /// A step of its own choosing; the group's counter is set.
    Jump,
    /// The group has been put away.
    Stop,
}

impl Step {
    /// Whether it needs nothing but its warp's registers.
    pub(crate) fn is_computed(&self) -> bool {
        matches!(
            self,
            Step::Unary { .. }
                | Step::Binary { .. }
                | Step::Ternary { .. }
                | Step::Carry { .. }
                | Step::Compare { .. }
                | Step::CompareInto { .. }
                | Step::Ask { .. }
                | Step::Select { .. }
                | Step::MovePredicate { .. }
                | Step::JoinPredicates { .. }
                | Step::SelectPredicate { .. }
                | Step::Lop3Test { .. }
                | Step::InsertBits { .. }
                | Step::Pack { .. }
                | Step::Unpack { .. }
                | Step::FrameAddress { .. }
                | Step::Clock { .. }
                | Step::ActiveMask { .. }
                | Step::MbarrierWait(_)
                | Step::MbarrierArrive(_)
        )
    }

    /// Whether lanes that skip the step must be separated from those that take it.
    fn separates(&self) -> bool {
        matches!(
            self,
            Step::Call(_)
                | Step::WarpBarrier { .. }
                | Step::Shuffle(_)
                | Step::Vote { .. }
                | Step::Match { .. }
                | Step::Redux { .. }
                | Step::Matrix(_)
                | Step::Elect { .. }
                | Step::ActiveMask { .. }
                | Step::Barrier(_)
                | Step::ClusterArrive
                | Step::ClusterWait
        )
    }
}

impl<'a> Machine<'a> {
    /// Runs a group, which is not among its warp's groups, until it stops or has taken `turn` steps.
    pub(crate) fn run_group(
        &mut self,
        block: &mut Block,
        w: usize,
        mut group: Group,
        turn: i32,
    ) -> Result<Turn, Halt> {
        let program = self.program;
        let (mut left, mut patience) = (turn, 0);
        let mut code = &program.functions[group.function as usize];
        loop {
            if group.pc == group.join_at {
                block.warps[w].arrive_at_join(group);
                return Ok(Turn::Stopped);
            }
            if left <= 0 {
                block.warps[w].groups.push(group);
                return Ok(if patience > turn / 2 { Turn::Looking } else { Turn::Spent });
            }
            if let Some(rest) = self.split_by_chance(&mut group) {
                block.warps[w].groups.push(rest);
            }
            left -= 1;
            let warp = &mut block.warps[w];
            let Some(guarded) = code.steps.get(group.pc as usize) else {
                // Control that runs past the last instruction returns.
                let active = group.mask;
                match self.end_or_return(block, w, &mut group, active, code)? {
                    Next::Stop => return Ok(Turn::Stopped),
                    _ => {
                        code = &program.functions[group.function as usize];
                        continue;
                    }
                }
            };
            let active = match guarded.guard {
                None => group.mask,
                Some(condition) => warp.holds(group.base, condition) & group.mask,
            };
            if active != group.mask && guarded.step.separates() {
                if active == 0 {
                    self.note_step(code, group.pc, 0);
                    group.pc += 1;
                } else {
                    let behind = group.pc + 1;
                    self.separate(warp, &mut group, active, behind, code);
                }
                continue;
            }
            self.note_step(code, group.pc, active);
            if block.warps[w].is_in_doubt() {
                self.look_into(block, w, &group, active, guarded, code);
            }
            let warp = &mut block.warps[w];
            if guarded.touches_open {
                self.look_at_use(warp, active, &guarded.step);
            }
            let next = match &guarded.step {
                Step::Load(load) => {
                    if load.order != crate::ir::Order::Weak {
                        left -= PATIENCE;
                        patience += PATIENCE;
                    }
                    self.load(block, w, &group, active, code, load);
                    Next::Step
                }
                Step::Store(store) => {
                    self.store(block, w, &group, active, code, store);
                    Next::Step
                }
                Step::Atomic(atomic) => {
                    left -= PATIENCE / 4;
                    patience += PATIENCE / 4;
                    self.atomic(block, w, &group, active, code, atomic);
                    Next::Step
                }
                Step::MbarrierWait(_) | Step::Sleep => {
                    left -= PATIENCE;
                    patience += PATIENCE;
                    self.beside(block, w, &group, active, code, &guarded.step)?;
                    Next::Step
                }
                Step::Branch { target } => {
                    self.branch(&mut block.warps[w], &mut group, active, *target, code)
                }
                Step::BranchTable { index, targets } => self.branch_table(
                    &mut block.warps[w],
                    &mut group,
                    active,
                    *index,
                    targets,
                    code,
                ),
                Step::Call(call) => {
                    let next = self.call(block, w, &mut group, call, code)?;
                    code = &program.functions[group.function as usize];
                    next
                }
                Step::Return | Step::Exit => {
                    let exit = matches!(guarded.step, Step::Exit);
                    if active == 0 {
                        Next::Step
                    } else if exit {
                        self.end(block, w, &mut group, active, code)
                    } else {
                        let next = self.end_or_return(block, w, &mut group, active, code)?;
                        code = &program.functions[group.function as usize];
                        next
                    }
                }
                Step::Trap | Step::Unsupported(_) => {
                    if active != 0 {
                        let place = place_of(block, w, active);
                        let line = code.lines[group.pc as usize];
                        block.warps[w].groups.push(group);
                        return Err(match &guarded.step {
                            Step::Unsupported(what) => {
                                Halt::Unsupported { line, place, what: what.to_string() }
                            }
                            _ => Halt::Trap { line, place },
                        });
                    }
                    Next::Step
                }
                Step::WarpBarrier { .. }
                | Step::Shuffle(_)
                | Step::Vote { .. }
                | Step::Match { .. }
                | Step::Redux { .. }
                | Step::Matrix(_)
                | Step::Elect { .. } => match self.together(block, w, group, code, &guarded.step) {
                    Some(same) => {
                        group = same;
                        Next::Step
                    }
                    None => return Ok(Turn::Stopped),
                },
                Step::Barrier(barrier) => match self.barrier(block, w, group, code, barrier) {
                    Some(same) => {
                        group = same;
                        Next::Step
                    }
                    None => return Ok(Turn::Stopped),
                },
                Step::ClusterArrive => {
                    self.cluster_arrive(block, w, group.mask);
                    Next::Step
                }
                Step::ClusterWait => {
                    if self.cluster_wait(block, w, group.mask) {
                        Next::Step
                    } else {
                        group.wait = Wait::Cluster;
                        block.warps[w].groups.push(group);
                        return Ok(Turn::Stopped);
                    }
                }
                Step::Fence { order, scope } => {
                    self.fence(block, w, active, *order, *scope);
                    Next::Step
                }
                Step::CopyAsync(_)
                | Step::CopyCommit { .. }
                | Step::CopyWait { .. }
                | Step::CopyArrive { .. }
                | Step::CopyBulk(_)
                | Step::CopyTensor(_)
                | Step::StoreAsync(_)
                | Step::MbarrierInit { .. }
                | Step::MbarrierInvalidate { .. }
                | Step::MbarrierArrive(_)
                | Step::MbarrierTransaction { .. } => {
                    self.beside(block, w, &group, active, code, &guarded.step)?;
                    Next::Step
                }
                Step::Texture(_)
                | Step::SurfaceLoad(_)
                | Step::SurfaceStore(_)
                | Step::ImageExtent { .. } => {
                    if active != 0 {
                        self.image(block, w, &group, active, code, &guarded.step);
                    }
                    Next::Step
                }
                Step::Allocate { .. } | Step::StackSave { .. } | Step::StackRestore { .. } => {
                    self.stack(block, w, &group, active, code, &guarded.step)?;
                    Next::Step
                }
                step => {
                    if active != 0 {
                        compute(warp, group.base, group.mask, active, step, self.issued);
                    }
                    Next::Step
                }
            };
            match next {
                Next::Step => group.pc += 1,
                Next::Jump => {}
                Next::Stop => return Ok(Turn::Stopped),
            }
        }
    }

    /// Lets the lanes that do not take a step go to `elsewhere`; `group` keeps those that do. Both meet there.
    fn separate(
        &mut self,
        warp: &mut Warp,
        group: &mut Group,
        keep: u32,
        elsewhere: u32,
        _code: &Code,
    ) {
        if self.joins() {
            let depth = group.frames.len() as u32;
            warp.add_join(group, elsewhere, depth);
        }
        let mut rest = group.clone();
        rest.mask = group.mask & !keep;
        rest.pc = elsewhere;
        group.mask = keep;
        put(warp, rest);
    }

    /// Makes the lanes of a group that part at its instruction meet again where the program says.
    fn plan_to_meet(&mut self, warp: &mut Warp, group: &mut Group, code: &Code) {
        if !self.joins() {
            return;
        }
        match code.joins[group.pc as usize] {
            u32::MAX => {
                // Behind the call that led here.
                if let Some(frame) = group.frames.last() {
                    let (pc, depth) = (frame.pc + 1, group.frames.len() as u32 - 1);
                    warp.add_join(group, pc, depth);
                }
            }
            pc => warp.add_join(group, pc, group.frames.len() as u32),
        }
    }

    fn branch(
        &mut self,
        warp: &mut Warp,
        group: &mut Group,
        taken: u32,
        target: u32,
        code: &Code,
    ) -> Next {
        let all = group.mask;
        self.count(code.first + group.pc, |c| c.branch(all, taken));
        if taken == group.mask {
            group.pc = target;
            return Next::Jump;
        }
        if taken == 0 {
            return Next::Step;
        }
        self.plan_to_meet(warp, group, code);
        let mut other = group.clone();
        other.mask = taken;
        other.pc = target;
        group.mask &= !taken;
        put(warp, other);
        Next::Step
    }

    fn branch_table(
        &mut self,
        warp: &mut Warp,
        group: &mut Group,
        active: u32,
        index: Slot,
        targets: &[u32],
        code: &Code,
    ) -> Next {
        let indices_of = warp.registers[group.base.slot(index)];
        let together = active == group.mask && uniform(&indices_of, active).is_some();
        let (all, first) =
            (group.mask, if together { group.mask } else { 1 << active.trailing_zeros().min(31) });
        self.count(code.first + group.pc, |c| c.branch(all, first));
        if !together {
            self.plan_to_meet(warp, group, code);
        }
        let mut left = active;
        while left != 0 {
            let value = indices_of[left.trailing_zeros() as usize];
            let same = indices(left).filter(|&l| indices_of[l] == value).fold(0, |m, l| m | 1 << l);
            left &= !same;
            let mut other = group.clone();
            other.mask = same;
            // Behind the table's end nothing is defined: control goes on.
            other.pc = targets.get(value as usize).copied().unwrap_or(group.pc + 1);
            group.mask &= !same;
            put(warp, other);
        }
        if group.mask == 0 { Next::Stop } else { Next::Step }
    }

    /// `ret`: back to the caller, or the lanes end.
    fn end_or_return(
        &mut self,
        block: &mut Block,
        w: usize,
        group: &mut Group,
        active: u32,
        code: &Code,
    ) -> Result<Next, Halt> {
        if group.frames.is_empty() {
            return Ok(self.end(block, w, group, active, code));
        }
        let warp = &mut block.warps[w];
        if active != group.mask {
            self.plan_to_meet(warp, group, code);
            let mut rest = group.clone();
            rest.mask &= !active;
            rest.pc += 1;
            group.mask = active;
            put(warp, rest);
        }
        let Some(frame) = group.frames.pop() else { return Ok(Next::Stop) };
        let callee = group.base;
        let caller = &self.program.functions[frame.function as usize];
        if let Step::Call(call) = &caller.steps[frame.pc as usize].step {
            for (from, to) in code.results.iter().zip(&call.results) {
                pass_back(warp, group.base, frame.base, *from, *to, group.mask);
            }
        }
        group.function = frame.function;
        group.base = frame.base;
        group.pc = frame.pc + 1;
        warp.leave_frame(callee);
        warp.leave_call(group.frames.len(), group.mask);
        warp.aim(group);
        Ok(Next::Jump)
    }

    /// `exit`: lanes end.
    fn end(
        &mut self,
        block: &mut Block,
        w: usize,
        group: &mut Group,
        active: u32,
        code: &Code,
    ) -> Next {
        let line = line_at(code, group.pc);
        let rest = group.mask & !active;
        let warp = &mut block.warps[w];
        warp.end_lanes(active, line);
        {
            let mut cluster = block.cluster.borrow_mut();
            cluster.live -= active.count_ones();
            cluster.settle();
        }
        if rest != 0 {
            group.mask = rest;
        }
        self.settle_lanes(block, w);
        self.settle_barriers(block);
        if rest == 0 { Next::Stop } else { Next::Step }
    }

    fn call(
        &mut self,
        block: &mut Block,
        w: usize,
        group: &mut Group,
        call: &Call,
        code: &Code,
    ) -> Result<Next, Halt> {
        let callee = match call.callee {
            Callee::Code(callee) => callee,
            Callee::Builtin(builtin) => {
                self.builtin(block, w, group, call, code, builtin)?;
                return Ok(Next::Step);
            }
            Callee::Indirect(slot) => {
                let handles = block.warps[w].registers[group.base.slot(slot)];
                let first = handles[group.mask.trailing_zeros() as usize];
                let same =
                    indices(group.mask).filter(|&l| handles[l] == first).fold(0, |m, l| m | 1 << l);
                if same != group.mask {
                    // Each function gets a turn of its own; all meet behind the call.
                    let warp = &mut block.warps[w];
                    let behind = group.pc + 1;
                    if self.joins() {
                        warp.add_join(group, behind, group.frames.len() as u32);
                    }
                    let mut rest = group.clone();
                    rest.mask &= !same;
                    group.mask = same;
                    put(warp, rest);
                }
                let id = first.wrapping_sub(space::FUNCTION) / 16;
                match self.program.ids.iter().position(|&i| u64::from(i) == id) {
                    Some(at)
                        if at > 0
                            && call.arguments.len()
                                == self.program.functions[at].parameters.len() =>
                    {
                        at as u32
                    }
                    _ => {
                        let what = format!(
                            "{first:#x} is not the address of a function with these parameters"
                        );
                        return Err(self.bad_call(block, w, group, code, what));
                    }
                }
            }
        };
        if group.frames.len() >= DEEPEST_CALL {
            let what = format!("calls nest more than {DEEPEST_CALL} deep");
            return Err(self.bad_call(block, w, group, code, what));
        }
        let target = &self.program.functions[callee as usize];
        let base = group.base.after(code);
        let end = base.after(target);
        if end.registers > MOST_REGISTERS || end.params > MOST_REGISTERS.into() {
            let what = String::from("the registers of all calls are too many");
            return Err(self.bad_call(block, w, group, code, what));
        }
        if end.local > self.program.frame_bytes {
            let what = format!("the stack of {} bytes is full", self.program.frame_bytes);
            return Err(self.bad_call(block, w, group, code, what));
        }
        let warp = &mut block.warps[w];
        warp.reserve(base, target);
        warp.clear_frame(base, target, group.mask);
        if target.local_bytes > 0 {
            for lane in indices(group.mask) {
                let thread = (w * LANES + lane) as u32;
                block.memory.forget_local(thread, base.local, base.local + target.local_bytes);
            }
        }
        for (from, to) in call.arguments.iter().zip(&target.parameters) {
            hand_over(warp, group.base, base, *from, *to, group.mask);
        }
        warp.enter_call(group.frames.len(), group.mask);
        group.frames.push(Frame { function: group.function, pc: group.pc, base: group.base });
        group.function = callee;
        group.base = base;
        group.pc = 0;
        group.join_at = u32::MAX;
        Ok(Next::Jump)
    }

    fn bad_call(
        &self,
        block: &mut Block,
        w: usize,
        group: &Group,
        code: &Code,
        what: String,
    ) -> Halt {
        let (line, place) = (line_at(code, group.pc), place_of(block, w, group.mask));
        block.warps[w].groups.push(group.clone());
        Halt::Call { line, place, what }
    }
}

/// Puts a group among its warp's, at its join if it stands there.
fn put(warp: &mut Warp, mut group: Group) {
    group.wait = Wait::Ready;
    warp.aim(&mut group);
    if group.pc == group.join_at { warp.arrive_at_join(group) } else { warp.groups.push(group) }
}

/// The line of an instruction; behind the last one, its.
pub(crate) fn line_at(code: &Code, pc: u32) -> Line {
    code.lines.get(pc as usize).or(code.lines.last()).copied().unwrap_or_default()
}

/// The first thread of some lanes.
pub(crate) fn place_of(block: &Block, w: usize, lanes: u32) -> Place {
    let lane = lanes.trailing_zeros() % LANES as u32;
    Place { block: block.memory.index, thread: w as u32 * LANES as u32 + lane }
}

/// Copies an argument into the callee's frame.
fn hand_over(warp: &mut Warp, caller: Base, callee: Base, from: Argument, to: Passed, mask: u32) {
    let from = match from {
        Argument::Value { slot } => Passed::Register(slot),
        Argument::Memory { offset, bytes } => Passed::Memory { offset, bytes },
    };
    pass(warp, (caller, from), (callee, to), mask);
}

/// Copies a result into the caller's frame.
fn pass_back(warp: &mut Warp, callee: Base, caller: Base, from: Passed, to: Argument, mask: u32) {
    let to = match to {
        Argument::Value { slot } => Passed::Register(slot),
        Argument::Memory { offset, bytes } => Passed::Memory { offset, bytes },
    };
    pass(warp, (callee, from), (caller, to), mask);
}

/// Copies from one frame into another, with what is undefined of it.
fn pass(warp: &mut Warp, (source, from): (Base, Passed), (sink, to): (Base, Passed), mask: u32) {
    match (from, to) {
        (Passed::Register(src), Passed::Memory { offset, bytes }) => {
            let values = warp.registers[source.slot(src)];
            let shadow = warp.shadow(source, src).cloned();
            write_param(warp, sink.params + offset, bytes.min(8), &values, mask);
            warp.set_param_shadow(sink.params + offset, bytes.min(8), mask, shadow.as_ref());
        }
        (Passed::Memory { offset, bytes }, Passed::Memory { offset: to, bytes: room }) => {
            let (from, to, bytes) = (source.params + offset, sink.params + to, bytes.min(room));
            copy_param(warp, from, to, bytes, mask);
            warp.copy_param_shadow(from, to, bytes, mask);
        }
        (Passed::Memory { offset, bytes }, Passed::Register(dst)) => {
            let values = read_param(warp, source.params + offset, bytes.min(8));
            let shadow = warp.param_shadow(source.params + offset, bytes.min(8));
            take_in(warp, (sink, dst), &values, shadow, mask);
        }
        (Passed::Register(src), Passed::Register(dst)) => {
            let values = warp.registers[source.slot(src)];
            let shadow = warp.shadow(source, src).cloned();
            take_in(warp, (sink, dst), &values, shadow, mask);
        }
    }
}

/// Writes a register, with what is undefined of it.
fn take_in(
    warp: &mut Warp,
    (base, dst): (Base, Slot),
    values: &Register,
    shadow: Option<Shadow>,
    mask: u32,
) {
    warp.set_shadow(base, dst, mask, shadow.as_ref().unwrap_or(&Shadow::CLEAR));
    let dst = &mut warp.registers[base.slot(dst)];
    indices(mask).for_each(|lane| dst[lane] = values[lane]);
}

/// Reads up to eight bytes of parameter memory.
pub(crate) fn read_param(warp: &Warp, at: u64, bytes: u64) -> Register {
    let mut values = [0; LANES];
    for i in 0..bytes {
        if let Some(column) = warp.params.get((at + i) as usize) {
            for lane in 0..LANES {
                values[lane] |= u64::from(column[lane]) << (8 * i);
            }
        }
    }
    values
}

/// Writes up to eight bytes of parameter memory.
pub(crate) fn write_param(warp: &mut Warp, at: u64, bytes: u64, values: &Register, mask: u32) {
    for i in 0..bytes {
        if let Some(column) = warp.params.get_mut((at + i) as usize) {
            indices(mask).for_each(|lane| column[lane] = (values[lane] >> (8 * i)) as u8);
        }
    }
}

fn copy_param(warp: &mut Warp, from: u64, to: u64, bytes: u64, mask: u32) {
    for i in 0..bytes {
        if let Some(&column) = warp.params.get((from + i) as usize)
            && let Some(out) = warp.params.get_mut((to + i) as usize)
        {
            indices(mask).for_each(|lane| out[lane] = column[lane]);
        }
    }
}

/// A step that needs nothing but its warp's registers.
fn compute(warp: &mut Warp, base: Base, group: u32, active: u32, step: &Step, issued: u64) {
    match step {
        Step::Unary { f, dst, a, .. } => {
            let (dst, a) = (base.slot(*dst), base.slot(*a));
            from_one(&mut warp.registers, dst, a, |dst, a| f(dst, a, active));
        }
        Step::Binary { f, dst, a, b, .. } => {
            let (dst, sources) = (base.slot(*dst), [*a, *b].map(|s| base.slot(s)));
            from_two(&mut warp.registers, dst, sources, |dst, a, b| f(dst, a, b, active));
        }
        Step::Ternary { f, dst, a, b, c, .. } => {
            let (dst, sources) = (base.slot(*dst), [*a, *b, *c].map(|s| base.slot(s)));
            from_three(&mut warp.registers, dst, sources, |dst, a, b, c| f(dst, a, b, c, active));
        }
        Step::InsertBits { ty, dst, sources } => {
            let [a, b, start, length] = sources.map(|s| warp.registers[base.slot(s)]);
            let dst = &mut warp.registers[base.slot(*dst)];
            for lane in indices(active) {
                dst[lane] =
                    crate::value::bits::insert(*ty, a[lane], b[lane], start[lane], length[lane]);
            }
        }
        Step::Compare { f, pairs, dst, other, a, b, join } => {
            let (low, high) =
                f(&warp.registers[base.slot(*a)], &warp.registers[base.slot(*b)], active);
            let joined = |warp: &Warp, bits: u32| match join {
                None => bits,
                Some((op, with)) => join_masks(*op, bits, warp.holds(base, *with)),
            };
            let first = joined(warp, low);
            let second = joined(warp, if *pairs { high } else { !low });
            warp.set_predicate(base, *dst, first, active);
            if let Some(other) = other {
                warp.set_predicate(base, *other, second, active);
            }
        }
        Step::CompareInto { f, pairs, yes, dst, a, b, join } => {
            let (low, high) =
                f(&warp.registers[base.slot(*a)], &warp.registers[base.slot(*b)], active);
            let joined = |bits: u32| match join {
                None => bits,
                Some((op, with)) => join_masks(*op, bits, warp.holds(base, *with)),
            };
            let (low, high) = (joined(low), joined(high));
            let dst = &mut warp.registers[base.slot(*dst)];
            for lane in indices(active) {
                let half = |mask: u32| if mask >> lane & 1 == 1 { *yes } else { 0 };
                dst[lane] = if *pairs { half(low) | half(high) << 16 } else { half(low) };
            }
        }
        Step::Ask { f, dst, a } => {
            let a = &warp.registers[base.slot(*a)];
            let (holds, _) = f(a, a, active);
            warp.set_predicate(base, *dst, holds, active);
        }
        Step::Select { dst, a, b, pred } => {
            let takes_a = warp.predicates[base.predicate(*pred)];
            let (dst, sources) = (base.slot(*dst), [*a, *b].map(|s| base.slot(s)));
            from_two(&mut warp.registers, dst, sources, |dst, a, b| {
                for lane in indices(active) {
                    dst[lane] = if takes_a >> lane & 1 == 1 { a[lane] } else { b[lane] };
                }
            });
        }
        Step::MovePredicate { dst, a, negated } => {
            let bits = warp.predicates[base.predicate(*a)];
            warp.set_predicate(base, *dst, if *negated { !bits } else { bits }, active);
        }
        Step::JoinPredicates { op, dst, a, b } => {
            let [a, b] = [a, b].map(|p| warp.predicates[base.predicate(*p)]);
            warp.set_predicate(base, *dst, join_masks(*op, a, b), active);
        }
        Step::SelectPredicate { dst, a, b, pred } => {
            let [a, b, p] = [a, b, pred].map(|p| warp.predicates[base.predicate(*p)]);
            warp.set_predicate(base, *dst, (a & p) | (b & !p), active);
        }
        Step::Lop3Test { table, dst, sources, op, pred, with } => {
            let [a, b, c] = sources.map(|s| warp.registers[base.slot(s)]);
            let with = warp.holds(base, *with);
            let (mut holds, dst) = (0, base.slot(*dst));
            for lane in indices(active) {
                let value = crate::value::bits::lop3(*table, a[lane], b[lane], c[lane]);
                warp.registers[dst][lane] = value;
                let answer = compare::join(*op, value != 0, with >> lane & 1 == 1);
                holds |= u32::from(answer) << lane;
            }
            warp.set_predicate(base, *pred, holds, active);
        }
        Step::Carry { op, ty, dst, sources, carry_in, carry_out } => {
            let [a, b, c] = sources.map(|s| warp.registers[base.slot(s)]);
            let dst = &mut warp.registers[base.slot(*dst)];
            // Without a carry to begin with, a difference borrows nothing.
            let none = if *op == CarryOp::Sub { u32::MAX } else { 0 };
            let before = if *carry_in { warp.carry } else { none };
            for lane in indices(active) {
                let (value, out) =
                    int::carry(*op, *ty, a[lane], b[lane], c[lane], before >> lane & 1 == 1);
                dst[lane] = value;
                if *carry_out {
                    warp.carry = warp.carry & !(1 << lane) | u32::from(out) << lane;
                }
            }
        }
        Step::Pack { bits, dst, parts } => {
            let mut whole = [0; LANES];
            for (i, part) in parts.iter().enumerate() {
                let part = &warp.registers[base.slot(*part)];
                for lane in 0..LANES {
                    whole[lane] |= (part[lane] & (u64::MAX >> (64 - bits))) << (i as u32 * bits);
                }
            }
            let dst = &mut warp.registers[base.slot(*dst)];
            indices(active).for_each(|lane| dst[lane] = whole[lane]);
        }
        Step::Unpack { bits, dsts, a } => {
            let whole = warp.registers[base.slot(*a)];
            for (i, dst) in dsts.iter().enumerate() {
                let dst = &mut warp.registers[base.slot(*dst)];
                for lane in indices(active) {
                    dst[lane] = (whole[lane] >> (i as u32 * bits)) & (u64::MAX >> (64 - bits));
                }
            }
        }
        Step::FrameAddress { dst, local, offset } => {
            let start = if *local { base.local } else { base.params };
            let dst = &mut warp.registers[base.slot(*dst)];
            indices(active).for_each(|lane| dst[lane] = start + offset);
        }
        Step::Clock { which, dst } => {
            let now = clock(*which, issued);
            let dst = &mut warp.registers[base.slot(*dst)];
            indices(active).for_each(|lane| dst[lane] = now);
        }
        Step::ActiveMask { dst } => {
            let dst = &mut warp.registers[base.slot(*dst)];
            indices(active).for_each(|lane| dst[lane] = u64::from(group));
        }
        _ => {}
    }
}

/// The simulated clock ticks once an instruction, so that runs repeat.
fn clock(which: Special, issued: u64) -> u64 {
    match which {
        Special::Clock | Special::GlobalTimerLo => issued & 0xffff_ffff,
        Special::ClockHi | Special::GlobalTimerHi => issued >> 32,
        _ => issued,
    }
}
