//! PTX text, and all that looks at a module before it is run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpfold_ptx::{
    flow::{CallGraph, Flow},
    info::info,
    ir::FunctionId,
    parse::parse,
};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let Ok(found) = parse(&text) else {
        assert!(info(&text).is_err());
        return;
    };
    let module = &found;
    let graph = CallGraph::new(module);
    for (id, function) in module.functions.iter().enumerate() {
        let id = FunctionId(id as u32);
        let _ = (graph.recursion(id), graph.shared_layout(module, id));
        let flow = Flow::new(function);
        for at in 0..function.code.len() {
            // Where lanes meet is an instruction, or the function's end.
            assert!(flow.reconvergence(at as u32).is_none_or(|to| (to as usize) < function.code.len()));
        }
    }
});
