//! The command line: one definition of each flag feeds the parser, the help,
//! the manual and the completions.

mod experiment;
mod ladder;
mod learn;
mod ptx;

pub(crate) use experiment::{ExperimentArgs, ExperimentFormat, ReportArgs, ReportFormat};
pub(crate) use ladder::{
    LadderArgs, LadderFormat, LadderVerb, ListArgs, OccupancyArgs, RunLadderArgs, ShowArgs, Sweep,
    TryArgs,
};
pub(crate) use learn::{CheckArgs, ExerciseArgs, LearnArgs, LearnVerb, ProgressArgs, SolutionArgs};
pub(crate) use ptx::{InfoArgs, PtxArgs, PtxVerb, RunArgs, TestArgs, bytes};

use crate::failure::explain;
use crate::output::Format;
use clap::builder::styling::{AnsiColor, Styles};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args, Command, FromArgMatches, Subcommand, ValueEnum};
use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use warpfold::internal::{remember_explanations, take_explanations};
use warpfold::{DType, Device, NanPolicy, Op, Order, Reduction, Threads};
use warpfold_files::groups::Question;
use warpfold_files::{ColumnSelector, Endian, OpenOptions};

/// What the user asked for.
pub(crate) struct Cli {
    pub(crate) global: Global,
    pub(crate) verb: Verb,
}

/// The subcommands. There is one more for each operation: `warpfold sum` is
/// `warpfold reduce --op sum`.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Count, sum, mean, std, min, max, their positions and NaNs, in one pass
    Stats(StatsArgs),
    /// Several operations in one pass
    Reduce(ReduceArgs),
    /// Reduce a piece of the data to a state for `merge`
    ///
    /// A state holds everything that the answer depends on. Merging the states
    /// of any split of the data, in any order, prints the very bits that a
    /// single run over all of it would. The data is split along its first axis,
    /// which --axis must therefore name.
    #[command(after_long_help = PARTIAL_EXAMPLES)]
    Partial(PartialArgs),
    /// Merge the states of pieces, and finish them
    ///
    /// States of argmin and argmax know which elements they hold: giving a
    /// piece twice is an error. The others do not: a piece given twice counts
    /// twice.
    ///
    /// With `-o FILE.state` the merged state is written instead of the answers.
    #[command(after_long_help = PARTIAL_EXAMPLES)]
    Merge(MergeArgs),
    /// Show what files hold, from their metadata alone
    Inspect(InspectArgs),
    /// Run CUDA kernels without a GPU, from their PTX: checked and counted
    Ptx(PtxArgs),
    /// The classic reduction kernels of CUDA, each checked and timed
    Ladder(LadderArgs),
    /// A course in ten lessons, from one thread to the engine: read, predict, run, write
    #[command(after_long_help = learn::LEARN_EXAMPLES)]
    Learn(LearnArgs),
    /// Show which instruction sets, cores and devices this machine has
    Doctor(DoctorArgs),
    /// Measure the library on this machine, in memory
    Bench(BenchArgs),
    /// Write a completion script for a shell
    Completions(CompletionsArgs),
    /// Write the manual
    Man(ManArgs),
}

/// Flags of every command.
#[derive(Clone, Copy, Args)]
pub(crate) struct Global {
    /// When to colour messages
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = OUTPUT)]
    pub(crate) color: clap::ColorChoice,
    /// No progress bar and no notes
    #[arg(short, long, global = true, help_heading = OUTPUT)]
    pub(crate) quiet: bool,
}

const INPUT: &str = "Input";
const REDUCTION: &str = "Reduction";
const EXECUTION: &str = "Execution";
const OUTPUT: &str = "Output";

/// Flags of `warpfold sum` and its kin.
#[derive(Args)]
pub(crate) struct OpArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) groups: GroupArgs,
    #[command(flatten)]
    pub(crate) axes: AxisArgs,
    #[command(flatten)]
    pub(crate) segments: SegmentArgs,
    #[command(flatten)]
    pub(crate) rules: RulesArgs,
    #[command(flatten)]
    pub(crate) execution: ExecutionArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Args)]
pub(crate) struct ReduceArgs {
    /// The operations, separated by commas
    #[arg(long = "op", value_name = "OPS", required = true, value_delimiter = ',', value_parser = op(), help_heading = REDUCTION)]
    pub(crate) ops: Vec<Op>,
    #[command(flatten)]
    pub(crate) rest: OpArgs,
}

#[derive(Args)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) groups: GroupArgs,
    #[command(flatten)]
    pub(crate) rules: RulesArgs,
    #[command(flatten)]
    pub(crate) execution: ExecutionArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Args)]
pub(crate) struct PartialArgs {
    /// The operations, separated by commas; with --op the first FILE
    #[arg(value_name = "OPS", required_unless_present = "ops", value_parser = OpsOrFile)]
    word: Option<OsString>,
    /// The operations, separated by commas, instead of OPS
    #[arg(long = "op", value_name = "OPS", value_delimiter = ',', value_parser = op(), help_heading = REDUCTION)]
    pub(crate) ops: Vec<Op>,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) groups: GroupArgs,
    #[command(flatten)]
    pub(crate) axes: AxisArgs,
    /// How many elements of the whole data are in front of the piece; with
    /// --axis how many of each output
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = start(), allow_negative_numbers = true, help_heading = REDUCTION)]
    pub(crate) start: u64,
    #[command(flatten)]
    pub(crate) execution: ExecutionArgs,
    /// The file to write the state to; `-` for stdout
    #[arg(short, long, value_name = "STATE", required = true, help_heading = OUTPUT)]
    pub(crate) output: PathBuf,
}

#[derive(Args)]
pub(crate) struct MergeArgs {
    /// States written by `partial`; `-` for stdin
    #[arg(value_name = "STATE", required = true)]
    pub(crate) states: Vec<OsString>,
    #[command(flatten)]
    pub(crate) rules: RulesArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Args)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// How to print [default: table on a terminal, else plain; with -o by the
    /// file's name]
    #[arg(short = 'f', long, value_name = "FORMAT", help_heading = OUTPUT)]
    pub(crate) output_format: Option<Format>,
    /// Write to a file, all or nothing
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// Say more: why each choice was made
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// How to print
    #[arg(short = 'f', long, value_name = "FORMAT", default_value = "text", help_heading = OUTPUT)]
    pub(crate) output_format: TextOrJson,
}

/// The formats of `doctor`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextOrJson {
    Text,
    Json,
}

#[derive(Args)]
pub(crate) struct BenchArgs {
    /// Elements of each array [default: 64M; with --quick 4M]
    #[arg(long, value_name = "N", value_parser = size)]
    pub(crate) elements: Option<usize>,
    /// Numbers of threads to measure [default: 1 and all cores]
    #[arg(short = 'j', long, value_name = "N,...", value_delimiter = ',')]
    pub(crate) threads: Vec<NonZeroUsize>,
    /// Only the cases whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// Fewer elements and rounds, for a first impression
    #[arg(long)]
    pub(crate) quick: bool,
    /// How to print
    #[arg(short = 'f', long, value_name = "FORMAT", default_value = "table", help_heading = OUTPUT)]
    pub(crate) output_format: TableOrJson,
}

/// The formats of `bench`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableOrJson {
    Table,
    Json,
}

#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args)]
pub(crate) struct ManArgs {
    /// Write a page for each command into this directory [default: the main
    /// page to stdout]
    #[arg(long, value_name = "DIR")]
    pub(crate) out_dir: Option<PathBuf>,
}

/// Where the elements come from.
#[derive(Args)]
pub(crate) struct InputArgs {
    /// Files, quoted globs, `archive.npz:member`, `table.csv:column`, `-` for
    /// stdin; joined along their first axis [default: stdin, if it is a pipe]
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<OsString>,
    /// Columns, fields or members: names, numbers from 1 and ranges
    #[arg(short, long, value_name = "LIST", value_parser = columns, help_heading = INPUT)]
    columns: Vec<Columns>,
    /// The format of the files [default: told from their bytes and names]
    #[arg(long, value_name = "FORMAT", value_parser = file_format(), hide_possible_values = true, help_heading = INPUT,
        long_help = "The format of the files: npy, npz, raw, csv, tsv, text, arrow, arrow-stream, parquet or safetensors [default: told from their bytes and names]")]
    format: Option<warpfold_files::Format>,
    /// The element type of raw bytes and text [default for text: i64 or u64
    /// where all cells are integers, else f64]
    #[arg(long, value_name = "TYPE", value_parser = dtype(), help_heading = INPUT)]
    dtype: Option<DType>,
    /// The shape of raw bytes, such as 3,4
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = length, allow_negative_numbers = true, help_heading = INPUT)]
    shape: Vec<usize>,
    /// Bytes of a raw file to skip
    #[arg(long, value_name = "BYTES", default_value_t = 0, hide_default_value = true, allow_negative_numbers = true, help_heading = INPUT)]
    offset: u64,
    /// The byte order of raw bytes
    #[arg(long, value_name = "ORDER", default_value = "little", value_parser = endian(), help_heading = INPUT)]
    endian: Endian,
    /// The first row names the columns [default: if it holds no numbers]
    #[arg(long, overrides_with = "no_header", help_heading = INPUT)]
    header: bool,
    /// The first row is data
    #[arg(long, overrides_with = "header", help_heading = INPUT)]
    no_header: bool,
    /// What separates the cells, one character or `tab`
    #[arg(long, value_name = "CHAR", value_parser = delimiter, allow_hyphen_values = true, help_heading = INPUT)]
    delimiter: Option<u8>,
    /// Missing values in text are errors
    #[arg(long, help_heading = INPUT)]
    strict: bool,
    /// The cells of text that stand for missing values, such as ,-999 for empty
    /// ones and -999 [default: empty, NA, N/A, NULL, null, None and their kin]
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true, help_heading = INPUT)]
    na: Option<Vec<String>>,
}

impl InputArgs {
    /// How to read the files.
    pub(crate) fn options(&self) -> OpenOptions {
        OpenOptions {
            format: self.format,
            columns: self.columns.iter().flat_map(|c| c.0.iter().cloned()).collect(),
            dtype: self.dtype,
            shape: (!self.shape.is_empty()).then(|| self.shape.clone()),
            offset: self.offset,
            endian: self.endian,
            header: match (self.header, self.no_header) {
                (false, false) => None,
                (header, _) => Some(header),
            },
            delimiter: self.delimiter,
            strict: self.strict,
            na: self.na.clone(),
            ..OpenOptions::default()
        }
    }
}

/// By which keys rows are grouped.
#[derive(Args)]
pub(crate) struct GroupArgs {
    /// Columns of keys: an answer for each distinct key, in their order; keys of CSV are
    /// the texts of their cells
    #[arg(long, value_name = "LIST", value_parser = columns, help_heading = REDUCTION)]
    by: Vec<Columns>,
    /// The order of the groups
    #[arg(long, value_name = "ORDER", default_value = "key", value_parser = group_order(), requires = "by", help_heading = REDUCTION)]
    group_order: Order,
    /// Leave out rows without a key [default: they are a group of their own]
    #[arg(long, requires = "by", help_heading = REDUCTION)]
    omit_missing_keys: bool,
}

impl GroupArgs {
    /// The columns of keys; none without groups.
    pub(crate) fn keys(&self) -> Vec<ColumnSelector> {
        self.by.iter().flat_map(|columns| columns.0.iter().cloned()).collect()
    }

    /// The question of groups.
    pub(crate) fn question(
        &self,
        reduction: Reduction,
        start: u64,
        memory_limit: Option<usize>,
    ) -> Question {
        let (order, omit_missing) = (self.group_order, self.omit_missing_keys);
        Question { reduction, order, omit_missing, start, memory_limit }
    }
}

/// Which axes go.
#[derive(Args)]
pub(crate) struct AxisArgs {
    /// Axes to reduce, such as 0,2; negative ones count from the end
    /// [default: all]
    #[arg(short, long, value_name = "AXES", value_delimiter = ',', value_parser = axis, allow_hyphen_values = true, help_heading = REDUCTION)]
    axis: Option<Vec<isize>>,
    /// Keep reduced axes, with length 1
    #[arg(long, help_heading = REDUCTION)]
    keepdims: bool,
}

impl AxisArgs {
    /// Whether a flag was given.
    pub(crate) fn is_given(&self) -> bool {
        self.axis.is_some() || self.keepdims
    }

    pub(crate) fn apply(&self, reduction: Reduction) -> Reduction {
        let reduction = match &self.axis {
            Some(axes) => reduction.axes(axes.iter().copied()),
            None => reduction,
        };
        reduction.keepdims(self.keepdims)
    }
}

/// Which elements are reduced together.
#[derive(Args)]
pub(crate) struct SegmentArgs {
    /// Reduce each segment by itself: a file of n + 1 ascending offsets says where n
    /// segments begin and end
    #[arg(long, value_name = "FILE", conflicts_with_all = ["axis", "keepdims", "by"], group = "cuts", help_heading = REDUCTION)]
    pub(crate) segments: Option<OsString>,
    /// Reduce segments that may overlap or leave gaps: a file of where each begins
    #[arg(long, value_name = "FILE", conflicts_with_all = ["axis", "keepdims", "by"], requires = "stops", group = "cuts", help_heading = REDUCTION)]
    pub(crate) starts: Option<OsString>,
    /// With --starts: a file of where each segment ends, before this index
    #[arg(long, value_name = "FILE", requires = "starts", help_heading = REDUCTION)]
    pub(crate) stops: Option<OsString>,
    /// A value that takes part in each segment, also in empty ones
    #[arg(long, value_name = "NUMBER", requires = "cuts", value_parser = initial, allow_hyphen_values = true, help_heading = REDUCTION)]
    pub(crate) initial: Option<Initial>,
}

/// A number, of the type that holds it exactly.
#[derive(Clone, Copy)]
pub(crate) enum Initial {
    Int(i64),
    UInt(u64),
    Float(f64),
}

impl Initial {
    pub(crate) fn apply(self, reduction: Reduction) -> Reduction {
        match self {
            Initial::Int(value) => reduction.initial(value),
            Initial::UInt(value) => reduction.initial(value),
            Initial::Float(value) => reduction.initial(value),
        }
    }
}

fn initial(text: &str) -> Result<Initial, String> {
    let text = text.trim();
    let int = text.parse().ok().map(Initial::Int);
    let number = int.or_else(|| text.parse().ok().map(Initial::UInt));
    let number = number.or_else(|| text.parse().ok().map(Initial::Float));
    number.ok_or_else(|| "expected a number such as 0, -1.5 or inf".into())
}

/// How a state becomes an answer.
#[derive(Args)]
pub(crate) struct RulesArgs {
    /// What a NaN does
    #[arg(long, value_name = "WHAT", default_value = "propagate", value_parser = nan_policy(), help_heading = REDUCTION)]
    nan: NanPolicy,
    /// Divide variances by n - DDOF
    #[arg(long, value_name = "DDOF", default_value_t = 0, allow_negative_numbers = true, help_heading = REDUCTION)]
    ddof: u64,
    /// The type of the answer [default: the operation's own]
    #[arg(long, value_name = "TYPE", value_parser = dtype(), help_heading = REDUCTION)]
    out: Option<DType>,
    /// Integer totals wrap around instead of failing
    #[arg(long, help_heading = REDUCTION)]
    wrap: bool,
}

impl RulesArgs {
    pub(crate) fn apply(&self, reduction: Reduction) -> Reduction {
        let reduction = reduction.nan(self.nan).ddof(self.ddof).wrap(self.wrap);
        match self.out {
            Some(out) => reduction.out(out),
            None => reduction,
        }
    }
}

/// Who does the work, and with how much memory.
#[derive(Args)]
pub(crate) struct ExecutionArgs {
    /// Where to run: auto, cpu, cuda, cuda:N, cuda:all, or sim, which interprets the CUDA
    /// kernels on the CPU, slowly and checked
    #[arg(long, value_name = "DEVICE", default_value = "auto", help_heading = EXECUTION)]
    pub(crate) device: Device,
    /// How many threads work [default: one for each core]
    #[arg(short = 'j', long, value_name = "N", value_parser = threads, allow_negative_numbers = true, help_heading = EXECUTION)]
    pub(crate) threads: Option<NonZeroUsize>,
    /// How much memory buffers, or the states of groups, may take, such as 256M
    #[arg(long, value_name = "SIZE", value_parser = size, allow_negative_numbers = true, help_heading = EXECUTION)]
    pub(crate) memory_limit: Option<usize>,
    /// Reduce a share, as one of the ranks that mpirun has started; the first prints
    #[arg(long, help_heading = EXECUTION)]
    pub(crate) mpi: bool,
    /// Say on stderr how it was done: the walk over memory, and on a device the
    /// kernel, its launch, the bytes in flight and what limits it
    #[arg(long, help_heading = EXECUTION)]
    explain: bool,
}

impl ExecutionArgs {
    /// Begins to remember how reductions are done, if that is asked for.
    pub(crate) fn begin(&self) {
        if self.explain {
            remember_explanations();
        }
    }

    /// Says how they were done, if that is asked for.
    pub(crate) fn explain(&self) {
        if self.explain {
            take_explanations().iter().for_each(|line| explain(line));
        }
    }

    pub(crate) fn apply(&self, reduction: Reduction) -> Reduction {
        let reduction = reduction.device(self.device);
        match self.threads {
            Some(threads) => reduction.threads(Threads::Exactly(threads.get())),
            None => reduction,
        }
    }
}

/// How and where answers are written.
#[derive(Args)]
pub(crate) struct OutputArgs {
    /// How to print [default: plain for one answer or a pipe, else table; with
    /// -o by the file's name]
    #[arg(short = 'f', long, value_name = "FORMAT", help_heading = OUTPUT)]
    pub(crate) output_format: Option<Format>,
    /// Write to a file, all or nothing; `.npy` and `.npz` have arrays,
    /// `.parquet` and `.arrow` columns
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
    /// Print the bits of every number
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) hex: bool,
}

/// The items of one `-c`.
#[derive(Clone)]
struct Columns(Vec<ColumnSelector>);

fn columns(text: &str) -> Result<Columns, String> {
    ColumnSelector::parse_list(text).map(Columns).map_err(|e| e.to_string())
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        _ => match text.as_bytes() {
            &[byte] if byte.is_ascii() => Ok(byte),
            _ => Err("expected one ASCII character, or tab".into()),
        },
    }
}

fn axis(text: &str) -> Result<isize, String> {
    text.trim().parse().map_err(|_| "expected a number such as 0 or -1".into())
}

/// The largest place of an element, such that adding a length does not
/// overflow: arrays have up to 2^63 elements.
fn start() -> impl TypedValueParser<Value = u64> {
    clap::value_parser!(u64).range(..=i64::MAX as u64)
}

fn threads(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a number from 1".into())
}

fn length(text: &str) -> Result<usize, String> {
    text.trim().parse().map_err(|_| "expected a length".into())
}

/// A number of bytes or elements: `4096`, `256M`, `2G`; the letters are powers
/// of 1024.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err("the unit must be K, M, G or T".into()),
    };
    let number: usize = digits.parse().map_err(|_| "expected a number such as 256M".to_string())?;
    match number.checked_mul(1 << shift) {
        None => Err("that is more than this machine can address".into()),
        Some(0) => Err("expected more than 0".into()),
        Some(size) => Ok(size),
    }
}

/// A parser of the names of things, which help and completions list.
fn named<T: Clone + Send + Sync + 'static>(
    names: impl IntoIterator<Item = PossibleValue>,
    parse: impl Fn(&str) -> Option<T> + Clone + Send + Sync + 'static,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names)
        .try_map(move |name| parse(&name).ok_or_else(|| format!("{name} is unknown")))
}

fn op() -> impl TypedValueParser<Value = Op> {
    named(Op::ALL.map(|op| PossibleValue::new(op.name())), Op::from_name)
}

/// The first word of `partial`, which is a file if `--op` names the operations:
/// it is judged when that is known.
#[derive(Clone)]
struct OpsOrFile;

impl TypedValueParser for OpsOrFile {
    type Value = OsString;

    fn parse_ref(
        &self,
        _: &Command,
        _: Option<&Arg>,
        word: &OsStr,
    ) -> Result<OsString, clap::Error> {
        Ok(word.into())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Op::ALL.into_iter().map(|op| PossibleValue::new(op.name()))))
    }
}

impl PartialArgs {
    /// Says what the first word means.
    fn settle(&mut self, command: &mut Command) -> Result<(), clap::Error> {
        let Some(word) = self.word.take() else { return Ok(()) };
        if !self.ops.is_empty() {
            self.input.files.insert(0, word);
            return Ok(());
        }
        command.build();
        let Some(own) = command.find_subcommand("partial") else { return Ok(()) };
        let arg = own.get_arguments().find(|arg| arg.get_id() == "word");
        let parser = op();
        let one = |text: &OsStr| parser.parse_ref(own, arg, text);
        self.ops = match word.to_str() {
            Some(list) => {
                list.split(',').map(|name| one(name.as_ref())).collect::<Result<_, _>>()?
            }
            // No name is such: the parser says so.
            None => vec![one(&word)?],
        };
        Ok(())
    }
}

/// NumPy's names are understood, but not advertised.
fn dtype() -> impl TypedValueParser<Value = DType> {
    let value = |dtype: DType| {
        PossibleValue::new(dtype.name()).aliases(dtype.other_names().iter().copied())
    };
    named(DType::ALL.map(value), DType::from_name)
}

fn file_format() -> impl TypedValueParser<Value = warpfold_files::Format> {
    use warpfold_files::Format;
    named(Format::ALL.map(|f| PossibleValue::new(f.name())), Format::from_name)
}

fn nan_policy() -> impl TypedValueParser<Value = NanPolicy> {
    let value = |policy: NanPolicy| PossibleValue::new(policy.name());
    named(NanPolicy::ALL.map(value), |name| name.parse().ok())
}

fn group_order() -> impl TypedValueParser<Value = Order> {
    let all = [Order::Key, Order::FirstOccurrence];
    named(all.map(|order| PossibleValue::new(order.name())), move |name| {
        all.into_iter().find(|order| order.name() == name)
    })
}

fn endian() -> impl TypedValueParser<Value = Endian> {
    named(["little", "big"].map(PossibleValue::new), |name| {
        Some(match name {
            "little" => Endian::Little,
            "big" => Endian::Big,
            _ => return None,
        })
    })
}

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const LONG_ABOUT: &str = "\
Reductions of arrays in files: sums, means, variances, norms, extrema and their kin.

Floating-point answers are exact by default: the true value, rounded once. They are the same bits for any number of \
threads, any machine, any order of the data and any split of it into files.";

const EXAMPLES: &str = "\
Examples:
  warpfold sum data.npy                      one number
  warpfold mean -a 0 images.npy -o mean.npy  along an axis, written as an array
  warpfold stats -c price,3,5-8 trades.csv   some columns of a table
  warpfold mean -c price --by year t.csv     an answer for each group of rows
  warpfold max 'run-*/loss.npz:train'        a member of many archives
  warpfold dot x.npy y.npy                   two arrays
  warpfold sum --dtype f32 dump.bin          bytes without a header
  seq 1000 | warpfold reduce --op sum,std    numbers on a pipe
  warpfold sum --hex data.npy                the exact bits
  warpfold sum --device cuda data.npy        on a GPU: the same bits
  mpirun -n 64 warpfold sum --mpi data.npy   by many processes: the same bits

Environment:
  WARPFOLD_MPI_LIBRARY  the MPI library, where none or another is found
  WARPFOLD_CPU       force an instruction set: sse2, avx2, avx512
  RAYON_NUM_THREADS  how many threads work, where -j does not say
  NO_COLOR           no colours

Exit status: 0 done; 1 a data, file or device error; 2 wrong usage; 3 a check of `ptx run` or \
`ladder run` found something.";

const PARTIAL_EXAMPLES: &str = "\
Examples:
  warpfold partial mean,argmax a.npy -o a.state
  warpfold partial mean,argmax b.npy --start 1000 -o b.state
  warpfold merge a.state b.state";

/// The whole command line.
pub(crate) fn command() -> Command {
    let top =
        Op::ALL.into_iter().fold(Global::augment_args(Command::new("warpfold")), |top, op| {
            let command = OpArgs::augment_args(Command::new(op.name()));
            let command = command.about(sentence(op.about())).long_about(None);
            top.subcommand(match op.note() {
                Some(note) => command.after_help(note),
                None => command,
            })
        });
    Verb::augment_subcommands(top)
        .version(env!("CARGO_PKG_VERSION"))
        .about("Exact and fast reductions of arrays in files")
        .long_about(LONG_ABOUT)
        .after_long_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .styles(STYLES)
}

/// The same for parsing: the help lists the operations apart, closer together.
fn parser() -> Command {
    let width = Op::ALL.iter().map(|op| op.name().len()).max().unwrap_or(0);
    let header = STYLES.get_header();
    let literal = STYLES.get_literal();
    let list: String = Op::ALL
        .iter()
        .map(|op| {
            let (name, about) = (op.name(), sentence(op.about()));
            format!("  {literal}{name:width$}{literal:#}  {about}\n")
        })
        .collect();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{header}Operations:{header:#}\n{list}\n\
         {header}Commands:{header:#}\n{{subcommands}}\n\n{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    Op::ALL
        .into_iter()
        .fold(command(), |top, op| top.mut_subcommand(op.name(), |c| c.hide(true)))
        .help_template(template)
}

/// A description as help prints it.
fn sentence(about: &str) -> String {
    let mut chars = about.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Reads the command line.
///
/// # Errors
/// clap's messages: a usage error, help or the version.
pub(crate) fn parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    let mut parser = parser().color(color_asked_for(words));
    let matches = parser.try_get_matches_from_mut(words)?;
    let global = Global::from_arg_matches(&matches)?;
    if let Some((name, rest)) = matches.subcommand()
        && let Some(op) = Op::from_name(name)
    {
        let rest = OpArgs::from_arg_matches(rest)?;
        return Ok(Cli { global, verb: Verb::Reduce(ReduceArgs { ops: vec![op], rest }) });
    }
    let mut verb = Verb::from_arg_matches(&matches)?;
    if let Verb::Partial(args) = &mut verb {
        args.settle(&mut parser)?;
    }
    Ok(Cli { global, verb })
}

/// The value of `--color`, which must be known before the rest is understood:
/// messages about the rest are coloured, too.
fn color_asked_for(words: &[OsString]) -> clap::ColorChoice {
    let mut words = words.iter().filter_map(|w| w.to_str());
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--color") {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('='),
            None => continue,
        };
        if let Some(Ok(choice)) = value.map(|v| clap::ColorChoice::from_str(v, false)) {
            return choice;
        }
    }
    clap::ColorChoice::Auto
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        command().debug_assert();
        parser().debug_assert();
    }

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("256M"), Ok(256 << 20));
        assert_eq!(size("1kib"), Ok(1024));
        for bad in ["", "M", "1X", "-1", "0", "99999999999T", "1.5G"] {
            assert!(size(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn delimiters_are_single_bytes() {
        assert_eq!(delimiter("tab"), Ok(b'\t'));
        assert_eq!(delimiter(";"), Ok(b';'));
        for bad in ["", ",,", "é"] {
            assert!(delimiter(bad).is_err(), "{bad:?}");
        }
    }
}
