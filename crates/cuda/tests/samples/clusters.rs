//! Launches of clusters of blocks, on the interpreter and on the GPU if there is
//! one of compute capability 9.0.

use crate::common::machine::device_of_this_machine;
use crate::common::{Case, Fill, buffer, value, zeros};
use warpfold_cuda::{Device, Error, Launch, Sim};
use warpfold_ptx::machine::{Checks, Options, Schedule};

fn shape(blocks: u32, launch: Launch) -> Case {
    let parameters = vec![zeros(blocks as usize * 20)];
    Case { module: "cluster", kernel: "cluster_shape", launch, parameters }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|b| b.iter().rev().fold(0, |x, &b| x << 8 | u32::from(b))).collect()
}

/// Every size that devices promise, and none.
fn blocks_know_their_cluster(device: &dyn Device) {
    for size in [1, 2, 4, 8] {
        let launch = Launch::linear(16, 64).clusters(size);
        let left = shape(16, launch).run(device, "13.0").expect("it runs");
        let expected: Vec<u32> =
            (0..16).flat_map(|b| [b / size, 16 / size, b % size, size, 1]).collect();
        assert_eq!(words(&left[0]), expected, "clusters of {size}");
    }
    let left = shape(3, Launch::linear(3, 64)).run(device, "13.0").expect("it runs");
    let expected: Vec<u32> = (0..3).flat_map(|b| [b, 3, 0, 1, 0]).collect();
    assert_eq!(words(&left[0]), expected);
}

/// This kernel names its cluster itself.
fn clusters_fold_through_shared_memory(device: &dyn Device) {
    let launch = Launch::linear(6, 128);
    let parameters = vec![buffer(Fill::Count, 700 * 4), zeros(6 * 4), value(700_u32)];
    let case = Case { module: "cluster", kernel: "cluster_sum", launch, parameters };
    let left = case.run(device, "13.0").expect("it runs");
    let sum = |pair: u32| (256 * pair..(256 * pair + 256).min(700)).sum::<u32>();
    let expected: Vec<u32> = (0..6).map(|b| sum(b / 2)).collect();
    assert_eq!(words(&left[1]), expected);
}

fn wrong_clusters_are_errors(device: &dyn Device) {
    for launch in [Launch::linear(16, 64).clusters(3), Launch::linear(16, 64).clusters(32)] {
        let error = shape(16, launch).run(device, "13.0").expect_err("no such cluster");
        let told = matches!(error, Error::Driver { .. } | Error::Simulated { .. });
        assert!(told, "{error}");
    }
}

#[test]
fn on_the_interpreter() {
    let seed = 5;
    for schedule in [Schedule::Lockstep, Schedule::Random { seed }, Schedule::Adversarial { seed }]
    {
        let sim = Sim::new(Options { schedule, checks: Checks::ALL, ..Options::default() });
        blocks_know_their_cluster(&sim);
        clusters_fold_through_shared_memory(&sim);
        wrong_clusters_are_errors(&sim);
    }
}

/// Skips aloud without a GPU, unless `WARPFOLD_REQUIRE_CUDA` asks for one, and on
/// one that has no clusters.
#[test]
fn on_the_device_of_this_machine() {
    let Some(device) = device_of_this_machine() else { return };
    if device.limits().capability < (9, 0) {
        println!("SKIPPED: {} has no clusters", device.limits().name);
        return;
    }
    blocks_know_their_cluster(&*device);
    clusters_fold_through_shared_memory(&*device);
    wrong_clusters_are_errors(&*device);
}
