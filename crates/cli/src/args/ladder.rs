//! The flags of `warpfold ladder`.

use super::experiment::{EXPERIMENT_EXAMPLES, ExperimentArgs, REPORT_EXAMPLES, ReportArgs};
use super::{EXECUTION, OUTPUT, TableOrJson, TextOrJson};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;
use warpfold::{DType, Device, Op};

const QUESTION: &str = "Question";
const BLOCK: &str = "Block";

#[derive(Args)]
pub(crate) struct LadderArgs {
    #[command(subcommand)]
    pub(crate) verb: LadderVerb,
}

/// The subcommands of `ladder`.
#[derive(Subcommand)]
pub(crate) enum LadderVerb {
    /// The rungs: where they come from, and what each teaches
    List(ListArgs),
    /// A rung: its kernel, what it teaches, what the classic listing gets wrong
    #[command(after_long_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// What the texts get wrong: a page in Markdown, each fault with what the interpreter finds
    Faults,
    /// Run rungs, compare their answers with the exact one, and time them
    ///
    /// A rung runs on a CUDA device, timed by the device's own clock, or on the interpreter, which looks for races and other faults and has no
    /// clock. Floats are chosen so that every partial sum is representable: a right answer is the exact one to the bit.
    #[command(after_long_help = RUN_EXAMPLES)]
    Run(RunLadderArgs),
    /// Try a kernel of your own: over the sizes and blocks that break kernels, checked, counted, and placed on the ladder
    ///
    /// The kernel is CUDA C++, compiled by NVRTC, or PTX. It has three parameters: the elements, a partial for each block, and the number of
    /// elements, as int or 64 bits. The host starts a block for each tile and adds the partials. A kernel that is wrong gets the smallest case that fails. It
    /// runs on the interpreter, with every check; a right one is timed where there is a CUDA device.
    #[command(after_long_help = TRY_EXAMPLES)]
    Try(TryArgs),
    /// How many blocks a multiprocessor holds, and what limits them
    Occupancy(OccupancyArgs),
    /// Show one thing that decides the speed of a kernel: the expectation and the result
    ///
    /// Kernels run on the interpreter, which checks and counts, and on a CUDA device, which has a clock. What they compute is compared with what
    /// the host computes.
    #[command(after_long_help = EXPERIMENT_EXAMPLES)]
    Experiment(ExperimentArgs),
    /// Make a page of the measurements, with charts, tables and the kernels' sources
    #[command(after_long_help = REPORT_EXAMPLES)]
    Report(ReportArgs),
}

#[derive(Args)]
pub(crate) struct ListArgs {
    /// How to print
    #[arg(short = 'f', long, value_name = "FORMAT", default_value = "table", help_heading = OUTPUT)]
    pub(crate) output_format: TableOrJson,
}

#[derive(Args)]
pub(crate) struct ShowArgs {
    /// The rung
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// What the classic listing gets wrong: run it on the interpreter, and show what is found
    #[arg(long)]
    pub(crate) faulty: bool,
}

#[derive(Args)]
pub(crate) struct RunLadderArgs {
    /// Rungs, texts (P, F, H, S, W, beyond) or all
    #[arg(value_name = "RUNG", default_value = "all")]
    pub(crate) rungs: Vec<String>,
    /// How many elements, such as 1000 or 64M [default: 1048583 and 268435459 on a CUDA device, 10007 on the interpreter]
    #[arg(short, value_name = "N,...", value_delimiter = ',', value_parser = elements, help_heading = QUESTION)]
    pub(crate) n: Vec<u64>,
    /// The type of the elements
    #[arg(long, value_name = "TYPE,...", value_delimiter = ',', default_value = "f32", value_parser = super::dtype(), hide_possible_values = true, help_heading = QUESTION)]
    pub(crate) dtype: Vec<DType>,
    /// Threads of a block
    #[arg(long, value_name = "THREADS,...", value_delimiter = ',', default_value = "256", help_heading = QUESTION)]
    pub(crate) block: Vec<u32>,
    /// Run over many values of one thing: block (threads of a block), n (elements), or blocks-per-sm (blocks for each multiprocessor)
    #[arg(long, value_name = "WHAT", help_heading = QUESTION)]
    pub(crate) sweep: Option<Sweep>,
    /// The operation; only any-op has others than sum
    #[arg(long, value_name = "OP", default_value = "sum", value_parser = super::op(), hide_possible_values = true, help_heading = QUESTION)]
    pub(crate) op: Op,
    /// The seed of the elements
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = QUESTION)]
    pub(crate) seed: u64,
    /// Where to run: cuda, cuda:N, sim, or auto, which takes the first CUDA device if there is one
    #[arg(long, value_name = "DEVICE", default_value = "auto", help_heading = EXECUTION)]
    pub(crate) device: Device,
    /// Also run each rung under Nsight Compute, and show the hardware counters
    #[arg(long, help_heading = EXECUTION)]
    pub(crate) profile: bool,
    /// Run each rung once, and take no times: what the profiler looks at
    #[arg(long, hide = true)]
    pub(crate) once: bool,
    /// How to print
    #[arg(short = 'f', long, value_name = "FORMAT", default_value = "table", help_heading = OUTPUT)]
    pub(crate) output_format: LadderFormat,
    /// Also write all measurements to this file, as JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = OUTPUT)]
    pub(crate) save: Option<PathBuf>,
}

/// What a sweep changes.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sweep {
    /// Threads of a block
    Block,
    /// Elements
    N,
    /// Blocks for each multiprocessor, where the grid is as large as the device runs at once
    BlocksPerSm,
}

/// The formats of `ladder run`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LadderFormat {
    /// An aligned table
    Table,
    /// A list of objects; times are in seconds
    Json,
    /// Comma-separated values with a header; times are in seconds
    Csv,
    /// A table for a page in Markdown
    Md,
}

#[derive(Args)]
pub(crate) struct TryArgs {
    /// The kernel, CUDA C++ or PTX
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Which kernel of the file, if there are several
    #[arg(short, long, value_name = "NAME", help_heading = QUESTION)]
    pub(crate) kernel: Option<String>,
    /// The type of the elements and of the partials: i32, u32, i64, u64, f32 or f64
    #[arg(long, value_name = "TYPE", default_value = "i32", value_parser = super::dtype(), hide_possible_values = true, help_heading = QUESTION)]
    pub(crate) dtype: DType,
    /// Elements of a tile for each thread: the host starts a block for each tile
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = QUESTION)]
    pub(crate) per_thread: u32,
    /// Threads of a block: each of these is tried
    #[arg(long, value_name = "THREADS,...", value_delimiter = ',', default_values_t = warpfold_ladder::attempt::BLOCKS, value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = QUESTION)]
    pub(crate) block: Vec<u32>,
    /// Bytes of dynamic shared memory for each thread
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=4096), help_heading = QUESTION)]
    pub(crate) shared: u32,
    /// The compute capability to compile for, such as 7.5 or 9.0
    #[arg(long, value_name = "X.Y", default_value = "7.5", value_parser = capability, help_heading = EXECUTION)]
    pub(crate) cc: (u32, u32),
    /// Fetch the compiler from the package registry first, with pip, into the user's cache folder
    #[arg(long, help_heading = EXECUTION)]
    pub(crate) fetch_nvrtc: bool,
    /// Where a right kernel is timed: cuda, cuda:N, sim (not at all), or auto, which takes the first CUDA device if there is one
    #[arg(long, value_name = "DEVICE", default_value = "auto", help_heading = EXECUTION)]
    pub(crate) device: Device,
}

#[derive(Args)]
pub(crate) struct OccupancyArgs {
    /// The compute capability, from 3.5 to 12.1, such as 8.6 or 9.0
    #[arg(long, value_name = "X.Y", value_parser = capability, help_heading = BLOCK)]
    pub(crate) cc: (u32, u32),
    /// Threads of a block
    #[arg(long, value_name = "THREADS", help_heading = BLOCK)]
    pub(crate) block: u32,
    /// Registers of a thread
    #[arg(long, value_name = "N", default_value_t = 32, help_heading = BLOCK)]
    pub(crate) regs: u32,
    /// Bytes of shared memory of a block, static and dynamic, such as 4K
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = super::ptx::bytes, help_heading = BLOCK)]
    pub(crate) shared: u32,
    /// How to print
    #[arg(short = 'f', long, value_name = "FORMAT", default_value = "text", help_heading = OUTPUT)]
    pub(crate) output_format: TextOrJson,
}

/// A number of elements, none included.
fn elements(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { super::size(text).map(|n| n as u64) }
}

fn capability(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parts.ok_or_else(|| "expected a compute capability such as 9.0".into())
}

const SHOW_EXAMPLES: &str = "\
Examples:
  warpfold ladder show warp-shuffle                    the kernel and its description
  warpfold ladder show --faulty warp-shuffle           runs the classic listing, to show what it gets wrong";

const TRY_EXAMPLES: &str = "\
Examples:
  warpfold ladder try sum.cu                           an element a thread
  warpfold ladder try sum.cu --per-thread 8            eight elements a thread: a block for each tile of eight blocks
  warpfold ladder try sum.cu --dtype f32 --shared 4    4 bytes of dynamic shared memory for each thread
  warpfold ladder try sum.ptx --block 64,256           PTX needs no compiler

Exit status: 0 it is right; 1 it cannot be compiled or run; 2 wrong usage; 3 it is wrong.";

const RUN_EXAMPLES: &str = "\
Examples:
  warpfold ladder run                                  all rungs, one after the other
  warpfold ladder run P -n 1M,64M --dtype f32          the rungs of one text
  warpfold ladder run unroll8 --block 64,128,256,512   one rung in blocks of several sizes
  warpfold ladder run any-op --op min --dtype i32
  warpfold ladder run warp-shuffle --sweep blocks-per-sm
  warpfold ladder run beyond --profile --save run.json
  warpfold ladder run all --device sim -n 1000         checked for races, without a GPU

Exit status: 0 all answers are right; 1 a device error; 2 wrong usage; 3 an answer is wrong.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_have_two_parts() {
        assert_eq!(capability("9.0"), Ok((9, 0)));
        assert_eq!(capability("12.0"), Ok((12, 0)));
        for bad in ["9", "9.", ".0", "sm_90", "9.0.1", "-1.0"] {
            assert!(capability(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn there_may_be_no_elements() {
        assert_eq!((elements("0"), elements("64M")), (Ok(0), Ok(64 << 20)));
        assert!(elements("-1").is_err() && elements("").is_err());
    }
}
