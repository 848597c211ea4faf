//! Values of 128 bits: moves, loads, stores and atomics.

use crate::bench::{Bench, checked, describe, found, schedules};
use crate::execution::module;
use warpfold_ptx::finding::Kind;
use warpfold_ptx::machine::{Arg, Shape};
use warpfold_ptx::parse::parse;

/// What a grid leaves in 64 KiB of words of 64 bits under each schedule; nothing may be found.
#[track_caller]
fn left(shape: Shape, before: &[u64], body: &str) -> Vec<Vec<u64>> {
    let ptx = module("", body);
    let all = schedules().into_iter().map(|schedule| {
        let mut b = Bench::new(&ptx, checked(schedule));
        let mut memory = vec![0_u64; 8192];
        memory[..before.len()].copy_from_slice(before);
        let out = b.upload(&memory);
        b.launch_clean("k", shape, &[Arg::Pointer(out)]);
        b.download::<u64>(out, memory.len())
    });
    all.collect()
}

#[test]
fn halves_are_moved_together() {
    let body = ".reg .b128 q, %q<3>;
         ld.global.b128 q, [%out]; mov.b128 %q1, q; mov.b128 {%d1, %d2}, %q1;
         st.global.b64 [%out+16], %d2; st.global.b64 [%out+24], %d1;
         mov.b128 %q2, {%d2, %d1}; st.global.b128 [%out+32], %q2;
         mov.b128 {%d1, %d2}, {%d2, %d1}; mov.b128 {_, %d3}, %q2;
         st.global.v2.b64 [%out+48], {%d1, %d2}; st.global.b64 [%out+64], %d3;
         ld.volatile.global.b128 {%d4, %d5}, [%out]; st.relaxed.gpu.global.b128 [%out+80], {%d5, %d4};";
    for memory in left(Shape::linear(1, 1), &[5, 9], body) {
        assert_eq!(memory[..12], [5, 9, 9, 5, 9, 5, 9, 5, 5, 0, 9, 5]);
    }
}

/// Each thread puts its pair in and takes out another's: all of them are there in the end, none torn.
#[test]
fn pairs_are_exchanged_whole() {
    let body = ".reg .b128 new, old; cvt.u64.u32 %d1, %t; mov.u32 %r1, %ctaid.x; mul.wide.u32 %d2, %r1, 1000; add.u64 %d1, %d1, %d2;
         add.u64 %d1, %d1, 1; not.b64 %d2, %d1; mov.b128 new, {%d1, %d2};
         atom.relaxed.gpu.global.exch.b128 old, [%out], new;
         shl.b64 %d3, %d1, 4; add.u64 %d3, %d3, %out; st.global.b128 [%d3+1024], old;";
    for memory in left(Shape::linear(3, 40), &[7_777_777, !7_777_777], body) {
        let pairs = memory.chunks(2).map(|pair| (pair[0], pair[1])).filter(|pair| *pair != (0, 0));
        let mut seen: Vec<u64> = pairs
            .map(|(low, high)| {
                assert_eq!(high, !low);
                low
            })
            .collect();
        seen.sort_unstable();
        let mut expected: Vec<u64> =
            (0..3).flat_map(|block| (1..=40).map(move |t| block * 1000 + t)).collect();
        expected.push(7_777_777);
        assert_eq!(seen, expected);
    }
}

/// A counter of 128 bits that all threads add to.
#[test]
fn a_pair_is_swapped_where_both_halves_are_as_expected() {
    let step = (3_u64 << 62) + 5;
    let body = format!(
        ".reg .b128 seen, was, next; ld.relaxed.gpu.global.b128 seen, [%out];
         again: mov.b128 {{%d1, %d2}}, seen; add.cc.u64 %d3, %d1, {step}; addc.u64 %d4, %d2, 1; mov.b128 next, {{%d3, %d4}};
         atom.global.gpu.acq_rel.cas.b128 was, [%out], seen, next;
         mov.b128 {{%d5, %d6}}, was; mov.b128 seen, was;
         setp.ne.u64 %p1, %d5, %d1; @%p1 bra again; setp.ne.u64 %p1, %d6, %d2; @%p1 bra again;"
    );
    let total = (u128::from(step) + (1 << 64)) * 120 + 7;
    for memory in left(Shape::linear(3, 40), &[7, 0], &body) {
        assert_eq!(u128::from(memory[0]) | u128::from(memory[1]) << 64, total);
    }
}

#[test]
fn one_half_as_expected_is_not_enough() {
    let body = "mov.u64 %d1, 5; mov.u64 %d2, 9; mov.u64 %d3, 8;
         atom.global.cas.b128 {%d4, %d5}, [%out], {%d1, %d3}, {%d3, %d3};
         st.global.v2.b64 [%out+16], {%d4, %d5};
         atom.global.cas.b128 {%d4, %d5}, [%out], {%d3, %d2}, {%d3, %d3};
         ld.global.v2.b64 {%d6, %d7}, [%out]; st.global.v2.b64 [%out+32], {%d6, %d7};
         atom.global.cas.b128 {%d4, %d5}, [%out], {%d1, %d2}, {%d2, %d3};";
    for memory in left(Shape::linear(1, 1), &[5, 9], body) {
        assert_eq!(memory[..6], [9, 8, 5, 9, 5, 9]);
    }
}

#[test]
fn pairs_are_checked_as_other_accesses_are() {
    let values = "mov.u64 %d1, 1; mov.u64 %d2, 2;";
    for (body, expected) in [
        ("st.global.b128 [%out+8], {%d1, %d2};", &[Kind::Misaligned][..]),
        ("atom.global.exch.b128 {%d1, %d2}, [%out+8], {%d1, %d2};", &[Kind::Misaligned]),
        ("ld.global.b128 {%d1, %d2}, [%out+64]; st.global.b64 [%out], %d2;", &[Kind::OutOfBounds]),
        (
            "atom.global.exch.b128 {%d1, %d2}, [%out], {%d1, %d2}; ld.global.b64 %d3, [%out+8]; st.global.b64 [%out+32], %d3;",
            &[Kind::Race],
        ),
        ("atom.global.exch.b128 {%d1, %d2}, [%out], {%d1, %d2};", &[]),
    ] {
        let ptx = module("", &format!("{values} {body}"));
        for schedule in schedules() {
            let mut b = Bench::new(&ptx, checked(schedule));
            let out = Arg::Pointer(b.upload(&[3_u64; 8]));
            let threads = if expected == [Kind::OutOfBounds] { 1 } else { 2 };
            let report = b.launch("k", Shape::linear(1, threads), &[out]).remove(0);
            let mut kinds: Vec<Kind> = found(&report).into_iter().map(|f| f.0).collect();
            kinds.dedup();
            assert_eq!(kinds, expected, "{body} {schedule:?}: {}", describe(&report));
        }
    }
    // What was never written decides.
    let ptx = module(
        "",
        "ld.global.b128 {%d1, %d2}, [%out]; mov.u64 %d1, 0; atom.global.cas.b128 {%d3, %d4}, [%out+16], {%d1, %d1}, {%d1, %d2};",
    );
    let mut b = Bench::new(&ptx, checked(schedules()[0]));
    let out = b.room::<u64>(4);
    b.device.write(out + 16, &[0; 16]).unwrap();
    let report = b.launch("k", Shape::linear(1, 1), &[Arg::Pointer(out)]).remove(0);
    assert!(found(&report).iter().any(|f| f.0 == Kind::Uninitialised), "{}", describe(&report));
}

#[test]
fn pairs_that_are_none_are_refused() {
    for bad in [
        "mov.b128 {%d1, %d2}, %d3;",
        "mov.b128 {%d1, %r2}, {%d3, %d4};",
        "ld.global.b128 %d1, [%out];",
        "atom.global.cas.b128 {%d1, %d2}, [%out], {%d1, %d2};",
        "atom.global.exch.b128 %d1, [%out], {%d1, %d2};",
        ".reg .b128 q; add.u64 %d1, q, 1;",
    ] {
        assert!(parse(&module("", bad)).is_err(), "{bad}");
    }
    let unknown = parse(&module("", "atom.global.add.b128 {%d1, %d2}, [%out], {%d1, %d2};"));
    assert_eq!(unknown.unwrap().unsupported.len(), 1);
}
