//! What a file holds: kernels and what they need, opcodes and which of them are not supported.

use std::collections::BTreeMap;

use crate::{
    flow::CallGraph,
    ir::{
        Callee, Function, FunctionId, FunctionKind, LaunchBounds, Module, Op, Parameter, Space,
        Type, Unsupported,
    },
    parse::{Result, parse},
};

/// What a file holds.
#[derive(Clone, Debug)]
pub struct Info {
    /// `.version`, as major and minor.
    pub version: (u32, u32),
    /// `.target`: the architecture and what else it names.
    pub target: Vec<String>,
    /// Source files; empty where a number has no name.
    pub files: Vec<String>,
    /// Kernels and device functions, in the order of the text.
    pub functions: Vec<FunctionInfo>,
    /// Module variables, by space: how many, and their bytes.
    pub variables: Vec<(Space, usize, u64)>,
    /// The opcodes used, with their suffixes, and how often each stands in the text.
    pub opcodes: Vec<(String, usize)>,
    /// Instructions that are not supported, in the order of the text.
    pub unsupported: Vec<Unsupported>,
}

/// What a kernel or a device function needs.
#[derive(Clone, Debug)]
pub struct FunctionInfo {
    /// The name in the module.
    pub name: String,
    /// Launched from the host; else called from kernels.
    pub kernel: bool,
    /// What it takes.
    pub parameters: Vec<Parameter>,
    /// What it gives back.
    pub results: Vec<Parameter>,
    /// Registers that it uses, by their declared type. Hardware has fewer: a compiler shares them out.
    pub registers: Vec<(Type, usize)>,
    /// Bytes of static shared memory, with that of functions it reaches; `None` beyond all bounds.
    pub static_shared: Option<u64>,
    /// Whether it uses shared memory whose size the launch gives.
    pub dynamic_shared: bool,
    /// Bytes of local memory of a thread, without that of functions it calls.
    pub local_bytes: u64,
    /// Instructions.
    pub instructions: usize,
    /// The opcodes used, with their suffixes, and how often each stands in the text.
    pub opcodes: Vec<(String, usize)>,
    /// Functions it calls by name.
    pub calls: Vec<String>,
    /// Whether it reaches a function that may call itself.
    pub recursion: bool,
    /// What it demands of a launch.
    pub bounds: LaunchBounds,
}

/// Looks into PTX text, also if it cannot be run.
///
/// # Errors
///
/// The text is not PTX, or contradicts itself.
pub fn info(text: &str) -> Result<Info> {
    let module = parse(text)?;
    let graph = CallGraph::new(&module);
    let functions = module
        .functions
        .iter()
        .enumerate()
        .filter(|(_, function)| !matches!(function.kind, FunctionKind::Builtin(_)))
        .map(|(at, function)| function_info(&module, &graph, FunctionId(at as u32), function))
        .collect();
    let everywhere = module.functions.iter().flat_map(|f| &f.code);
    Ok(Info {
        functions,
        variables: variables(&module),
        opcodes: opcodes(&module, everywhere.map(|i| i.spelling)),
        unsupported: module.unsupported,
        version: module.version,
        target: module.target,
        files: module.files,
    })
}

/// The constants that a kernel uses and that the text gives no value: the host has to, or they hold zeros.
#[must_use]
pub fn unset_constants<'a>(module: &'a Module, kernel: &str) -> Vec<&'a str> {
    let Some(kernel) = module.kernel(kernel) else { return Vec::new() };
    let reached = CallGraph::new(module).reachable(kernel).into_iter().chain([kernel]);
    let mut used: Vec<_> =
        reached.flat_map(|f: FunctionId| &module.functions[f.index()].variables).collect();
    used.sort_unstable();
    used.dedup();
    let variables = used.into_iter().map(|id| &module.variables[id.index()]);
    let left = variables.filter(|v| v.space == Space::Const && v.owner.is_none() && !v.init.given);
    left.map(|v| v.name.as_str()).collect()
}

fn function_info(
    module: &Module,
    graph: &CallGraph,
    id: FunctionId,
    function: &Function,
) -> FunctionInfo {
    let layout = graph.shared_layout(module, id);
    let dynamic = |layout: &crate::flow::SharedLayout| {
        layout.offsets.iter().any(|(id, _)| module.variables[id.index()].dynamic)
    };
    let mut calls: Vec<_> = function.code.iter().filter_map(|i| callee(module, &i.op)).collect();
    calls.sort_unstable();
    calls.dedup();
    FunctionInfo {
        name: function.name.clone(),
        kernel: function.kind == FunctionKind::Kernel,
        parameters: function.parameters.clone(),
        results: function.results.clone(),
        registers: counted(function.registers.iter().map(|register| register.ty)),
        static_shared: layout.as_ref().map(|layout| layout.static_bytes),
        dynamic_shared: layout.as_ref().is_some_and(dynamic),
        local_bytes: function.local_bytes,
        instructions: function.code.len(),
        opcodes: opcodes(module, function.code.iter().map(|i| i.spelling)),
        calls: calls.into_iter().map(String::from).collect(),
        recursion: !graph.recursion(id).is_empty(),
        bounds: function.bounds.clone(),
    }
}

fn callee<'m>(module: &'m Module, op: &Op) -> Option<&'m str> {
    match op {
        Op::Call { callee: Callee::Function(id), .. } => Some(&module.functions[id.index()].name),
        _ => None,
    }
}

fn counted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<(T, usize)> {
    let mut counts = BTreeMap::new();
    for item in items {
        *counts.entry(item).or_insert(0) += 1;
    }
    counts.into_iter().collect()
}

/// Counts by name, the names in alphabetical order.
fn opcodes(module: &Module, spellings: impl Iterator<Item = u32>) -> Vec<(String, usize)> {
    counted(spellings.map(|spelling| module.spellings[spelling as usize].as_str()))
        .into_iter()
        .map(|(name, count)| (name.to_string(), count))
        .collect()
}

fn variables(module: &Module) -> Vec<(Space, usize, u64)> {
    let mut totals = BTreeMap::new();
    for variable in module.variables.iter().filter(|v| v.owner.is_none()) {
        let (count, bytes) = totals.entry(variable.space).or_insert((0_usize, 0_u64));
        *count += 1;
        *bytes = bytes.saturating_add(variable.size);
    }
    totals.into_iter().map(|(space, (count, bytes))| (space, count, bytes)).collect()
}
