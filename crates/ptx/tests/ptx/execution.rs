//! How lanes, warps and blocks run, in small kernels written by hand.

use crate::bench::{Bench, checked, describe, found, plain, schedules};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use warpfold_ptx::device::{Device, DeviceError, Report, Setup};
use warpfold_ptx::finding::Kind;
use warpfold_ptx::machine::{Arg, Checks, Halt, LaunchError, Options, Schedule, Shape, Watch};

/// A kernel `k(.u64 out)` with some registers declared, `%t` the thread and `%o` where its word of the output lies.
pub(crate) fn kernel(body: &str) -> String {
    module("", body)
}

pub(crate) fn module(before: &str, body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n{before}\n\
         .visible .entry k(.param .u64 p)\n{{\n\
         .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<19>; .reg .b64 %d<19>; .reg .f32 %f<9>; .reg .f64 %g<9>;\n\
         .reg .b32 %t; .reg .b64 %o, %out;\n\
         ld.param.u64 %out, [p];\n\
         mov.u32 %t, %tid.x;\n\
         mul.wide.u32 %o, %t, 4;\n\
         add.u64 %o, %out, %o;\n\
         {body}\n\
         ret;\n}}\n"
    )
}

/// Runs `k` on one block and gives its output, one word for each thread.
pub(crate) fn run_one(ptx: &str, options: Options, threads: u32) -> (Vec<u32>, Report) {
    let mut b = Bench::new(ptx, options);
    let out = b.upload(&vec![0u32; threads as usize]);
    let report = b.launch("k", Shape::linear(1, threads), &[Arg::Pointer(out)]).remove(0);
    (b.download(out, threads as usize), report)
}

/// Runs `k` under every schedule, clean, and gives what all of them agree on.
fn agreed(ptx: &str, threads: u32) -> Vec<u32> {
    let mut outputs = schedules().into_iter().map(|schedule| {
        let (out, report) = run_one(ptx, checked(schedule), threads);
        assert!(report.outcome.is_clean(), "{schedule:?}: {}", describe(&report));
        out
    });
    let first = outputs.next().unwrap();
    assert!(outputs.all(|other| other == first));
    first
}

#[test]
fn vectors_of_256_bits_are_moved_whole() {
    // Word i of a thread's eight goes round by one place, through shared memory.
    for (load, store) in [
        (
            "v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}",
            "v8.b32 X, {%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r1}",
        ),
        ("v4.b64 {%d3, %d4, %d5, %d6}", "v4.b64 X, {%d4, %d5, %d6, %d3}"),
        ("v2.b128 {%q1, %q2}", "v2.b128 X, {%q2, %q1}"),
    ] {
        let round = match load.as_bytes()[1] {
            b'8' => 1,
            b'4' => 2,
            _ => 4,
        };
        let ptx = module(
            ".shared .align 32 .b8 s[1024];",
            &format!(
                ".reg .b128 %q<3>; shl.b32 %r9, %t, 5; cvt.u64.u32 %d1, %r9; add.u64 %d2, %out, %d1; mov.u32 %r10, s; add.u32 %r10, %r10, %r9;
                 ld.global.{load}, [%d2]; st.shared.{}; ld.shared.{load}, [%r10]; st.global.{};",
                store.replace('X', "[%r10]"),
                store.replace('X', "[%d2]"),
            ),
        );
        for schedule in schedules() {
            let mut b = Bench::new(&ptx, checked(schedule));
            let words: Vec<u32> = (0..256).collect();
            let out = b.upload(&words);
            let reports = b.launch_clean("k", Shape::linear(1, 32), &[Arg::Pointer(out)]);
            let moved = |i: u32| i / 8 * 8 + (i + 2 * round) % 8;
            assert_eq!(b.download::<u32>(out, 256), (0..256).map(moved).collect::<Vec<_>>());
            let counters = reports[0].outcome.counters.as_ref().unwrap();
            assert_eq!(counters.total().global_loads.sectors, 32, "{schedule:?}");
        }
        let shifted =
            ptx.replace("add.u64 %d2, %out, %d1;", "add.u64 %d2, %out, %d1; add.u64 %d2, %d2, 16;");
        let mut b = Bench::new(&shifted, checked(Schedule::Lockstep));
        let out = b.upload(&[0u32; 512]);
        let report = b.launch("k", Shape::linear(1, 32), &[Arg::Pointer(out)]).remove(0);
        assert_eq!(found(&report)[0].0, Kind::Misaligned);
    }
}

#[test]
fn lanes_that_part_meet_again() {
    // Loops of different lengths in a branch; behind it all 32 lanes are active again.
    let ptx = kernel(
        "mov.u32 %r1, 0;
         setp.lt.u32 %p1, %t, 20;
         @!%p1 bra over;
         loop:
         add.u32 %r1, %r1, 1;
         setp.le.u32 %p2, %r1, %t;
         @%p2 bra loop;
         over:
         activemask.b32 %r2;
         st.global.u32 [%o], %r1;",
    );
    let options = Options { counters: true, ..plain(Schedule::Lockstep) };
    let (out, report) = run_one(&ptx, options, 32);
    let expected: Vec<u32> = (0..32).map(|t| if t < 20 { t + 1 } else { 0 }).collect();
    assert_eq!(out, expected);
    let counters = report.outcome.counters.unwrap();
    let store =
        counters.by_ptx_line().map(|(_, c)| c).find(|c| c.global_stores.requests > 0).unwrap();
    assert_eq!(
        (store.instructions, store.lane_instructions),
        (1, 32),
        "one store of the whole warp"
    );
    let total = counters.total();
    assert_eq!((total.branches, total.divergent_branches), (1 + 20, 1 + 19));
    assert_eq!(agreed(&ptx, 32), expected);
}

#[test]
fn what_is_not_supported_stops_who_reaches_it() {
    let ptx = kernel(
        "setp.lt.u32 %p1, %t, %ntid.x;
         @%p1 bra over;
         wgmma.fence.sync.aligned;
         over:
         setp.eq.u32 %p2, %t, 40;
         @%p2 tanh.approx.f64 %g1, %g2;
         st.global.u32 [%o], 5;",
    );
    for schedule in schedules() {
        let (out, report) = run_one(&ptx, checked(schedule), 40);
        assert!(report.outcome.is_clean(), "{schedule:?}: {}", describe(&report));
        assert_eq!(out, [5; 40]);
        let (_, report) = run_one(&ptx, checked(schedule), 41);
        let Some(Halt::Unsupported { line, place, what }) = &report.outcome.halt else {
            panic!("{schedule:?}: {}", describe(&report));
        };
        assert_eq!(
            (place.thread, ptx.lines().nth(line.ptx as usize - 1).unwrap().trim()),
            (40, "@%p2 tanh.approx.f64 %g1, %g2;")
        );
        assert!(what.contains("`tanh.approx.f64` is not supported"), "{what}");
    }
}

/// An index into a struct that is handed over by value makes the compiler take the parameter's address.
#[test]
fn the_address_of_a_functions_parameter_may_be_taken() {
    let ptx = module(
        ".func (.param .b32 r) pick(.param .align 8 .b8 s[32], .param .b32 i) {
         .reg .b32 %r<9>; .reg .b64 %d<9>;
         ld.param.u32 %r1, [i];
         mov.b64 %d1, s;
         mul.wide.u32 %d2, %r1, 4;
         add.s64 %d3, %d1, %d2;
         ld.param.u32 %r2, [%d3];
         cvta.param.u64 %d4, %d1;
         add.s64 %d5, %d4, %d2;
         ld.u32 %r3, [%d5];
         st.param.u32 [%d1+28], %r3;
         ld.param.u32 %r4, [s+28];
         add.u32 %r2, %r2, %r4;
         st.param.b32 [r], %r2;
         ret; }",
        "and.b32 %r1, %t, 7;
         { .param .align 8 .b8 s[32]; .param .b32 i; .param .b32 r;
         mov.b64 %d1, s;
         st.param.v2.b32 [s], {10, 11}; st.param.v2.b32 [%d1+8], {12, 13};
         st.param.v2.b32 [s+16], {14, 15}; st.param.v2.b32 [s+24], {16, 17};
         st.param.b32 [i], %r1;
         call.uni (r), pick, (s, i);
         ld.param.b32 %r2, [r]; }
         st.global.u32 [%o], %r2;",
    );
    let expected: Vec<u32> = (0..40).map(|t| 2 * (10 + t % 8)).collect();
    assert_eq!(agreed(&ptx, 40), expected);
    // NVRTC calls that memory local.
    let local = ptx.replace("cvta.param.u64", "cvta.local.u64");
    let local = local.replace("ld.param.u32 %r2, [%d3];", "ld.local.u32 %r2, [%d3];");
    assert_ne!(local, ptx);
    assert_eq!(agreed(&local, 40), expected);
    let past = ptx.replace("[%d1+28], %r3", "[%d1+9999], %r3").replace("[s+28]", "[%d3]");
    let (_, report) = run_one(&past, checked(Schedule::Lockstep), 32);
    assert_eq!(found(&report)[0].0, Kind::OutOfBounds, "{}", describe(&report));
}

#[test]
fn a_lane_may_wait_for_another_of_its_warp() {
    // Lane 0 spins in its branch until lane 1, which is behind the branch, has set the flag.
    let ptx = kernel(
        "setp.ne.u32 %p1, %t, 0;
         @%p1 bra behind;
         spin:
         ld.volatile.global.u32 %r1, [%out+4];
         setp.eq.u32 %p2, %r1, 0;
         @%p2 bra spin;
         behind:
         setp.ne.u32 %p3, %t, 1;
         @%p3 bra over;
         mov.u32 %r2, 7;
         st.volatile.global.u32 [%out+4], %r2;
         over:",
    );
    for schedule in schedules() {
        let (out, report) = run_one(&ptx, plain(schedule), 32);
        assert!(report.outcome.is_clean(), "{schedule:?}: {}", describe(&report));
        assert_eq!(out[1], 7);
    }
}

#[test]
fn a_warp_barrier_may_be_reached_in_two_places() {
    let ptx = module(
        ".shared .align 4 .b32 s[32];",
        "mov.u32 %r1, s;
         mad.lo.u32 %r2, %t, 4, %r1;
         setp.lt.u32 %p1, %t, 16;
         @%p1 bra low;
         st.shared.u32 [%r2], %t;
         bar.warp.sync 0xffffffff;
         bra.uni meet;
         low:
         st.shared.u32 [%r2], %t;
         bar.warp.sync 0xffffffff;
         meet:
         xor.b32 %r3, %t, 31;
         mad.lo.u32 %r4, %r3, 4, %r1;
         ld.shared.u32 %r5, [%r4];
         st.global.u32 [%o], %r5;",
    );
    assert_eq!(agreed(&ptx, 32), (0..32).map(|t| 31 - t).collect::<Vec<_>>());
}

#[test]
fn a_shuffle_that_some_named_lanes_never_reach_is_found() {
    let ptx = kernel(
        "setp.ge.u32 %p1, %t, 16;
         @%p1 bra over;
         shfl.sync.idx.b32 %r1, %t, 3, 31, 0xffffffff;
         st.global.u32 [%o], %r1;
         over:
         bar.warp.sync 0xffffffff;",
    );
    for schedule in schedules() {
        let (out, report) = run_one(&ptx, checked(schedule), 32);
        assert_eq!(found(&report)[0].0, Kind::MaskNamesAbsentLane, "{schedule:?}");
        assert_eq!(out[..17], [&[3u32; 16][..], &[0]].concat());
        assert_eq!(report.outcome.halt, None);
    }
}

#[test]
fn a_partial_warp_is_a_whole_of_its_lanes() {
    // 40 threads: the second warp has 8 lanes; masks name 32 of them all the same.
    let ptx = kernel(
        "vote.sync.ballot.b32 %r1, 1, 0xffffffff;
         popc.b32 %r2, %r1;
         bar.sync 0;
         st.global.u32 [%o], %r2;",
    )
    .replace("%r1, 1, 0xffffffff", "%r1, %p1, 0xffffffff")
    .replace("vote.sync", "setp.ge.u32 %p1, %t, 0;\nvote.sync");
    let expected: Vec<u32> = (0..40).map(|t| if t < 32 { 32 } else { 8 }).collect();
    assert_eq!(agreed(&ptx, 40), expected);
}

#[test]
fn barriers_with_numbers_and_counts() {
    // Two pairs of warps, each pair with a barrier of its own, and everybody again at barrier 0.
    let ptx = module(
        ".shared .align 4 .b32 s[128];",
        "mov.u32 %r1, s;
         mad.lo.u32 %r2, %t, 4, %r1;
         st.shared.u32 [%r2], %t;
         shr.u32 %r3, %t, 6;
         add.u32 %r3, %r3, 1;
         barrier.sync %r3, 64;
         xor.b32 %r4, %t, 32;
         mad.lo.u32 %r4, %r4, 4, %r1;
         ld.shared.u32 %r5, [%r4];
         bar.sync 0;
         xor.b32 %r6, %t, 64;
         mad.lo.u32 %r6, %r6, 4, %r1;
         ld.shared.u32 %r7, [%r6];
         add.u32 %r7, %r7, %r5;
         st.global.u32 [%o], %r7;",
    );
    assert_eq!(agreed(&ptx, 128), (0..128).map(|t| (t ^ 32) + (t ^ 64)).collect::<Vec<_>>());
}

#[test]
fn generic_addresses_reach_every_memory() {
    let ptx = module(
        ".shared .align 8 .b64 s[64];\n.const .align 4 .b32 c[2] = {40, 50};",
        ".local .align 8 .b64 l[2];
         mov.u64 %d1, s;
         cvta.shared.u64 %d1, %d1;
         mad.wide.u32 %d2, %t, 8, %d1;
         mov.u64 %d3, l;
         cvta.local.u64 %d3, %d3;
         mov.u64 %d4, c;
         cvta.const.u64 %d4, %d4;
         and.b32 %r1, %t, 1;
         setp.eq.u32 %p1, %r1, 0;
         selp.b64 %d5, %d2, %d3, %p1;
         mul.lo.u32 %r2, %t, 3;
         st.u32 [%d5], %r2;
         selp.b64 %d6, %d4, %d5, %p1;
         ld.u32 %r3, [%d6];
         ld.u32 %r4, [%d5];
         add.u32 %r3, %r3, %r4;
         isspacep.shared %p2, %d5;
         @%p2 add.u32 %r3, %r3, 1000;
         st.u32 [%o], %r3;",
    );
    let expected: Vec<u32> =
        (0..64).map(|t| if t % 2 == 0 { 40 + 3 * t + 1000 } else { 6 * t }).collect();
    assert_eq!(agreed(&ptx, 64), expected);
}

#[test]
fn structs_passed_by_value_are_read_in_vectors() {
    let ptx = ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 p, .param .align 16 .b8 s[24])\n{\n\
         .reg .b32 %r<9>; .reg .b64 %d<9>;\n\
         ld.param.u64 %d1, [p];\n\
         ld.param.v4.u32 {%r1, %r2, %r3, %r4}, [s];\n\
         ld.param.v2.u32 {%r5, %r6}, [s+16];\n\
         mov.b64 %d2, s;\n\
         ld.param.v2.u32 {%r7, %r8}, [%d2+8];\n\
         st.global.v4.u32 [%d1], {%r1, %r2, %r3, %r4};\n\
         st.global.v4.u32 [%d1+16], {%r5, %r6, %r7, %r8};\n\
         ret;\n}\n";
    let mut b = Bench::new(ptx, checked(Schedule::Lockstep));
    let out = b.upload(&[0u32; 8]);
    let fields: Vec<u8> = (11u32..17).flat_map(|word| word.to_le_bytes()).collect();
    let arguments = [Arg::Pointer(out), Arg::Bytes(&fields)];
    let report = b.launch("k", Shape::linear(1, 1), &arguments).remove(0);
    assert!(report.outcome.is_clean(), "{}", describe(&report));
    assert_eq!(b.download::<u32>(out, 8), [11, 12, 13, 14, 15, 16, 13, 14]);
}

#[test]
fn accesses_that_cannot_be_are_skipped_and_the_rest_goes_on() {
    let ptx = kernel(
        "mul.wide.u32 %d1, %t, 1024;\nadd.u64 %d1, %out, %d1;\nld.global.u32 %r1, [%d1];\nst.global.u32 [%o], %r1;",
    );
    let (out, report) = run_one(&ptx, plain(Schedule::Lockstep), 4);
    assert_eq!(out, [0, u32::MAX, u32::MAX, u32::MAX]);
    assert_eq!(found(&report).len(), 1);
    assert_eq!(report.outcome.findings.all()[0].count, 3);
    let ptx =
        kernel("st.global.u32 [12345], %t;\nld.local.u32 %r1, [64];\nld.shared.u32 %r1, [4096];");
    let (_, report) = run_one(&ptx, plain(Schedule::Lockstep), 1);
    assert!(found(&report).iter().all(|(kind, _)| *kind == Kind::OutOfBounds));
    assert_eq!(found(&report).len(), 3);
}

/// The system's kilobyte is ahead of all variables: larger alignments than that are lost, as on a device.
#[test]
fn shared_variables_lie_behind_the_systems() {
    let ptx = module(
        ".shared .align 8192 .b8 table[8192];\n.shared .align 512 .b8 other[4];",
        "mov.u32 %r1, table;\nmov.u32 %r2, other;\nand.b32 %r3, %r1, 1023;\nsub.u32 %r4, %r2, %r1;\nadd.u32 %r4, %r4, %r3;\n\
         and.b32 %r1, %r1, 8191;\nadd.u32 %r4, %r4, %r1;\nst.global.u32 [%o], %r4;",
    );
    assert_eq!(agreed(&ptx, 1), [8192 + 1024]);
    let ptx = kernel("ld.shared.u32 %r1, [1020];");
    let (_, report) = run_one(&ptx, plain(Schedule::Lockstep), 1);
    assert_eq!(found(&report).len(), 1);
    assert!(describe(&report).contains("which are reserved"), "{}", describe(&report));
}

#[test]
fn endless_loops_end_at_the_limit() {
    for body in ["l:\nbra.uni l;", "l:\nsetp.eq.u32 %p1, %t, 5;\n@%p1 bra l;\nbar.sync 0;"] {
        for schedule in schedules() {
            let options = Options { instructions: 10_000, ..checked(schedule) };
            let (_, report) = run_one(&kernel(body), options, 64);
            let Some(Halt::InstructionLimit { limit, .. }) = report.outcome.halt else {
                panic!("{schedule:?}: {:?}", report.outcome.halt)
            };
            assert_eq!(limit, 10_000);
            assert!(report.outcome.instructions <= 10_100, "{}", report.outcome.instructions);
        }
    }
}

#[test]
fn a_deadlock_names_who_waits_where() {
    // Warp 1 waits for 128 threads at barrier 3, where only 64 can come.
    let ptx = kernel("bar.sync 3, 128;");
    for schedule in schedules() {
        let (_, report) = run_one(&ptx, checked(schedule), 64);
        let Some(Halt::Deadlock { waiting }) = &report.outcome.halt else { panic!("{schedule:?}") };
        assert_eq!(waiting.iter().map(|w| w.lanes.count_ones()).sum::<u32>().min(16), 16);
        assert!(
            waiting[0].what.contains("barrier 3, where 64 of 128 threads are"),
            "{}",
            waiting[0]
        );
        assert_eq!(waiting[0].line.ptx, 13);
    }
}

#[test]
fn traps_and_bottomless_recursion_halt() {
    let (_, report) =
        run_one(&kernel("setp.eq.u32 %p1, %t, 9;\n@%p1 trap;"), checked(Schedule::Lockstep), 32);
    let Some(Halt::Trap { place, .. }) = report.outcome.halt else { panic!() };
    assert_eq!(place.thread, 9);
    let f = ".func f(.param .b32 x)\n{\n.reg .b32 %r<3>;\nld.param.b32 %r1, [x];\n\
             { .param .b32 a;\nst.param.b32 [a], %r1;\ncall f, (a);\n}\nret;\n}";
    let ptx = module(f, "{ .param .b32 a;\nst.param.b32 [a], %t;\ncall f, (a);\n}");
    let (_, report) = run_one(&ptx, checked(Schedule::Lockstep), 32);
    assert!(matches!(report.outcome.halt, Some(Halt::Call { .. })), "{:?}", report.outcome.halt);
}

#[test]
fn equal_seeds_give_equal_runs() {
    // A race whose outcome depends on the order: the last lane to store wins, and atomics tell who came when.
    let ptx = kernel(
        "atom.global.add.u32 %r1, [%out], 1;
         st.global.u32 [%out+4], %t;
         ld.global.u32 %r2, [%out+4];
         shl.b32 %r1, %r1, 8;
         or.b32 %r1, %r1, %r2;
         setp.gt.u32 %p1, %t, 1;
         @%p1 st.global.u32 [%o], %r1;",
    );
    let run = |schedule| {
        let mut b = Bench::new(&ptx, checked(schedule));
        let out = b.upload(&[0u32; 96]);
        let report = b.launch("k", Shape::linear(3, 96), &[Arg::Pointer(out)]).remove(0);
        let findings: Vec<String> =
            report.outcome.findings.all().iter().map(ToString::to_string).collect();
        (
            b.download::<u32>(out, 96),
            findings,
            report.outcome.counters.unwrap().total(),
            report.outcome.instructions,
        )
    };
    let mut distinct = Vec::new();
    for schedule in schedules() {
        let first = run(schedule);
        assert_eq!(first, run(schedule), "{schedule:?}");
        assert!(!first.1.is_empty());
        if !distinct.contains(&first.0) {
            distinct.push(first.0);
        }
    }
    assert!(distinct.len() >= 5, "schedules differ: {}", distinct.len());
}

#[test]
fn unordered_blocks_of_a_spin_on_a_later_one_make_progress() {
    // Block 0 waits for the last block: blocks become resident until that one runs.
    let ptx = kernel(
        "mov.u32 %r1, %ctaid.x;
         mov.u32 %r2, %nctaid.x;
         sub.u32 %r2, %r2, 1;
         setp.eq.u32 %p1, %r1, %r2;
         @%p1 bra last;
         spin:
         ld.acquire.gpu.global.u32 %r3, [%out];
         setp.eq.u32 %p2, %r3, 0;
         @%p2 bra spin;
         bra.uni over;
         last:
         st.release.gpu.global.u32 [%out], 1;
         over:",
    )
    .replace("[%out], 1;", "[%out], %r2;");
    for schedule in schedules() {
        let mut b = Bench::new(&ptx, checked(schedule));
        let out = b.upload(&[0u32]);
        let report = b.launch("k", Shape::linear(40, 1), &[Arg::Pointer(out)]).remove(0);
        assert!(report.outcome.is_clean(), "{schedule:?}: {}", describe(&report));
        assert_eq!(b.download::<u32>(out, 1), [39]);
    }
}

/// Launches with a shape and arguments that cannot be.
fn refusal(ptx: &str, shape: Shape, args: &[Arg<'_>]) -> LaunchError {
    let mut device = Device::new(Setup::default());
    let module = device.load(ptx).unwrap();
    let kernel = device.kernel(module, "k").unwrap();
    match device.run_to_end(kernel, &shape, args) {
        Err(DeviceError::Launch(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn launches_that_cannot_be_are_refused() {
    let ptx = kernel("");
    let p = [Arg::Pointer(0)];
    let linear = Shape::linear;
    assert!(matches!(
        refusal(&ptx, linear(0, 32), &p),
        LaunchError::Dimensions { what: "a grid", .. }
    ));
    assert!(matches!(
        refusal(&ptx, linear(1, 0), &p),
        LaunchError::Dimensions { what: "a block", .. }
    ));
    assert!(matches!(refusal(&ptx, linear(u32::MAX, 1), &p), LaunchError::Dimensions { .. }));
    assert!(matches!(
        refusal(&ptx, Shape { block: [32, 33, 1], ..linear(1, 1) }, &p),
        LaunchError::Threads { asked: 1056, .. }
    ));
    let huge = Shape { grid: [0x7fff_ffff, 65535, 65535], ..linear(1, 1) };
    assert!(matches!(refusal(&ptx, huge, &p), LaunchError::GridSize { .. }));
    assert!(matches!(
        refusal(&ptx, linear(1, 1).with_shared(49 << 10), &p),
        LaunchError::Shared { .. }
    ));
    assert!(matches!(
        refusal(&ptx, Shape { cooperative: true, ..linear(100_000, 1024) }, &p),
        LaunchError::Cooperative { .. }
    ));
    assert!(matches!(
        refusal(&ptx, Shape { cluster: Some([3, 1, 1]), ..linear(4, 1) }, &p),
        LaunchError::Cluster { .. }
    ));
    assert!(matches!(
        refusal(&ptx, linear(1, 1), &[]),
        LaunchError::ArgumentCount { expected: 1, given: 0, .. }
    ));
    assert!(matches!(
        refusal(&ptx, linear(1, 1), &[Arg::U32(1)]),
        LaunchError::ArgumentType { index: 0, .. }
    ));
    assert!(matches!(
        refusal(&ptx, linear(1, 1), &[Arg::F64(1.0)]),
        LaunchError::ArgumentType { .. }
    ));
    let bounded = ptx.replace("k(.param .u64 p)", "k(.param .u64 p)\n.reqntid 64");
    assert!(matches!(refusal(&bounded, linear(1, 32), &p), LaunchError::RequiredBlock { .. }));
    let bounded = ptx.replace("k(.param .u64 p)", "k(.param .u64 p)\n.maxntid 64");
    assert!(matches!(refusal(&bounded, linear(1, 65), &p), LaunchError::Threads { limit: 64, .. }));
    let aligned = ptx.replace(".u64 p)", ".u64 .ptr .global .align 16 p)");
    assert!(matches!(
        refusal(&aligned, linear(1, 1), &[Arg::Pointer(8)]),
        LaunchError::ArgumentAlignment { align: 16, .. }
    ));
}

/// A refused argument is told by what is wrong with it: its type, or its size.
#[test]
fn refused_arguments_say_what_differs() {
    let ptx = |parameter: &str| {
        format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param {parameter}) {{ ret; }}"
        )
    };
    for (parameter, arg, given, expected) in [
        (".f32 p", Arg::U32(1000), "u32:1000", "f32"),
        (".f64 p", Arg::I64(-3), "i64:-3", "f64"),
        (".f64 p", Arg::Pointer(8), "an address", "f64"),
        (".u32 p", Arg::F32(0.5), "f32:0.5", "u32"),
        (".u64 p", Arg::U32(7), "u32:7 (4 bytes)", "u64 (8 bytes)"),
        (".f32 p", Arg::F64(0.5), "f64:0.5 (8 bytes)", "f32 (4 bytes)"),
        (".align 4 .b8 p[12]", Arg::Bytes(&[0; 8]), "a struct (8 bytes)", "12 times b8 (12 bytes)"),
    ] {
        let why = refusal(&ptx(parameter), Shape::linear(1, 1), &[arg]).to_string();
        let told = format!("argument 0 is {given}; parameter `p` of kernel `k` is {expected}");
        assert_eq!(why, told);
    }
}

#[test]
fn large_shared_memory_needs_an_opt_in() {
    let mut device = Device::new(Setup::default());
    let module =
        device.load(&kernel("mov.u32 %r1, %total_smem_size;\nst.global.u32 [%o], %r1;")).unwrap();
    let k = device.kernel(module, "k").unwrap();
    let out = device.allocate(4).unwrap();
    device.opt_in_to_shared(k).unwrap();
    let most = 227 << 10;
    let reports =
        device.run_to_end(k, &Shape::linear(1, 1).with_shared(most), &[Arg::Pointer(out)]).unwrap();
    assert!(reports[0].outcome.is_clean());
    let mut bytes = [0; 4];
    device.read(out, &mut bytes).unwrap();
    assert_eq!(u32::from_le_bytes(bytes), most);
    let more =
        device.run_to_end(k, &Shape::linear(1, 1).with_shared(most + 1), &[Arg::Pointer(out)]);
    assert!(matches!(more, Err(DeviceError::Launch(LaunchError::Shared { .. }))));
}

#[test]
fn freed_memory_and_unknown_names_are_told() {
    let mut device = Device::new(Setup::default());
    let module = device.load(&kernel("st.global.u32 [%o], %t;")).unwrap();
    let Err(DeviceError::NoKernel { kernels, .. }) = device.kernel(module, "nobody") else {
        panic!()
    };
    assert_eq!(kernels, ["k"]);
    let k = device.kernel(module, "k").unwrap();
    let out = device.allocate(4).unwrap();
    device.free(out).unwrap();
    assert!(matches!(device.free(out), Err(DeviceError::Memory(_))));
    let reports = device.run_to_end(k, &Shape::linear(1, 1), &[Arg::Pointer(out)]).unwrap();
    assert_eq!(found(&reports[0])[0].0, Kind::Freed);
    device.unload(module).unwrap();
    assert_eq!(device.kernel(module, "k"), Err(DeviceError::Handle));
    assert_eq!(
        device.launch(k, &Shape::linear(1, 1), &[Arg::Pointer(out)], Default::default()),
        Err(DeviceError::Handle)
    );
}

#[test]
fn checks_are_switched_one_by_one() {
    let ptx = module(
        ".shared .align 4 .b32 s[64];",
        "mov.u32 %r1, s;\nld.shared.u32 %r2, [%r1];\nst.global.u32 [%o], %r2;\nst.shared.u32 [%r1], %t;\nsetp.lt.u32 %p1, %t, 32;\n@%p1 ret;\nbar.sync 0;\n\
         shfl.sync.idx.b32 %r3, %t, 0, 31, 1;",
    );
    let kinds = |checks| {
        let (_, report) = run_one(&ptx, Options { checks, ..checked(Schedule::Lockstep) }, 64);
        let mut kinds: Vec<Kind> = found(&report).into_iter().map(|f| f.0).collect();
        kinds.dedup();
        kinds
    };
    assert_eq!(kinds(Checks::NONE), []);
    assert_eq!(kinds(Checks { barriers: true, ..Checks::NONE }), []);
    let strict = Checks { barriers: true, strict: true, ..Checks::NONE };
    assert_eq!(kinds(strict), [Kind::PartialBarrier]);
    assert_eq!(kinds(Checks { uninitialised: true, ..Checks::NONE }), [Kind::Uninitialised]);
    assert_eq!(kinds(Checks { masks: true, ..Checks::NONE }), [Kind::MaskOmitsLane]);
    assert_eq!(kinds(Checks { races: true, ..Checks::NONE }), [Kind::Race]);
}

/// `d = op a, b, c` on words: a kernel that reads three from the thread's row and writes one, under a name of PTX.
fn row_kernel(instruction: &str) -> String {
    kernel(&format!(
        "mul.wide.u32 %d1, %t, 32;
         add.u64 %d1, %out, %d1;
         ld.global.u64 %d2, [%d1];
         ld.global.u64 %d3, [%d1+8];
         ld.global.u64 %d4, [%d1+16];
         cvt.u32.u64 %r2, %d2; cvt.u32.u64 %r3, %d3; cvt.u32.u64 %r4, %d4;
         cvt.u16.u64 %h2, %d2; cvt.u16.u64 %h3, %d3; cvt.u16.u64 %h4, %d4;
         mov.b32 %f2, %r2; mov.b32 %f3, %r3; mov.b32 %f4, %r4;
         mov.b64 %g2, %d2; mov.b64 %g3, %d3; mov.b64 %g4, %d4;
         mov.u64 %d5, 0;
         {instruction}
         st.global.u64 [%d1+24], %d5;"
    ))
}

/// A word of 32 bits as the result.
fn word(instruction: &str) -> String {
    row_kernel(&format!("{instruction} cvt.u64.u32 %d5, %r5;"))
}

/// The same for a single.
fn single(instruction: &str) -> String {
    row_kernel(&format!("{instruction} mov.b32 %r5, %f5; cvt.u64.u32 %d5, %r5;"))
}

#[test]
fn instructions_reach_the_function_that_computes_them() {
    type Row = [u64; 3];
    type Oracle = fn(Row) -> u64;
    fn s(x: u64) -> i32 {
        x as u32 as i32
    }
    fn g(x: u64) -> f32 {
        f32::from_bits(x as u32)
    }
    fn w(x: i32) -> u64 {
        u64::from(x as u32)
    }
    fn b(x: f32) -> u64 {
        if x.is_nan() { 0x7fff_ffff } else { x.to_bits().into() }
    }
    let cases: Vec<(String, Oracle)> = vec![
        (word("sub.s32 %r5, %r2, %r3;"), |[a, b, _]| w(s(a).wrapping_sub(s(b)))),
        (word("mul.hi.s32 %r5, %r2, %r3;"), |[a, b, _]| {
            w(((i64::from(s(a)) * i64::from(s(b))) >> 32) as i32)
        }),
        (word("mad.lo.s32 %r5, %r2, %r3, %r4;"), |[a, b, c]| {
            w(s(a).wrapping_mul(s(b)).wrapping_add(s(c)))
        }),
        (word("shr.s32 %r5, %r2, 7;"), |[a, ..]| w(s(a) >> 7)),
        (word("shl.b32 %r5, %r2, 33;"), |_| 0),
        (word("min.s32 %r5, %r2, -5;"), |[a, ..]| w(s(a).min(-5))),
        (word("max.u32 %r5, %r2, 5;"), |[a, ..]| u64::from((a as u32).max(5))),
        (word("not.b32 %r5, %r2;"), |[a, ..]| u64::from(!(a as u32))),
        (word("lop3.b32 %r5, %r2, %r3, %r4, 0xe8;"), |[a, b, c]| {
            (a & b | a & c | b & c) & 0xffff_ffff
        }),
        (word("prmt.b32 %r5, %r2, %r3, 0x3210;"), |[a, ..]| a & 0xffff_ffff),
        (word("setp.lt.s32 %p1, %r2, %r3; selp.b32 %r5, %r2, %r3, %p1;"), |[a, b, _]| {
            w(s(a).min(s(b)))
        }),
        (word("setp.gt.and.u32 %p1|%p2, %r2, %r3, %p3; selp.u32 %r5, 1, 2, %p1;"), |_| 2),
        (word("set.ge.u32.s32 %r5, %r2, 0;"), |[a, ..]| if s(a) >= 0 { 0xffff_ffff } else { 0 }),
        (word("slct.s32.s32 %r5, %r2, %r3, %r4;"), |[a, b, c]| {
            if s(c) >= 0 { a & 0xffff_ffff } else { b & 0xffff_ffff }
        }),
        (word("cvt.s32.s8 %r5, %r2;"), |[a, ..]| w(i32::from(a as i8))),
        (word("cvt.sat.u8.s32 %r5, %r2;"), |[a, ..]| w(s(a).clamp(0, 255))),
        (word("cvt.rni.s32.f32 %r5, %f2;"), |[a, ..]| {
            // Casts of Rust clamp and give 0 for NaN, as PTX.
            w(g(a).round_ties_even() as i32)
        }),
        (word("mov.b32 {%h5, %h6}, %r2; mov.b32 %r5, {%h6, %h5};"), |[a, ..]| {
            u64::from((a as u32).rotate_left(16))
        }),
        (word("add.s16 %h5, %h2, %h3; cvt.s32.s16 %r5, %h5;"), |[a, b, _]| {
            w(i32::from((a as i16).wrapping_add(b as i16)))
        }),
        (word("bfe.s32 %r5, %r2, 4, 8;"), |[a, ..]| w(s(a) << 20 >> 24)),
        (word("bfi.b32 %r5, %r2, %r3, 8, 4;"), |[a, b, _]| {
            (b & 0xffff_f0ff | (a & 15) << 8) & 0xffff_ffff
        }),
        (word("vote.sync.any.pred %p1, %p2, 0xffffffff; selp.u32 %r5, 1, 0, %p1;"), |_| 0),
        (row_kernel("mul.wide.s32 %d5, %r2, %r3;"), |[a, b, _]| {
            (i64::from(s(a)) * i64::from(s(b))) as u64
        }),
        (row_kernel("mul.hi.u64 %d5, %d2, %d3;"), |[a, b, _]| {
            ((u128::from(a) * u128::from(b)) >> 64) as u64
        }),
        (
            row_kernel("add.cc.u32 %r5, %r2, %r3; addc.u32 %r6, 0, 0; mov.b64 %d5, {%r5, %r6};"),
            |[a, b, _]| (a & 0xffff_ffff) + (b & 0xffff_ffff),
        ),
        (
            row_kernel("sub.cc.u32 %r5, %r2, %r3; subc.u32 %r6, 0, 0; mov.b64 %d5, {%r5, %r6};"),
            |[a, b, _]| (a & 0xffff_ffff).wrapping_sub(b & 0xffff_ffff),
        ),
        (row_kernel("shl.b64 %d5, %d2, %r3;"), |[a, b, _]| a.checked_shl(b as u32).unwrap_or(0)),
        (row_kernel("cvt.rzi.u64.f32 %d5, %f2;"), |[a, ..]| {
            if g(a).is_nan() { 1 << 63 } else { g(a) as u64 }
        }),
        (row_kernel("fma.rn.f64 %g5, %g2, %g3, %g4; mov.b64 %d5, %g5;"), |x| {
            let [a, b, c] = x.map(f64::from_bits);
            let r = a.mul_add(b, c);
            if r.is_nan() {
                x.into_iter()
                    .find(|&v| f64::from_bits(v).is_nan())
                    .map_or(0xfff8 << 48, |v| v | 1 << 51)
            } else {
                r.to_bits()
            }
        }),
        (single("add.f32 %f5, %f2, %f3;"), |[x, y, _]| b(g(x) + g(y))),
        (single("sub.ftz.f32 %f5, %f2, 0f3F800000;"), |[x, ..]| b(g(x) - 1.0)),
        (single("mul.rn.f32 %f5, %f2, %f3;"), |[x, y, _]| b(g(x) * g(y))),
        (single("fma.rn.f32 %f5, %f2, %f3, %f4;"), |[x, y, z]| b(g(x).mul_add(g(y), g(z)))),
        (single("div.rn.f32 %f5, %f2, %f3;"), |[x, y, _]| b(g(x) / g(y))),
        (single("sqrt.rn.f32 %f5, %f2;"), |[x, ..]| b(g(x).sqrt())),
        (single("max.f32 %f5, %f2, %f3;"), |[x, y, _]| b(g(x).max(g(y)))),
        (single("neg.f32 %f5, %f2;"), |[x, ..]| (x ^ 0x8000_0000) & 0xffff_ffff),
        (single("cvt.rn.f32.s32 %f5, %r2;"), |[x, ..]| b(s(x) as f32)),
        (single("cvt.rn.f32.f64 %f5, %g2;"), |[x, ..]| b(f64::from_bits(x) as f32)),
        (single("cvt.rmi.f32.f32 %f5, %f2;"), |[x, ..]| b(g(x).floor())),
    ];
    let mut rows: Vec<Row> = vec![
        [0, 0, 0],
        [1, 2, 3],
        [u64::MAX, 1, u64::MAX],
        [1 << 63, 63, 31],
        [0x3fc0_0000, 0xc020_0000, 0x3f80_0000],
        [0x3ff8_0000_0000_0000, 0xc004_0000_0000_0000, 0x3ff0_0000_0000_0000],
        [0x8000_0000, 0xffff_ffff, 7],
    ];
    let mut x = 12345u64;
    let mut next = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        x ^ x >> 29
    };
    rows.extend((0..57).map(|_| [next(), next(), next()]));
    for (ptx, oracle) in &cases {
        let mut b = Bench::new(ptx, checked(Schedule::Lockstep));
        let input: Vec<u64> = rows.iter().flat_map(|r| [r[0], r[1], r[2], 0]).collect();
        let out = b.upload(&input);
        let report =
            b.launch("k", Shape::linear(1, rows.len() as u32), &[Arg::Pointer(out)]).remove(0);
        let line = ptx.lines().find(|l| l.contains("5, ") && !l.contains("%tid")).unwrap_or("");
        assert!(report.outcome.is_clean(), "{line}: {}", describe(&report));
        let got = b.download::<u64>(out, input.len());
        for (row, got) in rows.iter().zip(got.chunks(4)) {
            assert_eq!(got[3], oracle(*row), "{row:#x?}: {ptx}");
        }
    }
}

#[test]
fn a_device_may_move_to_another_thread() {
    fn is_send<T: Send + Sync>() {}
    is_send::<Device>();
}

#[test]
fn absurd_demands_are_refused_before_they_cost_memory() {
    let mut device = Device::new(Setup::default());
    let big = kernel("{ .param .b8 a[99999999999]; st.param.b8 [a], 1; }");
    let refused = match device.load(&big) {
        Err(_) => true,
        Ok(module) => {
            let k = device.kernel(module, "k").unwrap();
            device.run_to_end(k, &Shape::linear(1, 1), &[Arg::Pointer(0)]).is_err()
        }
    };
    assert!(refused);
    let deep = kernel(
        ".local .align 8 .b8 l[1099511627776];
         mov.u64 %d1, l;
         st.local.u8 [%d1], %h1;",
    );
    if let Ok(module) = device.load(&deep) {
        let k = device.kernel(module, "k").unwrap();
        match device.run_to_end(k, &Shape::linear(1, 1024), &[Arg::Pointer(0)]) {
            Err(_) => {}
            Ok(reports) => assert!(matches!(reports[0].outcome.halt, Some(Halt::Memory(_)))),
        }
    }
}

/// The memory for the arguments of launches is there again for every launch of the host.
#[test]
fn arguments_of_launches_from_the_device_do_not_pile_up() {
    let ptx = module(
        ".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(\
         .param .b64 a, .param .align 4 .b8 b[12], .param .align 4 .b8 c[12], .param .b32 d);\n\
         .visible .entry child(.param .align 8 .b8 p[1024]) { ret; }",
        "mov.u64 %d1, child;
         mov.u32 %r1, 1;
         mov.u32 %r2, 0;
         {
         .param .b64 a; st.param.b64 [a], %d1;
         .param .align 4 .b8 b[12];
         st.param.b32 [b], %r1; st.param.b32 [b+4], %r1; st.param.b32 [b+8], %r1;
         .param .align 4 .b8 c[12];
         st.param.b32 [c], %r1; st.param.b32 [c+4], %r1; st.param.b32 [c+8], %r1;
         .param .b32 d; st.param.b32 [d], %r2;
         .param .b64 r;
         call.uni (r), __cudaCDP2GetParameterBufferV2, (a, b, c, d);
         ld.param.b64 %d2, [r];
         }
         setp.ne.u64 %p1, %d2, 0;
         selp.u32 %r3, 1, 0, %p1;
         st.global.u32 [%o], %r3;",
    );
    let mut b = Bench::new(&ptx, checked(Schedule::Lockstep));
    let out = b.upload(&[0u32; 1024]);
    // A MiB of arguments each, of 8 that there are.
    for _ in 0..20 {
        let report = b.launch("k", Shape::linear(1, 1024), &[Arg::Pointer(out)]).remove(0);
        assert!(report.outcome.is_clean(), "{}", describe(&report));
        assert_eq!(b.download::<u32>(out, 1024), [1; 1024]);
    }
}

/// Who watches sees blocks end, and stops a kernel that never would, however it is run.
#[test]
fn a_launch_is_watched_and_stopped() {
    let ptx = kernel(
        "mov.u32 %r1, 0;
         loop: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 3000; @%p1 bra loop;
         st.global.u32 [%o], %r1;",
    );
    for options in [plain(Schedule::Lockstep), checked(Schedule::Adversarial { seed: 1 })] {
        let blocks = 2000;
        let mut b = Bench::new(&ptx, Options { instructions: 1 << 40, ..options });
        let out = b.room::<u32>(blocks as usize);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let looks = seen.clone();
        let watch: Watch = Arc::new(move |headway| {
            let mut looks = looks.lock().unwrap();
            looks.push(headway);
            if looks.len() < 4 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        b.device.set_watch(Some(watch));
        let report = b.launch("k", Shape::linear(blocks, 1), &[Arg::Pointer(out)]).remove(0);
        let Some(Halt::Stopped { finished, blocks: of }) = report.outcome.halt else {
            panic!("{}", describe(&report));
        };
        assert!(0 < finished && finished < u64::from(blocks), "{finished}");
        let seen = seen.lock().unwrap();
        assert!(seen.iter().all(|h| h.blocks == of && of == u64::from(blocks)));
        let last = seen.iter().map(|h| h.finished).max();
        assert!(last > Some(0), "{seen:?}");
        // It does not go on behind the back of who stopped it.
        let most = seen.iter().map(|h| h.instructions).max().unwrap();
        assert!(report.outcome.instructions < 2 * most, "{}", report.outcome.instructions);
    }
}
