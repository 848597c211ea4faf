//! `alloca`, `stacksave`, `stackrestore`: local memory that lasts until a function returns.

use crate::bench::{Bench, checked, describe, found, schedules};
use crate::execution::{kernel, module, run_one};
use warpfold_ptx::finding::Kind;
use warpfold_ptx::machine::{Arg, Halt, Schedule, Shape};

#[test]
fn each_lane_has_as_much_as_it_asks_for() {
    // A list of t % 7 + 1 squares, and behind it another of ones: they do not touch.
    let ptx = kernel(
        "rem.u32 %r1, %t, 7; add.u32 %r1, %r1, 1; mul.wide.u32 %d1, %r1, 4;
         alloca.u64 %d2, %d1, 16; alloca.u64 %d3, %d1; cvta.local.u64 %d4, %d3;
         mov.u32 %r2, 0;
         fill: mul.lo.u32 %r3, %r2, %r2; mul.wide.u32 %d5, %r2, 4; add.u64 %d6, %d2, %d5; st.local.u32 [%d6], %r3;
         add.u64 %d7, %d4, %d5; st.u32 [%d7], 1;
         add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r1; @%p1 bra fill;
         mov.u32 %r4, 0; mov.u32 %r2, 0;
         sum: mul.wide.u32 %d5, %r2, 4; add.u64 %d6, %d2, %d5; ld.local.u32 %r3, [%d6]; add.u32 %r4, %r4, %r3;
         add.u64 %d7, %d3, %d5; ld.local.u32 %r3, [%d7]; add.u32 %r4, %r4, %r3;
         add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r1; @%p1 bra sum;
         and.b64 %d8, %d2, 15; cvt.u32.u64 %r5, %d8; add.u32 %r4, %r4, %r5; st.global.u32 [%o], %r4;",
    );
    for schedule in schedules() {
        let (out, report) = run_one(&ptx, checked(schedule), 70);
        assert!(report.outcome.is_clean(), "{schedule:?}: {}", describe(&report));
        let wanted = |t: u32| (0..t % 7 + 1).map(|i| i * i + 1).sum::<u32>();
        assert_eq!(out, (0..70).map(wanted).collect::<Vec<_>>(), "{schedule:?}");
    }
}

/// A function that allocates, and a loop around: 1000 times 512 bytes are never there at the same time.
fn looped(inside: &str, before: &str, after: &str) -> String {
    module(
        ".func f(.reg .u32 x) { .reg .b64 %d<3>; alloca.u64 %d1, 512; st.local.u32 [%d1+508], x; ret; }",
        &format!(
            "mov.u32 %r1, 0; again: {before} {inside} {after}
             add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 1000; @%p1 bra again; st.global.u32 [%o], %r1;"
        ),
    )
}

#[test]
fn what_a_function_allocated_is_gone_behind_it() {
    let own = "alloca.u64 %d1, 512; st.local.u32 [%d1], %r1;";
    for ptx in [
        looped("call f, (%r1);", "", ""),
        looped(own, "stacksave.u64 %d5;", "stackrestore.u64 %d5;"),
        // Lanes leave in different rounds.
        looped("call f, (%r1);", "setp.gt.u32 %p2, %t, %r1; @%p2 bra over;", "over:"),
    ] {
        for schedule in [Schedule::Lockstep, Schedule::Random { seed: 1 }] {
            let (out, report) = run_one(&ptx, checked(schedule), 40);
            assert!(report.outcome.is_clean(), "{schedule:?}: {}", describe(&report));
            assert_eq!(out, [1000; 40]);
        }
    }
    let (_, report) = run_one(&looped(own, "", ""), checked(Schedule::Lockstep), 40);
    let Some(Halt::Call { what, .. }) = &report.outcome.halt else { panic!("{report:?}") };
    assert!(what.contains("512 bytes do not fit on the stack"), "{what}");
}

#[test]
fn what_is_allocated_again_is_uninitialised() {
    let read = |restore: &str| {
        kernel(&format!(
            "stacksave.u64 %d1; alloca.u64 %d2, 8; st.local.u64 [%d2], 5; {restore}
             ld.local.u32 %r1, [%d2]; st.global.u32 [%o], %r1;"
        ))
    };
    let kinds = |ptx: &str| {
        let (_, report) = run_one(ptx, checked(Schedule::Lockstep), 32);
        found(&report).into_iter().map(|f| f.0).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&read("")), []);
    let again = "stackrestore.u64 %d1; alloca.u64 %d2, 8;";
    assert_eq!(kinds(&read(again)), [Kind::Uninitialised]);
}

#[test]
fn sizes_without_bounds_end() {
    for size in ["-1", "0x7fffffffffffffff", "40000"] {
        let ptx =
            kernel(&format!("mov.u64 %d1, {size}; alloca.u64 %d2, %d1, 64; st.local.u8 [%d2], 0;"));
        let mut b = Bench::new(&ptx, checked(Schedule::Lockstep));
        let out = b.room::<u32>(32);
        let report = b.launch("k", Shape::linear(1, 32), &[Arg::Pointer(out)]).remove(0);
        assert!(matches!(report.outcome.halt, Some(Halt::Call { .. })), "{}", describe(&report));
    }
}
