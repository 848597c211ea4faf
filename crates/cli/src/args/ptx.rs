//! The flags of `warpfold ptx`.

use super::{EXECUTION, INPUT, OUTPUT, TableOrJson};
use crate::failure::Usage;
use crate::ptx::argument::Buffer;
use crate::ptx::argument::{self, Argument};
use crate::ptx::buffers::Save;
use crate::ptx::suite::Format;
use crate::ptx::symbols;
use clap::{Args, Subcommand, ValueEnum};
use std::num::NonZeroU64;
use std::path::PathBuf;
use warpfold_ptx::machine::{Checks, Options, Schedule, Shape};

const LAUNCH: &str = "Launch";
const CHECKING: &str = "Checking";

#[derive(Args)]
pub(crate) struct PtxArgs {
    #[command(subcommand)]
    pub(crate) verb: PtxVerb,
}

/// The subcommands of `ptx`.
#[derive(Subcommand)]
pub(crate) enum PtxVerb {
    /// Run a kernel on the CPU, find faults that a GPU hides, count as a profiler does
    ///
    /// The kernel is executed warp by warp. Races, missing barriers, wrong masks, reads of uninitialised memory and accesses out of bounds
    /// are found wherever they can happen, not only when they do harm, and told with line, block, warp and lane.
    #[command(after_help = ARGUMENTS, after_long_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Show what a PTX file holds: kernels, their needs, opcodes
    ///
    /// The exit status is 1 if the file holds instructions that are not supported: a kernel that reaches one stops there.
    Info(InfoArgs),
    /// Run a suite of launches under several schedules, compare what they give, tell what checks find
    ///
    /// A suite is a TOML file: tests with launches, buffers, symbols and expected outputs, as below.
    #[command(after_help = SUITE_IN_SHORT, after_long_help = SUITE)]
    Test(TestArgs),
}

#[derive(Args)]
pub(crate) struct TestArgs {
    /// The suite; files that it names are relative to it
    #[arg(value_name = "SUITE.toml")]
    pub(crate) suite: String,
    /// How to print, or what to write to the file of --output
    #[arg(short = 'f', long, value_name = "FORMAT", default_value = "text", help_heading = OUTPUT)]
    pub(crate) output_format: Format,
    /// Write the outcome to a file, in one piece, and the text to stdout
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct RunArgs {
    /// The PTX, as compilers print it; `-` for stdin
    #[arg(value_name = "FILE.ptx")]
    pub(crate) file: String,
    /// The kernel [default: the only one]
    #[arg(short, long, value_name = "NAME", help_heading = LAUNCH)]
    pub(crate) kernel: Option<String>,
    /// Blocks of the grid: X, X,Y or X,Y,Z
    #[arg(short, long, value_name = "DIMS", value_parser = dims, help_heading = LAUNCH)]
    grid: Dims,
    /// Threads of a block
    #[arg(short, long, value_name = "DIMS", value_parser = dims, help_heading = LAUNCH)]
    block: Dims,
    /// Blocks of a cluster [default: no clusters]
    #[arg(long, value_name = "DIMS", value_parser = dims, help_heading = LAUNCH)]
    cluster: Option<Dims>,
    /// All blocks are resident at once, so that they can wait for each other
    #[arg(long, help_heading = LAUNCH)]
    cooperative: bool,
    /// Bytes of dynamic shared memory, such as 4K
    #[arg(long, value_name = "BYTES", default_value = "0", hide_default_value = true, value_parser = bytes, help_heading = LAUNCH)]
    shared: u32,
    /// An argument, in the order of the kernel's parameters; see below
    #[arg(short, long = "arg", value_name = "ARG", value_parser = argument::parse, allow_hyphen_values = true, help_heading = INPUT)]
    pub(crate) args: Vec<Argument>,
    /// Write a __device__ or __constant__ variable before the launch: NAME:TYPE:COUNT=CONTENT or NAME=@FILE
    #[arg(long, value_name = "SYMBOL", value_parser = symbols::parse, allow_hyphen_values = true, help_heading = INPUT)]
    pub(crate) set: Vec<Buffer>,
    /// Which lanes run next: all in step, random ones, or each as far ahead as the rules allow
    #[arg(long, value_name = "HOW", default_value = "lockstep", help_heading = EXECUTION)]
    schedule: ScheduleName,
    /// The seed of the schedule [default: 0]
    #[arg(long, value_name = "N", help_heading = EXECUTION)]
    seed: Option<u64>,
    /// Stop a kernel after this many warp instructions; a billion take a few minutes
    #[arg(long, value_name = "N", default_value = "4000000000", help_heading = EXECUTION)]
    limit: NonZeroU64,
    /// Which faults to look for: all, none, or some of races, uninitialised, barriers, masks; and strict for remarks
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = str::parse::<Checks>, help_heading = CHECKING)]
    pub(crate) checks: Checks,
    /// Count instructions, sectors, bank conflicts and more, as a profiler does
    #[arg(long, help_heading = CHECKING)]
    counters: bool,
    /// Also count for each source line
    #[arg(long, help_heading = CHECKING)]
    pub(crate) by_line: bool,
    /// The folder of the sources that the PTX names [default: as named, beside the PTX, or above]
    #[arg(long, value_name = "DIR", help_heading = INPUT)]
    pub(crate) source: Vec<PathBuf>,
    /// Print the content of a buffer at the end
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help_heading = OUTPUT)]
    pub(crate) show: Vec<String>,
    /// Write the content of a buffer at the end to a .npy file
    #[arg(long, value_name = "NAME=FILE", value_parser = Save::parse, help_heading = OUTPUT)]
    pub(crate) save: Vec<Save>,
    /// How to print
    #[arg(short = 'f', long, value_name = "FORMAT", default_value = "table", help_heading = OUTPUT)]
    pub(crate) output_format: TableOrJson,
}

impl RunArgs {
    /// What the launch asks for.
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            grid: self.grid.0,
            block: self.block.0,
            cluster: self.cluster.map(|c| c.0),
            shared: self.shared,
            cooperative: self.cooperative,
        }
    }

    /// How it is run.
    ///
    /// # Errors
    /// A seed for what leaves nothing to chance.
    pub(crate) fn options(&self) -> Result<Options, Usage> {
        let seed = self.seed.unwrap_or(0);
        let schedule = match self.schedule {
            ScheduleName::Lockstep if self.seed.is_some() => {
                return Err(Usage::new("--seed changes nothing in lockstep")
                    .hint("add --schedule random or --schedule adversarial"));
            }
            ScheduleName::Lockstep => Schedule::Lockstep,
            ScheduleName::Random => Schedule::Random { seed },
            ScheduleName::Adversarial => Schedule::Adversarial { seed },
        };
        Ok(Options {
            checks: self.checks,
            schedule,
            instructions: self.limit.get(),
            counters: self.counters || self.by_line,
            ..Options::default()
        })
    }
}

#[derive(Args)]
pub(crate) struct InfoArgs {
    /// The PTX, as compilers print it; `-` for stdin
    #[arg(value_name = "FILE.ptx")]
    pub(crate) file: String,
    /// How to print
    #[arg(short = 'f', long, value_name = "FORMAT", default_value = "table", help_heading = OUTPUT)]
    pub(crate) output_format: TableOrJson,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScheduleName {
    Lockstep,
    Random,
    Adversarial,
}

#[derive(Clone, Copy)]
struct Dims([u32; 3]);

fn dims(text: &str) -> Result<Dims, String> {
    let mut dims = [1; 3];
    let words: Vec<_> = text.split(',').collect();
    if words.len() > dims.len() {
        return Err("expected at most three numbers: X,Y,Z".into());
    }
    for (dim, word) in dims.iter_mut().zip(words) {
        *dim = word
            .trim()
            .parse()
            .map_err(|_| format!("{word:?} is not a number; expected X, X,Y or X,Y,Z"))?;
    }
    Ok(Dims(dims))
}

pub(crate) fn bytes(text: &str) -> Result<u32, String> {
    if text == "0" {
        return Ok(0);
    }
    u32::try_from(super::size(text)?).map_err(|_| "that is more than 4 GiB".into())
}

const ARGUMENTS: &str = "\
Arguments, one --arg for each parameter:
  TYPE:VALUE                    a scalar: u64:1000, f32:0.5
  NAME:TYPE:COUNT               an uninitialised buffer
  NAME:TYPE:COUNT=CONTENT       a buffer of zeros, ones, 2.5, range, 5.., 0..10, seed=7 or 1,2,3
  NAME=@FILE                    a buffer with the elements of a file
  NAME, NAME+BYTES              the same buffer again, or an address in it
  'struct:ARG;ARG'              a struct, member by member: 'struct:in:f32:4=ones;u64:4'
  bytes:HEX                     a struct, as it lies in memory
  texture:DIMS:BUFFER           a texture or a surface: texture:64x32:in:f32:2048=range
  tensormap:DIMS/TILE:BUFFER    a tensor map: tensormap:64x100/16x8:in:f32:6400=range";

const SUITE_IN_SHORT: &str = "--help shows a suite.";

const SUITE: &str = "\
A suite:
  ptx = 'sum.ptx'                        # the module; a test or a launch may name another
  schedules = ['lockstep', 'adversarial']    # [default: all three]
  seeds = 5                              # 0 to 4, of the schedules that have seeds; or [1, 7] [default: 3]
  checks = 'all'                         # as `ptx run --checks`
  limit = 4000000000                     # warp instructions of a launch

  [[test]]
  name = 'two passes'
  set = ['scale:f32:1=0.5']              # __device__ and __constant__ variables, as `ptx run --set`

  [[test.launch]]                        # one after the other; buffers stay
  kernel = 'partial_sums'
  grid = 4                               # or [4, 2] or [4, 2, 1]; so block and cluster
  block = 256
  shared = '1K'
  cooperative = false
  args = ['in=@in.npy', 'partials:f32:4', 'u64:1000']    # as `ptx run --arg`

  [[test.launch]]
  kernel = 'last_sum'
  grid = 1
  block = 32
  args = ['partials', 'out:f32:1', 'u32:4']

  [test.expect]                          # without a tolerance the bits must agree
  out = { file = 'out.npy', rtol = 1e-6, atol = 0.0 }
  partials = { values = '256,256,256,232' }

  [[suppress]]                           # of the suite, or [[test.suppress]]
  kind = 'race'
  kernel = 'partial_sums'                # may be left out, and so may `at`
  at = 'sum.cu:18'
  reason = 'the counter may be off by some'

Exit status: 0 all tests passed; 1 a test cannot be run; 2 wrong usage or a bad suite; 3 a test failed: a check found something,
an output is wrong, or a kernel did not end.";

const RUN_EXAMPLES: &str = "\
Arguments, one --arg for each parameter, in their order:
  TYPE:VALUE                    a scalar: u64:1000, i32:-1, f32:0.5, bool:true
  NAME:TYPE:COUNT               an uninitialised buffer: out:f32:4
  NAME:TYPE:COUNT=CONTENT       a buffer; CONTENT is
      zeros, ones, 2.5            the same everywhere
      range, 5..                  0, 1, 2, ... or 5, 6, 7, ...
      0..10                       0, 1, ... 9, and again from 0
      seed=7                      random: floats from -1 up to 1, any integers
      1,2,3                       these; COUNT may be left out
      @FILE                       the elements of a file; COUNT may be left out
  NAME=@FILE                    the same, of the file's type: .npy, archive.npz:member, and what
                                `warpfold inspect` knows, in the order of the file
  NAME, NAME+BYTES              the same buffer again, or an address in it
  'struct:ARG;ARG'              a struct, member by member, as C lays it out: 'struct:in;u64:1000;f32:0.5'
  bytes:HEX                     a struct, as it lies in memory: bytes:01000000
  texture:DIMS,...:BUFFER       the handle of a texture over a buffer, the width first: texture:64x32:in:f32:2048=range;
                                behind DIMS parts=4 (of a texel), wrap, mirror, border, normalized, unit
  surface:DIMS,...:BUFFER       the handle of a surface: surface:64x32:out:f32:2048
  tensormap:DIMS/TILE,...:BUFFER    a tensor map, the innermost direction first: tensormap:64x100/16x8:in:f32:6400;
                                behind TILE swizzle=128, steps=2x1, nan; for pixels (im2col)
                                tensormap:64x9x14x4/8x64,lower=-1x-1,upper=-1x-1:in:f32:32256,
                                with channels and pixels as TILE
Types are bool, i8 to i64, u8 to u64, f16, bf16, f32 and f64; COUNT may be 64K or 1M.

What is always found: accesses out of bounds, misaligned or to freed memory. --checks switches the others:
  races          accesses of two threads that nothing orders, one of them a write
  uninitialised  uninitialised memory that decides a branch, an address, an atomic or an output
  barriers       barriers that part of a block reaches, or that disagree
  masks          warp instructions whose mask is not that of the lanes that execute them
  strict         remarks, too, which change no exit status: stores of the same value by several threads, barriers and
                 masks without threads that have ended

Examples:
  warpfold ptx run sum.ptx -k sum -g 4 -b 256 --arg in:f32:1000=ones --arg out:f32:4 --arg u64:1000 --show out
  warpfold ptx run sum.ptx -k sum -g 4 -b 256 --shared 1K --arg in=@data.npy --arg out:f32:4 --arg u64:1000 --save out=sums.npy
  warpfold ptx run sum.ptx -k sum -g 4 -b 256 ... --schedule adversarial --seed 7
  warpfold ptx run sum.ptx -k sum -g 4 -b 256 ... --checks none --counters --by-line

Exit status: 0 nothing found; 1 the kernel cannot run or did not end; 2 wrong usage; 3 a check found something, whether or not the
kernel came to its end.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_one_to_three_numbers() {
        assert_eq!(dims("4").map(|d| d.0), Ok([4, 1, 1]));
        assert_eq!(dims("4,2").map(|d| d.0), Ok([4, 2, 1]));
        assert_eq!(dims("4, 2,3").map(|d| d.0), Ok([4, 2, 3]));
        for bad in ["", "x", "4,", "-1", "1,2,3,4", "4294967296", "2x2"] {
            assert!(dims(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn shared_memory_may_be_none() {
        assert_eq!((bytes("0"), bytes("1K")), (Ok(0), Ok(1024)));
        assert!(bytes("8G").is_err() && bytes("x").is_err());
    }
}
