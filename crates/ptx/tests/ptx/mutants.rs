//! Kernels changed at random still run without a panic, to an end or to a limit: whatever can be loaded can be executed.

use crate::bench::{builds, schedules};
use proptest::prelude::*;
use warpfold_ptx::device::{Device, Setup};
use warpfold_ptx::machine::{Arg, Checks, Options, Shape};

const SAMPLES: [&str; 20] = [
    "two_pass",
    "addressing",
    "shuffles",
    "warps",
    "warps_90",
    "atomics",
    "ticket",
    "grid_sync",
    "cluster",
    "async_copy",
    "bulk_copy",
    "calls",
    "constants",
    "dynamic_shared",
    "locals",
    "halves_90",
    "wide",
    "arithmetic",
    "printing",
    "tail_launch",
];

/// Swaps a register, a number or an opcode of the text for another that occurs in it.
fn mutate(text: &str, changes: &[(prop::sample::Index, prop::sample::Index)]) -> String {
    let is_word = |c: char| c.is_alphanumeric() || "%_$.".contains(c);
    let body = text.find("{\n").unwrap_or(0);
    let mut words = Vec::new();
    let mut start = None;
    for (i, c) in text.char_indices().skip_while(|&(i, _)| i < body) {
        match (is_word(c), start) {
            (true, None) => start = Some(i),
            (false, Some(s)) => {
                words.push(s..i);
                start = None;
            }
            _ => {}
        }
    }
    let mut changed = text.to_owned();
    let mut picks: Vec<_> =
        changes.iter().map(|(a, b)| (a.get(&words).clone(), b.index(words.len()))).collect();
    picks.sort_by_key(|(range, _)| core::cmp::Reverse(range.start));
    picks.dedup_by_key(|(range, _)| range.start);
    for (range, by) in picks {
        let kind =
            |r: &core::ops::Range<usize>| text[r.clone()].chars().take(2).collect::<String>();
        let wanted = kind(&range);
        // The next word of the same looks.
        let cycle = words[by..].iter().chain(&words[..by]);
        if let Some(other) =
            cycle.clone().find(|r| kind(r) == wanted && text[(*r).clone()] != text[range.clone()])
        {
            changed.replace_range(range, &text[other.clone()]);
        }
    }
    changed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_loads_runs(
        sample in prop::sample::select(SAMPLES.to_vec()),
        build in any::<prop::sample::Index>(),
        changes in prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 1..6),
        schedule in any::<prop::sample::Index>(),
        checked in any::<bool>(),
        scalar in prop_oneof![0u64..300, any::<u64>()],
    ) {
        let builds = builds(sample);
        let text = mutate(&build.get(&builds).1, &changes);
        let options = Options {
            checks: if checked { Checks::ALL } else { Checks::NONE },
            schedule: *schedule.get(&schedules()),
            instructions: 5_000,
            counters: checked,
            ..Options::default()
        };
        let mut device = Device::new(Setup { options, memory: 64 << 20, ..Setup::default() });
        let Ok(module) = device.load(&text) else { return Ok(()) };
        let buffer = device.allocate(1 << 16).unwrap();
        device.fill(buffer, 1 << 16, 1).unwrap();
        let kernels: Vec<_> = device.module(module).unwrap().kernels().map(|k| {
            let bytes = k.parameters.iter().map(|p| {
                let mut bytes = vec![0u8; p.bytes() as usize];
                let value = if bytes.len() == 8 { buffer } else { scalar };
                let n = bytes.len().min(8);
                bytes[..n].copy_from_slice(&value.to_le_bytes()[..n]);
                bytes
            });
            (k.name.clone(), bytes.collect::<Vec<_>>())
        }).collect();
        for (name, bytes) in kernels {
            let kernel = device.kernel(module, &name).unwrap();
            let args: Vec<Arg<'_>> = bytes.iter().map(|b| Arg::Bytes(b)).collect();
            if let Ok(reports) = device.run_to_end(kernel, &Shape::linear(2, 40).with_shared(1024), &args) {
                for report in &reports {
                    // Messages are part of it.
                    report.outcome.findings.all().iter().for_each(|f| drop(f.to_string()));
                    drop(report.outcome.halt.as_ref().map(ToString::to_string));
                }
            }
        }
    }
}
