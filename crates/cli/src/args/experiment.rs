//! The flags of `warpfold ladder experiment` and `warpfold ladder report`.

use super::{EXECUTION, OUTPUT};
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use warpfold::Device;

#[derive(Args)]
pub(crate) struct ExperimentArgs {
    /// The experiment; without one they are listed
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// The rung whose launches execution-sweep sweeps
    #[arg(long, value_name = "RUNG", default_value = "vector-load")]
    pub(crate) rung: String,
    /// Where to run: cuda, cuda:N, sim, or auto, which takes the first CUDA device if there is one
    #[arg(long, value_name = "DEVICE", default_value = "auto", help_heading = EXECUTION)]
    pub(crate) device: Device,
    /// How to print
    #[arg(short = 'f', long, value_name = "FORMAT", default_value = "table", help_heading = OUTPUT)]
    pub(crate) output_format: ExperimentFormat,
    /// Also write the result to this file, as JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = OUTPUT)]
    pub(crate) save: Option<PathBuf>,
}

/// The formats of `ladder experiment`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExperimentFormat {
    /// Sentences and aligned tables
    Table,
    /// An object with the tables and charts
    Json,
    /// The same in Markdown
    Md,
}

#[derive(Args)]
pub(crate) struct ReportArgs {
    /// Files that `ladder run --save`, `ladder experiment --save` or `ladder report --measure --save` wrote
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present_any = ["measure", "drawings"])]
    pub(crate) data: Vec<PathBuf>,
    /// Measure everything on a CUDA device first: all rungs, sweeps over elements and blocks, all experiments
    #[arg(long, conflicts_with = "data", help_heading = EXECUTION)]
    pub(crate) measure: bool,
    /// Also run the rungs under Nsight Compute, and keep the hardware counters
    #[arg(long, requires = "measure", conflicts_with = "data", help_heading = EXECUTION)]
    pub(crate) profile: bool,
    /// The device to measure: cuda, cuda:N, or sim, which counts and does not time
    #[arg(long, value_name = "DEVICE", default_value = "cuda", help_heading = EXECUTION)]
    pub(crate) device: Device,
    /// Write the measurements to this file, as JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "measure", conflicts_with = "data", help_heading = OUTPUT)]
    pub(crate) save: Option<PathBuf>,
    /// Write the page to this file; pictures of Markdown go beside it
    #[arg(short = 'o', long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
    /// The form of the page [default: html, or md for a file of that name]
    #[arg(long, value_name = "FORMAT", help_heading = OUTPUT)]
    pub(crate) format: Option<ReportFormat>,
    /// Write the drawings of how threads are paired to this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = OUTPUT)]
    pub(crate) drawings: Option<PathBuf>,
    /// Write the measurements' figures anew into this page of Markdown, where it marks them
    #[arg(long, value_name = "PAGE", value_hint = ValueHint::FilePath, requires = "data", help_heading = OUTPUT)]
    pub(crate) figures: Vec<PathBuf>,
}

/// The formats of `ladder report`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// One page that needs no other file
    Html,
    /// Markdown, with a picture for each chart
    Md,
}

pub(super) const EXPERIMENT_EXAMPLES: &str = "\
Examples:
  warpfold ladder experiment                       lists them
  warpfold ladder experiment coalescing
  warpfold ladder experiment shuffle-lanes --device sim
  warpfold ladder experiment execution-sweep --rung warp-shuffle

Exit status: 0 it ran, and its answers are right; 1 it needs another device; 2 wrong usage; 3 an answer is wrong.";

pub(super) const REPORT_EXAMPLES: &str = "\
Examples:
  warpfold ladder report --measure --save h200.json -o h200.html
  warpfold ladder report h200.json -o h200.html
  warpfold ladder report h200.json -o ladder.md      with pictures beside it
  warpfold ladder report --drawings docs/ladder/drawings";
