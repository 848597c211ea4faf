//! `ladder`: the classic reduction kernels.

pub(super) mod attempt;
mod experiment;
mod list;
mod measure;
mod occupancy;
mod profile;
mod report;
mod run;
mod show;
mod table;

use crate::args::{Global, LadderArgs, LadderVerb};
use crate::failure::Usage;
use anyhow::Result;
use std::process::ExitCode;

pub(super) fn run(args: &LadderArgs, global: &Global) -> Result<ExitCode> {
    match &args.verb {
        LadderVerb::List(args) => list::run(args),
        LadderVerb::Show(args) => show::run(args),
        LadderVerb::Faults => show::faults(),
        LadderVerb::Run(args) => return run::run(args, global),
        LadderVerb::Experiment(args) => return experiment::run(args, global),
        LadderVerb::Try(args) => return attempt::run(args, global),
        LadderVerb::Report(args) => return report::run(args, global),
        LadderVerb::Occupancy(args) => occupancy::run(args),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// A question that no rung answers is wrong usage.
fn usage(error: &warpfold_ladder::Error) -> Usage {
    let usage = Usage::new(error.to_string());
    match error.hint() {
        Some(hint) => usage.hint(hint),
        None => usage,
    }
}
