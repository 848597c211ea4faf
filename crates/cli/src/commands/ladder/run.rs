//! `ladder run`: runs rungs.

use super::profile::{self, Profile};
use super::{table, usage};
use crate::args::{Global, LadderFormat, RunLadderArgs, Sweep};
use crate::failure::{self, Usage, note};
use crate::progress::Steps;
use crate::sink::{self, Sink};
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use table::{Outcome, Row, Run};
use warpfold::Device;
use warpfold_cuda::Driver;
use warpfold_ladder::{ALL, Error, Lab, Question, Rung, Text, Timing, find};

/// The default numbers of elements: not multiples of any block.
const ON_CUDA: [u64; 2] = [1_048_583, (1 << 28) + 3];
const ON_SIM: [u64; 1] = [10_007];

/// What sweeps go through.
const BLOCKS: [u32; 10] = [32, 64, 96, 128, 192, 256, 384, 512, 768, 1024];
const ELEMENTS: [u64; 10] = ragged([10, 12, 14, 16, 18, 20, 22, 24, 26, 28]);
const ELEMENTS_ON_SIM: [u64; 4] = ragged([8, 10, 12, 14]);
const PER_MULTIPROCESSOR: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// A little more than powers of two.
const fn ragged<const N: usize>(powers: [u32; N]) -> [u64; N] {
    let mut all = [0; N];
    let mut i = 0;
    while i < N {
        all[i] = (1 << powers[i]) + 3;
        i += 1;
    }
    all
}

/// How many elements are asked for.
fn elements(args: &RunLadderArgs, simulated: bool) -> Vec<u64> {
    match (args.sweep, simulated) {
        (Some(Sweep::N), true) => ELEMENTS_ON_SIM.into(),
        (Some(Sweep::N), false) => ELEMENTS.into(),
        _ if !args.n.is_empty() => args.n.clone(),
        (_, true) => ON_SIM.into(),
        (_, false) => ON_CUDA.into(),
    }
}

pub(super) fn run(args: &RunLadderArgs, global: &Global) -> Result<ExitCode> {
    let chosen = choose(&args.rungs)?;
    // What is wrong with the question should not be found out on the way.
    questions(args, &chosen, &elements(args, true))?;
    if let Some(path) = &args.save {
        sink::check(path)?;
    }
    let (lab, simulated) = open(args.device)?;
    let asked = questions(args, &chosen, &elements(args, simulated))?;
    if args.once {
        let mut right = true;
        for (question, _) in asked {
            right &= lab.once(&question, args.seed)?.is_right();
        }
        return Ok(exit(right));
    }
    let say = |text: &str| {
        if !global.quiet {
            note(text);
        }
    };
    if simulated {
        say("the interpreter checks every access, counts, and has no clock: nothing is timed");
    }
    // Without counters the times are worth having.
    let mut profiler = None;
    if args.profile && simulated {
        say("the interpreter counts without a profiler");
    } else if args.profile {
        match Profiler::new(args.device) {
            Ok(found) => profiler = Some(found),
            Err(error) => say(&format!("no profile: {}; {}", error.why, error.hint)),
        }
    }
    let timing = Timing::default();
    let steps = Steps::new(asked.len() + 1, global.quiet);
    steps.begin("the rate of reading");
    let ceiling = lab.ceiling(&timing)?;
    let mut rows = Vec::new();
    for (question, named) in asked {
        steps.begin(&format!("{}, {} {}", question.rung().id, question.n(), question.dtype()));
        let outcome = match lab.measure(&question, &timing, args.seed) {
            Ok(measured) => Outcome::Measured(measured.into()),
            Err(error) if error.is_skip() && !named => Outcome::Skipped(error.to_string()),
            Err(error) => return Err(error.into()),
        };
        let mut profile = Vec::new();
        if let (Some(found), Outcome::Measured(measured)) = (&profiler, &outcome)
            && !measured.on_host
        {
            match found.take(&question, args.seed) {
                Ok(taken) => profile = taken,
                Err(error) => {
                    let id = question.rung().id;
                    say(&format!("no profile of {id}: {}; {}", error.why, error.hint));
                    if error.lasts {
                        profiler = None;
                    }
                }
            }
        }
        rows.push(Row { question, outcome, profile });
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
    Ok(exit(run.rows.iter().all(Row::is_right)))
}

fn exit(right: bool) -> ExitCode {
    if right { ExitCode::SUCCESS } else { ExitCode::from(failure::FOUND) }
}

/// The profiler, and what it runs where.
pub(super) struct Profiler {
    profiler: PathBuf,
    program: PathBuf,
    device: String,
}

impl Profiler {
    pub(super) fn new(device: Device) -> Result<Profiler, profile::Unavailable> {
        let profiler = profile::find()?;
        let program = std::env::current_exe().map_err(|e| profile::Unavailable {
            why: format!("the path of this program is unknown: {e}"),
            hint: "run it by its full path".into(),
            lasts: true,
        })?;
        let ordinal = match device {
            Device::Cuda(Some(ordinal)) => ordinal,
            _ => 0,
        };
        Ok(Profiler { profiler, program, device: format!("cuda:{ordinal}") })
    }

    pub(super) fn take(
        &self,
        question: &Question,
        seed: u64,
    ) -> Result<Vec<Profile>, profile::Unavailable> {
        profile::take(&self.profiler, &self.program, question, seed, &self.device)
    }
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
    let blocks = if args.sweep == Some(Sweep::Block) { BLOCKS.as_slice() } else { &args.block };
    let grids: Vec<Option<u32>> = match args.sweep {
        Some(Sweep::BlocksPerSm) => PER_MULTIPROCESSOR.map(Some).into(),
        _ => vec![None],
    };
    let ask = |rung: &'static Rung, dtype, n, block, grid: Option<u32>| {
        let question = Question::new(rung, dtype, args.op, n, block)?;
        match grid {
            Some(_) if !rung.plan.has_free_grid() => Err(Error::FixedGrid { rung }),
            Some(blocks) => Ok(question.on_each_multiprocessor(blocks)),
            None => Ok(question),
        }
    };
    let mut asked = Vec::new();
    let mut refused = None;
    for &n in elements {
        for &dtype in &args.dtype {
            for (i, &block) in blocks.iter().enumerate() {
                for &grid in &grids {
                    for &(rung, named) in chosen {
                        if i > 0 && !rung.plan.has_blocks() {
                            continue;
                        }
                        // A sweep passes over blocks that a rung cannot have.
                        let named = named && args.sweep != Some(Sweep::Block);
                        match ask(rung, dtype, n, block, grid) {
                            Ok(question) => asked.push((question, named)),
                            Err(error) if named => return Err(usage(&error)),
                            Err(error) => refused = refused.or(Some(error)),
                        }
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
        Device::CudaAll => cuda(0),
        Device::Sim | Device::Sims(_) => Ok(sim()),
        Device::Auto if Driver::probe().is_ok_and(|count| count > 0) => cuda(0),
        Device::Auto => Ok(sim()),
        _ => Err(Usage::new("the rungs are CUDA kernels, which a CPU cannot run directly")
            .hint("--device sim interprets them on the CPU")
            .into()),
    }
}
