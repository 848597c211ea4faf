//! Directives of a module, and texts that are none.

use warpfold_ptx::{
    device::{Device, Setup},
    ir::{Addressed, Builtin, FunctionKind, Op, ParameterPlace, Space, Type},
    machine::{Arg, Shape},
    parse::parse,
};

const HEAD: &str = ".version 8.0\n.target sm_75\n.address_size 64\n";

fn with_head(text: &str) -> String {
    format!("{HEAD}{text}")
}

#[test]
fn versions_are_judged_by_instruction() {
    let text = |version: &str| format!(".version {version}\n.target sm_75\n.address_size 64\n");
    for good in ["6.0", "7.0", "7.8", "8.0", "8.8", "9.0", "9.5", "10.0"] {
        assert!(parse(&text(good)).is_ok(), "{good}");
    }
    for bad in ["1.4", "3.2", "8", "8.x", "x"] {
        let error = parse(&text(bad)).unwrap_err();
        assert!(error.to_string().starts_with("PTX line 1: "), "{bad}: {error}");
        assert!(error.hint().is_some(), "{bad}");
    }
}

#[test]
fn what_is_no_ptx_is_refused_at_its_line() {
    let cases = [
        ("", "`.version` was expected, not the end of the text"),
        ("\x7fELF", "is not a character of PTX"),
        ("import numpy as np\n", "`.version` was expected, not `import`"),
        (".version 8.0\n.target ptx\n.address_size 64\n", "not an architecture"),
        (".version 8.0\n.target sm_75\n.address_size 32\n", "32 bits"),
        (".version 8.0\n.target sm_75\n", "`.address_size` was expected"),
    ];
    for (text, expected) in cases {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn contradictions_between_declarations() {
    let cases = [
        (".frob x;", "the directive `.frob` is not supported"),
        (".global .b32 x;\n.global .b32 x;", "`x` is declared twice"),
        (".func f() { ret; }\n.func f() { ret; }", "`f` is declared twice"),
        (".func f();\n.visible .entry f() { ret; }", "`f` is declared twice"),
        (
            ".func f(.param .b32 a);\n.func f(.param .b64 a) { ret; }",
            "declared with other parameters",
        ),
        (".func f();\n.func f(.param .b64 a) { ret; }", "declared with other parameters"),
        (".extern .global .b32 x;", "the variable `x` is not defined"),
        (".global .b32 x[2] = {1, 2, 3};", "more values than elements"),
        (".global .b32 x = 0f3F800000;", ""),
        (".global .u32 x = 0f3F800000;", "does not have type .u32"),
        (".global .b64 x = y;", "`y` is not declared"),
        (".global .b8 x[];", "the length of `x` is missing"),
        (".global .b8 x[9999999][99999999999];", "an array is too large"),
        (".global .pred x;", "predicates live in registers only"),
        (".global .v3 .b32 x;", "a type was expected"),
        (".visible .entry k() frob { ret; }", "`frob` was not expected"),
        (".visible .entry k(.param .b8 a[40000]) { ret; }", "takes 40000 bytes of parameters"),
        (".visible .entry k(.param .b32 a, .param .b32 a) { ret; }", "`a` is declared twice"),
        (".visible .entry k() { ret;", "the body of `k` is never closed"),
        (".section .debug_str { x:", "a section is never closed"),
        (".visible .entry k() .reqntid 99999999999 { ret; }", "is too large"),
    ];
    for (text, expected) in cases {
        let found = parse(&with_head(text));
        if expected.is_empty() {
            assert!(found.is_ok(), "{text}");
            continue;
        }
        let error = found.unwrap_err();
        assert!(error.to_string().contains(expected), "{text}: {error}");
        assert!(error.line() >= 4, "{text}: {error}");
    }
}

#[test]
fn kernels_have_parameters_laid_out_as_the_driver_does() {
    let module = parse(&with_head(
        ".visible .entry k(.param .u8 a, .param .u64 .ptr .global .align 16 b, .param .align 4 .b8 c[12], .param .f64 d)\n\
         .maxntid 256, 2\n.minnctapersm 3\n.maxnreg 40\n{ ret; }",
    ))
    .unwrap();
    let kernel = &module.functions[0];
    let layout: Vec<_> = kernel.parameters.iter().map(|p| (p.offset, p.bytes())).collect();
    assert_eq!(layout, [(0, 1), (8, 8), (16, 12), (32, 8)]);
    assert_eq!(kernel.argument_bytes(), 40);
    assert_eq!(kernel.parameters[1].pointer, Some((Space::Global, 16)));
    assert_eq!(kernel.parameters[1].align, 8);
    assert!(matches!(kernel.parameters[0].place, ParameterPlace::Memory(_)));
    assert_eq!(kernel.bounds.largest_block, Some([256, 2, 1]));
    assert_eq!(kernel.bounds.blocks_per_multiprocessor, Some(3));
    assert_eq!(kernel.bounds.registers, Some(40));
}

#[test]
fn the_device_runtime_needs_no_body() {
    let module = parse(&with_head(
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n.visible .entry k() { ret; }",
    ))
    .unwrap();
    assert_eq!(module.functions[0].kind, FunctionKind::Builtin(Builtin::Vprintf));
    // Whoever brings a body of that name means it.
    let own = parse(&with_head(".func free(.param .b64 a) { ret; }")).unwrap();
    assert_eq!(own.functions[0].kind, FunctionKind::Device);
}

/// Directives that steer a compiler, of versions that do not exist yet, change nothing.
#[test]
fn unknown_promises_of_a_function_are_read_over() {
    let module = parse(&with_head(
        ".global .texref t;\n.visible .entry k(.param .u64 .ptr .shared::cta .align 16 p) .reqntid 32 .frob 1, 2 .abi_preserve 8 { ret; }",
    ))
    .unwrap();
    assert_eq!(module.functions[0].bounds.required_block, Some([32, 1, 1]));
    assert_eq!(module.functions[0].parameters[0].pointer, Some((Space::Shared, 16)));
}

/// The chain of calls around an instruction, the innermost first, whatever the text claims.
#[test]
fn inlined_calls_are_a_chain() {
    let text = with_head(
        ".visible .entry k() {
         .loc 1 9 1
         ret;
         .loc 1 20 2, function_name $a, inlined_at 1 9 1
         ret;
         .loc 1 30 3, function_name $b, inlined_at 1 20 2
         ret;
         .loc 1 30 3, function_name $b, inlined_at 1 30 3
         ret; }
         .file 1 \"a.cu\"
         .section .debug_str { $a: .b8 111, 110, 101, 0 $b: .b8 116, 119, 111, 0 }",
    );
    let module = parse(&text).unwrap();
    let chains: Vec<Vec<_>> = module.functions[0]
        .code
        .iter()
        .map(|i| {
            module.inlined_around(i.line).iter().map(|i| (i.function.as_deref(), i.at.1)).collect()
        })
        .collect();
    assert_eq!(chains[0], []);
    assert_eq!(chains[1], [(Some("one"), 9)]);
    assert_eq!(chains[2], [(Some("two"), 20), (Some("one"), 9)]);
    assert_eq!(chains[3].len(), 3);
}

/// What a library does is told at the line of the user's that calls it; what the library calls back is the user's own.
#[test]
fn the_line_of_what_a_library_does_is_the_users() {
    let text = |first: &str| {
        with_head(&format!(
            ".visible .entry k() {{
             .loc 1 9 1
             ret;
             .loc 2 100 2, function_name $a, inlined_at 1 9 1
             ret;
             .loc 3 7 3, function_name $b, inlined_at 2 100 2
             frob;
             .loc 1 40 1, function_name $c, inlined_at 3 7 3
             ret; }}
             .file 1 \"{first}\"
             .file 2 \"/me/v/lib/python3.11/site-packages/nvidia/cu13/include/cccl/cub/block/block_reduce.cuh\"
             .file 3 \"cub/warp/warp_reduce.cuh\"
             .section .debug_str {{ $a: .b8 111, 110, 101, 0 $b: .b8 116, 119, 111, 0 $c: .b8 97, 100, 100, 0 }}"
        ))
    };
    let module = parse(&text("/me/include/total.cuh")).unwrap();
    let code = &module.functions[0].code;
    let sources: Vec<_> = code.iter().map(|i| i.line.source.unwrap()).collect();
    assert_eq!(sources, [(0, 9), (0, 9), (0, 9), (0, 40)]);
    let around = |i: usize| -> Vec<_> {
        module.inlined_around(code[i].line).iter().map(|i| i.function.as_deref()).collect()
    };
    assert_eq!((around(1), around(2)), (vec![], vec![]));
    assert_eq!(around(3), [Some("add"), Some("two"), Some("one")]);
    let within = |i: usize| module.in_libraries(code[i].line);
    assert_eq!((within(0), within(3)), (vec![], vec![]));
    assert_eq!(within(1), [(Some("one"), (1, 100))]);
    assert_eq!(within(2), [(Some("one"), (1, 100)), (Some("two"), (2, 7))]);
    assert_eq!(module.unsupported[0].source, Some((0, 9)));
    // What is a library's through and through has no other line.
    let module = parse(&text("/usr/include/total.cuh")).unwrap();
    let code = &module.functions[0].code;
    assert_eq!(code[2].line.source, Some((2, 7)));
    assert_eq!(module.in_libraries(code[2].line), []);
}

/// C++ names are those of the source in every message, and a kernel is found by what it is called there.
#[test]
fn names_of_cpp_are_those_of_the_source() {
    let text = with_head(
        ".visible .entry _Z5scaleIfEvPT_S0_(.param .u64 _Z5scaleIfEvPT_S0__param_0, .param .f32 _Z5scaleIfEvPT_S0__param_1) {
         .reg .b64 %d<2>; ld.param.u64 %d1, [_Z5scaleIfEvPT_S0__param_0]; st.global.u32 [%d1], 1; ret; }
         .visible .entry _Z5scaleIdEvPT_S0_() { ret; }",
    );
    let mut device = Device::new(Setup::default());
    let module = device.load(&text).unwrap();
    let error = device.kernel(module, "scale").unwrap_err().to_string();
    assert_eq!(error, "no kernel `scale` in the module; it has scale<float>, scale<double>");
    let kernel = device.kernel(module, "scale<float>").unwrap();
    assert_eq!(device.kernel(module, "_Z5scaleIfEvPT_S0_"), Ok(kernel));
    let shape = Shape::linear(1, 1);
    let few = device.run_to_end(kernel, &shape, &[]).unwrap_err().to_string();
    assert_eq!(few, "0 arguments: kernel `scale<float>` takes 2");
    let wrong = device.run_to_end(kernel, &shape, &[Arg::Pointer(0), Arg::U32(5)]);
    let wrong = wrong.unwrap_err().to_string();
    assert_eq!(wrong, "argument 1 is u32:5; parameter `param_1` of kernel `scale<float>` is f32");
    let reports = device.run_to_end(kernel, &shape, &[Arg::Pointer(0), Arg::F32(5.0)]).unwrap();
    let found = reports[0].outcome.findings.all()[0].to_string();
    assert!(found.contains("in kernel `scale<float>` at PTX line"), "{found}");
    let missing = parse(&with_head(
        ".func _ZN4mine4addsEv();\n.visible .entry k() { call _ZN4mine4addsEv; ret; }",
    ));
    let missing = missing.unwrap().unsupported[0].to_string();
    assert!(missing.contains("the function `mine::adds` is not defined"), "{missing}");
}

#[test]
fn a_function_without_a_body_is_missed_where_it_is_called() {
    let module = parse(&with_head(
        ".func f();\n.visible .entry k() { call f;\nfrob;\ncall f; ret; }\n.visible .entry l() { ret; }",
    ))
    .unwrap();
    let told: Vec<_> = module.unsupported.iter().map(|u| (u.line, u.to_string())).collect();
    let call = "`call` is not supported: the function `f` is not defined".to_owned();
    let other = "`frob` is not supported".to_owned();
    assert_eq!(told, [(5, call.clone()), (6, other), (7, call)]);
    let code = &module.functions[1].code;
    let places = code.iter().filter_map(|i| match i.op {
        Op::Unsupported { index } => Some((i.line.ptx, index)),
        _ => None,
    });
    assert!(places.eq([(5, 0), (6, 1), (7, 2)]));
}

#[test]
fn initialisers_hold_numbers_and_addresses() {
    let module = parse(&with_head(
        ".global .align 4 .b8 x[8] = {1, 255, -1};\n.global .b32 y[] = {7, 0x8};\n.global .f64 z[2] = {1.0, 0d4000000000000000};\n\
         .func f() { ret; }\n.global .u64 a[3] = {x+4, generic(y)+-8, f};\n.global .b8 b[2] = {0xFF(generic(x)), 0xFF00(generic(x))};",
    ))
    .unwrap();
    let variable = |name: &str| module.variables.iter().find(|v| v.name == name).unwrap();
    assert_eq!(variable("x").init.bytes, [1, 255, 255]);
    assert_eq!(variable("x").size, 8);
    assert_eq!((variable("y").size, variable("y").align), (8, 4));
    assert_eq!(variable("z").init.bytes, [1.0_f64.to_le_bytes(), 2.0_f64.to_le_bytes()].concat());
    let addresses = &variable("a").init.addresses;
    let shape: Vec<_> =
        addresses.iter().map(|a| (a.offset, a.bytes, a.addend, a.generic)).collect();
    assert_eq!(shape, [(0, 8, 4, false), (8, 8, -8, true), (16, 8, 0, false)]);
    assert!(matches!(addresses[2].of, Addressed::Function(_)));
    let masked: Vec<_> =
        variable("b").init.addresses.iter().map(|a| (a.offset, a.bytes, a.shift)).collect();
    assert_eq!(masked, [(0, 1, 0), (1, 1, 8)]);
}

/// Claims of size are not believed until somebody pays for them.
#[test]
fn large_claims_cost_nothing() {
    let module = parse(&with_head(
        ".global .b8 x[99999999999];\n.visible .entry k() { .reg .b32 %r<99999999999>; mov.u32 %r1234567890, 1; ret; }",
    ))
    .unwrap();
    assert_eq!(module.variables[0].size, 99_999_999_999);
    assert!(module.variables[0].init.bytes.is_empty());
    assert_eq!(module.functions[0].registers.len(), 1);
    assert_eq!(module.functions[0].registers[0].ty, Type::B32);
}

#[test]
fn deep_nesting_is_an_error_not_a_crash() {
    for open in ["{", "(", "["] {
        let text = with_head(&format!(".visible .entry k() {{ {} }}", open.repeat(200_000)));
        assert!(parse(&text).is_err(), "{open}");
        let text = with_head(&format!(".global .b32 x[1] = {}", open.repeat(200_000)));
        assert!(parse(&text).is_err(), "{open}");
    }
}

/// A table of many labels that many branches look into would be large in the product.
#[test]
fn tables_do_not_multiply() {
    let labels = vec!["A"; 20_000].join(", ");
    let branches = "brx.idx %r1, T;".repeat(20_000);
    let text = with_head(&format!(
        ".visible .entry k() {{ .reg .b32 %r<2>; T: .branchtargets {labels}; {branches} A: ret; }}"
    ));
    let error = parse(&text).unwrap_err();
    assert!(error.to_string().contains("tables of branches are too large"), "{error}");
}

#[test]
fn messages_stay_short_whatever_the_text() {
    let long = "x".repeat(100_000);
    for text in [format!(".{long} 1;"), format!(".visible .entry k() {{ {long} 1; }}")] {
        match parse(&with_head(&text)) {
            Err(error) => assert!(error.to_string().len() < 300),
            Ok(module) => assert!(module.unsupported[0].instruction.len() < 100),
        }
    }
}
