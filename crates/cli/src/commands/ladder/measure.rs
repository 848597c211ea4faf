//! Everything that a report shows, measured on one device.

use super::experiment::conduct;
use super::run::Profiler;
use super::table::{self, Outcome, Row, Run};
use crate::failure::note;
use crate::progress::Steps;
use anyhow::Result;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;
use warpfold::{DType, Op};
use warpfold_ladder::experiments::{EXPERIMENTS, Needs};
use warpfold_ladder::report::{Document, Machine, stamp};
use warpfold_ladder::{ALL, Lab, Plan, Question, Rung, Timing, find};
use warpfold_threads::scoped;

/// The ladder itself: about a million elements, which lie in a cache, and a
/// gigabyte. No multiples of any block.
const LADDER: [u64; 2] = [1_048_583, (1 << 28) + 3];
const TYPES: [DType; 2] = [DType::F32, DType::I32];
const BLOCK: u32 = 256;

/// The rungs of which is shown how they depend on the number of elements, and on
/// the size of a block: one of each kind.
const SWEPT: [&str; 11] = [
    "cpu-serial",
    "neighbored",
    "interleaved",
    "shared-first-add",
    "unroll8",
    "two-pass-shared",
    "warp-shuffle",
    "vector-load",
    "last-block",
    "engine",
    "cub",
];
const POWERS: [u32; 9] = [10, 12, 14, 16, 18, 20, 22, 24, 26];
const BLOCKS: [u32; 6] = [32, 64, 128, 256, 512, 1024];
const BLOCK_SWEEP: u64 = (1 << 26) + 3;

/// Where each is enough: the interpreter takes a million times as long.
const ON_SIM: [u64; 1] = [10_007];

/// The rung whose launches are swept.
const LAUNCHES: &str = "vector-load";

/// Runs everything. What cannot be run is told with its reason.
///
/// # Errors
/// The device fails before the first rung.
pub(super) fn all(
    lab: &Lab,
    simulated: bool,
    profiler: Option<Profiler>,
    quiet: bool,
) -> Result<Document> {
    let say = |text: &str| {
        if !quiet {
            note(text);
        }
    };
    let began = stamp(SystemTime::now());
    let groups = questions(simulated);
    let count = groups.iter().map(Vec::len).sum::<usize>();
    let timing = Timing::default();
    let steps = Steps::new(count + 1 + usize::from(profiler.is_some()), quiet);
    steps.begin("the rate of reading");
    let ceiling = lab.ceiling(&timing)?;
    let mut measured = Vec::new();
    for group in groups {
        let mut rows = Vec::new();
        for question in group {
            steps.begin(&format!("{}, {} {}", question.rung().id, question.n(), question.dtype()));
            // The host's runs are long, and much alike.
            let host = Timing { runs: 20, ..timing };
            let timing = if question.rung().plan == Plan::Host { &host } else { &timing };
            let outcome = match lab.measure(&question, timing, 1) {
                Ok(measured) => Outcome::Measured(measured.into()),
                Err(error) => Outcome::Skipped(error.to_string()),
            };
            rows.push(Row { question, outcome, profile: Vec::new() });
        }
        measured.push(rows);
    }
    if let Some(profiler) = profiler {
        steps.begin("hardware counters");
        let rows = measured.iter_mut().flatten().filter(|row| is_profiled(row)).collect();
        profile(rows, &profiler, &say);
    }
    let rungs = measured.into_iter().flat_map(|rows| {
        let device = lab.device().limits().clone();
        table::objects(&Run { device, simulated, ceiling: ceiling.clone(), rows })
    });
    let rungs = rungs.collect();
    drop(steps);
    let mut experiments = Vec::new();
    let clock = (!simulated).then_some(lab);
    if let Some(rung) = find(LAUNCHES) {
        for experiment in EXPERIMENTS {
            if experiment.needs == Needs::Clock && clock.is_none() {
                continue;
            }
            match conduct(experiment, clock, rung, quiet) {
                Ok(trial) => experiments.push(trial),
                Err(error) => say(&format!("{} is left out: {error}", experiment.id)),
            }
        }
    }
    Ok(Document {
        warpfold: env!("CARGO_PKG_VERSION").into(),
        measured: Some(began),
        machine: Some(Machine::from(lab.device().limits())),
        rungs,
        experiments,
    })
}

/// The profiler takes seconds for each launch, whatever its size: one round of the
/// ladder says all.
fn is_profiled(row: &Row) -> bool {
    let question = &row.question;
    matches!(&row.outcome, Outcome::Measured(measured) if !measured.on_host)
        && (question.n(), question.dtype(), question.block()) == (LADDER[0], TYPES[0], BLOCK)
}

/// Profilers at once: each takes seconds to begin, and counts for milliseconds,
/// while the others wait for it.
const PROFILERS: usize = 6;

/// Has what rows' launches do counted. A row without counters says why.
fn profile(rows: Vec<&mut Row>, profiler: &Profiler, say: &(dyn Fn(&str) + Sync)) {
    let rows = Mutex::new(rows.into_iter());
    let next = || rows.lock().unwrap_or_else(PoisonError::into_inner).next();
    let given_up = AtomicBool::new(false);
    scoped(PROFILERS, || {
        while !given_up.load(Ordering::Relaxed)
            && let Some(row) = next()
        {
            match profiler.take(&row.question, 1) {
                Ok(taken) => row.profile = taken,
                Err(error) => {
                    let id = row.question.rung().id;
                    say(&format!("no profile of {id}: {}; {}", error.why, error.hint));
                    given_up.fetch_or(error.lasts, Ordering::Relaxed);
                }
            }
        }
    });
}

/// The ladder for each size and type, a sweep over sizes, and one over blocks.
fn questions(simulated: bool) -> Vec<Vec<Question>> {
    let ladder = if simulated { ON_SIM.as_slice() } else { &LADDER };
    let ask = |rung, dtype, n, block| Question::new(rung, dtype, Op::Sum, n, block).ok();
    let mut groups = Vec::new();
    for &n in ladder {
        for dtype in TYPES {
            // The host takes seconds for a gigabyte, and no other ones for another type.
            let long = |rung: &Rung| n == LADDER[1] && dtype != TYPES[0] && rung.plan == Plan::Host;
            let rungs = ALL.iter().filter(|rung| !long(rung));
            groups.push(rungs.filter_map(|rung| ask(rung, dtype, n, BLOCK)).collect());
        }
    }
    if simulated {
        return groups;
    }
    let swept: Vec<&'static Rung> = SWEPT.into_iter().filter_map(find).collect();
    let over = |n: u64, block: u32| -> Vec<Question> {
        swept.iter().filter_map(|rung| ask(rung, DType::F32, n, block)).collect()
    };
    groups.extend(POWERS.map(|power| over(1 << power, BLOCK)));
    let of_blocks = |question: &Question| question.rung().plan.has_blocks();
    groups.extend(BLOCKS.map(|block| {
        let asked: Vec<Question> = over(BLOCK_SWEEP, block);
        asked.into_iter().filter(of_blocks).collect()
    }));
    groups
}
