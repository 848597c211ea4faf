//! The flags of `warpfold learn`.

use super::OUTPUT;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct LearnArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<LearnVerb>,
    /// The lesson, from 1 to 14; without one they are listed
    #[arg(value_name = "LESSON")]
    pub(crate) lesson: Option<u32>,
    /// Your prediction: it is compared with what the interpreter counts, and explained
    #[arg(long, value_name = "NUMBER", requires = "lesson")]
    pub(crate) predict: Option<u64>,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}

/// The subcommands of `learn`.
#[derive(Subcommand)]
pub(crate) enum LearnVerb {
    /// Write a lesson's kernel, which has a hole
    Exercise(ExerciseArgs),
    /// Check a kernel whose hole you have filled: every size, every check, and what it counts
    Check(CheckArgs),
    /// A model solution of a lesson that you have solved
    Solution(SolutionArgs),
    /// A lesson's drawing, as SVG
    Drawing(ExerciseArgs),
    /// Your right attempts at the last exercise, the fastest first
    Ranking(ProgressArgs),
}

#[derive(Args)]
pub(crate) struct SolutionArgs {
    #[command(flatten)]
    pub(crate) exercise: ExerciseArgs,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}

#[derive(Args)]
pub(crate) struct ExerciseArgs {
    /// The lesson
    #[arg(value_name = "LESSON")]
    pub(crate) lesson: u32,
    /// Write it to this file
    #[arg(short = 'o', long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// The lesson
    #[arg(value_name = "LESSON")]
    pub(crate) lesson: u32,
    /// The kernel, CUDA C++ or PTX
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Fetch the compiler from the package registry first, with pip, into the user's cache folder
    #[arg(long)]
    pub(crate) fetch_nvrtc: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}

#[derive(Args)]
pub(crate) struct ProgressArgs {
    /// Where progress is kept [default: warpfold/learn.json in XDG_STATE_HOME, or in ~/.local/state]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = OUTPUT)]
    pub(crate) progress: Option<PathBuf>,
}

pub(super) const LEARN_EXAMPLES: &str = "\
Examples:
  warpfold learn                            the lessons, and how far you are
  warpfold learn 2                          a lesson: read, and predict
  warpfold learn 2 --predict 64             compare with what the interpreter counts
  warpfold learn exercise 2 -o my.cu        a kernel with a hole
  warpfold learn check 2 my.cu              whether you have filled it
  warpfold learn solution 2                 a model solution, once you have
  warpfold learn drawing 2 -o two.svg       its drawing
  warpfold learn ranking                    your attempts at the last exercise

Exit status: 0 done, also where a prediction is wrong; 1 something stands in the way; 2 wrong usage; 3 the kernel is not right yet.";
