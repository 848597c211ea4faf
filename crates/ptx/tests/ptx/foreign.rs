//! What others' compilers emit: tables of a warp, the barrier of cooperative groups, long division, pairs, eight bits.

use crate::bench::{Bench, checked, describe, schedules};
use crate::execution::{kernel, module, run_one};
use warpfold_ptx::finding::Kind;
use warpfold_ptx::machine::{Arg, Schedule, Shape};

/// 16 by 16 halves times 16 by 8, read from shared memory by `ldmatrix`, against the product of small integers.
#[test]
fn halves_are_multiplied_as_tables() {
    let ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 16 .b8 s[1024];
        .visible .entry k(.param .u64 in, .param .u64 out) {
        .reg .b32 %r<30>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .b16 %h<3>;
        ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, s;
        // Twelve words of two halves each: 16 rows of A, then 8 columns of B, 32 bytes each.
        mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d1, %d3; mad.lo.u32 %r3, %r1, 4, %r2;
        ld.global.u32 %r4, [%d3]; st.shared.u32 [%r3], %r4; ld.global.u32 %r4, [%d3+128]; st.shared.u32 [%r3+128], %r4;
        ld.global.u32 %r4, [%d3+256]; st.shared.u32 [%r3+256], %r4; ld.global.u32 %r4, [%d3+384]; st.shared.u32 [%r3+384], %r4;
        ld.global.u32 %r4, [%d3+512]; st.shared.u32 [%r3+512], %r4; ld.global.u32 %r4, [%d3+640]; st.shared.u32 [%r3+640], %r4;
        bar.warp.sync 0xffffffff;
        // Row l % 16 of A, its left or its right half.
        and.b32 %r5, %r1, 15; shr.u32 %r6, %r1, 4; shl.b32 %r5, %r5, 5; shl.b32 %r6, %r6, 4; add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r2;
        ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r5];
        and.b32 %r5, %r1, 7; shr.u32 %r6, %r1, 3; and.b32 %r6, %r6, 1; shl.b32 %r5, %r5, 5; shl.b32 %r6, %r6, 4; add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r2;
        ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r14, %r15}, [%r5+512];
        mov.f32 %f1, 0f3F800000;
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2, %f3, %f4, %f5}, {%r10, %r11, %r12, %r13}, {%r14, %r15}, {%f1, %f1, %f1, %f1};
        shr.u32 %r20, %r1, 2; and.b32 %r21, %r1, 3; shl.b32 %r20, %r20, 5; shl.b32 %r21, %r21, 3; add.u32 %r20, %r20, %r21; cvt.u64.u32 %d4, %r20; add.u64 %d4, %d2, %d4;
        st.global.v2.f32 [%d4], {%f2, %f3}; st.global.v2.f32 [%d4+256], {%f4, %f5};
        // And the tables back, transposed twice: as they were.
        movmatrix.sync.aligned.m8n8.trans.b16 %r16, %r14; movmatrix.sync.aligned.m8n8.trans.b16 %r16, %r16;
        sub.u32 %r17, %r16, %r14; add.u64 %d5, %d2, 512; mul.wide.u32 %d6, %r1, 4; add.u64 %d5, %d5, %d6; st.global.u32 [%d5], %r17;
        stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%r5+512], {%r14, %r15}; ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r18, %r19}, [%r5+512];
        sub.u32 %r18, %r18, %r14; sub.u32 %r19, %r19, %r15; or.b32 %r18, %r18, %r19; st.global.u32 [%d5+128], %r18;
        ret; }";
    let value = |at: usize| (at * 7 % 11) as i32 - 5;
    let (a, b) = (
        |row: usize, i: usize| value(row * 16 + i),
        |i: usize, column: usize| value(256 + column * 16 + i),
    );
    let halves: Vec<u16> =
        (0..384).map(|at| half::f16::from_f32(value(at) as f32).to_bits()).collect();
    for schedule in schedules() {
        let mut bench = Bench::new(ptx, checked(schedule));
        let (input, out) = (bench.upload(&halves), bench.room::<u32>(192));
        let args = [Arg::Pointer(input), Arg::Pointer(out)];
        let reports = bench.launch("k", Shape::linear(1, 32), &args);
        assert!(reports[0].outcome.is_clean(), "{schedule:?}: {}", describe(&reports[0]));
        let got: Vec<f32> = bench.download(out, 128);
        for (at, got) in got.iter().enumerate() {
            let (row, column) = (at / 8, at % 8);
            let wanted: i32 = (0..16).map(|i| a(row, i) * b(i, column)).sum();
            assert_eq!(*got, wanted as f32 + 1.0, "{row}, {column}");
        }
        assert_eq!(bench.download::<u32>(out + 512, 64), [0; 64]);
    }
}

/// The carry behind a difference is set where nothing was borrowed: what a compiler's 128-bit division asks.
#[test]
fn the_carry_of_a_difference_tells_that_nothing_was_borrowed() {
    let ptx = kernel(
        "sub.cc.u32 %r1, %t, 3;
         addc.u32 %r2, 0, 0;
         sub.cc.u32 %r1, %t, 3;
         subc.u32 %r3, 0, 0;
         shl.b32 %r2, %r2, 16;
         and.b32 %r3, %r3, 0xffff;
         or.b32 %r2, %r2, %r3;
         st.global.u32 [%o], %r2;",
    );
    let (out, _) = run_one(&ptx, checked(Schedule::Lockstep), 5);
    assert_eq!(out, [0xffff, 0xffff, 0xffff, 0x10000, 0x10000]);
}

/// `grid.sync()` asks the driver's registers for a workspace, whose second word is the barrier.
#[test]
fn a_cooperative_grid_has_a_workspace() {
    let ptx = module(
        "",
        "mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; cvt.u64.u32 %d1, %r1; cvt.u64.u32 %d2, %r2; bfi.b64 %d3, %d1, %d2, 32, 32;
         setp.ne.u64 %p1, %d3, 0; @%p1 bra there; trap; there:
         atom.add.release.gpu.u32 %r3, [%d3+4], 1;
         wait: ld.acquire.gpu.u32 %r4, [%d3+4]; setp.lt.u32 %p2, %r4, 3; @%p2 bra wait;
         setp.eq.u32 %p3, %ctaid.x, 0; @%p3 st.global.u32 [%o], %r4;",
    );
    for schedule in schedules() {
        let mut bench = Bench::new(&ptx, checked(schedule));
        let out = bench.upload(&[0u32; 32]);
        let shape = Shape { cooperative: true, ..Shape::linear(3, 1) };
        // The barrier begins anew with every launch.
        for _ in 0..2 {
            let reports = bench.launch("k", shape, &[Arg::Pointer(out)]);
            assert!(reports[0].outcome.is_clean(), "{schedule:?}: {}", describe(&reports[0]));
            assert_eq!(bench.download::<u32>(out, 1), [3]);
        }
    }
}

#[test]
fn pairs_of_single_precision_are_computed_half_by_half() {
    let ptx = kernel(
        "mov.b64 %d1, {0f3FC00000, 0f40000000}; mov.b64 %d2, {0f3F800000, 0fC0400000};
         add.rn.f32x2 %d3, %d1, %d2; mul.f32x2 %d4, %d1, %d2; fma.rn.f32x2 %d5, %d1, %d2, %d3;
         mov.b64 {%r1, %r2}, %d3; mov.b64 {%r3, %r4}, %d4; mov.b64 {%r5, %r6}, %d5;
         st.global.v2.u32 [%out], {%r1, %r2}; st.global.v2.u32 [%out+8], {%r3, %r4}; st.global.v2.u32 [%out+16], {%r5, %r6};",
    );
    let mut bench = Bench::new(&ptx, checked(Schedule::Lockstep));
    let out = bench.room::<f32>(6);
    let reports = bench.launch("k", Shape::linear(1, 1), &[Arg::Pointer(out)]);
    assert!(reports[0].outcome.is_clean(), "{}", describe(&reports[0]));
    assert_eq!(bench.download::<f32>(out, 6), [2.5, -1.0, 1.5, -6.0, 4.0, -7.0]);
}

#[test]
fn eight_bits_go_out_and_back() {
    let ptx = kernel(
        "cvt.rn.satfinite.e4m3x2.f32 %h1, 0f44800000, 0fBFC00000; cvt.rn.f16x2.e4m3x2 %r1, %h1; st.global.u32 [%out], %r1;
         mov.b32 %r2, 0x3C00C200; cvt.rn.satfinite.relu.e5m2x2.f16x2 %h2, %r2; cvt.rn.f16x2.e5m2x2 %r3, %h2; st.global.u32 [%out+4], %r3;",
    );
    let (out, report) = run_one(&ptx, checked(Schedule::Lockstep), 2);
    assert!(report.outcome.is_clean() || report.outcome.halt.is_none(), "{}", describe(&report));
    // 448 and -1.5; 1 and 0.
    assert_eq!(out, [0x5F00_BE00, 0x3C00_0000]);
}

#[test]
fn an_mbarrier_is_used_after_its_initialisation() {
    let of = |barrier: &str| {
        module(
            ".shared .align 8 .b64 b;",
            &format!(
                "mov.u32 %r1, b; setp.ne.u32 %p1, %t, 0; @%p1 bra over; mbarrier.init.shared.b64 [%r1], 64; over: {barrier}
                 mbarrier.arrive.shared.b64 %d1, [%r1];
                 wait: mbarrier.test_wait.shared.b64 %p2, [%r1], %d1; @!%p2 bra wait;"
            ),
        )
    };
    for schedule in [Schedule::Lockstep, Schedule::Random { seed: 3 }] {
        let (_, report) = run_one(&of("bar.sync 0;"), checked(schedule), 64);
        assert!(report.outcome.is_clean(), "{schedule:?}: {}", describe(&report));
    }
    let (_, report) = run_one(&of(""), checked(Schedule::Lockstep), 64);
    let found = crate::bench::found(&report);
    assert!(found.iter().any(|f| f.0 == Kind::Race), "{}", describe(&report));
}

#[test]
fn memory_of_the_heap_is_used_until_it_is_freed_once() {
    let of = |rest: &str| {
        module(
            ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);",
            &format!(
                "{{ .param .b64 n; .param .b64 r; st.param.b64 [n], 24; call.uni (r), malloc, (n); ld.param.b64 %d1, [r]; }}
                 st.u32 [%d1+20], %t; ld.u32 %r1, [%d1+20]; st.global.u32 [%o], %r1; {rest}"
            ),
        )
    };
    let free = |offset: u32| {
        format!(
            "add.u64 %d2, %d1, {offset}; {{ .param .b64 p; st.param.b64 [p], %d2; call.uni free, (p); }}"
        )
    };
    let kinds = |rest: &str| {
        let (_, report) = run_one(&of(rest), checked(Schedule::Lockstep), 32);
        eprintln!("{}", describe(&report));
        crate::bench::found(&report).into_iter().map(|f| f.0).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&free(0)), []);
    assert_eq!(kinds(&format!("{} ld.u32 %r2, [%d1+4];", free(0))), [Kind::Freed]);
    assert_eq!(kinds(&format!("{} st.u32 [%d1+20], 1;", free(0))), [Kind::Freed]);
    assert_eq!(kinds(&format!("{} {}", free(0), free(0))), [Kind::Freed]);
    assert_eq!(kinds(&free(4)), [Kind::OutOfBounds]);
}

#[test]
fn vectors_of_atomics_are_one_for_each_element() {
    let ptx = kernel(
        "cvt.rn.f32.u32 %f1, %t; neg.f32 %f2, %f1;
         red.relaxed.gpu.global.v2.f32.add [%out], {%f1, %f2};
         setp.ne.u32 %p1, %t, 3; @%p1 bra over;
         atom.global.v2.f32.add {%f3, %f4}, [%out+8], {%f1, %f1}; st.global.v2.f32 [%out+16], {%f3, %f4};
         over:",
    );
    for schedule in schedules() {
        let mut bench = Bench::new(&ptx, checked(schedule));
        let out = bench.upload(&[0f32, 0.0, 5.0, 6.0, 0.0, 0.0]);
        let reports = bench.launch("k", Shape::linear(1, 8), &[Arg::Pointer(out)]);
        assert!(reports[0].outcome.is_clean(), "{schedule:?}: {}", describe(&reports[0]));
        assert_eq!(bench.download::<f32>(out, 6), [28.0, -28.0, 8.0, 9.0, 5.0, 6.0]);
    }
    for bad in [
        "red.global.v2.f32.add [%out], {%f1};",
        "atom.global.v2.f32.add {%f1, %f2}, [%out], {%f2, %f1};",
    ] {
        let module = warpfold_ptx::parse::parse(&kernel(bad));
        assert!(module.map_or(true, |m| m.unsupported.len() == 1), "{bad}");
    }
}

#[test]
fn floats_are_folded_by_a_warp() {
    let ptx = kernel(
        "cvt.rn.f32.u32 %f1, %t; sub.f32 %f1, %f1, 0f41200000; setp.eq.u32 %p1, %t, 5; selp.f32 %f1, 0f7FC00000, %f1, %p1;
         redux.sync.min.f32 %f2, %f1, 0xffffffff; redux.sync.max.abs.f32 %f3, %f1, 0xffffffff; redux.sync.max.NaN.f32 %f4, %f1, 0xffffffff;
         setp.ne.u32 %p2, %t, 0; @%p2 bra over; st.global.v2.f32 [%out], {%f2, %f3}; st.global.f32 [%out+8], %f4; over:",
    );
    let mut bench = Bench::new(&ptx, checked(Schedule::Lockstep));
    let out = bench.room::<f32>(3);
    let reports = bench.launch("k", Shape::linear(1, 32), &[Arg::Pointer(out)]);
    assert!(reports[0].outcome.is_clean(), "{}", describe(&reports[0]));
    let got = bench.download::<f32>(out, 3);
    assert_eq!(got[..2], [-10.0, 21.0]);
    assert!(got[2].is_nan());
}
