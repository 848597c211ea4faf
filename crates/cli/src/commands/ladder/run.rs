//! `ladder run`: rungs at work.

use super::{table, usage};
use crate::args::{Global, LadderFormat, RunLadderArgs};
use crate::failure::{self, Usage, note};
use crate::progress::Steps;
use crate::sink::{self, Sink};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use table::{Outcome, Row, Run};
use warpfold::Device;
use warpfold_cuda::Driver;
use warpfold_ladder::{ALL, Error, Lab, Question, Rung, Text, Timing, find};

/// How many elements, where nobody says: no multiples of any block.
const ON_CUDA: [u64; 2] = [1_048_583, (1 << 28) + 3];
const ON_SIM: [u64; 1] = [10_007];

pub(super) fn run(args: &RunLadderArgs, global: &Global) -> Result<ExitCode> {
    let chosen = choose(&args.rungs)?;
    // What is wrong with the question should not be found out on the way.
    let elements = if args.n.is_empty() { ON_SIM.into() } else { args.n.clone() };
    questions(args, &chosen, &elements)?;
    if let Some(path) = &args.save {
        sink::check(path)?;
    }
    let (lab, simulated) = open(args.device)?;
    let elements = match (args.n.is_empty(), simulated) {
        (true, false) => ON_CUDA.into(),
        _ => elements,
    };
    let asked = questions(args, &chosen, &elements)?;
    let say = |text: &str| {
        if !global.quiet {
            note(text);
        }
    };
    if simulated {
        say("the interpreter checks every access, counts, and has no clock: nothing is timed");
    }
    let timing = Timing::default();
    let steps = Steps::new(asked.len() + 1, global.quiet);
    steps.begin("the rate of reading");
    let ceiling = lab.ceiling(&timing, args.seed)?;
    let mut rows = Vec::new();
    for (question, named) in asked {
        steps.begin(&format!("{}, {} {}", question.rung().id, question.n(), question.dtype()));
        let outcome = match lab.measure(&question, &timing, args.seed) {
            Ok(measured) => Outcome::Measured(measured.into()),
            Err(error) if error.is_skip() && !named => Outcome::Skipped(error.to_string()),
            Err(error) => return Err(error.into()),
        };
        rows.push(Row { question, outcome });
    }
    drop(steps);
    let device = lab.device().limits().clone();
    let run = Run { device, simulated, ceiling, rows };
    let write = |path: Option<&Path>, format| -> Result<()> {
        let mut sink = Sink::open(path)?;
        table::write(&run, format, &mut sink)?;
        sink.commit()
    };
    if let Some(path) = &args.save {
        write(Some(path), LadderFormat::Json)?;
    }
    // A reader who leaves early changes nothing about the verdict.
    write(None, args.output_format)
        .or_else(|e| if failure::is_closed_pipe(&e) { Ok(()) } else { Err(e) })?;
    let right = run.rows.iter().all(Row::is_right);
    Ok(if right { ExitCode::SUCCESS } else { ExitCode::from(failure::FOUND) })
}

/// The rungs that are meant, in the ladder's order, and whether by their names.
fn choose(words: &[String]) -> Result<Vec<(&'static Rung, bool)>, Usage> {
    let text = |word: &str| Text::ALL.into_iter().find(|t| t.name().eq_ignore_ascii_case(word));
    for word in words {
        if word != "all" && text(word).is_none() && find(word).is_none() {
            return Err(usage(&Error::NoRung { id: word.clone() }));
        }
    }
    let named = |rung: &Rung| words.iter().any(|word| word == rung.id);
    let meant = |rung: &Rung| {
        words.iter().any(|w| w == "all" || text(w).is_some_and(|t| rung.texts.contains(&t)))
    };
    let chosen = ALL.iter().map(|rung| (rung, named(rung)));
    Ok(chosen.filter(|(rung, named)| *named || meant(rung)).collect())
}

/// What is asked of the rungs. One that was named must answer; of the others those
/// are asked that can.
fn questions(
    args: &RunLadderArgs,
    chosen: &[(&'static Rung, bool)],
    elements: &[u64],
) -> Result<Vec<(Question, bool)>, Usage> {
    let mut asked = Vec::new();
    let mut refused = None;
    for &n in elements {
        for &dtype in &args.dtype {
            for (i, &block) in args.block.iter().enumerate() {
                for &(rung, named) in chosen {
                    if i > 0 && !rung.plan.has_blocks() {
                        continue;
                    }
                    match Question::new(rung, dtype, args.op, n, block) {
                        Ok(question) => asked.push((question, named)),
                        Err(error) if named => return Err(usage(&error)),
                        Err(error) => refused = refused.or(Some(error)),
                    }
                }
            }
        }
    }
    match refused {
        Some(error) if asked.is_empty() => Err(usage(&error)),
        _ => Ok(asked),
    }
}

/// The device, and whether the interpreter plays it.
pub(super) fn open(device: Device) -> Result<(Lab, bool)> {
    let sim = || (Lab::simulated(), true);
    let cuda = |ordinal| Ok((Lab::new(Arc::new(Driver::open(ordinal)?)), false));
    match device {
        Device::Cuda(ordinal) => cuda(ordinal.unwrap_or(0)),
        Device::Sim => Ok(sim()),
        Device::Auto if Driver::probe().is_ok_and(|count| count > 0) => cuda(0),
        Device::Auto => Ok(sim()),
        Device::Cpu => Err(Usage::new("the rungs are CUDA kernels, which no CPU runs itself")
            .hint("--device sim interprets them on the CPU")
            .into()),
    }
}
