//! Lanes of a warp that go different ways.

use super::place::{Place, counters, counting};
use super::{Bench, Cell, Experiment, Needs, Outcome, Table, number};
use crate::chart::{Bar, Chart};
use crate::error::Result;
use crate::rung::Text;
use warpfold_cuda::Launch;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "divergence",
    texts: &[Text::P],
    title: "the same work, divided by the parity of threads and of warps",
    expectation: "divided by thread, every warp executes both sides, one after the other: twice the time, and half of the lanes active; divided by warp nothing is lost. Sides of one statement take as long either way: the compiler predicates them instead of branching",
    needs: Needs::Kernels,
    run,
};

const BLOCK: u32 = 256;
/// On the interpreter: blocks, and rounds of each side.
const COUNTED: (u32, u32) = (2, 256);
/// On a device: blocks for each multiprocessor, and rounds.
const TIMED: (u32, u32) = (32, 1024);

/// The kernels: their names, and how many threads in a row go the same way.
const KERNELS: [(&str, &str, u32); 4] = [
    ("long_by_thread", "loop, by thread", 1),
    ("long_by_warp", "loop, by warp", 32),
    ("short_by_thread", "one statement, by thread", 1),
    ("short_by_warp", "one statement, by warp", 32),
];

/// What `rounds` steps of `x -> a * x + c` make of any x: again such a step.
fn steps((a, c): (u32, u32), rounds: u32) -> (u32, u32) {
    (0..rounds).fold((1u32, 0u32), |(factor, summand), _| {
        (factor.wrapping_mul(a), summand.wrapping_mul(a).wrapping_add(c))
    })
}

/// The answers of a kernel whose sides change after `apart` threads.
fn wanted(threads: u32, rounds: u32, apart: u32) -> impl Iterator<Item = u32> {
    let sides = [(1664525, 1013904223), (22695477, 12820163)].map(|side| steps(side, rounds));
    (0..threads).map(move |i| {
        // Sides begin anew in each block, whose size is a multiple of both.
        let (factor, summand) = sides[(i / apart % 2) as usize];
        i.wrapping_mul(factor).wrapping_add(summand)
    })
}

struct Ran {
    right: bool,
    time: Option<f64>,
}

fn once(place: &Place<'_>, kernel: usize, blocks: u32, rounds: u32, timed: bool) -> Result<Ran> {
    let (name, _, apart) = KERNELS[kernel];
    let threads = blocks * BLOCK;
    let out = place.room(4 * u64::from(threads))?;
    let (launch, arguments) = (Launch::linear(blocks, BLOCK), [out.into(), rounds.into()]);
    let entry = place.kernel("divergence", name)?;
    place.launch(entry, &launch, &arguments)?;
    place.wait()?;
    let right = place.words(out, threads.into())?.into_iter().eq(wanted(threads, rounds, apart));
    let time = if timed { place.time(entry, &launch, &arguments)? } else { None };
    Ok(Ran { right, time })
}

fn run(bench: &Bench<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut table = Table::new(
        "Two ways to divide the same work",
        &[
            "sides",
            "time, us",
            "times as long as by warp",
            "branch efficiency, %",
            "warp execution efficiency, %",
            "divergent branches",
        ],
    );
    let sim = counting();
    let device = bench.place(EXPERIMENT.id);
    let (mut bars, mut lanes, mut times) = (Vec::new(), Vec::new(), Vec::new());
    let mut told = Vec::new();
    for (i, (name, title, _)) in KERNELS.into_iter().enumerate() {
        bench.tell(i, KERNELS.len());
        let counted = once(&Place::new(EXPERIMENT.id, &sim), i, COUNTED.0, COUNTED.1, false)?;
        let counted_of = counters(&sim);
        let mut right = counted.right;
        let mut time = None;
        if let Some(device) = &device {
            let blocks = TIMED.0 * device.device().limits().multiprocessors;
            let ran = once(device, i, blocks, TIMED.1, true)?;
            right &= ran.right;
            time = ran.time;
        }
        if !right {
            outcome.wrong.push(format!("{name}: not what the host computes"));
        }
        let straight = counted_of.branches - counted_of.divergent_branches;
        let branches =
            (counted_of.branches > 0).then(|| 100.0 * straight as f64 / counted_of.branches as f64);
        let active = counted_of.active_lanes().map(|lanes| 100.0 * lanes / 32.0);
        times.push(time);
        told.push((time, branches, active, counted_of.divergent_branches));
        lanes.extend(active.map(|active| Bar::new(title, active)));
        bars.extend(time.map(|time| Bar::new(title, time * 1e6)));
    }
    for (i, (time, branches, active, divergent)) in told.into_iter().enumerate() {
        let ratio = times[i].zip(times[i | 1]).map(|(time, by_warp)| time / by_warp);
        table.rows.push(vec![
            KERNELS[i].1.into(),
            Cell::from(time.map(|time| time * 1e6)),
            ratio.into(),
            branches.into(),
            active.into(),
            divergent.into(),
        ]);
        if let (Some(ratio), true) = (ratio, i % 2 == 0) {
            let title = KERNELS[i].1;
            outcome.findings.push(format!("{title}: {} times as long as by warp", number(ratio)));
        }
    }
    outcome.findings.push(
        "branches and lanes are those of the interpreter, which runs the PTX: the assembler predicates short branches besides".into(),
    );
    outcome.tables.push(table);
    if !bars.is_empty() {
        outcome.charts.push(Chart::bars("Time of divergent branches", "us", bars));
    }
    outcome.charts.push(Chart::bars("Lanes at work", "% of a warp's", lanes));
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_steps_are_one() {
        let side = (1664525, 1013904223);
        let (factor, summand) = steps(side, 5);
        let walked = (0..5).fold(77u32, |x, _| x.wrapping_mul(side.0).wrapping_add(side.1));
        assert_eq!(77u32.wrapping_mul(factor).wrapping_add(summand), walked);
    }
}
