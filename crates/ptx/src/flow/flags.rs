//! Which loads read flags: a branch looks at their values.
//!
//! A thread that waits for a flag, or asks how far another is, may read an old value and looks again. A thread that reads data takes what it gets.
//! So a load whose value reaches a branch, through moves, integer operations, comparisons and votes, is taken for one of a flag.

use crate::ir::{Function, IntBinary, Op, Operand, Predicate, Reg};

/// The registers that decide branches.
#[derive(Debug)]
pub(crate) struct Flags(Vec<bool>);

impl Flags {
    /// Looks at a function's code.
    pub(crate) fn new(function: &Function) -> Flags {
        let mut decides = vec![false; function.registers.len()];
        for instruction in &function.code {
            let leaves = matches!(instruction.op, Op::Branch { .. } | Op::Return | Op::Exit);
            if let (true, Some(guard)) = (leaves, instruction.guard) {
                decides[guard.reg.index()] = true;
            }
        }
        let mut sources = Vec::new();
        loop {
            let mut changed = false;
            for instruction in function.code.iter().rev() {
                sources.clear();
                let dsts = made_of(&instruction.op, &mut sources);
                if dsts.into_iter().flatten().any(|dst| decides[dst.index()]) {
                    for &source in &sources {
                        changed |= !core::mem::replace(&mut decides[source.index()], true);
                    }
                }
            }
            if !changed {
                return Flags(decides);
            }
        }
    }

    /// Whether a branch looks at one of these registers.
    pub(crate) fn any(&self, registers: &[Reg]) -> bool {
        registers.iter().any(|r| self.0[r.index()])
    }
}

/// The registers that an instruction writes, and those that it makes them of.
fn made_of(op: &Op, sources: &mut Vec<Reg>) -> [Option<Reg>; 2] {
    let mut from = |operands: &[Operand], conditions: &[Option<Predicate>]| {
        sources.extend(operands.iter().filter_map(|o| match o {
            Operand::Reg(reg) => Some(*reg),
            _ => None,
        }));
        sources.extend(conditions.iter().flatten().map(|p| p.reg));
    };
    match op {
        Op::Mov { dst, a, .. } | Op::Cvt { dst, a, .. } | Op::IntUnary { dst, a, .. } => {
            from(&[*a], &[]);
            [Some(*dst), None]
        }
        // Sums are what data goes into, and the counts of loops.
        Op::IntBinary { op: IntBinary::Add, a, b, dst, .. } => {
            if matches!((a, b), (Operand::Reg(_), Operand::Imm(_))) {
                from(&[*a], &[]);
            }
            [Some(*dst), None]
        }
        Op::IntBinary { dst, a, b, .. } => {
            from(&[*a, *b], &[]);
            [Some(*dst), None]
        }
        Op::BitExtract { dst, a, .. } => {
            from(&[*a], &[]);
            [Some(*dst), None]
        }
        Op::FunnelShift { dst, a, b, .. } | Op::Permute { dst, a, b, .. } => {
            from(&[*a, *b], &[]);
            [Some(*dst), None]
        }
        Op::Lop3 { dst, a, b, c, test, .. } => {
            from(&[*a, *b, *c], &[test.map(|t| t.2)]);
            [Some(*dst), test.map(|t| t.1)]
        }
        Op::Pack { dst, parts, .. } => {
            from(parts, &[]);
            [Some(*dst), None]
        }
        Op::Unpack { dsts, a, .. } => {
            from(&[*a], &[]);
            [dsts.first().copied(), dsts.get(1).copied()]
        }
        Op::SetPredicate { dst, dst_pred, a, b, join, .. } => {
            from(&[*a, *b], &[join.map(|j| j.1)]);
            [Some(*dst), *dst_pred]
        }
        Op::Set { dst, a, b, join, .. } => {
            from(&[*a, *b], &[join.map(|j| j.1)]);
            [Some(*dst), None]
        }
        Op::Select { dst, a, b, pred, .. } => {
            from(&[*a, *b, Operand::Reg(*pred)], &[]);
            [Some(*dst), None]
        }
        Op::Shuffle { dst, a, .. } | Op::Match { dst, a, .. } => {
            from(&[*a], &[]);
            [Some(*dst), None]
        }
        Op::Vote { dst, a, .. } => {
            from(&[], &[Some(*a)]);
            [Some(*dst), None]
        }
        Op::Barrier { op: crate::ir::BarrierOp::Reduce { dst, pred, .. }, .. } => {
            from(&[], &[Some(*pred)]);
            [Some(*dst), None]
        }
        _ => [None, None],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    /// Whether the value of a kernel's only load decides a branch.
    fn is_flag(body: &str) -> bool {
        let text = format!(
            ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n\
             .reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>;\nagain:\n{body}\nret;\n}}\n"
        );
        let module = parse(&text).unwrap();
        let function = &module.functions[0];
        let dsts = function.code.iter().find_map(|i| match &i.op {
            Op::Load { dsts, .. } => Some(dsts.clone()),
            _ => None,
        });
        Flags::new(function).any(&dsts.unwrap())
    }

    #[test]
    fn what_a_branch_looks_at_is_a_flag() {
        for body in [
            "ld.volatile.global.u32 %r1, [%d1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra again;",
            "ld.volatile.global.u32 %r1, [%d1]; xor.b32 %r2, %r1, %r3; setp.gt.s32 %p1, %r2, -1; @%p1 bra again;",
            "ld.volatile.global.u64 %d2, [%d1]; mov.b64 {%r1, %r2}, %d2; setp.ne.u32 %p1, %r1, 1; vote.sync.any.pred %p2, %p1, -1; @%p2 bra again;",
            "ld.volatile.global.u32 %r1, [%d1]; setp.ne.u32 %p1, %r1, 1; selp.u32 %r2, 1, 0, %p1; setp.ne.u32 %p2, %r2, 0; @!%p2 bra again;",
            "ld.volatile.global.u32 %r1, [%d1]; add.u32 %r2, %r1, -5; setp.ne.u32 %p1, %r2, 0; @%p1 exit;",
        ] {
            assert!(is_flag(body), "{body}");
        }
    }

    #[test]
    fn what_goes_into_a_sum_is_data() {
        for body in [
            "ld.volatile.global.f32 %f1, [%d1]; add.f32 %f2, %f2, %f1; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r2; @%p1 bra again;",
            "ld.volatile.global.u32 %r1, [%d1]; add.u32 %r2, %r2, %r1; setp.lt.u32 %p1, %r3, 9; @%p1 bra again; st.global.u32 [%d2], %r2;",
            "ld.volatile.global.u32 %r1, [%d1]; setp.lt.u32 %p1, %r1, 9; @%p1 st.global.u32 [%d2], %r1;",
        ] {
            assert!(!is_flag(body), "{body}");
        }
    }
}
