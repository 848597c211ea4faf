//! `ladder try`: a kernel of the user's.

use super::run::open;
use crate::args::{Global, TryArgs};
use crate::failure::{self, Usage, note};
use crate::output::grid;
use crate::progress::Bar;
use crate::sink::Sink;
use anyhow::{Context, Error, Result, anyhow, bail};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use warpfold::{DType, Device};
use warpfold_cuda::Limits;
use warpfold_files::stream::Progress;
use warpfold_ladder::attempt::nvrtc::{self, Fetching};
use warpfold_ladder::attempt::{Attempt, COUNTERS, Failed, Failure, Placed, Tried};

/// A longer file is not a kernel.
const LONGEST: u64 = 16 << 20;

/// Complaints of the compiler that are told.
const MOST_ERRORS: usize = 3;

/// What the interpreter's device runs.
const TYPES: [DType; 6] = [DType::I32, DType::U32, DType::I64, DType::U64, DType::F32, DType::F64];

/// Elements that a right kernel is timed over, and threads of its blocks.
const TIMED: (u64, u32) = ((1 << 26) + 3, 256);

pub(super) fn run(args: &TryArgs, global: &Global) -> Result<ExitCode> {
    if !TYPES.contains(&args.dtype) {
        let names = TYPES.map(|dtype| dtype.name()).join(", ");
        let usage = Usage::new(format!("kernels of {} cannot be tried", args.dtype));
        return Err(usage.hint(format!("it may be {names}")).into());
    }
    let attempt = Attempt::new(
        ptx(&args.file, args.cc, args.fetch_nvrtc, global.quiet)?,
        args.kernel.as_deref(),
        args.dtype,
    )?;
    let mut attempt = attempt.of_columns(args.per_thread);
    (attempt.shared_per_thread, attempt.blocks) = (args.shared, args.block.clone());
    if !global.quiet {
        let tile = "a block for each tile, whose partials the host adds";
        note(&format!("{} is run on the interpreter, with every check: {tile}", attempt.kernel));
    }
    let Tried { cases, failure, placed } = attempt.run()?;
    let mut sink = Sink::open(None)?;
    match (&failure, &placed) {
        (Some(failure), _) => wrong(failure, cases, &mut sink)?,
        (None, Some(placed)) => {
            writeln!(
                sink,
                "right: {cases} cases, of 0 to 10007 elements, in blocks of {}",
                list(&attempt.blocks)
            )?;
            place(placed, &mut sink)?;
            time(&attempt, args.device, &mut sink)?;
        }
        (None, None) => {}
    }
    sink.commit()?;
    Ok(if failure.is_some() { ExitCode::from(failure::FOUND) } else { ExitCode::SUCCESS })
}

/// The PTX: the file itself, or what the compiler makes of it.
pub(in crate::commands) fn ptx(
    path: &Path,
    cc: (u32, u32),
    fetch: bool,
    quiet: bool,
) -> Result<String> {
    let name = path.display().to_string();
    if path.is_dir() {
        bail!("{name}: this is a directory");
    }
    let file = std::fs::File::open(path).with_context(|| name.clone())?;
    let mut text = String::new();
    file.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => anyhow!("{name}: this is not a text"),
        _ => Error::new(error).context(name.clone()),
    })?;
    if text.len() as u64 > LONGEST {
        bail!("{name}: a file of more than {} MiB is not a kernel", LONGEST >> 20);
    }
    let is_ptx = |line: &str| line.trim_start().starts_with(".version");
    if text.lines().any(is_ptx) {
        return Ok(text);
    }
    if fetch {
        fetch_compiler(quiet)?;
    }
    let base = path.file_name().map(|base| base.to_string_lossy().into_owned());
    let compiled = nvrtc::Nvrtc::find()?.compile(
        &base.unwrap_or_else(|| "kernel.cu".into()),
        &text,
        10 * cc.0 + cc.1,
    );
    Ok(compiled.map_err(|error| match error {
        Failed::Source { why } => {
            // It says a lot, line by line; an error is one line of ours.
            let errors: Vec<&str> = why
                .lines()
                .map(str::trim)
                .filter(|line| line.contains("error:"))
                .take(MOST_ERRORS)
                .collect();
            Failed::Source { why: if errors.is_empty() { why } else { errors.join("; ") } }
        }
        other => other,
    })?)
}

fn list(blocks: &[u32]) -> String {
    blocks.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// The case that fails, and how.
pub(in crate::commands) fn wrong(
    failure: &Failure,
    cases: usize,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let Failure { case, got, wanted, second_run, findings, halt, astray } = failure;
    writeln!(out, "wrong: the smallest case that fails is {case} (case {cases})")?;
    if *second_run {
        writeln!(out, "  in a second run over the same array, which the first one has changed")?;
    }
    match got {
        Some(got) if got == wanted => writeln!(out, "  got {got}, which is right by luck")?,
        Some(got) => writeln!(out, "  got {got}, wanted {wanted}")?,
        None => writeln!(out, "  got nothing, wanted {wanted}")?,
    }
    for text in astray {
        writeln!(out, "    {text}")?;
    }
    for finding in findings {
        writeln!(out, "  found: {finding}")?;
    }
    if let Some(halt) = halt {
        writeln!(out, "  it does not finish: {halt}")?;
    }
    Ok(())
}

fn place(placed: &Placed, out: &mut dyn Write) -> std::io::Result<()> {
    let Placed { case, counts, neighbours, nearest } = placed;
    writeln!(
        out,
        "on the ladder it stands beside {nearest}: {} elements in blocks of {}",
        case.n, case.block
    )?;
    let names = COUNTERS.map(|counter| counter.name());
    let header = [&["kernel"][..], &names].concat();
    let row = |name: String, counts: &[u64]| {
        [vec![name], counts.iter().map(u64::to_string).collect()].concat()
    };
    let mut rows = vec![row("yours".into(), counts)];
    rows.extend(neighbours.iter().map(|n| row(n.rung.id.into(), &n.counts)));
    writeln!(out, "{}", grid(&header, rows, 1))?;
    writeln!(
        out,
        "rungs count their later launches, too; warpfold ladder show {nearest} has its kernel"
    )
}

/// Fetches the compiler, and says how much that is before it begins.
fn fetch_compiler(quiet: bool) -> Result<()> {
    let bar = Bar::new(quiet);
    let mut shown = 0;
    nvrtc::fetch(&mut |step| match step {
        Fetching::Begins { download, unpacked, folder } => {
            if !quiet {
                note(&format!(
                    "NVRTC is fetched with pip: {} MB to download, {} MB in {}",
                    download / 1_000_000,
                    unpacked / 1_000_000,
                    folder.display()
                ));
            }
            bar.begin(Some(download + unpacked));
        }
        Fetching::Bytes(done) if done > shown => {
            bar.advance(done - shown);
            shown = done;
        }
        Fetching::Bytes(_) => {}
        Fetching::Again { why } => note(&format!("NVRTC did not come, once more: {why}")),
    })?;
    Ok(())
}

/// A rate on a GPU.
pub(in crate::commands) struct Timed {
    pub(in crate::commands) device: String,
    pub(in crate::commands) gbps: f64,
    seconds: f64,
    n: u64,
    block: u32,
}

/// How fast it is, where there is a device.
pub(in crate::commands) fn rate(attempt: &Attempt, device: Device) -> Result<Option<Timed>> {
    let (lab, simulated) = open(device)?;
    if simulated {
        return Ok(None);
    }
    let (n, asked) = TIMED;
    let block = attempt.blocks.iter().copied().min_by_key(|block| block.abs_diff(asked));
    let block = block.unwrap_or(asked);
    let Limits { name, .. } = lab.device().limits();
    Ok(attempt.time(lab.device(), n, block)?.map(|seconds| {
        let gbps = n as f64 * attempt.dtype.size() as f64 / seconds / 1e9;
        Timed { device: name.clone(), gbps, seconds, n, block }
    }))
}

fn time(attempt: &Attempt, device: Device, out: &mut dyn Write) -> Result<()> {
    if let Some(Timed { device, gbps, seconds, n, block }) = rate(attempt, device)? {
        writeln!(
            out,
            "{device}: {:.2} us for {n} elements in blocks of {block}, {gbps:.1} GB/s; the partials are not added",
            seconds * 1e6
        )?;
    }
    Ok(())
}
