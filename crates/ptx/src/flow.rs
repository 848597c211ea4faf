//! Where control can go: basic blocks, where diverged lanes meet again, and who calls whom.

mod calls;
mod dominators;
mod flags;
mod pointers;

pub use calls::{CallGraph, SharedLayout};
pub(crate) use flags::Flags;
pub(crate) use pointers::Pointers;

use core::ops::Range;

use crate::ir::{Function, FunctionId, Instruction, Module, Op};

/// The basic blocks of a function and the points where diverged lanes meet again.
#[derive(Clone, Debug)]
pub struct Flow {
    blocks: Vec<Range<u32>>,
    /// For each block, the first instruction of its immediate post-dominator.
    meets: Vec<Option<u32>>,
    /// The block of each instruction.
    block_of: Vec<u32>,
    /// For each block those that may follow; `None` for the end.
    after: Vec<Vec<Option<usize>>>,
}

impl Flow {
    /// Looks at a function's code. Takes time and memory in proportion to it, but for a logarithm.
    #[must_use]
    pub fn new(function: &Function) -> Self {
        let code = &function.code;
        let blocks = blocks(code);
        let mut block_of = vec![0; code.len()];
        for (number, block) in blocks.iter().enumerate() {
            block_of[block.start as usize..block.end as usize].fill(number as u32);
        }
        let after = after(code, &blocks, &block_of);
        let meets = meets(&blocks, &after);
        Flow { blocks, meets, block_of, after }
    }

    /// The basic blocks, as ranges of instructions, in the order of the code.
    #[must_use]
    pub fn blocks(&self) -> &[Range<u32>] {
        &self.blocks
    }

    /// The blocks that control may go to from one; `None`: it may leave the function.
    pub(crate) fn after(&self, block: usize) -> &[Option<usize>] {
        &self.after[block]
    }

    /// Where the lanes that an instruction separates meet again: its immediate post-dominator, which for all but branches
    /// is the next instruction. `None`: they meet where the function ends, or nowhere, if a loop has no end.
    ///
    /// # Panics
    ///
    /// The function has no such instruction.
    #[must_use]
    pub fn reconvergence(&self, instruction: u32) -> Option<u32> {
        let block = self.block_of[instruction as usize] as usize;
        let next = instruction + 1;
        if next < self.blocks[block].end { Some(next) } else { self.meets[block] }
    }
}

/// All functions of a module that may call themselves.
#[must_use]
pub fn recursion(module: &Module) -> Vec<FunctionId> {
    let graph = CallGraph::new(module);
    let all = (0..module.functions.len()).map(|at| FunctionId(at as u32));
    all.filter(|&function| graph.is_recursive(function)).collect()
}

/// Whether control may leave the straight line here. Calls come back, so they do not count.
fn ends_block(instruction: &Instruction) -> bool {
    matches!(
        instruction.op,
        Op::Branch { .. } | Op::BranchTable { .. } | Op::Return | Op::Exit | Op::Trap
    )
}

fn targets(op: &Op) -> &[u32] {
    match op {
        Op::Branch { target, .. } => core::slice::from_ref(target),
        Op::BranchTable { targets, .. } => targets,
        _ => &[],
    }
}

fn blocks(code: &[Instruction]) -> Vec<Range<u32>> {
    let mut begins = vec![false; code.len() + 1];
    begins[0] = true;
    for (at, instruction) in code.iter().enumerate() {
        for &target in targets(&instruction.op) {
            // A label may stand behind the last instruction.
            begins[(target as usize).min(code.len())] = true;
        }
        if ends_block(instruction) {
            begins[at + 1] = true;
        }
    }
    begins[code.len()] = true;
    let starts: Vec<u32> =
        begins.iter().enumerate().filter(|(_, begins)| **begins).map(|(at, _)| at as u32).collect();
    starts.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

/// The blocks that may follow each; `None` for the end of the function.
fn after(code: &[Instruction], blocks: &[Range<u32>], block_of: &[u32]) -> Vec<Vec<Option<usize>>> {
    let node = |at: u32| block_of.get(at as usize).map(|&block| block as usize);
    let of = |block: &Range<u32>| {
        let last = &code[block.end as usize - 1];
        let mut next: Vec<_> = targets(&last.op).iter().map(|&target| node(target)).collect();
        if matches!(last.op, Op::Return | Op::Exit | Op::Trap) {
            next.push(None);
        }
        if !ends_block(last) || last.guard.is_some() {
            next.push(node(block.end));
        }
        next
    };
    blocks.iter().map(of).collect()
}

/// The immediate post-dominator of each block: its dominator in the graph with all edges turned around, from a node behind
/// everything that ends the function.
fn meets(blocks: &[Range<u32>], after: &[Vec<Option<usize>>]) -> Vec<Option<u32>> {
    let end = blocks.len();
    let mut before = vec![Vec::new(); end + 1];
    for (number, next) in after.iter().enumerate() {
        next.iter().for_each(|next| before[next.unwrap_or(end)].push(number));
    }
    let dominators = dominators::immediate(&before, end);
    let first = |block: usize| (block != end).then(|| blocks[block].start);
    dominators[..end].iter().map(|dominator| dominator.and_then(first)).collect()
}

#[cfg(test)]
mod tests {
    use super::Flow;
    use crate::parse::parse;

    fn flow(body: &str) -> Flow {
        let head = ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k() {\n";
        let text = format!("{head}.reg .pred %p<9>; .reg .b32 %r<9>;\n{body}\n}}\n");
        Flow::new(&parse(&text).unwrap().functions[0])
    }

    #[test]
    fn both_sides_of_a_branch_meet_behind_it() {
        let flow = flow(
            "@%p1 bra THEN; mov.u32 %r1, 1; bra.uni OVER; THEN: mov.u32 %r1, 2; OVER: mov.u32 %r2, 3; ret;",
        );
        assert_eq!(flow.blocks(), [0..1, 1..3, 3..4, 4..6]);
        assert_eq!(flow.reconvergence(0), Some(4));
    }

    #[test]
    fn lanes_leave_a_loop_together() {
        let flow = flow("TOP: add.s32 %r1, %r1, 1; @%p1 bra TOP; mov.u32 %r2, 3; ret;");
        assert_eq!(flow.reconvergence(1), Some(2));
    }

    #[test]
    fn straight_lines_meet_at_the_next_instruction() {
        let flow = flow("mov.u32 %r1, 1; mov.u32 %r2, 3; ret;");
        assert_eq!(flow.reconvergence(0), Some(1));
        assert_eq!(flow.reconvergence(2), None);
    }

    #[test]
    fn an_early_return_has_nowhere_to_meet() {
        let flow = flow("@%p1 ret; mov.u32 %r2, 3; ret;");
        assert_eq!(flow.reconvergence(0), None);
    }

    #[test]
    fn a_break_out_of_a_loop_meets_behind_the_loop() {
        let flow =
            flow("TOP: @%p1 bra OUT; add.s32 %r1, %r1, 1; @%p2 bra TOP; OUT: mov.u32 %r2, 3; ret;");
        assert_eq!(flow.reconvergence(0), Some(3));
        assert_eq!(flow.reconvergence(2), Some(3));
    }

    #[test]
    fn a_loop_without_end_meets_nowhere() {
        let flow = flow("TOP: @%p1 bra SKIP; mov.u32 %r1, 1; SKIP: bra TOP;");
        assert_eq!(flow.reconvergence(0), None);
    }

    #[test]
    fn a_table_meets_where_its_cases_do() {
        let flow = flow(
            "T: .branchtargets A, B, C; brx.idx %r1, T; A: mov.u32 %r2, 1; bra D; B: mov.u32 %r2, 2; C: mov.u32 %r2, 3; D: ret;",
        );
        assert_eq!(flow.reconvergence(0), Some(5));
    }

    #[test]
    fn a_label_may_stand_behind_everything() {
        let flow = flow("@%p1 bra END; mov.u32 %r1, 1; END:");
        assert_eq!(flow.reconvergence(0), None);
        assert_eq!(flow.blocks(), [0..1, 1..2]);
    }
}
