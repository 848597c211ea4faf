//! Kernels with one deliberate fault each: every one is found, at the right line, under every schedule, and its corrected twin is clean.

use crate::bench::{Bench, builds, checked, describe, fault_lines, found, schedules};
use warpfold_ptx::device::Report;
use warpfold_ptx::finding::Kind;
use warpfold_ptx::machine::{Arg, Checks, Halt, Options, Schedule, Shape};

/// Runs a kernel in every build and under every schedule.
fn everywhere(
    sample: &str,
    mut run: impl FnMut(&mut Bench) -> Vec<Report>,
    check: impl Fn(&Report, Schedule),
) {
    run_in_every_build(sample, Checks::ALL, &mut run, &check);
}

/// The same with remarks.
fn strictly(
    sample: &str,
    mut run: impl FnMut(&mut Bench) -> Vec<Report>,
    check: impl Fn(&Report, Schedule),
) {
    let checks = Checks { strict: true, ..Checks::ALL };
    run_in_every_build(sample, checks, &mut run, &check);
}

fn run_in_every_build(
    sample: &str,
    checks: Checks,
    run: &mut dyn FnMut(&mut Bench) -> Vec<Report>,
    check: &dyn Fn(&Report, Schedule),
) {
    for (path, ptx) in builds(sample) {
        for schedule in schedules() {
            let mut bench = Bench::new(&ptx, Options { checks, ..checked(schedule) });
            for report in run(&mut bench) {
                eprintln!("{} {schedule:?} {}", path.display(), report.kernel);
                check(&report, schedule);
            }
        }
    }
}

/// Every finding of the report is of this kind and touches a marked line; and there is one.
fn only(report: &Report, sample: &str, name: &str, kinds: &[Kind]) {
    let marked = fault_lines(sample, name);
    let found = found(report);
    assert!(!found.is_empty(), "nothing found in {name}");
    for (kind, lines) in &found {
        assert!(kinds.contains(kind), "{name}: {kind:?} {}", describe(report));
        assert!(
            lines.iter().any(|l| marked.contains(l)),
            "{name}: {lines:?} not in {marked:?}: {}",
            describe(report)
        );
    }
}

fn clean(report: &Report, _: Schedule) {
    assert!(report.outcome.is_clean(), "{}: {}", report.kernel, describe(report));
}

fn ones(bench: &mut Bench, n: usize) -> Arg<'static> {
    Arg::Pointer(bench.upload(&vec![1i32; n]))
}

fn room(bench: &mut Bench, n: usize) -> Arg<'static> {
    Arg::Pointer(bench.room::<i32>(n))
}

#[test]
fn missing_block_barrier() {
    let run = |name: &'static str| {
        move |b: &mut Bench| {
            let args = [ones(b, 512), room(b, 2)];
            b.launch(name, Shape::linear(2, 256), &args)
        }
    };
    everywhere("fault_missing_barrier", run("missing_barrier"), |r, _| {
        only(r, "fault_missing_barrier", "missing_barrier", &[Kind::Race]);
    });
    everywhere("fault_missing_barrier", run("missing_barrier_fixed"), clean);
}

/// One array for two things: who comes first writes the second where others still read the first.
#[test]
fn one_room_for_maxima_and_sums() {
    let run = |name: &'static str| {
        move |b: &mut Bench| {
            let values: Vec<f32> = (0..2 * 200).map(|i| (i * 37 % 91) as f32 / 8.0).collect();
            let (rows, sums) = (b.upload(&values), b.room::<f32>(2));
            let args = [Arg::Pointer(rows), Arg::Pointer(sums), Arg::U32(200)];
            b.launch(name, Shape::linear(2, 128), &args)
        }
    };
    everywhere("fault_one_room", run("one_room"), |r, _| {
        only(r, "fault_one_room", "one_room", &[Kind::Race]);
        let lines = fault_lines("fault_one_room", "one_room");
        assert!(found(r).iter().all(|(_, both)| both.iter().all(|l| lines.contains(l))));
    });
    everywhere("fault_one_room", run("one_room_fixed"), clean);
}

#[test]
fn missing_warp_barrier_in_a_volatile_tail() {
    let sum = |ptx: &str, name: &str, options: Options| {
        let mut bench = Bench::new(ptx, options);
        let out = bench.room::<i32>(1);
        let values: Vec<i32> = (0..256).collect();
        let args = [Arg::Pointer(bench.upload(&values)), Arg::Pointer(out)];
        let reports = bench.launch(name, Shape::linear(1, 256), &args);
        (bench.download::<i32>(out, 1)[0], reports)
    };
    let right = 255 * 256 / 2;
    for (_, ptx) in builds("fault_volatile_tail") {
        for schedule in schedules() {
            let (_, reports) = sum(&ptx, "volatile_tail", checked(schedule));
            only(&reports[0], "fault_volatile_tail", "volatile_tail", &[Kind::UnorderedVolatile]);
            let (value, reports) = sum(&ptx, "volatile_tail_fixed", checked(schedule));
            clean(&reports[0], schedule);
            assert_eq!(value, right);
        }
        // Lockstep hides it; lanes that run ahead do not.
        assert_eq!(sum(&ptx, "volatile_tail", checked(Schedule::Lockstep)).0, right);
        assert_ne!(sum(&ptx, "volatile_tail", checked(Schedule::Adversarial { seed: 0 })).0, right);
        assert_ne!(sum(&ptx, "volatile_tail", checked(Schedule::Adversarial { seed: 5 })).0, right);
    }
}

#[test]
fn early_return_before_a_barrier() {
    let run = |name: &'static str| {
        move |b: &mut Bench| {
            let args = [ones(b, 300), room(b, 2), Arg::U32(300)];
            b.launch(name, Shape::linear(2, 256), &args)
        }
    };
    everywhere("fault_early_return", run("early_return"), clean);
    strictly("fault_early_return", run("early_return"), |r, _| {
        only(r, "fault_early_return", "early_return", &[Kind::PartialBarrier]);
        assert!(r.outcome.is_clean(), "a remark is no fault");
    });
    strictly("fault_early_return", run("early_return_fixed"), |r, _| assert_eq!(found(r), []));
}

#[test]
fn read_past_the_end() {
    let run = |name: &'static str| {
        move |b: &mut Bench| {
            let args = [ones(b, 1000), room(b, 2), Arg::U32(1000)];
            b.launch(name, Shape::linear(2, 256), &args)
        }
    };
    everywhere("fault_read_past_end", run("read_past_end"), |r, _| {
        only(r, "fault_read_past_end", "read_past_end", &[Kind::OutOfBounds]);
        let first = &r.outcome.findings.all()[0].fault;
        assert!(first.detail.contains("allocation of 4000 bytes"), "{}", first.detail);
    });
    everywhere("fault_read_past_end", run("read_past_end_fixed"), clean);
}

#[test]
fn a_mask_of_the_lane_number() {
    let run = |name: &'static str| {
        move |b: &mut Bench| {
            let args = [ones(b, 64), room(b, 2)];
            b.launch(name, Shape::linear(1, 64), &args)
        }
    };
    everywhere("fault_warp_masks", run("mask_of_lane_number"), |r, _| {
        only(
            r,
            "fault_warp_masks",
            "mask_of_lane_number",
            &[Kind::MaskOmitsLane, Kind::ShuffleFromInactive],
        );
        assert!(found(r).iter().any(|(kind, _)| *kind == Kind::MaskOmitsLane));
    });
    everywhere("fault_warp_masks", run("mask_of_lane_number_fixed"), clean);
}

#[test]
fn a_mask_that_names_absent_lanes() {
    let run = |name: &'static str| {
        move |b: &mut Bench| {
            let args = [ones(b, 64), room(b, 64), Arg::U32(40)];
            b.launch(name, Shape::linear(1, 64), &args)
        }
    };
    everywhere("fault_warp_masks", run("mask_of_absent_lanes"), |r, _| {
        clean(r, Schedule::Lockstep);
    });
    strictly("fault_warp_masks", run("mask_of_absent_lanes"), |r, _| {
        only(r, "fault_warp_masks", "mask_of_absent_lanes", &[Kind::MaskNamesEndedLane]);
    });
    strictly("fault_warp_masks", run("mask_of_absent_lanes_fixed"), |r, _| {
        assert_eq!(found(r), [])
    });
}

#[test]
fn a_shuffle_from_an_absent_lane() {
    let run = |name: &'static str| {
        move |b: &mut Bench| {
            let args = [ones(b, 32), room(b, 32)];
            b.launch(name, Shape::linear(1, 32), &args)
        }
    };
    everywhere("fault_warp_masks", run("shuffle_from_absent_lane"), |r, _| {
        only(r, "fault_warp_masks", "shuffle_from_absent_lane", &[Kind::ShuffleFromInactive]);
    });
    everywhere("fault_warp_masks", run("shuffle_from_absent_lane_fixed"), clean);
}

#[test]
fn an_uninitialised_shared_slot() {
    let run = |name: &'static str| {
        move |b: &mut Bench| {
            let args = [ones(b, 300), room(b, 2), Arg::U32(300)];
            b.launch(name, Shape::linear(2, 256), &args)
        }
    };
    everywhere("fault_uninitialised", run("uninitialised_shared"), |r, _| {
        only(r, "fault_uninitialised", "uninitialised_shared", &[Kind::Uninitialised]);
    });
    everywhere("fault_uninitialised", run("uninitialised_shared_fixed"), clean);
}

#[test]
fn a_second_pass_over_partials_that_were_never_written() {
    let run = |first: &'static str| {
        move |b: &mut Bench| {
            let (values, partials, out) = (ones(b, 1000), room(b, 8), room(b, 1));
            let mut reports =
                b.launch(first, Shape::linear(8, 32), &[values, partials, Arg::U32(1000)]);
            clean(&reports[0], Schedule::Lockstep);
            reports.clear();
            reports.extend(b.launch(
                "second_pass",
                Shape::linear(1, 1),
                &[partials, out, Arg::U32(8)],
            ));
            reports
        }
    };
    everywhere("fault_uninitialised", run("partials_of_some"), |r, _| {
        only(r, "fault_uninitialised", "second_pass", &[Kind::Uninitialised]);
    });
    everywhere("fault_uninitialised", run("partials_of_all"), clean);
}

#[test]
fn tickets_without_their_fences() {
    let run = |name: &'static str| {
        move |b: &mut Bench| {
            let values = Arg::Pointer(b.upload(&vec![1f32; 2000]));
            let (partials, out) = (room(b, 4), room(b, 1));
            let tickets = Arg::Pointer(b.upload(&[0u32]));
            b.launch(name, Shape::linear(4, 64), &[values, partials, out, tickets, Arg::U32(2000)])
        }
    };
    for name in ["ticket_without_release", "ticket_without_acquire"] {
        everywhere("ticket", run(name), |r, _| only(r, "ticket", name, &[Kind::Race]));
    }
    everywhere("ticket", run("ticket_sum"), clean);
    everywhere("ticket", run("ticket_acq_rel"), clean);
}

#[test]
fn two_blocks_adding_without_atomics() {
    let run = |name: &'static str| {
        move |b: &mut Bench| {
            let values = ones(b, 512);
            let out = Arg::Pointer(b.upload(&[0i32]));
            b.launch(name, Shape::linear(2, 256), &[values, out])
        }
    };
    everywhere("fault_plain_add", run("plain_add"), |r, _| {
        only(r, "fault_plain_add", "plain_add", &[Kind::Race]);
    });
    everywhere("fault_plain_add", run("plain_add_fixed"), clean);
}

#[test]
fn misaligned_vectors() {
    let run = |name: &'static str| {
        move |b: &mut Bench| {
            let values = Arg::Pointer(b.upload(&vec![1f32; 200]));
            let out = room(b, 32);
            b.launch(name, Shape::linear(1, 32), &[values, out, Arg::U32(1)])
        }
    };
    everywhere("fault_misaligned", run("misaligned_vector"), |r, _| {
        only(r, "fault_misaligned", "misaligned_vector", &[Kind::Misaligned]);
    });
    everywhere("fault_misaligned", run("misaligned_vector_fixed"), clean);
}

#[test]
fn barriers_that_disagree() {
    let run = |name: &'static str| {
        move |b: &mut Bench| {
            let args = [room(b, 64)];
            b.launch(name, Shape::linear(1, 64), &args)
        }
    };
    everywhere("fault_barriers", run("divergent_barrier"), clean);
    strictly("fault_barriers", run("divergent_barrier"), |r, _| {
        only(r, "fault_barriers", "divergent_barrier", &[Kind::PartialBarrier]);
    });
    everywhere("fault_barriers", run("other_count"), |r, _| {
        only(r, "fault_barriers", "other_count", &[Kind::BarrierMismatch]);
    });
    everywhere("fault_barriers", run("other_barrier"), |r, _| {
        only(r, "fault_barriers", "other_barrier", &[Kind::BarrierMismatch]);
        let Some(Halt::Deadlock { waiting }) = &r.outcome.halt else { panic!("no deadlock") };
        let marked = fault_lines("fault_barriers", "other_barrier");
        assert!(waiting.len() >= 2, "{waiting:?}");
        for w in waiting {
            let line = w.line.source.unwrap().1;
            assert!(marked.contains(&line) && w.what.contains("barrier"), "{w}");
        }
    });
    for name in ["divergent_barrier_fixed", "other_count_fixed", "other_barrier_fixed"] {
        everywhere("fault_barriers", run(name), clean);
    }
}

#[test]
fn a_tile_that_was_not_waited_for() {
    let run = |name: &'static str| {
        move |b: &mut Bench| {
            let values = Arg::Pointer(b.upload(&vec![1f32; 4 * 128 * 3]));
            let out = room(b, 128);
            b.launch(name, Shape::linear(1, 128), &[values, out, Arg::U32(3)])
        }
    };
    everywhere("async_copy", run("async_sum_unawaited"), |r, _| {
        // The copies race among themselves, too: nothing waits for the first one.
        let marked = fault_lines("async_copy", "async_sum_unawaited");
        let found = found(r);
        assert!(found.iter().all(|(kind, _)| *kind == Kind::Race), "{}", describe(r));
        assert!(found.iter().any(|(_, lines)| marked.contains(&lines[0])), "{}", describe(r));
    });
    everywhere("async_copy", run("async_sum"), clean);
}

/// Blocks of a cluster read each other's memory and do not wait before they end.
#[test]
fn a_block_that_ends_while_another_reads_its_memory() {
    for (_, ptx) in builds("cluster") {
        let (before, last) = ptx.rsplit_once("barrier.cluster.arrive.aligned;").unwrap();
        let early = format!("{before}{}", last.replacen("barrier.cluster.wait.aligned;", "", 1));
        for schedule in schedules() {
            for (ptx, is_early) in [(&ptx, false), (&early, true)] {
                let mut bench = Bench::new(ptx, checked(schedule));
                let args = [ones(&mut bench, 250), room(&mut bench, 4), Arg::U32(250)];
                let [report] = &bench.launch("cluster_sum", Shape::linear(4, 64), &args)[..] else {
                    panic!("one launch")
                };
                let kinds: Vec<Kind> = found(report).into_iter().map(|(kind, _)| kind).collect();
                eprintln!("early: {is_early}, {schedule:?}: {}", describe(report));
                assert_eq!(kinds.contains(&Kind::Freed), is_early);
                assert!(kinds.iter().all(|&kind| kind == Kind::Freed));
            }
        }
    }
}
