//! What each subcommand does.

mod bench;
mod completions;
mod doctor;
mod groups;
mod inspect;
mod ladder;
mod learn;
mod man;
mod merge;
mod partial;
mod ptx;
mod reduce;
mod stats;

use crate::args::{Cli, Verb};
use crate::ranks;
use anyhow::Result;
use std::process::ExitCode;

/// Runs the command, and tells the exit status.
///
/// # Errors
/// Whatever stands in the way of an answer.
pub(crate) fn run(cli: Cli) -> Result<ExitCode> {
    let global = &cli.global;
    match cli.verb {
        Verb::Reduce(args) => {
            return ranks::run(&args.rest.execution, global, |ranks| reduce::run(&args, ranks));
        }
        Verb::Stats(args) => {
            return ranks::run(&args.execution, global, |ranks| stats::run(&args, ranks));
        }
        Verb::Partial(args) => {
            return ranks::run(&args.execution, global, |ranks| partial::run(&args, ranks));
        }
        Verb::Merge(args) => merge::run(&args),
        Verb::Inspect(args) => inspect::run(&args),
        Verb::Ptx(args) => return ptx::run(&args, global),
        Verb::Ladder(args) => return ladder::run(&args, global),
        Verb::Learn(args) => return learn::run(&args, global),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::Bench(args) => bench::run(&args, global),
        Verb::Completions(args) => completions::run(&args),
        Verb::Man(args) => man::run(&args),
    }?;
    Ok(ExitCode::SUCCESS)
}
