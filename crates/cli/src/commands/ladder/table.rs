//! What `ladder run` prints.

use super::profile::Profile;
use crate::args::LadderFormat;
use crate::output::{self, grid};
use crate::ptx::json::counted;
use serde_json::{Value, json};
use std::io::{Result, Write};
use warpfold_cuda::Limits;
use warpfold_ladder::baselines::{
    Baseline, COUNTED, Compared, Counted, Effect, baseline, surprises, verdict,
};
use warpfold_ladder::occupancy::{Block, multiprocessor};
use warpfold_ladder::statistics::{far_out, median, quartiles};
use warpfold_ladder::{Ceiling, Measurement, Question, Step, Verdict, Warning};
use warpfold_ptx::count::Counters;

/// What was run, and where.
pub(super) struct Run {
    pub(super) device: Limits,
    /// Whether the interpreter played it.
    pub(super) simulated: bool,
    pub(super) ceiling: Option<Ceiling>,
    pub(super) rows: Vec<Row>,
}

/// A rung's answer and times.
pub(super) struct Row {
    pub(super) question: Question,
    pub(super) outcome: Outcome,
    /// What a profiler counted of each launch, where one was asked for.
    pub(super) profile: Vec<Profile>,
}

/// The results of a rung.
pub(super) enum Outcome {
    Measured(Box<Measurement>),
    /// This machine does not have what it needs.
    Skipped(String),
}

impl Row {
    fn measured(&self) -> Option<&Measurement> {
        match &self.outcome {
            Outcome::Measured(measured) => Some(measured),
            Outcome::Skipped(_) => None,
        }
    }

    /// Whether nothing is wrong: a rung that was skipped said nothing.
    pub(super) fn is_right(&self) -> bool {
        self.measured().is_none_or(|measured| measured.verdict.is_right())
    }
}

/// Seconds of a run.
#[derive(Clone, Copy)]
struct Time {
    median: f64,
    /// Half of the intervals lie between them.
    quartiles: (f64, f64),
}

/// A row with what follows from it and from the others.
struct Line<'a> {
    run: &'a Run,
    row: &'a Row,
    time: Option<Time>,
    /// Bytes of input for each nanosecond.
    gbps: Option<f64>,
    /// The part of the rate at which the device reads, where it was read from memory.
    of_ceiling: Option<f64>,
    /// How many times as fast as `neighbored`.
    over_first: Option<f64>,
    /// What its registry says of other rungs, and what came of it.
    compared: Vec<Compared>,
    /// The same of counters.
    counts: Vec<Counted>,
}

const HEADER: [&str; 25] = [
    "rung",
    "dtype",
    "op",
    "n",
    "block",
    "blocks per SM",
    "grid",
    "median",
    "quartiles",
    "GB/s",
    "% of read",
    "over neighbored",
    "baseline",
    "over baseline",
    "regs",
    "shared",
    "local",
    "occupancy",
    "instructions",
    "sectors loaded",
    "bank conflicts",
    "divergent branches",
    "barriers",
    "verdict",
    "answer",
];

/// The columns of a device, which has a clock.
const TIMES: core::ops::Range<usize> = 7..18;
/// The columns of the interpreter, which counts.
const COUNTS: core::ops::Range<usize> = 18..23;
/// What came of the expectations, where baselines were run, too.
const VERDICT: usize = 23;
/// What a sweep of grids goes through.
const PER_MULTIPROCESSOR: usize = 5;

pub(super) fn write(run: &Run, format: LadderFormat, out: &mut dyn Write) -> Result<()> {
    let lines = lines(run);
    match format {
        LadderFormat::Table => {
            let (header, cells) = columns(&lines);
            writeln!(out, "{}", grid(&header, cells, 3))?;
            remarks(run, &lines, out)
        }
        LadderFormat::Md => {
            let (header, cells) = columns(&lines);
            writeln!(out, "| {} |", header.join(" | "))?;
            writeln!(out, "|{}", "---|".repeat(header.len()))?;
            cells.iter().try_for_each(|cells| writeln!(out, "| {} |", cells.join(" | ")))?;
            // Or the next line would be a row of the table.
            writeln!(out)?;
            remarks(run, &lines, out)
        }
        LadderFormat::Json => {
            let objects: Vec<_> = lines.iter().map(|line| object(line).to_string()).collect();
            writeln!(out, "[{}]", objects.join(",\n "))
        }
        LadderFormat::Csv => csv(&lines, out),
    }
}

/// Every row as an object.
pub(super) fn objects(run: &Run) -> Vec<Value> {
    lines(run).iter().map(object).collect()
}

/// What a table shows: times or counters, where there are some.
fn columns(lines: &[Line<'_>]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let timed = lines.iter().any(|line| line.time.is_some());
    let counted = lines.iter().any(|l| l.row.measured().is_some_and(|m| m.counters.is_some()));
    let swept = lines.iter().any(|line| line.row.question.per_multiprocessor().is_some());
    let judged = lines.iter().any(|line| verdict(&line.compared, &line.counts).is_some());
    let shown = |column: &usize| {
        (timed || !TIMES.contains(column))
            && (counted || !COUNTS.contains(column))
            && (judged || *column != VERDICT)
            && (swept || *column != PER_MULTIPROCESSOR)
    };
    let row = |line| {
        let cells = cells(line).into_iter().enumerate().filter(|(i, _)| shown(i));
        cells.map(|(_, cell)| cell).collect()
    };
    let header = HEADER.into_iter().enumerate().filter(|(i, _)| shown(i));
    (header.map(|(_, name)| name).collect(), lines.iter().map(row).collect())
}

fn lines(run: &Run) -> Vec<Line<'_>> {
    let rows = &run.rows;
    let times: Vec<Option<Time>> = rows.iter().map(time).collect();
    let alike = |a: &Row, b: &Row| {
        // Where blocks are the rung's own affair all are alike.
        let blocks = a.question.rung().plan.has_blocks() && b.question.rung().plan.has_blocks();
        let key = |q: &Question| {
            (q.dtype(), q.op(), q.n(), blocks.then_some((q.block(), q.per_multiprocessor())))
        };
        key(&a.question) == key(&b.question)
    };
    let over = |other: Option<usize>, i: usize| {
        Some(times[other?]?.median / times[i]?.median).filter(|ratio| ratio.is_finite())
    };
    let find =
        |id: &str, row: &Row| rows.iter().position(|r| r.question.rung().id == id && alike(r, row));
    (0..)
        .zip(rows)
        .map(|(i, row)| {
            let first = find("neighbored", row);
            let all_bytes = row.question.n() * row.question.dtype().size() as u64;
            let bytes = all_bytes as f64;
            let gbps = times[i].map(|t| bytes / t.median / 1e9).filter(|x| x.is_finite());
            let expected = baseline(row.question.rung().id);
            let compared = expected.map_or_else(Vec::new, |e| {
                e.compare(all_bytes, gbps, None, |id| over(find(id, row), i))
            });
            let other = expected.and_then(|e| e.with()).and_then(|with| find(with, row));
            let counts =
                expected.map_or_else(Vec::new, |e| counts(e, row, other.map(|o| &rows[o])));
            let from_memory = row.measured().is_some_and(|m| !m.in_l2 && !m.on_host);
            let ceiling = run.ceiling.as_ref().filter(|_| from_memory);
            Line {
                run,
                row,
                time: times[i],
                gbps,
                of_ceiling: gbps.zip(ceiling).map(|(gbps, ceiling)| gbps / ceiling.gbps),
                over_first: over(first, i),
                compared,
                counts,
            }
        })
        .collect()
}

/// What the interpreter counted, beside the baseline's, where expectations speak of it.
fn counts(expected: &'static Baseline, row: &Row, other: Option<&Row>) -> Vec<Counted> {
    let counters = |row: &Row| row.measured().and_then(|m| m.counters.clone());
    let asked = (row.question.n(), row.question.block()) == COUNTED;
    let (Some(mine), Some(theirs), true) = (counters(row), other.and_then(counters), asked) else {
        return Vec::new();
    };
    let blocks = row.measured().map_or(0, |m| m.grid.iter().map(|&blocks| u64::from(blocks)).sum());
    expected.count(&mine, &theirs, blocks)
}

/// Seconds of a run in each interval.
fn seconds(row: &Row) -> Vec<f64> {
    row.measured().map_or_else(Vec::new, |m| m.times.iter().map(|t| t.as_secs_f64()).collect())
}

fn time(row: &Row) -> Option<Time> {
    let mut seconds = seconds(row);
    if seconds.is_empty() {
        return None;
    }
    Some(Time { median: median(&mut seconds), quartiles: quartiles(&mut seconds) })
}

fn warnings(row: &Row) -> Vec<Warning> {
    Warning::of(&seconds(row), row.measured().is_some_and(|m| m.in_l2))
}

/// A grid for each launch: `40 + 1`.
fn grids(row: &Row) -> String {
    let grid = row.measured().map(|m| m.grid.as_slice()).unwrap_or_default();
    if grid.is_empty() {
        return "-".into();
    }
    grid.iter().map(u32::to_string).collect::<Vec<_>>().join(" + ")
}

/// The first launch, which reads the elements.
fn first(row: &Row) -> Option<&Step> {
    row.measured()?.steps.first()
}

fn cells(line: &Line<'_>) -> Vec<String> {
    let dash = || "-".to_string();
    let question = &line.row.question;
    let times = |x: Option<f64>| x.map_or_else(dash, |x| format!("{x:.2}"));
    let us = |seconds: f64| format!("{:.2}", seconds * 1e6);
    let step = first(line.row);
    let whole = |x: Option<u32>| x.map_or_else(dash, |x| x.to_string());
    let footprint = step.and_then(|s| s.footprint);
    let shared = step.map(|s| s.dynamic_shared + footprint.map_or(0, |f| f.shared));
    let counters = line.row.measured().and_then(|m| m.counters.as_ref());
    let count = |of: fn(&Counters) -> u64| counters.map_or_else(dash, |c| of(c).to_string());
    vec![
        question.rung().id.into(),
        question.dtype().name().into(),
        question.op().name().into(),
        question.n().to_string(),
        if question.rung().plan.has_blocks() { question.block().to_string() } else { dash() },
        whole(question.per_multiprocessor()),
        grids(line.row),
        line.time.map_or_else(dash, |t| format!("{} us", us(t.median))),
        line.time.map_or_else(dash, |t| format!("{} to {}", us(t.quartiles.0), us(t.quartiles.1))),
        line.gbps.map_or_else(dash, |x| format!("{x:.1}")),
        line.of_ceiling.map_or_else(dash, |x| format!("{:.1}", 100.0 * x)),
        times(line.over_first),
        baseline(question.rung().id).and_then(Baseline::with).map_or_else(dash, Into::into),
        times(over_baseline(line)),
        whole(footprint.and_then(|f| f.registers)),
        whole(shared),
        whole(footprint.and_then(|f| f.local)),
        step.map_or_else(dash, |s| format!("{:.0}%", 100.0 * s.occupancy)),
        count(|c| c.instructions),
        count(|c| c.global_loads.sectors),
        count(|c| c.shared_loads.conflicts + c.shared_stores.conflicts),
        count(|c| c.divergent_branches),
        count(|c| c.barriers),
        verdict(&line.compared, &line.counts).unwrap_or_else(dash),
        answer(line.row).into(),
    ]
}

/// How many times as fast as its baseline.
fn over_baseline(line: &Line<'_>) -> Option<f64> {
    line.compared.first().filter(|first| !first.comparison.with.is_empty())?.measured
}

fn answer(row: &Row) -> &'static str {
    match row.measured().map(|m| m.verdict.is_right()) {
        Some(true) => "ok",
        Some(false) => "wrong",
        None => "skipped",
    }
}

/// What is wrong, why what is not there is not there, and what is suspicious, a line
/// each.
fn remarks(run: &Run, lines: &[Line<'_>], out: &mut dyn Write) -> Result<()> {
    let Limits { name, capability: (major, minor), multiprocessors, .. } = &run.device;
    writeln!(out, "device: {name}, {major}.{minor}, {multiprocessors} multiprocessors")?;
    if let Some(Ceiling { gbps, by }) = &run.ceiling {
        writeln!(out, "reads {gbps:.1} GB/s: {by}")?;
    }
    let profiled = |line: &Line<'_>| {
        let id = line.row.question.rung().id;
        let with_id = move |row: Vec<String>| [vec![id.to_owned()], row].concat();
        line.row.profile.iter().flat_map(Profile::rows).map(with_id).collect::<Vec<_>>()
    };
    let profiles: Vec<_> = lines.iter().flat_map(profiled).collect();
    if !profiles.is_empty() {
        writeln!(out, "{}", grid(&["rung", "kernel", "counter", "value"], profiles, 3))?;
    }
    for line in lines {
        let id = line.row.question.rung().id;
        match &line.row.outcome {
            Outcome::Skipped(why) => writeln!(out, "skipped: {why}")?,
            Outcome::Measured(measured) => {
                if let Verdict::Wrong(mismatch) = &measured.verdict {
                    writeln!(out, "wrong: {mismatch}")?;
                }
            }
        }
        let (n, block) = (line.row.question.n(), line.row.question.block());
        for surprise in surprises(&line.compared, &line.counts) {
            writeln!(out, "unexpected: {id}, {n} in blocks of {block}: {surprise}")?;
        }
        for warning in warnings(line.row) {
            writeln!(out, "warning: {id}, {n} in blocks of {block}: {warning}")?;
        }
    }
    Ok(())
}

fn object(line: &Line<'_>) -> Value {
    let Row { question, outcome, .. } = line.row;
    let measured = line.row.measured();
    let (wrong, skipped) = match outcome {
        Outcome::Skipped(why) => (None, Some(why)),
        Outcome::Measured(measured) => match &measured.verdict {
            Verdict::Right => (None, None),
            Verdict::Wrong(mismatch) => (Some(mismatch.to_string()), None),
        },
    };
    let mut times = seconds(line.row);
    let step = first(line.row);
    let footprint = step.and_then(|s| s.footprint);
    let ceiling = line.run.ceiling.as_ref();
    let (major, minor) = line.run.device.capability;
    let warning = |w: Warning| json!({ "what": w.to_string(), "hint": w.hint() });
    let mut all = json!({
        "rung": question.rung().id,
        "dtype": question.dtype().name(),
        "op": question.op().name(),
        "n": question.n(),
        "block": question.block(),
        "per_multiprocessor": question.per_multiprocessor(),
        "grid": measured.map(|m| m.grid.as_slice()).unwrap_or_default(),
        "launches": measured.map(|m| m.grid.len()),
        "median": line.time.map(|t| t.median),
        "quartiles": line.time.map(|t| [t.quartiles.0, t.quartiles.1]),
        "spread": line.time.map(|t| (t.quartiles.1 - t.quartiles.0) / t.median),
        "intervals": times.len(),
        "times": times.clone(),
        "outliers": far_out(&mut times),
        "warnings": warnings(line.row).into_iter().map(warning).collect::<Vec<_>>(),
        "gbps": line.gbps,
        "of_ceiling": line.of_ceiling,
        "ceiling_gbps": ceiling.map(|c| c.gbps),
        "ceiling_by": ceiling.map(|c| c.by.as_str()),
        "clock": line.time.and(measured).map(|m| if m.on_host { "host" } else { "device" }),
        "in_l2": line.time.and(measured).map(|m| m.in_l2),
        "over_neighbored": line.over_first,
        "registers": footprint.and_then(|f| f.registers),
        "static_shared": footprint.map(|f| f.shared),
        "dynamic_shared": step.map(|s| s.dynamic_shared),
        "local_bytes": footprint.and_then(|f| f.local),
        "occupancy": step.map(|s| s.occupancy),
        "limited_by": step.map(|s| limits(s, line.run.device.capability)),
        "kernels": measured.map(|m| m.steps.iter().map(kernel).collect::<Vec<_>>()),
        "counters": measured.and_then(|m| m.counters.as_ref()).map(counted),
        "profile": line.row.profile.iter().map(Profile::object).collect::<Vec<_>>(),
        "right": measured.map(|m| m.verdict.is_right()),
        "wrong": wrong,
        "skipped": skipped,
        "expectation": question.rung().expectation,
        "device": line.run.device.name,
        "capability": format!("{major}.{minor}"),
        "multiprocessors": line.run.device.multiprocessors,
        "simulated": line.run.simulated,
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut all, expectations(line)) {
        all.extend(more);
    }
    all
}

/// What was expected, and what came of it.
fn expectations(line: &Line<'_>) -> Value {
    let question = &line.row.question;
    json!({
        "baseline": baseline(question.rung().id).and_then(Baseline::with),
        "over_baseline": over_baseline(line),
        "compared": line.compared.iter().map(compared).collect::<Vec<_>>(),
        "counts": line.counts.iter().map(count).collect::<Vec<_>>(),
        "verdict": verdict(&line.compared, &line.counts),
        "unexpected": surprises(&line.compared, &line.counts),
    })
}

fn compared(compared: &Compared) -> Value {
    let Compared { comparison, expected, measured, effect } = compared;
    let with = Some(comparison.with).filter(|with| !with.is_empty());
    json!({
        "with": with,
        "measured": measured,
        "expected": expected.map(|(least, most)| [least, most]),
        "verdict": effect.map(|(effect, _)| effect.name()),
        "why": effect.map(|(_, why)| why).filter(|why| !why.is_empty()),
    })
}

fn count(counted: &Counted) -> Value {
    let (least, most) = counted.count.times;
    json!({
        "counter": counted.count.counter.name(),
        "times": counted.times,
        "expected": [least, most],
        "holds": counted.effect == Effect::AsExpected,
    })
}

/// What a multiprocessor runs out of, where that can be told.
fn limits(step: &Step, capability: (u32, u32)) -> Option<Vec<&'static str>> {
    let footprint = step.footprint?;
    let block = Block {
        threads: step.block,
        registers: footprint.registers?,
        shared: footprint.shared + step.dynamic_shared,
    };
    let found = multiprocessor(capability)?.occupancy(block).ok()?;
    Some(found.limited_by().map(|resource| resource.name()).collect())
}

fn kernel(step: &Step) -> Value {
    let footprint = step.footprint;
    json!({
        "name": step.kernel,
        "grid": step.grid,
        "block": step.block,
        "registers": footprint.and_then(|f| f.registers),
        "static_shared": footprint.map(|f| f.shared),
        "dynamic_shared": step.dynamic_shared,
        "local_bytes": footprint.and_then(|f| f.local),
        "resident": step.resident,
        "occupancy": step.occupancy,
    })
}

fn csv(lines: &[Line<'_>], out: &mut dyn Write) -> Result<()> {
    let number = |x: Option<f64>| x.map_or_else(String::new, |x| x.to_string());
    let whole = |x: Option<u32>| x.map_or_else(String::new, |x| x.to_string());
    let mut row = output::Row::new(out, b',');
    for name in [
        "rung",
        "dtype",
        "op",
        "n",
        "block",
        "per_multiprocessor",
        "grid",
        "median",
        "lower_quartile",
        "upper_quartile",
        "gbps",
        "of_ceiling",
        "in_l2",
        "over_neighbored",
        "baseline",
        "over_baseline",
        "registers",
        "static_shared",
        "dynamic_shared",
        "local_bytes",
        "occupancy",
        "instructions",
        "sectors_loaded",
        "sectors_stored",
        "bank_conflicts",
        "divergent_branches",
        "barriers",
        "verdict",
        "answer",
    ] {
        row.cell(name)?;
    }
    row.end()?;
    for line in lines {
        let question = &line.row.question;
        let step = first(line.row);
        let footprint = step.and_then(|s| s.footprint);
        let in_l2 = line.time.and(line.row.measured()).map(|m| m.in_l2);
        let counters = line.row.measured().and_then(|m| m.counters.as_ref());
        let count =
            |of: fn(&Counters) -> u64| counters.map_or_else(String::new, |c| of(c).to_string());
        for cell in [
            question.rung().id.into(),
            question.dtype().name().into(),
            question.op().name().into(),
            question.n().to_string(),
            question.block().to_string(),
            whole(question.per_multiprocessor()),
            grids(line.row),
            number(line.time.map(|t| t.median)),
            number(line.time.map(|t| t.quartiles.0)),
            number(line.time.map(|t| t.quartiles.1)),
            number(line.gbps),
            number(line.of_ceiling),
            in_l2.map_or_else(String::new, |x| x.to_string()),
            number(line.over_first),
            baseline(question.rung().id).and_then(Baseline::with).unwrap_or_default().into(),
            number(over_baseline(line)),
            whole(footprint.and_then(|f| f.registers)),
            whole(footprint.map(|f| f.shared)),
            whole(step.map(|s| s.dynamic_shared)),
            whole(footprint.and_then(|f| f.local)),
            number(step.map(|s| s.occupancy)),
            count(|c| c.instructions),
            count(|c| c.global_loads.sectors),
            count(|c| c.global_stores.sectors),
            count(|c| c.shared_loads.conflicts + c.shared_stores.conflicts),
            count(|c| c.divergent_branches),
            count(|c| c.barriers),
            verdict(&line.compared, &line.counts).unwrap_or_default(),
            match &line.row.outcome {
                Outcome::Skipped(why) => format!("skipped: {why}"),
                Outcome::Measured(measured) => match &measured.verdict {
                    Verdict::Right => "ok".into(),
                    Verdict::Wrong(mismatch) => mismatch.to_string(),
                },
            },
        ] {
            row.cell(&cell)?;
        }
        row.end()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use warpfold::Scalar;
    use warpfold::{DType, Op};
    use warpfold_cuda::{Device, Footprint, Sim};
    use warpfold_ladder::{Mismatch, find};

    fn run() -> Run {
        let row = |id: &str, us: u64, verdict| {
            let rung = find(id).unwrap();
            let question = Question::new(rung, DType::F32, Op::Sum, 1000, 64).unwrap();
            let times = (0..25).map(|i| Duration::from_micros(us + i)).collect();
            let footprint =
                Footprint { registers: Some(65), shared: 16, local: Some(8), threads: 1024 };
            let step = Step {
                kernel: id.into(),
                grid: 16,
                block: 64,
                footprint: Some(footprint),
                dynamic_shared: 256,
                resident: 12,
                occupancy: 0.375,
            };
            let measured = Measurement {
                verdict,
                grid: vec![16, 1],
                steps: vec![step],
                times,
                on_host: false,
                in_l2: id == "unroll2",
                counters: None,
            };
            Row { question, outcome: Outcome::Measured(measured.into()), profile: Vec::new() }
        };
        let mut rows =
            vec![row("neighbored", 88, Verdict::Right), row("interleaved", 38, Verdict::Right)];
        let question = rows[1].question;
        let (got, wanted) = (Scalar::F32(1.5), Scalar::F64(2.0));
        let mismatch = Mismatch { question, got, wanted, tolerance: 0.0 };
        rows.push(row("unroll2", 13, Verdict::Wrong(mismatch)));
        let skipped = Outcome::Skipped("redux: not here".into());
        rows.push(Row { question, outcome: skipped, profile: Vec::new() });
        let ceiling = Some(Ceiling { gbps: 0.16, by: "wide loads".into() });
        let mut device = Sim::checking().limits().clone();
        device.capability = (9, 0);
        Run { device, simulated: false, ceiling, rows }
    }

    fn printed(format: LadderFormat) -> String {
        let mut out = Vec::new();
        write(&run(), format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn times_are_medians_and_ratios_of_them() {
        let all: serde_json::Value = serde_json::from_str(&printed(LadderFormat::Json)).unwrap();
        assert_eq!(all[1]["median"], 50e-6);
        assert_eq!(all[1]["quartiles"], serde_json::json!([44e-6, 56e-6]));
        assert_eq!(
            (&all[1]["over_neighbored"], &all[2]["over_neighbored"]),
            (&2.0.into(), &4.0.into())
        );
        // Against the rung that it is compared with, not the row before; of which there may be none.
        assert_eq!(
            (&all[2]["baseline"], &all[2]["over_baseline"]),
            (&"interleaved".into(), &2.0.into())
        );
        assert_eq!(
            (&all[1]["baseline"], &all[1]["over_baseline"]),
            (&"neighbored-compact".into(), &().into())
        );
        assert!((all[1]["gbps"].as_f64().unwrap() - 0.08).abs() < 1e-12);
        assert_eq!((&all[1]["right"], &all[2]["right"]), (&true.into(), &false.into()));
    }

    /// The same times for an array that is read from memory.
    #[test]
    fn what_fails_is_told_with_its_reason() {
        let mut run = run();
        run.rows.truncate(3);
        for (row, id) in run.rows.iter_mut().zip(["unroll8", "two-pass-shared", "warp-shuffle"]) {
            let n = 1 << 27;
            row.question = Question::new(find(id).unwrap(), DType::F32, Op::Sum, n, 64).unwrap();
        }
        let rows = Value::from(objects(&run));
        // 100 us before 50 us: twice as fast.
        assert_eq!(
            (&rows[1]["verdict"], &rows[1]["baseline"]),
            (&"as expected".into(), &"unroll8".into())
        );
        assert_eq!(rows[2]["verdict"], "faster");
        let told = rows[2]["unexpected"][0].as_str().unwrap();
        assert_eq!(told, "2.000 times as fast as two-pass-shared, expected 0.97 to 1.03");
        run.rows.swap(0, 1);
        run.rows[0].question = run.rows[1].question;
        let slow = find("two-pass-shared").unwrap();
        run.rows[1].question = Question::new(slow, DType::F32, Op::Sum, 1 << 27, 64).unwrap();
        let mut out = Vec::new();
        write(&run, LadderFormat::Table, &mut out).unwrap();
        let table = String::from_utf8(out).unwrap();
        let told = "unexpected: two-pass-shared, 134217728 in blocks of 64: 0.500 times as fast as unroll8, expected 1.2 to 2: a thread has one load";
        assert!(table.contains(told) && table.contains("verdict"), "{table}");
    }

    #[test]
    fn a_wrong_answer_is_told_in_every_format() {
        let told = "unroll2: sum of 1000 f32 in blocks of 64: got 1.5, wanted 2.0"
            .replace("unroll2", "interleaved");
        for format in [LadderFormat::Table, LadderFormat::Json, LadderFormat::Csv, LadderFormat::Md]
        {
            assert!(printed(format).contains(&told), "{}", printed(format));
        }
        assert_eq!(printed(LadderFormat::Csv).lines().count(), 5);
        let md = printed(LadderFormat::Md);
        assert_eq!(md.lines().filter(|l| l.starts_with('|')).count(), 6);
        let (_, behind) = md.rsplit_once("|\n").unwrap();
        assert!(behind.starts_with("\ndevice: "), "{behind}");
    }

    #[test]
    fn what_a_kernel_takes_and_how_far_it_came_is_told() {
        let all: Value = serde_json::from_str(&printed(LadderFormat::Json)).unwrap();
        let one = &all[1];
        assert_eq!((&one["registers"], &one["static_shared"]), (&65.into(), &16.into()));
        assert_eq!((&one["dynamic_shared"], &one["local_bytes"]), (&256.into(), &8.into()));
        assert_eq!((&one["occupancy"], &one["launches"]), (&0.375.into(), &2.into()));
        assert_eq!(
            (&one["limited_by"], &one["kernels"][0]["resident"]),
            (&json!(["registers"]), &12.into())
        );
        assert!((one["of_ceiling"].as_f64().unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(one["times"].as_array().map(Vec::len), Some(25));
        assert_eq!((&one["spread"], &one["outliers"]), (&(12.0 / 50.0).into(), &0.into()));
        // Data from the cache is not part of the memory's rate.
        assert_eq!(all[2]["of_ceiling"], Value::Null);
        let told = all[2]["warnings"].as_array().unwrap();
        assert!(told.iter().any(|w| w["what"].as_str().unwrap().contains("L2")), "{told:?}");
        assert_eq!(
            (&all[3]["skipped"], &all[3]["right"]),
            (&"redux: not here".into(), &Value::Null)
        );
        let table = printed(LadderFormat::Table);
        assert!(table.contains("skipped: redux: not here") && table.contains("50.0"), "{table}");
        assert!(table.contains("reads 0.2 GB/s: wide loads"), "{table}");
    }
}
