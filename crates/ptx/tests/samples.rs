//! The committed PTX of the sample kernels, as two compilers print it.

mod common;

use common::{Sample, samples};
use warpfold_ptx::{
    flow::{CallGraph, Flow},
    info::{FunctionInfo, Info, info},
    ir::{Op, Space, Type},
    parse::parse,
};

#[test]
fn every_committed_ptx_is_read() {
    let samples = samples();
    assert!(samples.len() > 100, "only {} files", samples.len());
    for Sample { name, text } in samples {
        let module = parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(module.kernels().count() > 0, "{name}");
        for function in &module.functions {
            let flow = Flow::new(function);
            let mut at = 0;
            for block in flow.blocks() {
                assert_eq!(block.start, at, "{name}: blocks follow each other");
                at = block.end;
            }
            assert_eq!(at as usize, function.code.len(), "{name}");
        }
    }
}

/// What `.loc` says is what the interpreter will blame, so it must be a line of the source.
#[test]
fn every_line_is_one_of_the_source() {
    for Sample { name, text } in samples() {
        let module = parse(&text).unwrap();
        let file = name.rsplit('/').next().unwrap();
        let source = format!("{}.cu", file.split('.').next().unwrap());
        let path = common::kernels().join(&source);
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        let mut found = 0;
        for instruction in module.functions.iter().flat_map(|f| &f.code) {
            let Some((file, line)) = instruction.line.source else { continue };
            if module.file(file) == Some(&source) {
                assert!(line as usize <= lines, "{name}: line {line}");
                found += 1;
            }
        }
        assert!(found > 0, "{name} has no lines of {source}");
    }
}

fn of(name: &str) -> Info {
    info(&common::sample(name)).unwrap()
}

fn kernel(info: &Info, name: &str) -> FunctionInfo {
    info.functions.iter().find(|f| f.name == name).unwrap().clone()
}

fn count(opcodes: &[(String, usize)], name: &str) -> usize {
    opcodes.iter().find(|(opcode, _)| opcode == name).map_or(0, |(_, count)| *count)
}

#[test]
fn two_pass_is_described() {
    for release in ["12.0", "13.0"] {
        let info = of(&format!("{release}/two_pass.75"));
        assert_eq!(info.version, if release == "12.0" { (8, 0) } else { (9, 0) });
        assert_eq!(info.target, ["sm_75"]);
        assert!(info.unsupported.is_empty());
        let kernel = kernel(&info, "two_pass_f32");
        assert!(kernel.kernel);
        let parameters: Vec<_> =
            kernel.parameters.iter().map(|p| (p.ty.bytes(), p.offset)).collect();
        assert_eq!(parameters, [(8, 0), (8, 8), (8, 16)]);
        assert_eq!(kernel.static_shared, Some(4096));
        assert!(!kernel.dynamic_shared);
        assert_eq!(kernel.local_bytes, 0);
        assert_eq!(count(&kernel.opcodes, "bar.sync"), 2);
        assert!(kernel.registers.iter().any(|&(ty, n)| ty == Type::Pred && n > 0));
        assert_eq!(
            kernel.instructions,
            kernel.opcodes.iter().map(|(_, count)| count).sum::<usize>()
        );
    }
}

#[test]
fn dynamic_shared_memory_lies_behind_the_static() {
    let module = parse(&common::sample("12.0/dynamic_shared.75")).unwrap();
    let id = module.function("dynamic_sum").unwrap();
    let layout = CallGraph::new(&module).shared_layout(&module, id).unwrap();
    assert_eq!((layout.static_bytes, layout.dynamic_offset), (4, 16));
    let kernel = kernel(&of("12.0/dynamic_shared.75"), "dynamic_sum");
    assert_eq!((kernel.static_shared, kernel.dynamic_shared), (Some(4), true));
}

#[test]
fn calls_recursion_and_local_memory_are_seen() {
    let calls = of("12.0/calls.75");
    assert_eq!(kernel(&calls, "clamp_all").calls, ["_Z7clampediii"]);
    assert!(kernel(&calls, "fibonacci").recursion);
    assert!(!kernel(&calls, "clamp_all").recursion);
    assert_eq!(kernel(&calls, "unpack").parameters[0].bytes(), 24);
    assert_eq!(kernel(&of("12.0/locals.75"), "local_histogram").local_bytes, 64);
    assert_eq!(kernel(&of("13.0/printing.90"), "greet").calls, ["vprintf"]);
}

#[test]
fn a_cluster_that_the_kernel_asks_for() {
    let bounds = kernel(&of("12.0/cluster.90"), "cluster_sum").bounds;
    assert!(bounds.explicit_cluster);
    assert_eq!(bounds.required_cluster, Some([2, 1, 1]));
}

/// The function that the compiler inlined has its name and its call's line.
#[test]
fn inlined_functions_have_names() {
    let module = parse(&common::sample("12.0/shuffles.75")).unwrap();
    let kernel = &module.functions[module.function("shuffle_down").unwrap().index()];
    let shuffle = kernel.code.iter().find(|i| matches!(i.op, Op::Shuffle { .. })).unwrap();
    let inlined = &module.inlined[shuffle.inlined.unwrap() as usize];
    assert!(inlined.function.as_ref().unwrap().contains("fold_down"), "{inlined:?}");
    assert!(inlined.at.1 > shuffle.line.source.unwrap().1, "called further down");
}

/// Addresses among the variables, whole and with an offset.
#[test]
fn values_of_variables_are_kept() {
    let module = parse(&common::sample("12.0/constants.75")).unwrap();
    let variable = |name: &str| module.variables.iter().find(|v| v.name == name).unwrap();
    assert_eq!(variable("scale").space, Space::Const);
    assert_eq!(variable("scale").init.bytes, 0.25_f64.to_le_bytes());
    assert_eq!(variable("table").init.bytes[..8], [1, 0, 0, 0, 254, 255, 255, 255]);
    let entry = variable("entry").init.addresses[0];
    assert_eq!((entry.addend, entry.generic, entry.bytes), (8, true, 8));
    assert!(!variable("launches").init.given);
    assert_eq!(variable("launches").size, 4);
}

/// A comment `// fault: NAME` names a kernel that has instructions on that line.
#[test]
fn every_marked_fault_is_a_line_of_its_kernel() {
    let mut marks = 0;
    for entry in std::fs::read_dir(common::kernels()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "cu") {
            continue;
        }
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let source = std::fs::read_to_string(&path).unwrap();
        for (at, line) in source.lines().enumerate() {
            let Some((_, kernels)) = line.split_once("// fault: ") else { continue };
            for kernel in kernels.split_whitespace() {
                for release in ["12.0", "13.0"] {
                    let module = parse(&common::sample(&format!("{release}/{stem}.90"))).unwrap();
                    let id = module.function(kernel);
                    let id = id.unwrap_or_else(|| panic!("{stem}: there is no {kernel}"));
                    let code = &module.functions[id.index()].code;
                    let number = at as u32 + 1;
                    let found = code.iter().any(|i| i.line.source.is_some_and(|s| s.1 == number));
                    assert!(found, "{stem}: {kernel} has nothing on line {number}");
                    marks += 1;
                }
            }
        }
    }
    assert!(marks > 40, "{marks}");
}

/// Each faulty kernel that stands in a file of its own has a twin without the fault.
#[test]
fn every_fault_has_a_twin() {
    for Sample { name, text } in samples().into_iter().filter(|s| s.name.contains("/fault_")) {
        let module = parse(&text).unwrap();
        let twins = module.kernels().filter(|k| k.name.ends_with("_fixed")).count();
        for kernel in module.kernels().filter(|k| k.name.ends_with("_fixed")) {
            let faulty = kernel.name.strip_suffix("_fixed").unwrap();
            assert!(module.function(faulty).is_some(), "{name}: {faulty}");
        }
        assert!(twins > 0, "{name}");
    }
}
