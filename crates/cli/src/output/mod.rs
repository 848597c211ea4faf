//! What answers look like.

mod arrow;
mod columns;
mod csv;
mod groups;
mod json;
pub(crate) mod npy;
mod npz;
mod parquet;
mod plain;
mod table;
mod zip;

pub(crate) use csv::Row;
pub(crate) use groups::{GroupReport, GroupRows};
pub(crate) use json::quoted;
pub(crate) use table::grid;

use crate::args::OutputArgs;
use crate::failure::Usage;
use crate::report::Report;
use crate::sink::{self, Sink};
use anyhow::Result;
use columns::Columns;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// The ways to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Bare values; with names where there are several
    Plain,
    /// An aligned table
    Table,
    /// Comma-separated values with a header
    Csv,
    /// Tab-separated values with a header
    Tsv,
    /// JSON: `{"op","dtype","shape","value"}`, with `name` where there are
    /// several arrays; NaN and infinities are strings
    Json,
    /// One JSON object on each line
    Jsonl,
}

impl Format {
    /// The format that a file's name promises.
    pub(crate) fn of_name(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "json" => Some(Format::Json),
            "jsonl" | "ndjson" => Some(Format::Jsonl),
            "csv" => Some(Format::Csv),
            "tsv" => Some(Format::Tsv),
            _ => None,
        }
    }
}

/// How a report is written.
enum Form {
    /// As text.
    Text(Format),
    /// As bytes that a file's name asks for.
    Binary(Binary),
}

/// Files that are not text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Binary {
    /// NumPy's array: one answer.
    Npy,
    /// NumPy's archive: an array for each answer.
    Npz,
    /// Columns.
    Parquet,
    Arrow,
}

impl Binary {
    /// What a file's name promises.
    fn of_name(path: &Path) -> Option<Binary> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "npy" => Some(Binary::Npy),
            "npz" => Some(Binary::Npz),
            "parquet" | "parq" | "pq" => Some(Binary::Parquet),
            "arrow" | "feather" | "ipc" => Some(Binary::Arrow),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Binary::Npy => "a .npy",
            Binary::Npz => "a .npz",
            Binary::Parquet => "a Parquet",
            Binary::Arrow => "an Arrow",
        }
    }
}

/// An answer with more rows is not printed as a table on a terminal.
const LONG: usize = 1000;

impl Form {
    /// What the flags, the file's name and the terminal make of it. `rows` is
    /// how many there will be, where that is known.
    fn choose(args: &OutputArgs, rows: Option<usize>) -> Result<Form> {
        let path = args.output.as_deref();
        if let Some(binary) = path.and_then(Binary::of_name) {
            let name = binary.name();
            let refusal = match args.output_format {
                None if !args.hex => return Ok(Form::Binary(binary)),
                None => Usage::new(format!("--hex cannot be used with {name} file")),
                Some(_) => Usage::new(format!("-f prints text, but -o names {name} file"))
                    .hint("leave out -f, or name another file"),
            };
            return Err(refusal.into());
        }
        let for_people = path.is_none() && std::io::stdout().is_terminal();
        let by_itself = if for_people && rows.is_some_and(|n| (2..=LONG).contains(&n)) {
            Format::Table
        } else {
            Format::Plain
        };
        let promised = path.and_then(Format::of_name);
        Ok(Form::Text(args.output_format.or(promised).unwrap_or(by_itself)))
    }
}

/// Writes the answers of groups where they were asked to go.
///
/// # Errors
/// What the system says; answers that the form cannot hold.
pub(crate) fn write_groups(report: &GroupReport, args: &OutputArgs) -> Result<()> {
    let form = Form::choose(args, Some(report.rows()))?;
    if matches!(form, Form::Binary(Binary::Npy)) {
        return Err(Usage::new("a .npy file has no room for keys")
            .hint("write .npz, .parquet, .arrow, .csv, .tsv, .json or .jsonl")
            .into());
    }
    let mut sink = Sink::open(args.output.as_deref())?;
    match form {
        Form::Text(format) => groups::write(report, format, args.hex, &mut sink)?,
        Form::Binary(Binary::Npy | Binary::Npz) => npz::write_groups(report, &mut sink)?,
        Form::Binary(Binary::Parquet) => parquet::write(&Columns::of_groups(report)?, &mut sink)?,
        Form::Binary(Binary::Arrow) => arrow::write(&Columns::of_groups(report)?, &mut sink)?,
    }
    sink.commit()
}

/// Finds out what is wrong with the flags before hours of work are.
///
/// # Errors
/// Flags that contradict each other; a file that cannot be written.
pub(crate) fn check(args: &OutputArgs) -> Result<()> {
    Form::choose(args, None)?;
    sink::check(args.output.as_deref().unwrap_or(Path::new("-")))
}

/// Writes the report where it was asked to go.
///
/// # Errors
/// What the system says; answers that the form cannot hold.
pub(crate) fn write(report: &Report, args: &OutputArgs) -> Result<()> {
    let form = Form::choose(args, Some(report.rows()))?;
    let mut sink = Sink::open(args.output.as_deref())?;
    let out: &mut dyn Write = &mut sink;
    match form {
        Form::Binary(Binary::Npy) => npy::write(report, out)?,
        Form::Binary(Binary::Npz) => npz::write(report, out)?,
        Form::Binary(Binary::Parquet) => parquet::write(&Columns::of_report(report)?, out)?,
        Form::Binary(Binary::Arrow) => arrow::write(&Columns::of_report(report)?, out)?,
        Form::Text(Format::Plain) => plain::write(report, args.hex, out)?,
        Form::Text(Format::Table) => table::write(report, args.hex, out)?,
        Form::Text(Format::Csv) => csv::write(report, b',', args.hex, out)?,
        Form::Text(Format::Tsv) => csv::write(report, b'\t', args.hex, out)?,
        Form::Text(Format::Json) => json::write(report, args.hex, out)?,
        Form::Text(Format::Jsonl) => json::write_lines(report, args.hex, out)?,
    }
    sink.commit()
}
