//! What a run gave, as one JSON document.
//!
//! Members that do not apply are `null`; lists are empty rather than missing. Numbers of buffers are as everywhere in this tool: NaN and
//! infinities are strings.

use super::buffers::Shown;
use super::report::{self, Run, lines};
use super::source::Sources;
use crate::number::{self, Style};
use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use warpfold::Scalar;
use warpfold_ptx::count::{Banked, Contended, Counters, Traffic};
use warpfold_ptx::device::Report;
use warpfold_ptx::finding::{Act, Finding, Party, Space};
use warpfold_ptx::machine::{Halt, Waiting};
use warpfold_ptx::place::{Line, Place};

#[derive(Serialize)]
struct Document<'a> {
    file: &'a str,
    clean: bool,
    grid: [u32; 3],
    block: [u32; 3],
    cluster: Option<[u32; 3]>,
    shared: u32,
    cooperative: bool,
    schedule: &'static str,
    seed: Option<u64>,
    checks: Vec<&'static str>,
    launches: Vec<Launch<'a>>,
    buffers: Vec<Buffer<'a>>,
}

#[derive(Serialize)]
struct Launch<'a> {
    kernel: &'a str,
    from_device: bool,
    instructions: u64,
    lane_instructions: u64,
    halt: Option<Halted>,
    findings: Vec<Found<'a>>,
    findings_left_out: u64,
    accesses_forgotten: u64,
    output: String,
    counters: Option<Counted>,
    lines: Option<Vec<CountedLine<'a>>>,
}

#[derive(Serialize)]
struct Halted {
    kind: &'static str,
    message: String,
    hint: &'static str,
    waiting: Vec<Waits>,
}

#[derive(Serialize)]
struct Waits {
    block: u32,
    warp: u32,
    lanes: u32,
    ptx_line: u32,
    source_line: Option<u32>,
    what: String,
}

#[derive(Serialize)]
struct Found<'a> {
    kind: &'static str,
    /// It changes no exit status.
    remark: bool,
    message: String,
    kernel: &'a str,
    #[serde(flatten)]
    position: Position<'a>,
    #[serde(flatten)]
    thread: Thread,
    access: Option<Access>,
    detail: &'a str,
    inlined: Vec<Inlined<'a>>,
    other: Option<Other<'a>>,
    count: u64,
    hint: &'static str,
}

/// A call that the compiler inlined around the instruction, the innermost first.
#[derive(Serialize)]
struct Inlined<'a> {
    function: std::borrow::Cow<'a, str>,
    file: Option<&'a str>,
    source_line: u32,
}

#[derive(Serialize)]
struct Position<'a> {
    file: Option<&'a str>,
    source_line: Option<u32>,
    ptx_line: u32,
    text: Option<String>,
}

#[derive(Serialize)]
struct Thread {
    block: u32,
    warp: u32,
    lane: u32,
}

#[derive(Serialize)]
struct Access {
    act: String,
    space: String,
    address: u64,
    element: Option<String>,
    bytes: u32,
}

#[derive(Serialize)]
struct Other<'a> {
    #[serde(flatten)]
    position: Position<'a>,
    #[serde(flatten)]
    thread: Thread,
    act: Option<String>,
}

#[derive(Serialize)]
struct CountedLine<'a> {
    file: Option<&'a str>,
    source_line: Option<u32>,
    ptx_line: Option<u32>,
    text: Option<String>,
    counters: Counted,
}

/// Counters, as objects have them.
#[derive(Serialize)]
pub(crate) struct Counted {
    instructions: u64,
    lane_instructions: u64,
    active_lanes: Option<f64>,
    branches: u64,
    divergent_branches: u64,
    barriers: u64,
    warp_barriers: u64,
    global_loads: Moved,
    global_stores: Moved,
    shared_loads: Waves,
    shared_stores: Waves,
    global_atomics: Crowds,
    shared_atomics: Crowds,
}

#[derive(Serialize)]
struct Moved {
    requests: u64,
    sectors: u64,
    sectors_per_request: Option<f64>,
    lines: u64,
    bytes_asked: u64,
    bytes_moved: u64,
    efficiency: Option<f64>,
}

#[derive(Serialize)]
struct Waves {
    requests: u64,
    wavefronts: u64,
    bank_conflicts: u64,
    bytes_asked: u64,
}

#[derive(Serialize)]
struct Crowds {
    requests: u64,
    operations: u64,
    largest_crowd: u32,
    crowds: [u64; 6],
}

#[derive(Serialize)]
struct Buffer<'a> {
    name: &'a str,
    dtype: &'static str,
    count: usize,
    values: Vec<Number>,
}

/// A number as [`number`] prints it.
struct Number(Scalar);

impl Serialize for Number {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Scalar::Bool(x) => to.serialize_bool(x),
            Scalar::Int(x, _) => to.serialize_i64(x),
            Scalar::UInt(x, _) => to.serialize_u64(x),
            float => {
                let x = float.to_f64();
                if x == x.trunc() && x.abs() < 1e15 && (x != 0.0 || x.is_sign_positive()) {
                    return to.serialize_i64(x as i64);
                }
                // The shortest digits that read back in the number's own type.
                match number::text(float, Style::Text).parse::<f64>() {
                    Ok(x) if x.is_finite() => to.serialize_f64(x),
                    _ => to.serialize_str(number::text(float, Style::Json).trim_matches('"')),
                }
            }
        }
    }
}

pub(crate) fn write(run: &Run<'_>, sources: &mut Sources, out: &mut dyn Write) -> Result<()> {
    let (schedule, seed) = report::schedule(run.schedule);
    let document = Document {
        file: run.file,
        clean: run.findings() == 0 && run.halted().is_none(),
        grid: run.shape.grid,
        block: run.shape.block,
        cluster: run.shape.cluster,
        shared: run.shape.shared,
        cooperative: run.shape.cooperative,
        schedule,
        seed,
        checks: run.checks.names(),
        launches: run.launches.iter().map(|l| launch(run, l, sources)).collect(),
        buffers: run.shown.iter().map(buffer).collect(),
    };
    serde_json::to_writer(&mut *out, &document).map_err(std::io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

fn launch<'a>(run: &'a Run<'_>, report: &'a Report, sources: &mut Sources) -> Launch<'a> {
    let outcome = &report.outcome;
    let lines = outcome.counters.as_ref().filter(|_| run.by_line).map(|counters| {
        let position = |line: Option<Line>| -> (Option<&'a str>, Option<u32>) {
            let source = line.and_then(|l| l.source);
            (source.and_then(|(f, _)| run.files.get(f as usize).map(|f| &**f)), source.map(|s| s.1))
        };
        let counted = lines(counters).into_iter().map(|(line, counters)| {
            let (file, source_line) = position(line);
            let text = file.zip(source_line).and_then(|(f, n)| sources.line(f, n));
            CountedLine {
                file,
                source_line,
                // A source line stands for several of PTX.
                ptx_line: line.filter(|l| l.source.is_none()).map(|l| l.ptx),
                text: text.map(Into::into),
                counters: counted(&counters),
            }
        });
        counted.collect()
    });
    Launch {
        kernel: &report.kernel,
        from_device: report.from_device,
        instructions: outcome.instructions,
        lane_instructions: outcome.lane_instructions,
        halt: outcome.halt.as_ref().map(halted),
        findings: outcome.findings.all().iter().map(|f| found(f, run, sources)).collect(),
        findings_left_out: outcome.findings.left_out(),
        accesses_forgotten: outcome.forgotten,
        output: String::from_utf8_lossy(&outcome.output).into_owned(),
        counters: outcome.counters.as_ref().map(|c| counted(&c.total())),
        lines,
    }
}

fn halted(halt: &Halt) -> Halted {
    let waiting: &[Waiting] = match halt {
        Halt::Deadlock { waiting } | Halt::InstructionLimit { running: waiting, .. } => waiting,
        _ => &[],
    };
    let waits = |w: &Waiting| Waits {
        block: w.place.block,
        warp: w.place.warp().warp,
        lanes: w.lanes,
        ptx_line: w.line.ptx,
        source_line: w.line.source.map(|s| s.1),
        what: w.what.clone(),
    };
    let waiting = waiting.iter().map(waits).collect();
    Halted { kind: halt.name(), message: halt.to_string(), hint: halt.hint(), waiting }
}

fn found<'a>(finding: &'a Finding, run: &'a Run<'_>, sources: &mut Sources) -> Found<'a> {
    let fault = &finding.fault;
    Found {
        remark: fault.kind.is_remark(),
        kind: fault.kind.name(),
        message: finding.to_string(),
        kernel: &finding.kernel,
        position: position(fault.line, finding.file.as_deref(), sources),
        thread: thread(fault.place),
        access: fault.access.map(|a| Access {
            act: a.act.to_string(),
            space: a.space.to_string(),
            address: a.address,
            element: (a.space == Space::Global)
                .then(|| run.buffers.element_at(a.address))
                .flatten(),
            bytes: a.size,
        }),
        detail: &fault.detail,
        inlined: report::inlined_around(run.module, fault.line)
            .into_iter()
            .map(|a| Inlined { function: a.function, file: a.file, source_line: a.line })
            .collect(),
        other: fault.other.as_ref().map(|Party { place, line, act }| Other {
            position: position(*line, finding.other_file.as_deref(), sources),
            thread: thread(*place),
            act: act.as_ref().map(Act::to_string),
        }),
        count: finding.count,
        hint: fault.hint(),
    }
}

fn position<'a>(line: Line, file: Option<&'a str>, sources: &mut Sources) -> Position<'a> {
    let source_line = line.source.map(|s| s.1);
    let text = file.zip(source_line).and_then(|(f, n)| sources.line(f, n)).map(Into::into);
    Position { file, source_line, ptx_line: line.ptx, text }
}

fn thread(place: Place) -> Thread {
    Thread { block: place.block, warp: place.warp().warp, lane: place.lane() }
}

pub(crate) fn counted(c: &Counters) -> Counted {
    Counted {
        instructions: c.instructions,
        lane_instructions: c.lane_instructions,
        active_lanes: c.active_lanes(),
        branches: c.branches,
        divergent_branches: c.divergent_branches,
        barriers: c.barriers,
        warp_barriers: c.warp_barriers,
        global_loads: moved(&c.global_loads),
        global_stores: moved(&c.global_stores),
        shared_loads: waves(&c.shared_loads),
        shared_stores: waves(&c.shared_stores),
        global_atomics: crowds(&c.global_atomics),
        shared_atomics: crowds(&c.shared_atomics),
    }
}

fn moved(t: &Traffic) -> Moved {
    Moved {
        requests: t.requests,
        sectors: t.sectors,
        sectors_per_request: t.sectors_per_request(),
        lines: t.lines,
        bytes_asked: t.bytes_asked,
        bytes_moved: t.bytes_moved(),
        efficiency: t.efficiency(),
    }
}

fn waves(b: &Banked) -> Waves {
    Waves {
        requests: b.requests,
        wavefronts: b.wavefronts,
        bank_conflicts: b.conflicts,
        bytes_asked: b.bytes_asked,
    }
}

fn crowds(c: &Contended) -> Crowds {
    Crowds {
        requests: c.requests,
        operations: c.operations,
        largest_crowd: c.largest_crowd,
        crowds: c.crowds,
    }
}

fn buffer(shown: &Shown) -> Buffer<'_> {
    Buffer {
        name: &shown.name,
        dtype: shown.dtype.name(),
        count: shown.values.len(),
        values: shown.values.iter().copied().map(Number).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpfold::{DType, f16};

    #[test]
    fn numbers_are_those_of_other_answers() {
        for scalar in [
            Scalar::F32(0.1),
            Scalar::F64(-0.0),
            Scalar::F64(3.0),
            Scalar::F64(f64::NAN),
            Scalar::F32(f32::NEG_INFINITY),
            Scalar::F16(f16::from_f32(0.1)),
            Scalar::from_bits(DType::U64, u64::MAX),
            Scalar::Bool(true),
        ] {
            let written = serde_json::to_string(&Number(scalar)).unwrap();
            let expected = number::text(scalar, Style::Json);
            let is_negative_zero = expected == "-0";
            assert!(written == expected || is_negative_zero && written == "-0.0", "{written}");
        }
    }
}
