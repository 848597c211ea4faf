//! Every rung on the GPU of this machine, against the exact answer.

use std::sync::Arc;
use warpfold_core::{DType, Op};
use warpfold_cuda::Driver;
use warpfold_ladder::{ALL, Data, Error, Lab, Plan, Question, Rung, Timing, Verdict, find};

/// A lab on the first device. Skips aloud without a GPU, unless
/// `WARPFOLD_REQUIRE_CUDA` asks for one.
fn lab_of_this_machine() -> Option<Lab> {
    match Driver::open(0) {
        Ok(device) => Some(Lab::new(Arc::new(device))),
        Err(error) if std::env::var_os("WARPFOLD_REQUIRE_CUDA").is_none() => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Checks a rung; whether it could run. What this machine lacks is told, once for
/// each question: the wrong answer of one rung should not hide that of another.
#[track_caller]
fn check(lab: &Lab, question: &Question, data: Data, wrong: &mut Vec<String>) -> bool {
    match lab.check(question, data, 7) {
        Ok(Verdict::Right) => return true,
        Ok(Verdict::Wrong(mismatch)) => wrong.push(mismatch.to_string()),
        Err(error) if error.is_skip() => println!("SKIPPED: {error}"),
        Err(error) => {
            let (n, block) = (question.n(), question.block());
            wrong.push(format!("{error}: {n} {} in blocks of {block}", question.dtype()));
        }
    }
    false
}

/// The rungs, all types and these blocks and sizes.
fn sweep(lab: &Lab, rungs: &[&'static Rung], blocks: &[u32], sizes: &[u64], data: &[Data]) {
    let (mut wrong, mut right) = (Vec::new(), 0);
    for &rung in rungs {
        let all = if rung.plan.has_blocks() { blocks } else { &[256] };
        for &dtype in rung.dtypes {
            for &block in all.iter().filter(|&&b| rung.blocks.allow(b)) {
                for &n in sizes {
                    for &data in data {
                        let asked = Question::new(rung, dtype, Op::Sum, n, block);
                        let question = asked.unwrap_or_else(|e| panic!("{e}"));
                        right += usize::from(check(lab, &question, data, &mut wrong));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(right > 0);
}

fn all() -> Vec<&'static Rung> {
    ALL.iter().collect()
}

#[test]
fn every_rung_on_the_device_of_this_machine() {
    let Some(lab) = lab_of_this_machine() else { return };
    let both = [Data::Representable, Data::Random];
    sweep(&lab, &all(), &[2, 32, 96, 256, 1024], &[0, 1, 2, 1000, 65_537], &both);
    sweep(&lab, &all(), &[64, 512], &[1_048_583, 3 * 1024 * 16 + 1], &[Data::Representable]);
}

#[test]
fn every_legal_block_on_the_device_of_this_machine() {
    let Some(lab) = lab_of_this_machine() else { return };
    let mut wrong = Vec::new();
    for rung in ALL.iter().filter(|rung| rung.plan.has_blocks()) {
        for block in (1..=1024).filter(|&b| rung.blocks.allow(b)) {
            // Not each of a thousand, but the ends and what lies around warps.
            if block > 70 && block < 960 && !block.is_multiple_of(32) && block % 32 > 2 {
                continue;
            }
            let question = Question::new(rung, DType::U32, Op::Sum, 50_021, block);
            check(&lab, &question.unwrap_or_else(|e| panic!("{e}")), Data::Random, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_operation_and_misaligned_vectors_on_the_device_of_this_machine() {
    let Some(lab) = lab_of_this_machine() else { return };
    let mut wrong = Vec::new();
    let any = find("any-op").unwrap_or_else(|| panic!("no any-op"));
    for &op in any.ops {
        for &dtype in any.dtypes.iter().filter(|d| op.supports(**d)) {
            for (n, block) in [(1, 32), (1000, 64), (300_007, 256)] {
                let question = Question::new(any, dtype, op, n, block);
                let question = question.unwrap_or_else(|e| panic!("{e}"));
                check(&lab, &question, Data::Representable, &mut wrong);
            }
        }
    }
    for rung in ["vector-load", "bulk-copy", "engine"].map(find) {
        let rung = rung.unwrap_or_else(|| panic!("no such rung"));
        for &dtype in rung.dtypes {
            for offset in 0..=16 / dtype.size() as u64 {
                for n in [0, 1, 31, 100_003] {
                    let question = Question::new(rung, dtype, Op::Sum, n, 128);
                    let question = question.unwrap_or_else(|e| panic!("{e}")).misaligned(offset);
                    check(&lab, &question, Data::Representable, &mut wrong);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Times are there, kernels say what they take, and the device's own answer agrees
/// with the arithmetic of occupancy.
#[test]
fn measurements_on_the_device_of_this_machine() {
    use warpfold_ladder::occupancy::{Block, multiprocessor};
    let Some(lab) = lab_of_this_machine() else { return };
    let limits = lab.device().limits().clone();
    let timing = Timing { runs: 20, warm_up: 2, interval_bytes: 1 << 20 };
    for rung in ALL {
        for block in [64, 96, 1024] {
            let Ok(question) = Question::new(rung, rung.dtypes[0], Op::Sum, 100_003, block) else {
                continue;
            };
            let measured = match lab.measure(&question, &timing, 3) {
                Ok(measured) => measured,
                Err(error) if error.is_skip() => {
                    println!("SKIPPED: {error}");
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            assert!(measured.verdict.is_right(), "{}: {:?}", rung.id, measured.verdict);
            assert_eq!(measured.times.len(), 20, "{}", rung.id);
            assert!(measured.times.iter().all(|t| !t.is_zero()), "{}", rung.id);
            assert_eq!(measured.on_host, rung.plan == Plan::Host);
            for step in &measured.steps {
                let footprint = step.footprint.unwrap_or_else(|| panic!("{}", rung.id));
                let registers = footprint.registers.unwrap_or_default();
                assert!(registers > 0 && footprint.threads >= step.block, "{step:?}");
                // Who calls the device runtime has a stack.
                let calls = matches!(rung.plan, Plan::TailLaunches { .. });
                assert!(calls || footprint.local == Some(0), "spilled: {step:?}");
                if let Some(multiprocessor) = multiprocessor(limits.capability) {
                    let shared = footprint.shared + step.dynamic_shared;
                    let block = Block { threads: step.block, registers, shared };
                    let counted = multiprocessor.occupancy(block).unwrap_or_else(|e| panic!("{e}"));
                    assert_eq!(counted.blocks, step.resident, "{}: {step:?}", rung.id);
                }
            }
        }
    }
}

/// A sample, for compute-sanitizer: `tools/pack.sh` says how.
#[test]
fn sanitized_on_the_device() {
    let Some(lab) = lab_of_this_machine() else { return };
    // The tools do not follow what the device launches itself.
    let rungs: Vec<_> = ALL
        .iter()
        .filter(|r| !matches!(r.plan, Plan::TailLaunches { .. } | Plan::Library | Plan::Host))
        .collect();
    sweep(&lab, &rungs, &[64, 1024], &[0, 3001], &[Data::Representable]);
}

#[test]
fn what_a_device_lacks_is_a_skip() {
    let rung = &ALL[0];
    let (why, hint) = (String::from("no library"), String::from("get one"));
    let error = Error::Missing { rung, why, hint };
    assert!(error.is_skip() && error.to_string().contains("no library"));
    assert_eq!(error.hint().as_deref(), Some("get one"));
}
