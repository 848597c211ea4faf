//! `ptx test`: a file of launches and what they must give, run under several schedules.

mod cases;
pub(crate) mod document;
mod expect;
mod junit;
mod sarif;
mod text;

pub(crate) use cases::{Case, Finding, Outcome, run};

use document::Suite;
use std::io::Write;

/// How the outcome is written.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    Sarif,
    Junit,
}

/// Writes what a suite gave.
///
/// # Errors
/// What the system says.
pub(crate) fn write(
    format: Format,
    suite: &Suite,
    outcome: &Outcome,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    match format {
        Format::Text => text::write(suite, outcome, out),
        Format::Json => {
            serde_json::to_writer(&mut *out, outcome)?;
            writeln!(out)
        }
        Format::Sarif => sarif::write(suite, outcome, out),
        Format::Junit => junit::write(suite, outcome, out),
    }
}
