//! Memory of a thread that lasts until its function returns: `alloca`, `stacksave`, `stackrestore`.
//!
//! It lies in local memory behind the frames of all functions. Each lane has its own top, since lanes may allocate in loops of different lengths.

use super::block::Block;
use super::execute::{line_at, place_of};
use super::grid::Machine;
use super::lanes::{Register, indices};
use super::launch::Halt;
use super::program::{Code, Slot, Step};
use super::warp::{Group, Warp};
use crate::place::LANES;

/// Bytes that a thread may allocate.
pub(crate) const STACK: u64 = 32 << 10;

/// What tops are multiples of.
const GRAIN: u64 = 16;

/// The tops of a warp's lanes.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    top: Register,
    /// The tops when the calls were made that have not returned, by their depth.
    at_calls: Vec<Register>,
}

impl Stack {
    /// Nothing is allocated from `bottom` on.
    pub(crate) fn new(bottom: u64) -> Stack {
        Stack { top: [bottom; LANES], at_calls: Vec::new() }
    }
}

impl Warp {
    /// Some lanes call a function from a chain of `depth` calls.
    #[inline]
    pub(crate) fn enter_call(&mut self, depth: usize, mask: u32) {
        if let Some(stack) = &mut self.stack {
            if stack.at_calls.len() <= depth {
                stack.at_calls.resize(depth + 1, [0; LANES]);
            }
            indices(mask).for_each(|lane| stack.at_calls[depth][lane] = stack.top[lane]);
        }
    }

    /// Some lanes return to a chain of `depth` calls: what the function allocated is gone.
    #[inline]
    pub(crate) fn leave_call(&mut self, depth: usize, mask: u32) {
        if let Some(stack) = &mut self.stack {
            indices(mask).for_each(|lane| stack.top[lane] = stack.at_calls[depth][lane]);
        }
    }
}

impl Machine<'_> {
    /// Steps that move the top of the stack, or look at it.
    pub(crate) fn stack(
        &mut self,
        block: &mut Block,
        w: usize,
        group: &Group,
        active: u32,
        code: &Code,
        step: &Step,
    ) -> Result<(), Halt> {
        let warp = &mut block.warps[w];
        let Some(stack) = &mut warp.stack else { return Ok(()) };
        let slot = |slot: Slot| group.base.slot(slot);
        match *step {
            Step::Allocate { dst, size, align } => {
                let sizes = warp.registers[slot(size)];
                for lane in indices(active) {
                    let first = stack.top[lane].checked_next_multiple_of(align.max(GRAIN));
                    let end = first.and_then(|first| first.checked_add(sizes[lane]));
                    let end = end.and_then(|end| end.checked_next_multiple_of(GRAIN));
                    let (first, end) = match (first, end) {
                        (Some(first), Some(end)) if end <= self.program.local_bytes => (first, end),
                        _ => {
                            let what = format!(
                                "{} bytes do not fit on the stack of {STACK} bytes of a thread",
                                sizes[lane]
                            );
                            let place = place_of(block, w, 1 << lane);
                            return Err(Halt::Call { line: line_at(code, group.pc), place, what });
                        }
                    };
                    stack.top[lane] = end;
                    warp.registers[slot(dst)][lane] = first;
                    block.memory.forget_local((w * LANES + lane) as u32, first, end);
                }
            }
            Step::StackSave { dst } => {
                let dst = &mut warp.registers[slot(dst)];
                indices(active).for_each(|lane| dst[lane] = stack.top[lane]);
            }
            Step::StackRestore { a } => {
                let tops = &warp.registers[slot(a)];
                for lane in indices(active) {
                    // A stack never grows by this.
                    stack.top[lane] = stack.top[lane].min(tops[lane]).max(self.program.frame_bytes);
                }
            }
            _ => {}
        }
        Ok(())
    }
}
