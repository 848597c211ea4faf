//! What a call finds in the frame of a function that was called before: nothing.

use crate::bench::{checked, describe, found, plain, schedules};
use crate::execution::{module, run_one};
use warpfold_ptx::finding::Kind;

/// Calls `f`, with 0 and then with 1, by the lanes of a warp as they come; of both results the second one is `%r3`.
fn twice(f: &str, then: &str) -> String {
    module(
        &format!(".shared .align 4 .b8 s[4096];\n{f}"),
        &format!(
            "mov.u32 %r1, 0; call (%r2), f, (%r1); mov.u32 %r1, 1; call (%r3), f, (%r1); {then}"
        ),
    )
}

const BOTH: &str = "mad.lo.u32 %r4, %r2, 1000, %r3; st.global.u32 [%o], %r4;";
const SECOND: &str = "st.global.u32 [%o], %r3;";

/// Lanes stay in the function for different times, so that some call it anew while others are in it.
const STAY: &str = "mov.u32 %r8, %tid.x; and.b32 %r8, %r8, 7; stay: setp.eq.u32 %p8, %r8, 0; @%p8 bra go; sub.u32 %r8, %r8, 1; bra stay; go:";

/// A function `f(x)` that gives `y`, with `%p1` where `x` is 0.
fn function(body: &str) -> String {
    format!(
        ".func (.reg .u32 y) f(.reg .u32 x) {{ .reg .u32 %r<9>; .reg .pred %p<9>; setp.eq.u32 %p1, x, 0; {body} {STAY} ret; }}"
    )
}

#[test]
fn a_function_begins_with_zeros_each_time() {
    let cases = [
        // A register and a predicate that only the first call writes; a loop around, whose first round reads.
        ("@%p1 mov.u32 %r1, 7; add.u32 y, %r1, 1;", 8001),
        ("@%p1 setp.eq.u32 %p2, x, 0; mov.u32 y, 1; @%p2 mov.u32 y, 2;", 2001),
        ("@!%p1 bra over; mov.u32 %r1, 7; over: mov.u32 y, %r1;", 7000),
        ("@%p1 mov.u32 y, 7;", 7000),
        (
            "mov.u32 %r3, 0; again: add.u32 %r1, %r1, x; add.u32 %r1, %r1, 1; add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 3; @%p2 bra again; mov.u32 y, %r1;",
            3006,
        ),
    ];
    for (body, expected) in cases {
        let ptx = twice(&function(body), BOTH);
        for schedule in schedules() {
            for options in [checked(schedule), plain(schedule)] {
                let (out, report) = run_one(&ptx, options, 64);
                assert!(report.outcome.is_clean(), "{body} {schedule:?}: {}", describe(&report));
                assert_eq!(out, [expected; 64], "{body} {schedule:?}");
            }
        }
    }
}

#[test]
fn a_result_in_memory_is_zero_where_nothing_is_stored() {
    let f = ".func (.param .b32 y) f(.param .b32 x) { .reg .u32 %r<9>; .reg .pred %p<9>; ld.param.u32 %r1, [x]; setp.ne.u32 %p1, %r1, 0; @%p1 ret; st.param.b32 [y], 7; ret; }";
    let call = |to: &str, x: u32| {
        format!(
            "{{ .param .b32 a; .param .b32 r; st.param.b32 [a], {x}; call (r), f, (a); ld.param.u32 {to}, [r]; }}"
        )
    };
    let ptx = module(f, &format!("{} {} {BOTH}", call("%r2", 0), call("%r3", 1)));
    for schedule in schedules() {
        let (out, report) = run_one(&ptx, checked(schedule), 32);
        assert!(report.outcome.is_clean(), "{schedule:?}: {}", describe(&report));
        assert_eq!(out, [7000; 32], "{schedule:?}");
    }
}

/// What the first call left undefined is not so for the second one.
#[test]
fn a_call_is_not_blamed_for_an_earlier_one() {
    for body in [
        "@%p1 ld.shared.u32 %r1, [s]; mov.u32 y, %r1;",
        "@!%p1 bra over; ld.shared.u32 %r1, [s]; over: mov.u32 y, %r1;",
        "@!%p1 bra over; ld.shared.u32 %r1, [s]; setp.eq.u32 %p2, %r1, 0; over: selp.u32 y, 1, 2, %p2;",
    ] {
        let ptx = twice(&function(body), SECOND);
        for schedule in schedules() {
            let (_, report) = run_one(&ptx, checked(schedule), 64);
            assert!(report.outcome.is_clean(), "{body} {schedule:?}: {}", describe(&report));
        }
    }
}

/// Its local variables are uninitialised each time, whatever an earlier call stored there.
#[test]
fn local_variables_are_a_calls_own() {
    let kinds = |body: &str| {
        let f = function(body).replacen('{', "{ .local .align 4 .b32 l[5];", 1);
        let ptx = twice(&f, SECOND);
        let mut all = schedules().into_iter().map(|schedule| {
            let (_, report) = run_one(&ptx, checked(schedule), 64);
            assert_eq!(report.outcome.halt, None, "{schedule:?}");
            found(&report).into_iter().map(|f| f.0).collect::<Vec<_>>()
        });
        let first = all.next().unwrap();
        assert!(all.all(|other| other == first), "{body}");
        first
    };
    assert_eq!(kinds("st.local.u32 [l+16], x; ld.local.u32 y, [l+16];"), []);
    assert_eq!(
        kinds("@%p1 st.local.u32 [l+16], 7; ld.local.u32 y, [l+16];"),
        [Kind::Uninitialised]
    );
    assert_eq!(kinds("@%p1 st.local.u32 [l], 7; ld.local.u32 y, [l];"), [Kind::Uninitialised]);
}
