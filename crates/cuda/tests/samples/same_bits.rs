//! The interpreter leaves the bits in memory that an H200 left.

use crate::common::machine::device_of_this_machine;
use crate::common::random::{COUNT, Compute, case, compiler};
use std::collections::HashMap;
use warpfold_cuda::Sim;
use warpfold_ptx::machine::{Checks, Options, Schedule};

/// A device for a case: all schedules get their share.
fn sim(number: u64, kernel: &str) -> Sim {
    let schedule = match number % 3 {
        0 => Schedule::Lockstep,
        // It asks which lanes happen to be together.
        _ if kernel == "votes" => Schedule::Lockstep,
        1 => Schedule::Random { seed: number },
        _ => Schedule::Adversarial { seed: number },
    };
    Sim::new(Options { schedule, checks: Checks::ALL, ..Options::default() })
}

#[test]
fn a_thousand_random_launches() {
    let record = include_str!("records/bits-h200.tsv");
    let recorded: HashMap<u64, (&str, u64)> = record
        .lines()
        .map(|line| {
            let mut fields = line.split('\t');
            let mut next = || fields.next().expect("three fields a line");
            let number = next().parse().expect("a number");
            (number, (next(), u64::from_str_radix(next(), 16).expect("a checksum")))
        })
        .collect();
    assert_eq!(recorded.len() as u64, COUNT);
    let mut wrong = Vec::new();
    for number in 0..COUNT {
        let case = case(number, Compute::Hopper);
        let (kernel, checksum) = recorded[&number];
        assert_eq!(case.kernel, kernel, "{number}: the record is of other cases");
        match case.run(&sim(number, kernel), compiler(number)) {
            Ok(buffers) if crate::common::checksum(&buffers) == checksum => {}
            Ok(_) => wrong.push(format!("{number} {kernel}: other bits")),
            Err(error) => wrong.push(format!("{number} {kernel}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{} launches:\n{}", wrong.len(), wrong.join("\n"));
}

/// Skips aloud without a GPU, unless `WARPFOLD_REQUIRE_CUDA` asks for one.
#[test]
fn the_device_of_this_machine_agrees() {
    let Some(device) = device_of_this_machine() else { return };
    let hopper = device.limits().capability >= (9, 0);
    let compute = if hopper { Compute::Hopper } else { Compute::Any };
    for number in 0..COUNT {
        let case = case(number, compute);
        let wanted = case.run(&*device, compiler(number)).expect("the device runs it");
        let sim = sim(number, case.kernel);
        let found = case.run(&sim, compiler(number)).expect("the interpreter runs it");
        assert!(wanted == found, "{number} {case:?}");
    }
}
