//! `ladder experiment`: one thing that decides how fast a kernel is.

use super::{run::open, usage};
use crate::args::{ExperimentArgs, ExperimentFormat, Global};
use crate::failure::{self, note};
use crate::output::grid;
use crate::progress::Steps;
use crate::sink::{self, Sink};
use anyhow::Result;
use serde_json::json;
use std::cell::OnceCell;
use std::io::Write;
use std::process::ExitCode;
use warpfold_ladder::experiments::{Bench, EXPERIMENTS, Experiment, Needs, Table, find};
use warpfold_ladder::report::{Machine, Trial};
use warpfold_ladder::{Error, Lab, Rung};

pub(super) fn run(args: &ExperimentArgs, global: &Global) -> Result<ExitCode> {
    let Some(id) = &args.id else { return list(args) };
    let experiment = find(id).ok_or_else(|| usage(&Error::NoExperiment { id: id.clone() }))?;
    let no_rung = || usage(&Error::NoRung { id: args.rung.clone() });
    let rung = warpfold_ladder::find(&args.rung).ok_or_else(no_rung)?;
    if let Some(path) = &args.save {
        sink::check(path)?;
    }
    let (lab, simulated) = open(args.device)?;
    let lab = (!simulated).then_some(lab);
    experiment.check(lab.is_some())?;
    if !global.quiet && args.output_format != ExperimentFormat::Json {
        note(&format!("expected: {}", experiment.expectation));
        if lab.is_none() && experiment.needs == Needs::Kernels {
            note("the interpreter has no clock: there are counters instead of times");
        }
    }
    let trial = conduct(experiment, lab.as_ref(), rung, global.quiet)?;
    if let Some(path) = &args.save {
        let mut sink = Sink::open(Some(path))?;
        writeln!(sink, "{}", serde_json::to_string(&trial)?)?;
        sink.commit()?;
    }
    let write = || -> Result<()> {
        let mut sink = Sink::open(None)?;
        match args.output_format {
            ExperimentFormat::Table => text(&trial, &mut sink)?,
            ExperimentFormat::Md => {
                write!(sink, "{}", warpfold_ladder::report::trial_markdown(&trial))?;
            }
            ExperimentFormat::Json => writeln!(sink, "{}", serde_json::to_string(&trial)?)?,
        }
        sink.commit()
    };
    // A reader who leaves early changes nothing about the verdict.
    write().or_else(|e| if failure::is_closed_pipe(&e) { Ok(()) } else { Err(e) })?;
    let right = trial.outcome.wrong.is_empty();
    Ok(if right { ExitCode::SUCCESS } else { ExitCode::from(failure::FOUND) })
}

/// Runs an experiment, with a bar of its steps.
///
/// # Errors
/// Those of the experiment.
pub(super) fn conduct(
    experiment: &Experiment,
    lab: Option<&Lab>,
    rung: &'static Rung,
    quiet: bool,
) -> Result<Trial, Error> {
    let bar = OnceCell::new();
    let progress = |_: u64, all: u64| {
        let steps: &Steps = bar.get_or_init(|| Steps::new(all as usize, quiet));
        steps.begin(experiment.id);
    };
    let outcome = experiment.run(&Bench { lab, rung, progress: &progress })?;
    let machine = lab.map(|lab| Machine::from(lab.device().limits()));
    Ok(Trial::new(experiment, machine, outcome))
}

/// The experiments, and what they need.
fn list(args: &ExperimentArgs) -> Result<ExitCode> {
    let mut sink = Sink::open(None)?;
    let texts = |e: &Experiment| e.texts.iter().map(|t| t.name()).collect::<Vec<_>>();
    match args.output_format {
        ExperimentFormat::Json => {
            let object = |e: &Experiment| {
                json!({
                    "id": e.id,
                    "texts": texts(e),
                    "title": e.title,
                    "expectation": e.expectation,
                    "needs": e.needs.name(),
                })
            };
            let objects: Vec<_> = EXPERIMENTS.iter().map(|e| object(e).to_string()).collect();
            writeln!(sink, "[{}]", objects.join(",\n "))?;
        }
        ExperimentFormat::Table | ExperimentFormat::Md => {
            let row = |e: &Experiment| {
                vec![e.id.into(), texts(e).join(", "), e.title.into(), e.needs.name().into()]
            };
            let rows: Vec<Vec<String>> = EXPERIMENTS.iter().map(row).collect();
            let header = ["experiment", "from", "what it shows", "needs"];
            if args.output_format == ExperimentFormat::Table {
                writeln!(sink, "{}", grid(&header, rows, 4))?;
            } else {
                writeln!(sink, "| {} |\n|{}", header.join(" | "), "---|".repeat(header.len()))?;
                for row in rows {
                    writeln!(sink, "| {} |", row.join(" | "))?;
                }
            }
        }
    }
    sink.commit()?;
    Ok(ExitCode::SUCCESS)
}

fn text(trial: &Trial, out: &mut dyn Write) -> std::io::Result<()> {
    let Trial { experiment, title, expectation, machine, outcome, .. } = trial;
    writeln!(out, "{experiment}: {title}")?;
    writeln!(out, "  expected  {expectation}")?;
    for finding in &outcome.findings {
        writeln!(out, "  found     {finding}")?;
    }
    for skipped in &outcome.skipped {
        writeln!(out, "  skipped   {skipped}")?;
    }
    for wrong in &outcome.wrong {
        writeln!(out, "  wrong     {wrong}")?;
    }
    if let Some(Machine { name, capability, multiprocessors, .. }) = machine {
        writeln!(out, "  device    {name}, {capability}, {multiprocessors} multiprocessors")?;
    }
    for table in outcome.tables.iter().map(Table::without_empty_columns) {
        let header: Vec<&str> = table.columns.iter().map(String::as_str).collect();
        let rows = table.rows.iter().map(|row| row.iter().map(|cell| cell.shown()).collect());
        writeln!(out, "\n{}\n{}", table.title, grid(&header, rows.collect::<Vec<_>>(), 1))?;
    }
    for drawing in &outcome.drawings {
        writeln!(out, "\n{}", drawing.trim_end())?;
    }
    Ok(())
}
