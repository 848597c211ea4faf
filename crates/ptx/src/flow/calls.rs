//! Who calls whom: what a kernel can reach, how its shared memory lies, and which functions may call themselves.

use std::collections::BTreeSet;

use crate::ir::{
    Addressed, Callee, FunctionId, FunctionKind, Instruction, Module, Op, Space, VariableId,
};

/// The call graph of a module. A call by address may reach every function whose address is taken somewhere.
#[derive(Clone, Debug)]
pub struct CallGraph {
    /// For each function, whom it calls; one node more stands for all whose address is taken.
    callees: Vec<Vec<usize>>,
    recursive: Vec<bool>,
}

/// Where a kernel's shared variables lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLayout {
    /// The variables that the kernel can reach, with their first bytes. Dynamic ones all begin at `static_bytes`, rounded up to
    /// their alignment.
    pub offsets: Vec<(VariableId, u64)>,
    /// Bytes of all but the dynamic ones, in front of those.
    pub static_bytes: u64,
    /// Where dynamic shared memory begins.
    pub dynamic_offset: u64,
}

impl CallGraph {
    /// Looks at a module.
    #[must_use]
    pub fn new(module: &Module) -> Self {
        let count = module.functions.len();
        let mut callees: Vec<Vec<usize>> = module
            .functions
            .iter()
            .map(|function| {
                let called = function.code.iter().filter_map(|i| callee(i, count));
                called.collect::<BTreeSet<_>>().into_iter().collect()
            })
            .collect();
        callees.push(address_taken(module).into_iter().collect());
        let recursive = on_circles(&callees);
        CallGraph { callees, recursive }
    }

    /// The functions that one can reach by calls, itself among them, in the order of the module.
    #[must_use]
    pub fn reachable(&self, from: FunctionId) -> Vec<FunctionId> {
        let mut seen = vec![false; self.callees.len()];
        let mut open = vec![from.index()];
        while let Some(node) = open.pop() {
            if !core::mem::replace(&mut seen[node], true) {
                open.extend(&self.callees[node]);
            }
        }
        let functions = self.callees.len() - 1;
        (0..functions).filter(|&node| seen[node]).map(|node| FunctionId(node as u32)).collect()
    }

    /// Whether a function may call itself, directly or through others. Only a limit at run time bounds its stack then.
    #[must_use]
    pub fn is_recursive(&self, function: FunctionId) -> bool {
        self.recursive[function.index()]
    }

    /// The functions that a kernel can reach and that may call themselves.
    #[must_use]
    pub fn recursion(&self, from: FunctionId) -> Vec<FunctionId> {
        self.reachable(from).into_iter().filter(|&function| self.is_recursive(function)).collect()
    }

    /// Lays out the shared variables that a kernel can reach, in the order of the text, each at its alignment. `None` if
    /// their sizes are beyond all bounds.
    #[must_use]
    pub fn shared_layout(&self, module: &Module, kernel: FunctionId) -> Option<SharedLayout> {
        let reached: BTreeSet<VariableId> = self
            .reachable(kernel)
            .into_iter()
            .flat_map(|function| &module.functions[function.index()].variables)
            .copied()
            .filter(|id| module.variables[id.index()].space == Space::Shared)
            .collect();
        let (dynamic, fixed): (Vec<_>, Vec<_>) =
            reached.into_iter().partition(|id| module.variables[id.index()].dynamic);
        let mut offsets = Vec::with_capacity(dynamic.len() + fixed.len());
        let mut end = 0_u64;
        for id in fixed {
            let variable = &module.variables[id.index()];
            let offset = end.checked_next_multiple_of(variable.align)?;
            offsets.push((id, offset));
            end = offset.checked_add(variable.size)?;
        }
        let align = dynamic.iter().map(|id| module.variables[id.index()].align).max().unwrap_or(1);
        let dynamic_offset = end.checked_next_multiple_of(align)?;
        offsets.extend(dynamic.into_iter().map(|id| (id, dynamic_offset)));
        Some(SharedLayout { offsets, static_bytes: end, dynamic_offset })
    }
}

fn callee(instruction: &Instruction, indirect: usize) -> Option<usize> {
    match instruction.op {
        Op::Call { callee: Callee::Function(id), .. } => Some(id.index()),
        Op::Call { callee: Callee::Indirect(_), .. } => Some(indirect),
        _ => None,
    }
}

/// Device functions whose address the code or an initialiser takes. Kernels' addresses are for launches.
fn address_taken(module: &Module) -> BTreeSet<usize> {
    let in_code = module.functions.iter().flat_map(|f| &f.addressed).copied();
    let in_values =
        module.variables.iter().flat_map(|v| &v.init.addresses).filter_map(|a| match a.of {
            Addressed::Function(id) => Some(id),
            Addressed::Variable(_) => None,
        });
    in_code
        .chain(in_values)
        .map(FunctionId::index)
        .filter(|&id| module.functions[id].kind != FunctionKind::Kernel)
        .collect()
}

/// The nodes on a circle, by Kosaraju's two searches: one gives an order, the other, over edges turned around, the
/// components. Nothing recurses.
fn on_circles(callees: &[Vec<usize>]) -> Vec<bool> {
    let count = callees.len();
    let mut callers = vec![Vec::new(); count];
    let mut circles = vec![false; count];
    for (node, called) in callees.iter().enumerate() {
        for &callee in called {
            callers[callee].push(node);
            circles[node] |= callee == node;
        }
    }
    let mut seen = vec![false; count];
    for root in finished(callees).into_iter().rev() {
        let mut component = Vec::new();
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            if !core::mem::replace(&mut seen[node], true) {
                component.push(node);
                open.extend(callers[node].iter().filter(|&&caller| !seen[caller]));
            }
        }
        if component.len() > 1 {
            component.into_iter().for_each(|node| circles[node] = true);
        }
    }
    circles
}

/// Nodes in the order in which a depth-first search is done with them.
fn finished(callees: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(callees.len());
    let mut seen = vec![false; callees.len()];
    for root in 0..callees.len() {
        if core::mem::replace(&mut seen[root], true) {
            continue;
        }
        let mut path = vec![(root, 0)];
        while let Some((node, next)) = path.last_mut() {
            let Some(&callee) = callees[*node].get(*next) else {
                order.push(*node);
                path.pop();
                continue;
            };
            *next += 1;
            if !core::mem::replace(&mut seen[callee], true) {
                path.push((callee, 0));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::CallGraph;
    use crate::{ir::Module, parse::parse};

    fn module(text: &str) -> Module {
        parse(&format!(".version 8.0\n.target sm_75\n.address_size 64\n{text}")).unwrap()
    }

    fn names(module: &Module, ids: &[crate::ir::FunctionId]) -> Vec<String> {
        ids.iter().map(|id| module.functions[id.index()].name.clone()).collect()
    }

    #[test]
    fn recursion_is_seen_through_others() {
        let module = module(
            ".func b();\n.func a() { call b; ret; }\n.func b() { call a; ret; }\n.func c() { call a; ret; }\n\
             .func d() { ret; }\n.visible .entry k() { call c; ret; }\n.visible .entry l() { call d; ret; }\n",
        );
        let graph = CallGraph::new(&module);
        let k = module.function("k").unwrap();
        assert_eq!(names(&module, &graph.reachable(k)), ["b", "a", "c", "k"]);
        assert_eq!(names(&module, &graph.recursion(k)), ["b", "a"]);
        assert!(graph.recursion(module.function("l").unwrap()).is_empty());
    }

    #[test]
    fn a_function_that_calls_itself_is_recursive() {
        let module = module(".func a() { call a; ret; }\n.visible .entry k() { call a; ret; }\n");
        let graph = CallGraph::new(&module);
        assert_eq!(names(&module, &graph.recursion(module.function("k").unwrap())), ["a"]);
    }

    #[test]
    fn a_call_by_address_may_reach_all_whose_address_is_taken() {
        let module = module(
            ".func a() { ret; }\n.func b() { ret; }\n.global .u64 table[1] = {a};\n\
             .visible .entry k(.param .u64 f) { .reg .b64 %r<2>; ld.param.u64 %r1, [f];\n\
             P: .callprototype () _ ();\n call %r1, (), P; ret; }\n",
        );
        let graph = CallGraph::new(&module);
        assert_eq!(names(&module, &graph.reachable(module.function("k").unwrap())), ["a", "k"]);
    }

    #[test]
    fn shared_memory_holds_what_the_kernel_reaches_and_no_more() {
        let module = module(
            ".extern .shared .align 16 .b8 tail[];\n.shared .align 1 .b8 one[3];\n.shared .align 4 .b8 other[400];\n\
             .func f() { .reg .b32 %r<2>; .shared .align 8 .b8 mine[8]; ld.shared.u32 %r1, [mine]; ret; }\n\
             .visible .entry k() { .reg .b32 %r<2>; ld.shared.u8 %r1, [one+2]; ld.shared.u32 %r1, [tail]; call f; ret; }\n",
        );
        let graph = CallGraph::new(&module);
        let layout = graph.shared_layout(&module, module.function("k").unwrap()).unwrap();
        let named: Vec<_> = layout
            .offsets
            .iter()
            .map(|(id, offset)| (module.variables[id.index()].name.as_str(), *offset))
            .collect();
        assert_eq!(named, [("one", 0), ("mine", 8), ("tail", 16)]);
        assert_eq!((layout.static_bytes, layout.dynamic_offset), (16, 16));
    }
}
