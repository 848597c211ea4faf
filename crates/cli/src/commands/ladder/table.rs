//! What `ladder run` prints.

use crate::args::LadderFormat;
use crate::bench::statistics::{median, quartiles};
use crate::output::{self, grid};
use serde_json::json;
use std::io::{Result, Write};
use warpfold_ladder::{Measurement, Question, Verdict};

/// A rung's answer and times.
pub(super) struct Row {
    pub(super) question: Question,
    pub(super) measured: Measurement,
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
    row: &'a Row,
    time: Option<Time>,
    /// Bytes of input for each nanosecond.
    gbps: Option<f64>,
    /// How many times as fast as `neighbored`, and as the row before.
    over_first: Option<f64>,
    over_before: Option<f64>,
}

const HEADER: [&str; 13] = [
    "rung",
    "dtype",
    "op",
    "n",
    "block",
    "grid",
    "median",
    "quartiles",
    "GB/s",
    "in L2",
    "over neighbored",
    "over before",
    "answer",
];

/// The columns that a device without a clock leaves empty.
const TIMES: core::ops::Range<usize> = 6..12;

pub(super) fn write(rows: &[Row], format: LadderFormat, out: &mut dyn Write) -> Result<()> {
    let lines = lines(rows);
    match format {
        LadderFormat::Table => {
            let (header, cells) = columns(&lines);
            writeln!(out, "{}", grid(&header, cells, 3))?;
            wrong(&lines, out)
        }
        LadderFormat::Md => {
            let (header, cells) = columns(&lines);
            writeln!(out, "| {} |", header.join(" | "))?;
            writeln!(out, "|{}", "---|".repeat(header.len()))?;
            cells.iter().try_for_each(|cells| writeln!(out, "| {} |", cells.join(" | ")))?;
            wrong(&lines, out)
        }
        LadderFormat::Json => {
            let objects: Vec<_> = lines.iter().map(|line| object(line).to_string()).collect();
            writeln!(out, "[{}]", objects.join(",\n "))
        }
        LadderFormat::Csv => csv(&lines, out),
    }
}

/// What a table shows: times only where there are some.
fn columns(lines: &[Line<'_>]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let timed = lines.iter().any(|line| line.time.is_some());
    let shown = |column: &usize| timed || !TIMES.contains(column);
    let row = |line| {
        let cells = cells(line).into_iter().enumerate().filter(|(i, _)| shown(i));
        cells.map(|(_, cell)| cell).collect()
    };
    let header = HEADER.into_iter().enumerate().filter(|(i, _)| shown(i));
    (header.map(|(_, name)| name).collect(), lines.iter().map(row).collect())
}

fn lines(rows: &[Row]) -> Vec<Line<'_>> {
    let times: Vec<Option<Time>> = rows.iter().map(time).collect();
    let alike = |a: &Row, b: &Row| {
        let key = |q: &Question| (q.dtype(), q.op(), q.n(), q.block());
        key(&a.question) == key(&b.question)
    };
    let over = |other: Option<usize>, i: usize| {
        Some(times[other?]?.median / times[i]?.median).filter(|ratio| ratio.is_finite())
    };
    let line = |(i, row): (usize, &'_ Row)| {
        let first = |r: &Row| r.question.rung().id == "neighbored" && alike(r, row);
        let first = rows.iter().position(first);
        let before = i.checked_sub(1).filter(|&b| alike(&rows[b], row));
        (i, first, before)
    };
    let places: Vec<_> = rows.iter().enumerate().map(line).collect();
    rows.iter()
        .zip(places)
        .map(|(row, (i, first, before))| {
            let bytes = row.question.n() as f64 * row.question.dtype().size() as f64;
            let gbps = times[i].map(|t| bytes / t.median / 1e9).filter(|x| x.is_finite());
            Line {
                row,
                time: times[i],
                gbps,
                over_first: over(first, i),
                over_before: over(before, i),
            }
        })
        .collect()
}

fn time(row: &Row) -> Option<Time> {
    let mut seconds: Vec<f64> = row.measured.times.iter().map(|t| t.as_secs_f64()).collect();
    if seconds.is_empty() {
        return None;
    }
    Some(Time { median: median(&mut seconds), quartiles: quartiles(&mut seconds) })
}

/// A grid for each launch: `40 + 1`.
fn grids(row: &Row) -> String {
    row.measured.grid.iter().map(u32::to_string).collect::<Vec<_>>().join(" + ")
}

fn cells(line: &Line<'_>) -> Vec<String> {
    let dash = || "-".to_string();
    let Row { question, measured } = line.row;
    let times = |x: Option<f64>| x.map_or_else(dash, |x| format!("{x:.2}"));
    let us = |seconds: f64| format!("{:.2}", seconds * 1e6);
    vec![
        question.rung().id.into(),
        question.dtype().name().into(),
        question.op().name().into(),
        question.n().to_string(),
        question.block().to_string(),
        grids(line.row),
        line.time.map_or_else(dash, |t| format!("{} us", us(t.median))),
        line.time.map_or_else(dash, |t| format!("{} to {}", us(t.quartiles.0), us(t.quartiles.1))),
        line.gbps.map_or_else(dash, |x| format!("{x:.1}")),
        line.time.map_or_else(dash, |_| if measured.in_l2 { "yes".into() } else { "no".into() }),
        times(line.over_first),
        times(line.over_before),
        answer(&measured.verdict).into(),
    ]
}

fn answer(verdict: &Verdict) -> &'static str {
    if verdict.is_right() { "ok" } else { "wrong" }
}

/// What is wrong, a line each.
fn wrong(lines: &[Line<'_>], out: &mut dyn Write) -> Result<()> {
    for line in lines {
        if let Verdict::Wrong(mismatch) = &line.row.measured.verdict {
            writeln!(out, "wrong: {mismatch}")?;
        }
    }
    Ok(())
}

fn object(line: &Line<'_>) -> serde_json::Value {
    let Row { question, measured } = line.row;
    let wrong = match &measured.verdict {
        Verdict::Right => None,
        Verdict::Wrong(mismatch) => Some(mismatch.to_string()),
    };
    json!({
        "rung": question.rung().id,
        "dtype": question.dtype().name(),
        "op": question.op().name(),
        "n": question.n(),
        "block": question.block(),
        "grid": measured.grid,
        "median": line.time.map(|t| t.median),
        "quartiles": line.time.map(|t| [t.quartiles.0, t.quartiles.1]),
        "intervals": measured.times.len(),
        "gbps": line.gbps,
        "in_l2": line.time.map(|_| measured.in_l2),
        "over_neighbored": line.over_first,
        "over_before": line.over_before,
        "right": measured.verdict.is_right(),
        "wrong": wrong,
    })
}

fn csv(lines: &[Line<'_>], out: &mut dyn Write) -> Result<()> {
    let number = |x: Option<f64>| x.map_or_else(String::new, |x| x.to_string());
    let mut row = output::Row::new(out, b',');
    for name in [
        "rung",
        "dtype",
        "op",
        "n",
        "block",
        "grid",
        "median",
        "lower_quartile",
        "upper_quartile",
        "gbps",
        "in_l2",
        "over_neighbored",
        "over_before",
        "answer",
    ] {
        row.cell(name)?;
    }
    row.end()?;
    for line in lines {
        let Row { question, measured } = line.row;
        for cell in [
            question.rung().id.into(),
            question.dtype().name().into(),
            question.op().name().into(),
            question.n().to_string(),
            question.block().to_string(),
            grids(line.row),
            number(line.time.map(|t| t.median)),
            number(line.time.map(|t| t.quartiles.0)),
            number(line.time.map(|t| t.quartiles.1)),
            number(line.gbps),
            line.time.map_or_else(String::new, |_| measured.in_l2.to_string()),
            number(line.over_first),
            number(line.over_before),
            match &measured.verdict {
                Verdict::Right => "ok".into(),
                Verdict::Wrong(mismatch) => mismatch.to_string(),
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
    use warpfold_ladder::{Mismatch, find};

    fn rows() -> Vec<Row> {
        let row = |id: &str, us: u64, verdict| {
            let rung = find(id).unwrap();
            let question = Question::new(rung, DType::F32, Op::Sum, 1000, 64).unwrap();
            let times = (0..25).map(|i| Duration::from_micros(us + i)).collect();
            let measured = Measurement { verdict, grid: vec![16, 1], times, in_l2: true };
            Row { question, measured }
        };
        let mut rows =
            vec![row("neighbored", 88, Verdict::Right), row("interleaved", 38, Verdict::Right)];
        let question = rows[1].question;
        let (got, wanted) = (Scalar::F32(1.5), Scalar::F64(2.0));
        let mismatch = Mismatch { question, got, wanted, tolerance: 0.0 };
        rows.push(row("unroll2", 13, Verdict::Wrong(mismatch)));
        rows
    }

    fn printed(format: LadderFormat) -> String {
        let mut out = Vec::new();
        write(&rows(), format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn times_are_medians_and_ratios_of_them() {
        let all: serde_json::Value = serde_json::from_str(&printed(LadderFormat::Json)).unwrap();
        assert_eq!(all[1]["median"], 50e-6);
        assert_eq!(all[1]["quartiles"], serde_json::json!([44e-6, 56e-6]));
        assert_eq!(
            (&all[1]["over_neighbored"], &all[2]["over_before"]),
            (&2.0.into(), &2.0.into())
        );
        assert_eq!((&all[0]["over_before"], &all[2]["over_neighbored"]), (&().into(), &4.0.into()));
        assert!((all[1]["gbps"].as_f64().unwrap() - 0.08).abs() < 1e-12);
        assert_eq!((&all[1]["right"], &all[2]["right"]), (&true.into(), &false.into()));
    }

    #[test]
    fn a_wrong_answer_is_told_in_every_format() {
        let told = "unroll2: sum of 1000 f32 in blocks of 64: got 1.5, wanted 2.0"
            .replace("unroll2", "interleaved");
        for format in [LadderFormat::Table, LadderFormat::Json, LadderFormat::Csv, LadderFormat::Md]
        {
            assert!(printed(format).contains(&told), "{}", printed(format));
        }
        assert_eq!(printed(LadderFormat::Csv).lines().count(), 4);
        assert_eq!(printed(LadderFormat::Md).lines().filter(|l| l.starts_with('|')).count(), 5);
    }
}
