//! Where control goes: the instruction at which ways that separated meet again.

use crate::ir::{Callee, Function, Module, Op};

/// The reconvergence points of a function.
pub struct Flow {
    post: Vec<Option<u32>>,
}

fn successors(f: &Function, i: usize) -> Vec<usize> {
    let n = f.code.len();
    let end = n;
    let next = (i + 1).min(n);
    let instruction = &f.code[i];
    let guarded = instruction.guard.is_some();
    let mut out = match &instruction.op {
        Op::Branch { target, .. } => vec![*target as usize],
        Op::BranchTable { targets, .. } => targets.iter().map(|&t| t as usize).collect(),
        Op::Return | Op::Exit | Op::Trap => vec![end],
        _ => return vec![next],
    };
    if guarded {
        out.push(next);
    }
    out
}

impl Flow {
    /// Computes immediate post-dominators, instruction by instruction.
    #[must_use]
    pub fn new(f: &Function) -> Flow {
        let n = f.code.len();
        // Reverse order over the graph from the end.
        let succ: Vec<Vec<usize>> = (0..n).map(|i| successors(f, i)).collect();
        let mut pred = vec![Vec::new(); n + 1];
        for (i, s) in succ.iter().enumerate() {
            for &t in s {
                pred[t].push(i);
            }
        }
        let mut order = Vec::new();
        let mut number = vec![usize::MAX; n + 1];
        let mut stack = vec![(n, 0)];
        let mut seen = vec![false; n + 1];
        seen[n] = true;
        while let Some((node, at)) = stack.pop() {
            if at < pred[node].len() {
                stack.push((node, at + 1));
                let p = pred[node][at];
                if !seen[p] {
                    seen[p] = true;
                    stack.push((p, 0));
                }
            } else {
                number[node] = order.len();
                order.push(node);
            }
        }
        let mut idom = vec![usize::MAX; n + 1];
        idom[n] = n;
        let mut changed = true;
        while changed {
            changed = false;
            for &node in order.iter().rev().skip(1) {
                let mut new = usize::MAX;
                for &s in &succ[node] {
                    if idom[s] == usize::MAX {
                        continue;
                    }
                    new = if new == usize::MAX { s } else { intersect(&idom, &number, new, s) };
                }
                if new != usize::MAX && idom[node] != new {
                    idom[node] = new;
                    changed = true;
                }
            }
        }
        let post = (0..n).map(|i| (idom[i] < n).then_some(idom[i] as u32)).collect();
        Flow { post }
    }

    /// Where the ways from an instruction meet again; `None` at the function's end.
    #[must_use]
    pub fn reconvergence(&self, instruction: u32) -> Option<u32> {
        self.post.get(instruction as usize).copied().flatten()
    }
}

fn intersect(idom: &[usize], number: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while number[a] < number[b] {
            a = idom[a];
        }
        while number[b] < number[a] {
            b = idom[b];
        }
    }
    a
}

/// Functions that may call themselves.
#[must_use]
pub fn recursion(module: &Module) -> Vec<u32> {
    let n = module.functions.len();
    let mut reach = vec![vec![false; n]; n];
    for (i, f) in module.functions.iter().enumerate() {
        for instruction in &f.code {
            if let Op::Call { callee, .. } = &instruction.op {
                match callee {
                    Callee::Function(id) => reach[i][id.index()] = true,
                    Callee::Indirect(_) => reach[i].fill(true),
                }
            }
        }
    }
    for k in 0..n {
        for i in 0..n {
            if reach[i][k] {
                for j in 0..n {
                    reach[i][j] |= reach[k][j];
                }
            }
        }
    }
    (0..n).filter(|&i| reach[i][i]).map(|i| i as u32).collect()
}
