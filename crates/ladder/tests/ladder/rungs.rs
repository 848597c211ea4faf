//! Every rung on the interpreter, with every check, against the exact answer.

// A link to that of warpfold-cuda, so that the package has it.
#[path = "../common/altered.rs"]
#[expect(dead_code, reason = "others use the rest")]
mod altered;

use crate::thorough::{thorough, up_to};
use altered::Altered;
use std::sync::Arc;
use warpfold_core::{DType, Op};
use warpfold_cuda::{Archive, Sim};
use warpfold_ladder::{ALL, Blocks, Data, Error, Lab, Plan, Question, Rung, Timing, Verdict, find};
use warpfold_ptx::machine::{Checks, Options, Schedule};

fn lab() -> Lab {
    Lab::new(Arc::new(Sim::checking()))
}

/// Elements of a block.
fn tile(rung: &Rung, block: u32) -> u64 {
    match rung.plan {
        Plan::Passes { columns, .. } => u64::from(columns * block),
        _ => block.into(),
    }
}

/// Sizes around every boundary of up to three blocks.
fn sizes(tile: u64) -> Vec<u64> {
    let around =
        [0, tile, 2 * tile, 3 * tile].into_iter().flat_map(|n| [n.saturating_sub(1), n, n + 1]);
    let mut sizes: Vec<u64> = around.chain([2]).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[track_caller]
fn assert_right(lab: &Lab, question: &Question, data: Data) {
    match lab.check(question, data, 1 + question.rung().id.len() as u64) {
        Ok(Verdict::Right) => {}
        Ok(Verdict::Wrong(mismatch)) => panic!("{mismatch}"),
        Err(error) => panic!("{error}"),
    }
}

/// The rungs that the interpreter can run: CUB is compiled for devices.
fn here() -> impl Iterator<Item = &'static Rung> {
    ALL.iter().filter(|rung| rung.plan != Plan::Cub)
}

fn ask(rung: &'static Rung, dtype: DType, op: Op, n: u64, block: u32) -> Question {
    Question::new(rung, dtype, op, n, block).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_type_at_every_boundary() {
    let lab = lab();
    for (turn, rung) in here().enumerate() {
        for (i, &dtype) in rung.dtypes.iter().enumerate() {
            // The smallest block, and two warps: by turns where a rung has several types.
            let least = (1..=32).find(|&b| rung.blocks.allow(b)).unwrap();
            let both = thorough() || rung.dtypes.len() == 1;
            for (at, block) in [least, 64].into_iter().enumerate() {
                if !both && at != (turn + i) % 2 {
                    continue;
                }
                for n in sizes(tile(rung, block)) {
                    let question = ask(rung, dtype, Op::Sum, n, block);
                    assert_right(&lab, &question, Data::Representable);
                }
            }
        }
    }
}

#[test]
fn every_legal_block() {
    let lab = lab();
    for rung in ALL.iter().filter(|r| r.plan.has_blocks()) {
        let odd = [3, 31, 33, 63, 80, 96, 160, 672, 1000, 1023, 992];
        let powers = (0..=10).map(|k| 1 << k);
        let mut tried = 0;
        for block in powers.chain(odd).filter(|&b| rung.blocks.allow(b)) {
            let n = tile(rung, block) * 2 + 1 + u64::from(block) / 2;
            let dtype = [DType::I32, DType::U32][tried % 2];
            assert_right(&lab, &ask(rung, dtype, Op::Sum, n, block), Data::Representable);
            tried += 1;
        }
        assert!(tried >= 6, "{}", rung.id);
    }
}

#[test]
fn sums_that_round_stay_within_their_bound() {
    let lab = lab();
    for rung in here() {
        for &dtype in rung.dtypes.iter().filter(|d| d.is_float()) {
            let n = tile(rung, 64) * 3 - 5;
            assert_right(&lab, &ask(rung, dtype, Op::Sum, n, 64), Data::Random);
        }
    }
}

#[test]
fn every_operation_with_its_identity() {
    let lab = lab();
    let rung = find("any-op").unwrap();
    let mut asked = 0;
    for &op in rung.ops {
        for &dtype in rung.dtypes.iter().filter(|d| op.supports(**d)) {
            for n in [0, 1, 33, 64, 1000] {
                if n > 0 || !matches!(op, Op::Min | Op::Max) {
                    assert_right(&lab, &ask(rung, dtype, op, n, 64), Data::Representable);
                    asked += 1;
                }
            }
        }
    }
    assert_eq!(asked, (4 * 8 + 3 * 4) * 5 - 2 * 8);
}

/// Arrays that begin anywhere, ragged at both ends.
#[test]
fn vectors_of_misaligned_arrays() {
    let lab = lab();
    let rung = find("vector-load").unwrap();
    for &dtype in rung.dtypes {
        let vector = 16 / dtype.size() as u64;
        for offset in 0..=vector {
            for n in [0, 1, vector - 1, vector, 2 * vector + 1, 32 * vector * 9 + 5] {
                let question = ask(rung, dtype, Op::Sum, n, 32).misaligned(offset);
                assert_right(&lab, &question, Data::Representable);
            }
        }
    }
}

/// A device of one multiprocessor, whose threads go several times through the array
/// and fill every stage of what is in flight.
#[test]
fn grids_that_are_smaller_than_the_array() {
    let lab = Lab::new(Arc::new(Altered::new(Sim::checking(), |l| l.multiprocessors = 1)));
    let mut asked = 0;
    let passes = |r: &Rung| matches!(r.plan, Plan::Passes { .. } | Plan::TailLaunches { .. });
    let sizes = [DType::I32, DType::U64, DType::F16];
    for (turn, rung) in ALL.iter().filter(|r| r.plan.has_blocks() && !passes(r)).enumerate() {
        let dtypes = || rung.dtypes.iter().filter(|d| sizes.contains(d));
        for (i, &dtype) in dtypes().enumerate() {
            // Two blocks of 1024 threads, and 32 of 32.
            for (block, threads) in [(1024, 2048), (32, 1024)] {
                let vector = 16 / dtype.size() as u64;
                // Less than 4 vectors a thread, exactly as many, and more.
                let lengths =
                    [3 * vector * threads, 4 * vector * threads, 9 * vector * threads + 777];
                for (k, n) in lengths.into_iter().enumerate() {
                    // Of a rung's types each takes some of the sizes, by turns.
                    if !thorough() && (k + i + turn) % dtypes().count() != 0 {
                        continue;
                    }
                    // The smaller grid at all sizes, the larger one at the last.
                    if block == 1024 && n % 1024 == 0 {
                        continue;
                    }
                    let question = ask(rung, dtype, Op::Sum, n, block).misaligned(n % vector);
                    assert_right(&lab, &question, Data::Representable);
                    asked += 1;
                }
            }
        }
    }
    assert!(asked > up_to(100, 50), "{asked}");
}

/// Warps and blocks as far ahead of each other as the rules allow, or by chance.
#[test]
fn every_schedule_gives_the_same() {
    for schedule in [Schedule::Adversarial { seed: 3 }, Schedule::Random { seed: 4 }] {
        let options = Options { checks: Checks::ALL, schedule, ..Options::default() };
        let lab = Lab::new(Arc::new(Sim::new(options)));
        for rung in here() {
            let n = tile(rung, 64) * 5 + 7;
            let dtype = *rung.dtypes.last().unwrap();
            assert_right(&lab, &ask(rung, dtype, Op::Sum, n, 64), Data::Representable);
        }
    }
}

#[test]
fn one_launch_is_one_launch_and_times_are_not_invented() {
    let lab = lab();
    for rung in here() {
        let n = tile(rung, 64) * 3;
        let question = ask(rung, rung.dtypes[0], Op::Sum, n, 64);
        let measured = lab.measure(&question, &Timing::default(), 1).unwrap();
        assert!(measured.verdict.is_right() && measured.times.is_empty(), "{}", rung.id);
        let grid: &[u32] = match rung.plan {
            Plan::Passes { surplus: 2, .. } => &[6, 1],
            Plan::Passes { .. } | Plan::TailLaunches { .. } | Plan::TwoLaunches => &[3, 1],
            Plan::Clusters(8) => &[8],
            Plan::Library | Plan::Cub | Plan::Host => &[],
            _ => &[3],
        };
        assert_eq!(measured.grid, grid, "{}", rung.id);
    }
}

static WRONG: Archive = Archive::new(include_bytes!("../kernels/kernels.archive"));

/// The checks can fail: what is said names the rung, the size, the block, what came
/// and what was wanted.
#[test]
fn wrong_kernels_are_found() {
    let lab = Lab::with_kernels(Arc::new(Sim::checking()), WRONG);
    let check =
        |id, n| lab.check(&ask(find(id).unwrap(), DType::I32, Op::Sum, n, 64), Data::Random, 1);
    assert!(check("neighbored", 64 * 64).unwrap().is_right());
    for id in ["neighbored", "neighbored-compact"] {
        let Verdict::Wrong(mismatch) = check(id, 130).unwrap() else { panic!("{id} passed") };
        let text = mismatch.to_string();
        let begin = format!("{id}: sum of 130 i32 in blocks of 64: got ");
        assert!(text.starts_with(&begin) && text.contains(", wanted "), "{text}");
        assert_ne!(mismatch.got, mismatch.wanted);
    }
    let error = check("interleaved", 130).unwrap_err();
    assert!(matches!(error, Error::Device { id: "interleaved", .. }));
    assert!(error.to_string().contains("data race"), "{error}");
    let error = check("unroll8", 130).unwrap_err();
    assert!(matches!(error, Error::NoModule { .. }), "{error}");
}

#[test]
fn what_the_interpreter_cannot_run_is_a_skip() {
    let question = ask(find("cub").unwrap(), DType::F32, Op::Sum, 100, 64);
    let error = lab().check(&question, Data::Random, 1).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }) && error.is_skip(), "{error}");
    assert!(error.to_string().contains("interpreter") && error.hint().is_some());
}

#[test]
fn questions_that_no_rung_answers() {
    let refuse = |id, dtype, op, n, block| {
        let error = Question::new(find(id).unwrap(), dtype, op, n, block).unwrap_err();
        (error.to_string(), error.hint().unwrap_or_default())
    };
    let (what, hint) = refuse("interleaved", DType::I32, Op::Sum, 1, 96);
    assert!(what.contains("96") && hint.contains("powers of two"), "{what} {hint}");
    let (what, hint) = refuse("unroll8", DType::F16, Op::Sum, 1, 64);
    assert!(what.contains("f16") && hint.contains("f32"), "{what} {hint}");
    let (what, hint) = refuse("any-op", DType::F32, Op::Xor, 1, 64);
    assert!(what.contains("xor of f32") && hint.contains("prod"), "{what} {hint}");
    let (what, _) = refuse("any-op", DType::F32, Op::Min, 0, 64);
    assert!(what.contains("min of no elements"), "{what}");
    let (what, hint) = refuse("neighbored", DType::I32, Op::Sum, 1 << 40, 2);
    assert!(what.contains("too many") && !hint.is_empty(), "{what}");
    assert!(refuse("neighbored", DType::I32, Op::Sum, u64::MAX, 1024).0.contains("too many"));
    for (rung, block) in [("warp-shuffle", 48), ("unroll-warps8", 16), ("neighbored", 1)] {
        assert!(!find(rung).unwrap().blocks.allow(block));
        assert!(!find(rung).unwrap().blocks.allow(2048));
    }
    assert!(find("unroll3").is_none());
    assert!(ALL.iter().all(|r| find(r.id).is_some_and(|f| std::ptr::eq(f, r))), "ids are unique");
    assert!(ALL.iter().all(|r| !matches!(r.blocks, Blocks::Any(0) | Blocks::PowersOfTwo(0))));
}

/// An older device is told what the one rung needs, and runs the others.
#[test]
fn kernels_are_there_from_their_first_device_on() {
    let lab = Lab::new(Arc::new(Altered::new(Sim::checking(), |l| l.capability = (7, 5))));
    for rung in here() {
        let question = ask(rung, rung.dtypes[0], Op::Sum, 100, 64);
        let least = match rung.id {
            "redux" => Some((8, 0)),
            "nested" | "nested-nosync" | "nested-wide" | "cluster" | "bulk-copy" => Some((9, 0)),
            _ => None,
        };
        if let Some(least) = least {
            let error = lab.check(&question, Data::Random, 1).unwrap_err();
            let Error::Capability { needs, has: (7, 5), .. } = error else { panic!("{error}") };
            assert_eq!(needs, least);
            let (major, minor) = least;
            assert!(error.to_string().contains(&format!("{major}.{minor}")), "{error}");
            assert!(error.hint().is_some() && error.is_skip());
        } else {
            assert_right(&lab, &question, Data::Random);
        }
    }
}

/// Whichever allocation fails, what was allocated before is given back.
#[test]
fn too_little_memory_is_an_error_and_nothing_leaks() {
    let device = Arc::new(Altered::new(Sim::checking(), |_| ()));
    let lab = Lab::new(Arc::clone(&device) as _);
    for rung in ALL.iter().filter(|r| r.plan.has_blocks()) {
        let question = ask(rung, rung.dtypes[0], Op::Sum, 3000, 64);
        for bytes in [0, 3, 4, 8, 64, 512, 1 << 20] {
            device.refuse_above(bytes);
            let failed = lab.check(&question, Data::Random, 1).is_err();
            assert_eq!(failed, bytes < 1 << 20, "{} with {bytes} bytes", rung.id);
            assert_eq!(device.held(), 0, "{} with {bytes} bytes", rung.id);
        }
    }
}
