//! Shared memory in strides.

use super::place::{Place, counters, counting};
use super::{Bench, Experiment, Needs, Outcome, Table, number};
use crate::chart::{Bar, Chart};
use crate::error::Result;
use crate::rung::Text;
use warpfold_cuda::Launch;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "bank-conflicts",
    texts: &[Text::F],
    title: "shared memory read in strides, and what a word of padding does",
    expectation: "there are 32 banks: a stride of s words meets itself gcd(s, 32) times in a bank, and the load takes as many passes; odd strides take one, 32 takes 32, and padded to 33 one again",
    needs: Needs::Kernels,
    run,
};

/// A row of 32 words, padded by one, is a stride of 33.
const STRIDES: u32 = 33;
const BLOCK: u32 = 256;
/// On the interpreter: rounds. On a device: blocks for each multiprocessor, and
/// rounds.
const COUNTED: u32 = 8;
const TIMED: (u32, u32) = (8, 4096);
const WORDS: u32 = 1024;

/// What a lane finds: kernels add what they read.
fn wanted(stride: u32, rounds: u32) -> [u32; 32] {
    core::array::from_fn(|lane| {
        let at = lane as u32 * stride;
        (0..rounds)
            .fold(0u32, |sum, i| sum.wrapping_add(((at + i) % WORDS).wrapping_mul(0x9e37_79b1)))
    })
}

fn right(place: &Place<'_>, out: u64, blocks: u32, stride: u32, rounds: u32) -> Result<bool> {
    let wanted = wanted(stride, rounds);
    let found = place.words(out, u64::from(blocks * BLOCK))?;
    Ok(found.chunks(32).all(|warp| warp == wanted))
}

fn run(bench: &Bench<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let sim = counting();
    let small = Place::new(EXPERIMENT.id, &sim);
    let small_out = small.room(4 * u64::from(BLOCK))?;
    let large = bench.place(EXPERIMENT.id);
    let blocks = large.as_ref().map_or(0, |p| TIMED.0 * p.device().limits().multiprocessors);
    let large_out = match &large {
        Some(place) => place.room(4 * u64::from(blocks * BLOCK))?,
        None => 0,
    };
    let columns = [
        "stride, words",
        "passes per load",
        "conflicts per load",
        "time, us",
        "times as long as stride 1",
    ];
    let mut table = Table::new("Strides", &columns);
    let (mut passes_by, mut times_by) = (Vec::new(), Vec::new());
    let mut first = None;
    let mut ratios = Vec::new();
    for stride in 1..=STRIDES {
        bench.tell(stride as usize - 1, STRIDES as usize);
        let name = match stride {
            33 => "32, padded to 33".to_string(),
            _ => stride.to_string(),
        };
        let kernel = small.kernel("bank_conflicts", "strided")?;
        let arguments = [small_out.into(), stride.into(), COUNTED.into()];
        small.launch(kernel, &Launch::linear(1, BLOCK), &arguments)?;
        small.wait()?;
        let loads = counters(&sim).shared_loads;
        let mut all_right = right(&small, small_out, 1, stride, COUNTED)?;
        let per_load = |what: u64| what as f64 / loads.requests.max(1) as f64;
        let mut time = None;
        if let Some(place) = &large {
            let kernel = place.kernel("bank_conflicts", "strided")?;
            let launch = Launch::linear(blocks, BLOCK);
            let arguments = [large_out.into(), stride.into(), TIMED.1.into()];
            place.launch(kernel, &launch, &arguments)?;
            place.wait()?;
            all_right &= right(place, large_out, blocks, stride, TIMED.1)?;
            time = place.time(kernel, &launch, &arguments)?;
        }
        if !all_right {
            outcome.wrong.push(format!("stride {stride}: other words than the host's"));
        }
        first = first.or(time);
        let ratio = time.zip(first).map(|(time, first)| time / first);
        ratios.push(ratio);
        passes_by.push(Bar::new(name.clone(), per_load(loads.wavefronts)));
        times_by.extend(time.map(|time| Bar::new(name.clone(), time * 1e6)));
        table.rows.push(vec![
            name.into(),
            per_load(loads.wavefronts).into(),
            per_load(loads.conflicts).into(),
            time.map(|time| time * 1e6).into(),
            ratio.into(),
        ]);
    }
    outcome.findings.push("a load takes as many passes as the greatest common divisor of its stride and 32: the interpreter counts them as a profiler does".into());
    if let Some(time) = first {
        let bytes = u64::from(blocks * BLOCK) * u64::from(TIMED.1) * 4;
        outcome.findings.push(format!(
            "words side by side: {} GB/s, of all multiprocessors",
            number(bytes as f64 / time / 1e9)
        ));
    }
    if let (Some(Some(worst)), Some(Some(padded))) = (ratios.get(31), ratios.get(32)) {
        outcome.findings.push(format!(
            "a stride of 32 words takes {} times as long as one of 1, and padded by a word {} times",
            number(*worst),
            number(*padded)
        ));
    }
    outcome.tables.push(table);
    outcome.charts.push(Chart::bars("Passes of a load by its stride", "passes", passes_by));
    if !times_by.is_empty() {
        outcome.charts.push(Chart::bars("Time by stride", "us", times_by));
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table says what the expectation says.
    #[test]
    fn passes_are_the_greatest_common_divisor() {
        let rung = crate::find("warp-shuffle").unwrap();
        let outcome = run(&Bench { lab: None, rung, progress: &|_, _| {} }).unwrap();
        assert!(outcome.wrong.is_empty(), "{:?}", outcome.wrong);
        for (row, stride) in outcome.tables[0].rows.iter().zip(1u32..) {
            let passes = 1u32 << stride.trailing_zeros();
            assert_eq!(row[1], f64::from(passes).into(), "{row:?}");
            assert_eq!(row[2], f64::from(passes - 1).into(), "{row:?}");
        }
    }
}
