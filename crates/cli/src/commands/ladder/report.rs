//! `ladder report`: a page of what was measured.

use super::measure;
use super::run::open;
use crate::args::{Global, ReportArgs};
use crate::failure;
use crate::sink::{self, Sink};
use anyhow::Result;
use std::io::Write;
use std::process::ExitCode;

pub(super) fn run(args: &ReportArgs, global: &Global) -> Result<ExitCode> {
    for path in args.save.iter().chain(&args.output) {
        sink::check(path)?;
    }
    let mut wrong = false;
    if args.measure {
        let (lab, simulated) = open(args.device)?;
        let document = measure::all(&lab, simulated, global.quiet)?;
        wrong = document.is_wrong();
        if let Some(path) = &args.save {
            let mut sink = Sink::open(Some(path))?;
            writeln!(sink, "{}", document.to_json()?)?;
            sink.commit()?;
        }
    }
    Ok(if wrong { ExitCode::from(failure::FOUND) } else { ExitCode::SUCCESS })
}
