//! `ptx test`: a suite of launches, under several schedules.

use crate::args::{Global, TestArgs};
use crate::failure;
use crate::ptx::suite::document::Suite;
use crate::ptx::suite::{self, Format};
use crate::sink::Sink;
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;

pub(super) fn run(args: &TestArgs, global: &Global) -> Result<ExitCode> {
    if let Some(path) = &args.output {
        crate::sink::check(path)?;
    }
    let suite = Suite::read(Path::new(&args.suite))?;
    let outcome = suite::run(&suite, global.quiet)?;
    write(args, &suite, &outcome)?;
    Ok(match outcome.passed {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(failure::FOUND),
    })
}

/// Writes the outcome; to a file in one piece, with the text for people on stdout.
fn write(args: &TestArgs, suite: &Suite, outcome: &suite::Outcome) -> Result<()> {
    if let Some(path) = &args.output {
        let mut sink = Sink::open(Some(path))?;
        suite::write(args.output_format, suite, outcome, &mut sink)?;
        sink.commit()?;
    }
    let format = if args.output.is_some() { Format::Text } else { args.output_format };
    let print = || -> Result<()> {
        let mut sink = Sink::open(None)?;
        suite::write(format, suite, outcome, &mut sink)?;
        sink.commit()
    };
    print().or_else(|error| if failure::is_closed_pipe(&error) { Ok(()) } else { Err(error) })
}
