//! What a run gave, for people.

use super::buffers::Shown;
use super::counters;
use super::report::{self, Run};
use super::source::{Sources, printable};
use crate::number::{self, Style};
use std::io::{Result, Write};
use std::sync::Arc;
use warpfold_ptx::device::Report;
use warpfold_ptx::finding::{Finding, Space};
use warpfold_ptx::machine::{Checks, Halt};
use warpfold_ptx::name::demangled;
use warpfold_ptx::place::{Line, Place};

/// Elements of a buffer that are printed; `-f json` prints all, `--save` writes all.
const LONGEST: usize = 64;

pub(crate) fn write(run: &Run<'_>, sources: &mut Sources, out: &mut dyn Write) -> Result<()> {
    for (place, launch) in run.launches.iter().enumerate() {
        if place > 0 {
            writeln!(out)?;
        }
        write_launch(run, launch, sources, out)?;
    }
    if !run.shown.is_empty() {
        writeln!(out)?;
    }
    run.shown.iter().try_for_each(|buffer| write_buffer(buffer, out))
}

fn write_launch(
    run: &Run<'_>,
    launch: &Report,
    sources: &mut Sources,
    out: &mut dyn Write,
) -> Result<()> {
    let outcome = &launch.outcome;
    out.write_all(&outcome.output)?;
    if !outcome.output.is_empty() && !outcome.output.ends_with(b"\n") {
        writeln!(out)?;
    }
    write!(out, "kernel `{}`", demangled(&launch.kernel))?;
    if launch.from_device {
        out.write_all(b", launched by the device")?;
    } else {
        write!(out, ", grid {}, block {}", dims(run.shape.grid), dims(run.shape.block))?;
        if let Some(cluster) = run.shape.cluster {
            write!(out, ", cluster {}", dims(cluster))?;
        }
    }
    match report::schedule(run.schedule) {
        (name, Some(seed)) => write!(out, ", {name} with seed {seed}")?,
        (name, None) => write!(out, ", {name}")?,
    }
    let faults = outcome.findings.faults().count();
    let mut verdict = match (faults, &outcome.halt) {
        (0, None) if run.checks == Checks::NONE => "unchecked".into(),
        (0, None) => "clean".into(),
        (0, Some(_)) => "did not end".into(),
        (1, None) => "1 finding".into(),
        (n, None) => format!("{n} findings"),
        (1, Some(_)) => "1 finding, did not end".into(),
        (n, Some(_)) => format!("{n} findings, did not end"),
    };
    match outcome.findings.all().len() - faults {
        0 => {}
        1 => verdict += ", 1 remark",
        n => verdict += &format!(", {n} remarks"),
    }
    writeln!(out, ": {verdict}")?;
    for finding in outcome.findings.all() {
        writeln!(out)?;
        write_finding(finding, run, sources, out)?;
    }
    if outcome.findings.left_out() > 0 {
        writeln!(out, "\nand {} more, which are not kept", outcome.findings.left_out())?;
    }
    if outcome.forgotten > 0 {
        let n = outcome.forgotten;
        writeln!(
            out,
            "\n{n} accesses had to be forgotten, the oldest reads first: a race with one of them is not found; a smaller grid needs fewer"
        )?;
    }
    if let Some(halt) = &outcome.halt {
        writeln!(out)?;
        write_halt(halt, &run.files, out)?;
    }
    if let Some(counted) = &outcome.counters {
        writeln!(out)?;
        counters::write_total(&counted.total(), out)?;
        if run.by_line {
            writeln!(out)?;
            counters::write_lines(counted, &run.files, sources, out)?;
        }
    }
    Ok(())
}

fn write_halt(halt: &Halt, files: &[Arc<str>], out: &mut dyn Write) -> Result<()> {
    let (title, threads) = match halt {
        Halt::Deadlock { waiting } => ("deadlock: no thread can continue".to_string(), waiting),
        Halt::InstructionLimit { limit, finished, blocks, running } => {
            let mut done = format!("with {finished} of {blocks} blocks finished");
            if let Some(all) = halt.whole_grid() {
                done += &format!(", so that all would take about {all}");
            }
            (format!("the limit of {limit} warp instructions was reached, {done}"), running)
        }
        _ => return writeln!(out, "{}", printable(&halt.to_string())),
    };
    writeln!(out, "{title}")?;
    threads.iter().try_for_each(|w| {
        let file = w.line.source.and_then(|(file, _)| files.get(file as usize));
        let (block, warp) = (w.place.block, w.place.warp().warp);
        let position = position(w.line, file.map(|f| &**f));
        writeln!(
            out,
            "  block {block}, warp {warp}, lanes {:#010x} at {position}: {}",
            w.lanes, w.what
        )
    })
}

fn write_finding(
    finding: &Finding,
    run: &Run<'_>,
    sources: &mut Sources,
    out: &mut dyn Write,
) -> Result<()> {
    let fault = &finding.fault;
    write!(out, "{} at {}", fault.kind.title(), position(fault.line, finding.file.as_deref()))?;
    match finding.count {
        1 => writeln!(out)?,
        n => writeln!(out, ", met {n} times; first:")?,
    }
    write_source(fault.line, finding.file.as_deref(), sources, out)?;
    write_inlined(fault.line, run, out)?;
    write!(out, "  {}", thread(fault.place))?;
    if let Some(access) = fault.access {
        let (bytes, plural) = (access.size, if access.size == 1 { "" } else { "s" });
        write!(out, ": {} of {bytes} byte{plural} of ", access.act)?;
        let named = (access.space == Space::Global).then(|| run.buffers.element_at(access.address));
        match named.flatten() {
            Some(element) => write!(out, "global memory at {element}")?,
            None => write!(out, "{} memory at {:#x}", access.space, access.address)?,
        }
    }
    if !fault.detail.is_empty() {
        write!(out, ", {}", printable(&fault.detail))?;
    }
    writeln!(out)?;
    if let Some(other) = &fault.other {
        write!(out, "  {}", thread(other.place))?;
        if let Some(act) = other.act {
            write!(out, ": {act}")?;
        }
        writeln!(out, " at {}", position(other.line, finding.other_file.as_deref()))?;
        if other.line.source != fault.line.source {
            write_source(other.line, finding.other_file.as_deref(), sources, out)?;
            write_inlined(other.line, run, out)?;
        }
    }
    writeln!(out, "  hint: {}", fault.hint())
}

/// The calls that the compiler inlined around an instruction.
fn write_inlined(line: Line, run: &Run<'_>, out: &mut dyn Write) -> Result<()> {
    for (function, (file, number)) in run.module.in_libraries(line) {
        let function = function.map_or("a function".into(), demangled);
        let file = run.module.file(file).map_or_else(|| "line".into(), printable);
        writeln!(out, "         which calls {}, {file}:{number}", printable(&function))?;
    }
    for around in report::inlined_around(run.module, line) {
        let file = around.file.map_or_else(|| "line".into(), printable);
        let function = printable(&around.function);
        writeln!(out, "         in {function}, inlined at {file}:{}", around.line)?;
    }
    Ok(())
}

fn write_source(
    line: Line,
    file: Option<&str>,
    sources: &mut Sources,
    out: &mut dyn Write,
) -> Result<()> {
    if let (Some((_, number)), Some(file)) = (line.source, file)
        && let Some(text) = sources.line(file, number)
    {
        writeln!(out, "  {number:>4} | {text}")?;
    }
    Ok(())
}

fn position(line: Line, file: Option<&str>) -> String {
    match (line.source, file) {
        (Some((_, number)), Some(file)) => {
            format!("{}:{number} (PTX line {})", printable(file), line.ptx)
        }
        (Some((_, number)), None) => format!("source line {number} (PTX line {})", line.ptx),
        (None, _) => format!("PTX line {}", line.ptx),
    }
}

fn thread(place: Place) -> String {
    format!("block {}, warp {}, lane {}", place.block, place.warp().warp, place.lane())
}

/// `4` for 4 x 1 x 1.
fn dims([x, y, z]: [u32; 3]) -> String {
    match (y, z) {
        (1, 1) => x.to_string(),
        (_, 1) => format!("{x},{y}"),
        _ => format!("{x},{y},{z}"),
    }
}

fn write_buffer(buffer: &Shown, out: &mut dyn Write) -> Result<()> {
    let mut text = format!("{}: {} x {}:", buffer.name, buffer.values.len(), buffer.dtype);
    for value in buffer.values.iter().take(LONGEST) {
        text.push(' ');
        number::push(&mut text, *value, Style::Text);
    }
    if buffer.values.len() > LONGEST {
        text += &format!(" and {} more", buffer.values.len() - LONGEST);
    }
    writeln!(out, "{text}")
}
