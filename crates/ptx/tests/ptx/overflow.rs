//! Indices that leave one shared variable for the next, where no bound of memory is crossed.

use crate::bench::{checked, describe, schedules};
use crate::execution::{module, run_one};
use warpfold_ptx::finding::Kind;
use warpfold_ptx::machine::Schedule;

const ARRAYS: &str = ".shared .align 4 .b8 a[256]; .shared .align 4 .b8 b[256]; .extern .shared .align 16 .b8 rest[];";

/// What is found in a kernel of 64 threads that has `ARRAYS`, under each schedule.
#[track_caller]
fn details(body: &str) -> Vec<String> {
    // A variable that a kernel does not name takes no memory.
    let ptx = module(ARRAYS, &format!("mov.u32 %r9, a; {body}"));
    let mut all = schedules().into_iter().map(|schedule| {
        let (_, report) = run_one(&ptx, checked(schedule), 64);
        assert_eq!(report.outcome.halt, None, "{}", describe(&report));
        let found = report.outcome.findings.all();
        assert!(found.iter().all(|f| f.fault.kind == Kind::OutOfBounds), "{}", describe(&report));
        found.iter().map(|f| format!("{}: {}", f.fault.place, f.fault.detail)).collect::<Vec<_>>()
    });
    // The most regular order names the first lane.
    let first = all.next().unwrap();
    assert!(all.all(|other| other.len() == first.len()), "{body}");
    first
}

/// Stores to a word of `a`, so many words further than the thread's, or loads from there.
fn shifted(words: i32, load: bool) -> String {
    let access = if load { "ld.shared.u32 %r4, [%r3];" } else { "st.shared.u32 [%r3], %t;" };
    format!(
        "setp.eq.u32 %p1, %t, 63; mov.u32 %r1, a; mad.lo.u32 %r1, %t, 4, %r1; st.shared.u32 [%r1], %t; mov.u32 %r1, b; mad.lo.u32 %r1, %t, 4, %r1; st.shared.u32 [%r1], %t; bar.sync 0;
         mov.u32 %r2, a; add.s32 %r5, %t, {words}; mad.lo.s32 %r3, %r5, 4, %r2; @%p1 {access}"
    )
}

#[test]
fn an_index_that_leaves_its_array_for_the_next_one_is_found() {
    for load in [false, true] {
        let body = shifted(1, load);
        assert_eq!(
            details(&body),
            ["block 0, thread 63 (warp 1, lane 31): 0 bytes past the 256 bytes of `a`, in `b`"],
            "{body}"
        );
        assert_eq!(details(&shifted(0, load)), [""; 0]);
    }
}

#[test]
fn the_way_back_is_found_too() {
    let body = "mov.u32 %r1, b; mad.lo.u32 %r2, %t, 4, %r1; st.shared.u32 [%r2+-4], %t;";
    assert_eq!(
        details(body),
        ["block 0, thread 0 (warp 0, lane 0): 4 bytes before the 256 bytes of `b`, in `a`"]
    );
}

#[test]
fn generic_addresses_vectors_and_atomics_are_held_to_their_array() {
    let lane_63 = "setp.ne.u32 %p1, %t, 63; @%p1 ret; bar.warp.sync 0x80000000;";
    for (body, expected) in [
        (
            "mov.u64 %d1, a; cvta.shared.u64 %d2, %d1; mul.wide.u32 %d3, %t, 4; add.s64 %d4, %d2, %d3; st.u32 [%d4+4], 1;",
            "0 bytes past",
        ),
        (
            "mov.u32 %r1, a; mad.lo.u32 %r1, %t, 4, %r1; red.shared.add.u32 [%r1+4], 1;",
            "0 bytes past",
        ),
        (
            "mov.u32 %r1, a; mad.lo.u32 %r1, %t, 4, %r1; st.shared.v2.u32 [%r1+4], {%t, %t};",
            "0 bytes past",
        ),
        ("st.shared.u32 [a+300], 1;", "44 bytes past"),
    ] {
        let found = details(&format!("{lane_63} {body}"));
        assert!(found.len() == 1 && found[0].contains(expected), "{body}: {found:?}");
    }
}

/// A dynamic array has the size that the launch gives, an address that was loaded means no variable, and one array alone ends with the memory.
#[test]
fn where_nothing_is_known_nothing_is_said() {
    for body in [
        "mov.u32 %r1, rest; st.shared.u32 [%r1+-4], %t;",
        "mov.u32 %r1, a; @%p2 mov.u32 %r1, b; add.u32 %r1, %r1, 256; st.shared.u32 [%r1], 1;",
    ] {
        let ptx = module(
            ARRAYS,
            &format!(
                "mov.u32 %r9, a; setp.ne.u32 %p1, %t, 0; setp.ne.u32 %p2, %t, %t; @%p1 ret; {body}"
            ),
        );
        let (_, report) = run_one(&ptx, checked(Schedule::Lockstep), 64);
        assert!(report.outcome.is_clean(), "{}", describe(&report));
    }
}
