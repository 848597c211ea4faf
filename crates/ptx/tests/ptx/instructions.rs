//! Every instruction that is read, in its forms, and what is refused.

use warpfold_ptx::{
    ir::{
        Address, Argument, Base, BoolOp, BulkCopy, Callee, Compare, FloatBinary, FloatMode,
        IntBinary, Op, Operand, Order, Phase, Predicate, Reg, Rounding, Scope, Space, Special,
        Type,
    },
    parse::{Error, parse},
};

/// A kernel around some lines, with registers of every kind.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n\
         .global .align 8 .b8 data[64];\n.const .b32 fixed = 1;\n.extern .shared .align 16 .b8 dynamic[];\n\
         .func (.param .b32 r) twice(.param .b32 a) {{ ret; }}\n\
         .func (.reg .f32 r) half(.reg .f32 a) {{ mov.f32 r, a; ret; }}\n\
         .visible .entry k(.param .u64 p) {{\n\
         .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .f64 %g<9>;\n\
         .shared .align 8 .b8 tile[64]; .local .align 8 .b8 own[64];\n\
         {body}\n}}\n"
    )
}

/// The operation of one line. Its registers have slots in the order of their names in the line.
fn op(line: &str) -> Op {
    let module = parse(&kernel(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
    let id = module.function("k").unwrap();
    let code = &module.functions[id.index()].code;
    assert_eq!(code.len(), 1, "{line}");
    code[0].op.clone()
}

fn r(slot: u32) -> Operand {
    Operand::Reg(Reg(slot))
}

#[test]
fn all_of_these_are_read() {
    // One line for each form that compilers print or people write.
    let lines = include_str!("instructions.txt");
    let mut count = 0;
    for line in lines.lines().filter(|line| !line.is_empty() && !line.starts_with("//")) {
        let found = parse(&kernel(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(found.unsupported.is_empty(), "{line}: {:?}", found.unsupported);
        count += 1;
    }
    assert!(count > 300, "{count} lines");
}

#[test]
fn constants_have_the_bits_of_the_type() {
    let imm = |line: &str| match op(line) {
        Op::Mov { a: Operand::Imm(bits), .. } => bits,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(imm("mov.b32 %r1, -1;"), 0xffff_ffff);
    assert_eq!(imm("mov.u16 %h1, -2;"), 0xfffe);
    assert_eq!(imm("mov.f32 %f1, 0f3F800000;"), 0x3f80_0000);
    assert_eq!(imm("mov.f64 %g1, 0d3FF0000000000000;"), 0x3ff0_0000_0000_0000);
    assert_eq!(imm("mov.u32 %r1, WARP_SZ;"), 32);
    assert_eq!(imm("mov.pred %p1, 1;"), 1);
    assert!(matches!(
        op("mul.wide.u32 %d1, %r1, -1431655765;"),
        Op::IntBinary { op: IntBinary::MulWide, ty: Type::U32, b: Operand::Imm(0xaaaa_aaab), .. }
    ));
}

#[test]
fn the_same_name_adds_integers_and_floats() {
    assert_eq!(
        op("add.s32 %r1, %r2, %r3;"),
        Op::IntBinary { op: IntBinary::Add, ty: Type::S32, dst: Reg(0), a: r(1), b: r(2) }
    );
    let mode = FloatMode {
        rounding: Rounding::Up,
        explicit: true,
        ftz: true,
        sat: true,
        ..FloatMode::default()
    };
    assert_eq!(
        op("add.rp.ftz.sat.f32 %f1, %f2, %f3;"),
        Op::FloatBinary {
            op: FloatBinary::Add,
            ty: Type::F32,
            mode,
            dst: Reg(0),
            a: r(1),
            b: r(2)
        }
    );
}

#[test]
fn a_narrow_load_knows_the_register_it_fills() {
    assert_eq!(
        op("ld.relaxed.gpu.global.s8 %r1, [%d1+-8];"),
        Op::Load {
            ty: Type::S8,
            space: Space::Global,
            order: Order::Relaxed,
            scope: Scope::Gpu,
            read_only: false,
            register_bits: 32,
            dsts: [Reg(0)].into(),
            address: Address { base: Base::Reg(Reg(1)), offset: -8 },
        }
    );
}

#[test]
fn a_sink_in_a_vector_is_a_register_without_a_name() {
    let module = parse(&kernel("ld.global.v2.f32 {_, %f1}, [data+8];")).unwrap();
    let kernel = &module.functions[module.function("k").unwrap().index()];
    assert_eq!(kernel.registers.len(), 2);
    assert_eq!(kernel.registers[0].name, "");
    assert!(matches!(&kernel.code[0].op, Op::Load { dsts, .. } if **dsts == [Reg(0), Reg(1)]));
}

#[test]
fn a_comparison_is_joined_with_a_negated_predicate() {
    assert_eq!(
        op("setp.ltu.and.f32 %p1|%p2, %f1, %f2, !%p3;"),
        Op::SetPredicate {
            compare: Compare::Ltu,
            ty: Type::F32,
            ftz: false,
            dst: Reg(0),
            dst_pred: Some(Reg(1)),
            a: r(2),
            b: r(3),
            join: Some((BoolOp::And, Predicate { reg: Reg(4), negated: true })),
        }
    );
}

#[test]
fn variables_are_addresses_and_bases() {
    let module =
        parse(&kernel("mov.u64 %d1, data+8; ld.const.u32 %r1, [fixed]; ld.param.u64 %d2, [p];"))
            .unwrap();
    let kernel = &module.functions[module.function("k").unwrap().index()];
    let name = |id: warpfold_ptx::ir::VariableId| module.variables[id.index()].name.as_str();
    assert!(
        matches!(kernel.code[0].op, Op::Mov { a: Operand::Variable(id, 8), .. } if name(id) == "data")
    );
    let base = |at: usize| match &kernel.code[at].op {
        Op::Load { address: Address { base: Base::Variable(id), .. }, .. } => name(*id),
        other => panic!("{other:?}"),
    };
    assert_eq!((base(1), base(2)), ("fixed", "p"));
}

#[test]
fn calls_are_wired_by_memory_or_by_value() {
    let module = parse(&kernel(
        "{ .param .b32 out; .param .b32 in; st.param.b32 [in], %r1; call.uni (out), twice, (in); }\n\
         call (%f1), half, (%f2);",
    ))
    .unwrap();
    let kernel = &module.functions[module.function("k").unwrap().index()];
    let Op::Call { callee: Callee::Function(id), results, arguments, uniform: true } =
        &kernel.code[1].op
    else {
        panic!("{:?}", kernel.code[1].op);
    };
    assert_eq!(module.functions[id.index()].name, "twice");
    assert!(matches!((&**results, &**arguments), ([Argument::Memory(_)], [Argument::Memory(_)])));
    let Op::Call { results, arguments, uniform: false, .. } = &kernel.code[2].op else {
        panic!("{:?}", kernel.code[2].op);
    };
    assert!(matches!(
        (&**results, &**arguments),
        ([Argument::Value(Operand::Reg(_))], [Argument::Value(Operand::Reg(_))])
    ));
}

#[test]
fn frames_use_the_memory_of_closed_scopes_again() {
    let call = "{ .param .b32 in; st.param.b32 [in], 1; { .param .b64 deep; } }\n";
    let module = parse(&kernel(&call.repeat(3))).unwrap();
    let kernel = &module.functions[module.function("k").unwrap().index()];
    assert_eq!(kernel.argument_bytes(), 8);
    assert_eq!(kernel.param_bytes, 24);
}

#[test]
fn labels_belong_to_their_scope() {
    let module = parse(&kernel(
        "bra OUT; { again: @%p1 bra again; bra OUT; } { again: @!%p2 bra again; } OUT: ret;",
    ))
    .unwrap();
    let kernel = &module.functions[module.function("k").unwrap().index()];
    let targets: Vec<_> = kernel
        .code
        .iter()
        .filter_map(|i| match i.op {
            Op::Branch { target, .. } => Some(target),
            _ => None,
        })
        .collect();
    assert_eq!(targets, [4, 1, 4, 3]);
    assert_eq!(kernel.code[3].guard.map(|g| g.negated), Some(true));
}

#[test]
fn bulk_copies_know_their_barrier() {
    let copy = op(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%d1], %r2, [%r3], %h1;",
    );
    let Op::CopyBulk { copy: BulkCopy::GlobalToShared { mbarrier, multicast }, dst, .. } = copy
    else {
        panic!("{copy:?}");
    };
    assert_eq!(dst.base, Base::Reg(Reg(0)));
    assert_eq!(mbarrier.base, Base::Reg(Reg(3)));
    assert_eq!(multicast, Some(r(4)));
    let wait =
        op("mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [tile], %r1, 100;");
    assert!(matches!(
        wait,
        Op::MbarrierWait {
            may_rest: true,
            phase: Phase::Parity(_),
            order: Order::Acquire,
            scope: Scope::Cluster,
            ..
        }
    ));
}

#[test]
fn hardware_registers_are_sources() {
    assert_eq!(
        op("mov.u32 %r1, %cluster_ctarank;"),
        Op::Mov { ty: Type::U32, dst: Reg(0), a: Operand::Special(Special::ClusterCtaRank) }
    );
    assert!(parse(&kernel("mov.u64 %d1, %laneid;")).is_err());
}

/// Every instruction that is not there is named with its lines, not just the first.
#[test]
fn all_that_is_unsupported_is_listed() {
    let text = kernel(
        "frob.thing.f16 %r1, %r2;\nadd.s32 %r1, %r2, 1;\n.loc 7 9 1\nadd.q32 %r1, %r2, 1;\nmov.b32.odd %r1, 2;",
    );
    let found = parse(&text).unwrap();
    let names: Vec<_> = found.unsupported.iter().map(|u| u.instruction.as_str()).collect();
    assert_eq!(names, ["frob.thing.f16", "add.q32", "mov.b32.odd"]);
    let first = found.unsupported[0].line;
    assert_eq!(found.unsupported[1].line, first + 3);
    assert_eq!(found.unsupported[1].source, Some((0, 9)));
    assert_eq!(found.unsupported[0].to_string(), "`frob.thing.f16` is not supported");
}

/// Textures, tensors, matrices, and what no version has yet: the operands of each are read over.
#[test]
fn what_is_not_known_is_no_error() {
    let lines = [
        "tex.cube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, {%f5, %f6, %f7, %f8}];",
        "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, %d2, {%f5, %f6}];",
        "tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, {%f5, %f6}];",
        "sust.p.2d.v4.b32.trap [%d1, {%r2, %r3}], {%r4, %r5, %r6, %r7};",
        "sured.b.add.2d.u32.trap [%d1, {%r1, %r2}], %r3;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, %p1, 1, 1, 0, 0;",
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 64;",
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col::w.mbarrier::complete_tx::bytes [%r1], [%d1, {%r1, %r2, %r3, %r4}], [%r5], {%h1, %h2};",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes [%r1], [%d1, {%r1, %r2, %r3, %r4, %r5}], [%r6];",
        "multimem.ld_reduce.relaxed.sys.global.add.u32 %r1, [%d1];",
        "vadd.s32.u32.s32 %r1, %r2.b0, %r3.h1;",
        "frobnicate.q77 {%r1, _}, [%d1+8], (%r2, %r3), !%p1, %r4|%p2, -1.5;",
    ];
    for line in lines {
        let module = parse(&kernel(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(module.unsupported.len(), 1, "{line}");
    }
}

#[test]
fn vectors_of_registers_are_their_components() {
    let module = parse(&kernel(
        ".reg.v4.f32 v; ld.global.v4.f32 v, [%d1]; mov.f32 %f1, v.z; mov.f32 v.w, %f1; st.global.v4.f32 [%d1], v;",
    ))
    .unwrap();
    let code = &module.functions[module.function("k").unwrap().index()].code;
    let Op::Load { dsts, .. } = &code[0].op else { panic!("{:?}", code[0].op) };
    assert!(matches!(&code[1].op, Op::Mov { a: Operand::Reg(z), .. } if *z == dsts[2]));
    assert!(matches!(&code[2].op, Op::Mov { dst, .. } if *dst == dsts[3]));
    let Op::Store { values, .. } = &code[3].op else { panic!("{:?}", code[3].op) };
    assert!(values.iter().zip(dsts).all(|(value, dst)| *value == Operand::Reg(*dst)));
    for bad in [".reg.v2.b32 v; mov.b32 v.z, 1;", ".reg.v2.b32 v; .reg.b32 v;"] {
        assert!(parse(&kernel(bad)).is_err(), "{bad}");
    }
}

/// What a kernel must not say, and what the message calls it.
#[test]
fn contradictions_are_errors_with_their_line() {
    let cases = [
        ("add.s32 %r1, %r2, %d1;", "`%d1` has 64 bits where the instruction takes .s32"),
        ("add.s32 %r1, %r2;", "it takes 3 operands, not 2"),
        ("add.s32 %r1, %r99, 1;", "the register `%r99` is not declared"),
        ("add.s32 %r1, %q, 1;", "the register `%q` is not declared"),
        ("add.s32 %r01, %r1, 1;", "the register `%r01` is not declared"),
        ("add.f32 %f1, %f2, 1;", "the constant does not have type .f32"),
        ("add.s32 data, %r1, 1;", "`data` is not a register"),
        ("add.s32 tile, %r1, 1;", "`tile` is not a register"),
        ("add.s32 [%r1], %r1, 1;", "a register to write was expected, not an address in brackets"),
        ("@%r1 ret;", "`%r1` has 32 bits where the instruction takes .pred"),
        ("ld.shared.u32 %r1, [data];", "`data` is in global memory, not shared"),
        (
            "ld.global.u32 %r1, [%r2];",
            "%r2 has 32 bits, which is not the width of a global address",
        ),
        ("ld.global.v2.u32 %r1, [%d1];", "was given for 2 elements"),
        ("ld.global.v2.u32 {%r1, %d2}, [%d1];", "different widths"),
        ("ld.global.v4.b64 {%d1,%d2,%d3}, [%d1];", "a vector of 3"),
        ("ld.global.u64 %r1, [%d1];", "too few for .u64"),
        ("st.const.u32 [fixed], 1;", "constant memory is not written"),
        ("st.acquire.gpu.global.u32 [%d1], 1;", "a store does not acquire"),
        ("ld.acquire.global.u32 %r1, [%d1];", "a scope is missing"),
        ("atom.local.add.u32 %r1, [%d1], 1;", "no atomics in local memory"),
        ("atom.cas.b32 %r1, [%d1], 1;", "too few or too many operands"),
        ("cvt.s32.f32 %r1, %f1;", "it needs .rni"),
        ("cvt.f32.f64 %f1, %g1;", "it needs .rn,"),
        ("div.f32 %f1, %f2, %f3;", "it needs .rn,"),
        ("setp.lt.b32 %p1, %r1, %r2;", "has no such comparison"),
        ("setp.hi.s32 %p1, %r1, %r2;", "has no such comparison"),
        ("setp.lt.ftz.s32 %p1, %r1, %r2;", ".s32 has no .ftz"),
        ("red.global.add.f16 [%d1], %h1;", "need .noftz"),
        ("setp.nan.s32 %p1, %r1, %r2;", "has no such comparison"),
        ("mov.b64 {%r1, %r2, %r3}, %d1;", "does not have 3 parts"),
        ("lop3.b32 %r1, %r2, %r3, %r4, 256;", "8 bits"),
        ("bra NOWHERE;", "there is no label `NOWHERE` here"),
        ("{ IN: ret; } bra IN;", "there is no label `IN` here"),
        ("L: ret; L: ret;", "`L` is declared twice"),
        (".reg .b32 %r<4>;", "`%r` is declared twice"),
        (".reg .b32 %r3;", "`%r3` is declared twice"),
        (".reg .b32 x, x;", "`x` is declared twice"),
        ("{ .reg .b32 y; } mov.b32 y, 1;", "the register `y` is not declared"),
        ("call nobody, (%r1);", "`nobody` is not declared"),
        ("call (%r1), twice, (%r1, %r2);", "the function has 1 arguments, not 2"),
        ("call twice;", "the function has 1 results, not 0"),
        (
            "{ .param .b64 in; call (%r1), twice, (in); }",
            "`in` has 8 bytes where the function has 4",
        ),
        ("call k, (%d1);", "is a kernel"),
        ("call %d1, (%r1);", "needs a .callprototype"),
        ("brx.idx %r1, T;", "there is no table `T` here"),
        ("T: .branchtargets A; brx.idx %r1, T;", "there is no label `A` here"),
        (".local .b8 big[99999999999];", "does not fit local memory"),
        (".shared .b8 x = 1;", "begin without values"),
        (".local .align 3 .b8 x;", "3 is not an alignment"),
        (".frob 1;", "`.frob` is not known inside a function"),
        (".loc 1 2 3, frob x", "`frob` is not known in .loc"),
        ("ret", "an operand was expected, not `}`"),
        ("7;", "an instruction was expected, not `7`"),
        ("@ ret;", "the register `ret` is not declared"),
    ];
    let line_of_body = kernel("").lines().position(|line| line.starts_with(".shared")).unwrap() + 2;
    for (body, expected) in cases {
        let Err(error) = parse(&kernel(body)) else { panic!("{body} was read") };
        assert!(matches!(error, Error::Invalid { .. }), "{body}: {error}");
        assert!(error.to_string().contains(expected), "{body}: {error}");
        let line = error.line() as usize;
        assert!(line == line_of_body || line == line_of_body + 1, "{body}: {error}");
    }
}
