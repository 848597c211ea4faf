//! What must not be called a fault, and the fault beside it: values that nobody uses, stores of the same value, threads that have ended.

use crate::bench::{Bench, checked, describe, found, schedules};
use crate::execution::{kernel, module, run_one};
use warpfold_ptx::finding::Kind;
use warpfold_ptx::machine::{Arg, Checks, Options, Schedule, Shape};

/// The kinds found under each schedule, which must agree.
#[track_caller]
fn kinds(ptx: &str, threads: u32, strict: bool) -> Vec<Kind> {
    let mut all = schedules().into_iter().map(|schedule| {
        let checks = Checks { strict, ..Checks::ALL };
        let (_, report) = run_one(ptx, Options { checks, ..checked(schedule) }, threads);
        assert_eq!(report.outcome.halt, None, "{schedule:?}");
        let mut kinds: Vec<Kind> = found(&report).into_iter().map(|f| f.0).collect();
        kinds.sort_unstable();
        kinds.dedup();
        (kinds, describe(&report))
    });
    let (first, told) = all.next().unwrap();
    eprintln!("{told}");
    for (other, told) in all {
        assert_eq!(first, other, "{told}");
    }
    first
}

const SHARED: &str = ".shared .align 16 .b8 s[4096];";

#[track_caller]
fn assert_kinds(cases: &[(&str, &[Kind])]) {
    for (body, expected) in cases {
        eprintln!("{body}");
        assert_eq!(kinds(&module(SHARED, body), 64, false), *expected, "{body}");
    }
}

const UNINITIALISED: &[Kind] = &[Kind::Uninitialised];

#[test]
fn a_value_that_nobody_uses_is_no_fault() {
    assert_kinds(&[
        ("ld.shared.u32 %r1, [s];", &[]),
        // Overwritten, thrown away by a choice, or masked.
        ("ld.shared.u32 %r1, [s]; mov.u32 %r1, 1; st.global.u32 [%o], %r1;", &[]),
        (
            "ld.shared.u32 %r1, [s]; setp.lt.u32 %p1, %t, 99; selp.b32 %r2, %t, %r1, %p1; st.global.u32 [%o], %r2;",
            &[],
        ),
        (
            "st.shared.u8 [s], 1; bar.sync 0; ld.shared.u32 %r1, [s]; and.b32 %r2, %r1, 255; st.global.u32 [%o], %r2;",
            &[],
        ),
        (
            "st.shared.u8 [s+2], 1; bar.sync 0; ld.shared.u32 %r1, [s]; shl.b32 %r2, %r1, 8; shr.u32 %r2, %r2, 24; st.global.u32 [%o], %r2;",
            &[],
        ),
        (
            "st.shared.u8 [s+1], 1; bar.sync 0; ld.shared.u32 %r1, [s]; prmt.b32 %r2, %r1, 0, 0x4441; bfe.u32 %r3, %r1, 8, 8; add.u32 %r2, %r2, %r3; st.global.u32 [%o], %r2;",
            &[],
        ),
        (
            "st.shared.u16 [s], 7; bar.sync 0; ld.shared.u32 %r1, [s]; cvt.u16.u32 %h1, %r1; cvt.u32.u16 %r2, %h1; mov.b32 {%h2, %h3}, %r1; cvt.u32.u16 %r3, %h2; add.u32 %r2, %r2, %r3; st.global.u32 [%o], %r2;",
            &[],
        ),
        // Padding goes along with what it pads, through other memory, and is left where nobody looks.
        (
            "st.shared.u32 [s], 1; bar.sync 0; ld.shared.v2.u32 {%r1, %r2}, [s]; mad.lo.u32 %r3, %t, 8, 64; mov.u32 %r4, s; add.u32 %r3, %r3, %r4;
             st.shared.v2.u32 [%r3], {%r1, %r2}; ld.shared.v2.u32 {%r5, %r6}, [%r3]; st.global.u32 [%o], %r5;",
            &[],
        ),
        // What is overwritten in global memory is nobody's.
        ("ld.shared.u32 %r1, [s]; st.global.u32 [%o], %r1; st.global.u32 [%o], %t;", &[]),
        // A condition that is decided all the same.
        (
            "ld.shared.u32 %r1, [s]; setp.eq.u32 %p1, %r1, 0; setp.lt.and.u32 %p2, %t, 0, %p1; @%p2 st.global.u32 [%o], 1;",
            &[],
        ),
        // A wide vector, of which one element was never written.
        (
            "st.shared.v4.u32 [s], {1, 2, 3, 4}; bar.sync 0; ld.shared.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [s]; st.global.u32 [%o], %r4;",
            &[],
        ),
    ]);
}

#[test]
fn a_value_that_decides_something_is() {
    assert_kinds(&[
        ("ld.shared.u32 %r1, [s]; st.global.u32 [%o], %r1;", UNINITIALISED),
        ("ld.shared.u32 %r1, [s]; add.u32 %r2, %r1, 1; st.global.u8 [%o], %r2;", UNINITIALISED),
        (
            "ld.shared.u32 %r1, [s]; setp.eq.u32 %p1, %r1, 0; @%p1 bra over; st.global.u32 [%o], 1; over:",
            UNINITIALISED,
        ),
        (
            "ld.shared.u32 %r1, [s]; setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [%o], 1;",
            UNINITIALISED,
        ),
        (
            "ld.shared.u32 %r1, [s]; and.b32 %r1, %r1, 0xfc; mov.u32 %r2, s; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], 1;",
            UNINITIALISED,
        ),
        ("ld.shared.u32 %r1, [s]; red.global.add.u32 [%out], %r1;", UNINITIALISED),
        ("ld.shared.u32 %r1, [s]; atom.shared.add.u32 %r2, [s+4], %r1;", UNINITIALISED),
        (
            "ld.shared.f32 %f1, [s]; fma.rn.f32 %f2, %f1, %f1, %f1; cvt.rzi.u32.f32 %r1, %f2; st.global.u32 [%o], %r1;",
            UNINITIALISED,
        ),
        // By another lane, by a vote, by memory, by a function, by a copy.
        (
            "ld.shared.u32 %r1, [s]; shfl.sync.bfly.b32 %r2, %r1, 1, 31, 0xffffffff; st.global.u32 [%o], %r2;",
            UNINITIALISED,
        ),
        (
            "ld.shared.u32 %r1, [s]; setp.eq.u32 %p1, %r1, 0; vote.sync.any.pred %p2, %p1, 0xffffffff; @%p2 bra over; over:",
            UNINITIALISED,
        ),
        (
            "ld.shared.u32 %r1, [s]; setp.eq.u32 %p1, %r1, 0; vote.sync.ballot.b32 %r2, %p1, 0xffffffff; st.global.u32 [%o], %r2;",
            UNINITIALISED,
        ),
        (
            "ld.shared.u32 %r1, [s]; redux.sync.add.u32 %r2, %r1, 0xffffffff; st.global.u32 [%o], %r2;",
            UNINITIALISED,
        ),
        (
            "ld.shared.u32 %r1, [s]; setp.eq.u32 %p1, %r1, 0; barrier.red.popc.u32 %r2, 0, %p1;",
            UNINITIALISED,
        ),
        (
            "ld.shared.u32 %r1, [s]; mov.u32 %r2, s; mad.lo.u32 %r2, %t, 4, %r2; st.shared.u32 [%r2+64], %r1; ld.shared.u32 %r3, [%r2+64]; st.global.u32 [%o], %r3;",
            UNINITIALISED,
        ),
        (
            "ld.shared.u32 %r1, [s]; mov.u32 %r2, 5; setp.eq.u32 %p1, %r1, 0; @%p1 mov.u32 %r2, 6; st.global.u32 [%o], %r2;",
            UNINITIALISED,
        ),
        (
            "ld.shared.u32 %r1, [s]; brx.idx %r1, L; L: .branchtargets A; A: st.global.u32 [%o], 1;",
            UNINITIALISED,
        ),
        // The carry of a sum.
        (
            "ld.shared.u32 %r1, [s]; add.cc.u32 %r2, %r1, 1; addc.u32 %r3, 0, 0; st.global.u32 [%o], %r3;",
            UNINITIALISED,
        ),
    ]);
}

#[test]
fn a_function_hands_undefined_values_on() {
    let of = |result: &str| {
        module(
            ".shared .align 4 .b8 s[64];
             .func (.param .b32 r, .reg .b32 q) both(.param .align 4 .b8 v[8], .reg .b32 w) {
             .reg .b32 %r<4>;
             ld.param.u32 %r1, [v+4]; st.param.b32 [r], %r1; mov.b32 q, w; ret; }",
            &format!(
                "ld.shared.u32 %r1, [s]; mov.u32 %r2, 3;
                 {{ .param .align 4 .b8 v[8]; .param .b32 r;
                 st.param.b32 [v], %r2; st.param.b32 [v+4], %r1;
                 call.uni (r, %r4), both, (v, %r2);
                 ld.param.b32 %r3, [r]; }}
                 st.global.u32 [%o], {result};"
            ),
        )
    };
    assert_eq!(kinds(&of("%r3"), 64, false), UNINITIALISED);
    assert_eq!(kinds(&of("%r4"), 64, false), []);
}

/// The finding stands at the access, names what it decides, and comes once for it.
#[test]
fn what_lies_beside_a_value_and_was_never_written_is_no_fault() {
    // Half a word, which is written over or not; nobody writes the other half.
    for (last, expected) in [("st.global.u16 [%o], 1;", &[][..]), ("", UNINITIALISED)] {
        let body = format!("ld.shared.u16 %h1, [s]; st.global.u16 [%o], %h1; {last}");
        let mut bench = Bench::new(&module(SHARED, &body), checked(Schedule::Lockstep));
        let out = Arg::Pointer(bench.room::<u32>(32));
        let report = bench.launch("k", Shape::linear(1, 32), &[out]).remove(0);
        let kinds: Vec<Kind> = found(&report).into_iter().map(|f| f.0).collect();
        assert_eq!(kinds, expected, "{body} {}", describe(&report));
    }
}

#[test]
fn a_finding_names_the_access_and_what_it_decides() {
    let ptx = module(
        SHARED,
        "ld.shared.u32 %r1, [s+8];
         setp.eq.u32 %p1, %r1, 0;
         @%p1 bra one; one:
         setp.eq.u32 %p2, %r1, 1;
         @%p2 bra two; two:",
    );
    let (_, report) = run_one(&ptx, checked(Schedule::Lockstep), 32);
    let all = report.outcome.findings.all();
    assert_eq!(all.len(), 1, "{}", describe(&report));
    let fault = &all[0].fault;
    let line = |n: u32| ptx.lines().nth(n as usize - 1).unwrap().trim();
    assert_eq!(line(fault.line.ptx), "ld.shared.u32 %r1, [s+8];");
    assert_eq!(line(fault.other.unwrap().line.ptx), "@%p1 bra one; one:");
    assert!(
        fault.detail.ends_with("was never written; the value decides a branch"),
        "{}",
        fault.detail
    );
    assert_eq!(fault.access.unwrap().address, 0x400 + 8);
}

#[test]
fn asynchronous_copies_take_undefined_bytes_along() {
    let of = |word: u32| {
        module(
            SHARED,
            &format!(
                "mov.u32 %r1, s; mad.lo.u32 %r1, %t, 16, %r1; mul.wide.u32 %d1, %t, 16; ld.global.u64 %d2, [%out+320]; add.u64 %d2, %d2, %d1;
                 st.global.v2.u32 [%d2], {{1, 2}};
                 cp.async.cg.shared.global [%r1], [%d2], 16; cp.async.wait_all;
                 ld.shared.u32 %r2, [%r1+{word}]; st.global.u32 [%o], %r2;"
            ),
        )
    };
    for (word, expected) in [(0, &[][..]), (4, &[]), (8, UNINITIALISED), (12, UNINITIALISED)] {
        let mut bench = Bench::new(&of(word), checked(Schedule::Lockstep));
        let room = bench.room::<u32>(64 * 4);
        let out = bench.upload(&[room; 64]);
        let report = bench.launch("k", Shape::linear(1, 64), &[Arg::Pointer(out)]).remove(0);
        let kinds: Vec<Kind> = found(&report).into_iter().map(|f| f.0).collect();
        assert_eq!(kinds, expected, "{word}: {}", describe(&report));
    }
}

#[test]
fn several_lanes_may_store_the_same_value() {
    let clean: &[(&str, &str)] = &[
        ("lanes of an instruction", "st.shared.u32 [s], 7;"),
        (
            "warps",
            "st.shared.u32 [s], 7; bar.sync 0; ld.shared.u32 %r1, [s]; st.global.u32 [%o], %r1;",
        ),
        ("vectors", "st.shared.v2.u32 [s], {7, 8};"),
        ("narrow stores", "st.shared.u8 [s+1], 7;"),
        ("global memory", "st.global.u32 [%out], 7;"),
        ("volatile stores", "st.volatile.shared.u32 [s], 7;"),
        (
            "a read after one of the stores",
            "st.shared.u32 [s], 7; bar.warp.sync 0xffffffff; ld.shared.u32 %r1, [s]; st.global.u32 [%o], %r1;",
        ),
        ("a store after all of them", "st.shared.u32 [s], 7; bar.sync 0; st.shared.u32 [s], 9;"),
    ];
    for (what, body) in clean {
        let ptx = module(SHARED, body);
        assert_eq!(kinds(&ptx, 64, false), [], "{what}");
        assert_eq!(kinds(&ptx, 64, true), [Kind::SameValue], "{what}");
    }
    let racing: &[(&str, &str)] = &[
        ("two values", "st.shared.u32 [s], %t;"),
        (
            "one lane differs",
            "setp.eq.u32 %p1, %t, 9; selp.u32 %r1, 1, 2, %p1; st.shared.u32 [s], %r1;",
        ),
        ("one element differs", "st.shared.v2.u32 [s], {7, %t};"),
        ("overlapping stores", "st.shared.u32 [s], 7; st.shared.u16 [s], 8;"),
        (
            "a read before them",
            "ld.shared.u32 %r1, [s+4]; st.shared.u32 [s+4], 7; st.global.u32 [%o], %r1;",
        ),
        (
            "a store after some of them",
            "st.shared.u32 [s], 7; bar.warp.sync 0xffffffff; st.shared.u32 [s], 9;",
        ),
    ];
    for (what, body) in racing {
        let found = kinds(&module(SHARED, body), 64, false);
        assert!(found.contains(&Kind::Race), "{what}: {found:?}");
    }
}

/// Lanes load an element each of ten, those behind the end the last one, and use it under a condition: what llm.c's `softmax_forward_kernel7` does.
const CLAMPED: &str =
    "mov.u32 %r9, s; min.u32 %r1, %t, 9; mad.lo.u32 %r2, %r1, 4, %r9; mad.lo.u32 %r3, %t, 4, %r9;
     setp.ge.u32 %p2, %t, 10; setp.lt.u32 %p4, %t, 10;
     @%p4 st.shared.u32 [%r3], 5; bar.sync 0; ld.shared.u32 %r4, [%r2];";

#[test]
fn a_race_of_a_value_that_is_thrown_away_is_a_remark() {
    let remarks: Vec<(&str, String)> = vec![
        (
            "used under a condition",
            format!("{CLAMPED} @%p2 bra over; add.u32 %r4, %r4, 1; st.shared.u32 [%r2], %r4; over:"),
        ),
        (
            "one instruction under a condition",
            format!("{CLAMPED} @%p4 st.shared.u32 [%r3], %r4;"),
        ),
        (
            "two loads before either is used",
            format!(
                "{CLAMPED} ld.shared.u32 %r5, [%r2]; @%p2 bra over; add.u32 %r4, %r4, %r5; st.shared.u32 [%r2], %r4; over:"
            ),
        ),
        (
            "a load in a loop",
            format!(
                "{CLAMPED} mov.u32 %r7, 0; again: @%p2 bra over; add.u32 %r4, %r4, 1; st.shared.u32 [%r2], %r4; over:
                 ld.shared.u32 %r4, [%r2]; add.u32 %r7, %r7, 1; setp.lt.u32 %p5, %r7, 3; @%p5 bra again;"
            ),
        ),
        (
            "of a vector, no element",
            format!("{CLAMPED} ld.shared.v2.u32 {{%r4, %r5}}, [s+32]; @%p4 st.shared.u32 [%r3], 9;"),
        ),
        ("nobody uses it", "setp.eq.u32 %p1, %t, 0; ld.shared.u32 %r1, [s]; @%p1 st.shared.u32 [s], 7;".into()),
        (
            "a store before it",
            "setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [s], 7; ld.shared.u32 %r1, [s];".into(),
        ),
        (
            "written over, and the register used for something else",
            "setp.eq.u32 %p1, %t, 0; ld.shared.u32 %r1, [s]; @%p1 st.shared.u32 [s], 7; mov.u32 %r1, 1; st.global.u32 [%o], %r1;".into(),
        ),
        (
            "in global memory",
            "setp.eq.u32 %p1, %t, 0; ld.global.u32 %r1, [%out]; @%p1 st.global.u32 [%o], 7;".into(),
        ),
    ];
    for (what, body) in &remarks {
        let ptx = module(SHARED, body);
        assert_eq!(kinds(&ptx, 64, false), [], "{what}");
        assert_eq!(kinds(&ptx, 64, true), [Kind::DiscardedRead], "{what}");
    }
}

#[test]
fn a_race_of_a_value_that_is_used_stays_a_race() {
    let races: Vec<(&str, String)> = vec![
        ("by those behind the end, too", format!("{CLAMPED} @%p4 st.shared.u32 [%r3], 3; st.global.u32 [%o], %r4;")),
        (
            "by one lane of them",
            format!("{CLAMPED} @%p4 st.shared.u32 [%r3], 3; setp.eq.u32 %p5, %t, 40; @%p5 st.global.u32 [%o], %r4;"),
        ),
        (
            "on one way of two",
            format!("{CLAMPED} @%p2 bra behind; st.shared.u32 [%r3], %r4; bra over; behind: add.u32 %r5, %r4, 1; over:"),
        ),
        (
            "before another that is thrown away",
            format!("{CLAMPED} st.global.u32 [%o], %r4; ld.shared.u32 %r4, [%r2]; @%p4 st.shared.u32 [%r3], %r4;"),
        ),
        (
            "behind another that is thrown away",
            format!("{CLAMPED} ld.shared.u32 %r5, [%r2]; @%p4 st.shared.u32 [%r3], %r4; @%p2 st.global.u32 [%o], %r5;"),
        ),
        (
            "of a vector, one element",
            format!("{CLAMPED} ld.shared.v2.u32 {{%r4, %r5}}, [s+32]; @%p4 st.shared.u32 [%r3], 9; @%p2 st.global.u32 [%o], %r5;"),
        ),
        (
            "after a store",
            format!("{CLAMPED} setp.eq.u32 %p5, %t, 9; @%p5 st.shared.u32 [%r3], 8; ld.shared.u32 %r4, [%r2]; @%p2 st.global.u32 [%o], %r4;"),
        ),
        (
            "in an address",
            format!("{CLAMPED} @%p4 st.shared.u32 [%r3], 0; and.b32 %r4, %r4, 12; @%p2 add.u32 %r4, %r4, %r9; @%p2 ld.shared.u32 %r5, [%r4];"),
        ),
        (
            "by a later turn of a loop",
            format!(
                "{CLAMPED} mov.u32 %r7, 0; again: @%p4 st.shared.u32 [%r3], %r4; setp.eq.u32 %p5, %r7, 2; @%p5 st.global.u32 [%o], %r4;
                 add.u32 %r7, %r7, 1; setp.lt.u32 %p6, %r7, 3; @%p6 bra again;"
            ),
        ),
    ];
    for (what, body) in &races {
        let found = kinds(&module(SHARED, body), 64, false);
        assert_eq!(found, [Kind::Race], "{what}");
    }
}

#[test]
fn the_lane_of_such_a_race_is_one_that_uses_the_value() {
    let body = format!(
        "{CLAMPED} @%p4 st.shared.u32 [%r3], 3; setp.eq.u32 %p5, %t, 20; @%p5 st.global.u32 [%o], %r4;"
    );
    let (_, report) = run_one(&module(SHARED, &body), checked(Schedule::Lockstep), 32);
    let fault = report.outcome.findings.all()[0].fault.clone();
    assert_eq!((fault.kind, fault.place.thread), (Kind::Race, 9), "{}", describe(&report));
    assert_eq!(fault.other.unwrap().place.thread, 20, "{}", describe(&report));
}

#[test]
fn a_kernel_that_does_not_come_to_its_end_may_have_used_the_value() {
    let body = "setp.eq.u32 %p1, %t, 0; setp.eq.u32 %p2, %t, 99; ld.shared.u32 %r1, [s]; @%p1 st.shared.u32 [s], 7;
         again: @!%p2 bra again; st.global.u32 [%o], %r1;";
    let options = Options { instructions: 10_000, ..checked(Schedule::Lockstep) };
    let (_, report) = run_one(&module(SHARED, body), options, 64);
    assert!(report.outcome.halt.is_some());
    assert_eq!(found(&report).iter().map(|f| f.0).collect::<Vec<_>>(), [Kind::Race]);
}

#[test]
fn threads_that_have_ended_count_as_arrived() {
    // What they did before they ended came before the barrier, and lanes of a mask that have ended are not waited for.
    let ptx = module(
        SHARED,
        "mov.u32 %r1, s; mad.lo.u32 %r2, %t, 4, %r1; st.shared.u32 [%r2], %t;
         setp.ge.u32 %p1, %t, 20; @%p1 ret;
         bar.warp.sync 0xffffffff;
         shfl.sync.down.b32 %r5, %t, 1, 31, 0xffffffff;
         bar.sync 0;
         ld.shared.u32 %r3, [%r2+160]; ld.shared.u32 %r4, [%r2+40]; add.u32 %r3, %r3, %r4; st.global.u32 [%o], %r3;",
    );
    for schedule in schedules() {
        let (out, report) = run_one(&ptx, checked(schedule), 64);
        assert!(report.outcome.is_clean(), "{schedule:?}: {}", describe(&report));
        assert!((0..20).all(|t| out[t] as usize == 2 * t + 50), "{out:?}");
    }
    assert_eq!(kinds(&ptx, 64, true), [Kind::PartialBarrier, Kind::MaskNamesEndedLane]);
    // Without the barrier it is a race.
    let (_, report) = run_one(&ptx.replace("bar.sync 0;", ""), checked(Schedule::Lockstep), 64);
    assert!(found(&report).iter().any(|f| f.0 == Kind::Race), "{}", describe(&report));
}

#[test]
fn a_shuffle_from_a_lane_that_takes_no_part() {
    let of = |rest: &str| {
        kernel(&format!(
            "setp.ge.u32 %p1, %t, 20; @%p1 ret;
             shfl.sync.down.b32 %r1, %t, 4, 31, 0xffffffff;
             add.u32 %r2, %t, 4; setp.lt.u32 %p2, %r2, 20; {rest}"
        ))
    };
    let thrown_away = of("@%p2 st.global.u32 [%o], %r1;");
    assert_eq!(kinds(&thrown_away, 32, false), []);
    assert_eq!(kinds(&of("selp.b32 %r3, %r1, 0, %p2; st.global.u32 [%o], %r3;"), 32, false), []);
    assert_eq!(kinds(&of("st.global.u32 [%o], %r1;"), 32, false), [Kind::ShuffleFromInactive]);
    let by_guard = of("mov.u32 %r3, 0; @%p2 mov.u32 %r3, %r1; st.global.u32 [%o], %r3;");
    assert_eq!(kinds(&by_guard, 32, false), []);
}
