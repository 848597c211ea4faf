//! `bench`: the library measured in memory.

use super::doctor::{memory, processor};
use crate::args::{BenchArgs, Global, TableOrJson};
use crate::bench::{self, Measurement, Plan, Results};
use crate::failure::{Usage, note};
use crate::output::{grid, quoted};
use crate::sink::Sink;
use anyhow::Result;
use std::io::Write;
use warpfold::Threads;
use warpfold::internal::Isa;

/// Fewer elements than this do not fill the shapes that are measured.
const FEWEST: usize = 1 << 12;

pub(crate) fn run(args: &BenchArgs, global: &Global) -> Result<()> {
    let default = if args.quick { 4 << 20 } else { 64 << 20 };
    let elements = args.elements.unwrap_or(default);
    if elements < FEWEST {
        return Err(Usage::new(format!("--elements {elements} is less than {FEWEST}")).into());
    }
    let mut threads: Vec<usize> = args.threads.iter().map(|n| n.get()).collect();
    if threads.is_empty() {
        threads = vec![1, Threads::All.count()];
        threads.dedup();
    }
    // A name that makes no sense should not be found out after a minute.
    let isa = Isa::active()?;
    let rounds = if args.quick { 3 } else { 7 };
    let plan = Plan { elements, threads, rounds, only: args.only.clone() };
    let results = bench::run(&plan, |data| {
        if !global.quiet {
            note(&format!("measuring {data}"));
        }
    })?;
    if results.cases.is_empty() {
        let only = args.only.as_deref().unwrap_or_default();
        return Err(Usage::new(format!("no case contains {only:?}"))
            .hint("leave out --only to see them all")
            .into());
    }
    if cfg!(debug_assertions) {
        note("this is a debug build: its figures mean nothing");
    }
    let mut sink = Sink::open(None)?;
    match args.output_format {
        TableOrJson::Table => write_table(&results, isa, &mut sink)?,
        TableOrJson::Json => write_json(&results, isa, &mut sink)?,
    }
    sink.commit()
}

fn write_table(results: &Results, isa: Isa, out: &mut dyn Write) -> std::io::Result<()> {
    let name = processor().unwrap_or_else(|| std::env::consts::ARCH.into());
    writeln!(out, "{name}, {}", isa.name())?;
    for read in &results.read {
        let plural = if read.threads == 1 { "" } else { "s" };
        writeln!(
            out,
            "reading {}, {} thread{plural}: {:.2} GB/s",
            read.data, read.threads, read.gbps
        )?;
    }
    let part =
        |part: Option<f64>| part.map_or_else(|| "-".into(), |p| format!("{:.0}%", 100.0 * p));
    let row = |m: &Measurement| {
        vec![
            m.case.clone(),
            m.threads.to_string(),
            duration(m.ns),
            duration(m.best_ns),
            format!("{:.2}", m.gbps()),
            part(m.of_read),
            part(m.of_plain),
        ]
    };
    let header = ["case", "threads", "median", "best", "GB/s", "of reading", "of plain"];
    writeln!(out, "{}", grid(&header, results.cases.iter().map(row).collect(), 1))
}

/// Nanoseconds, as people say them.
fn duration(ns: f64) -> String {
    if ns < 1e4 {
        format!("{ns:.1} ns")
    } else if ns < 1e6 {
        format!("{:.1} us", ns / 1e3)
    } else {
        format!("{:.2} ms", ns / 1e6)
    }
}

fn write_json(results: &Results, isa: Isa, out: &mut dyn Write) -> std::io::Result<()> {
    let number = |x: Option<f64>| x.map_or_else(|| "null".into(), |x| format!("{x:.4}"));
    writeln!(
        out,
        "{{\"machine\":{{\"version\":{},\"target\":{},\"processor\":{},\"isa\":{},\"cores\":{},\"memory\":{}}},",
        quoted(env!("CARGO_PKG_VERSION")),
        quoted(&format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS)),
        processor().map_or_else(|| "null".into(), |p| quoted(&p)),
        quoted(isa.name()),
        std::thread::available_parallelism().map_or(1, usize::from),
        memory().map_or_else(|| "null".into(), |m| m.to_string()),
    )?;
    let reads: Vec<_> = results
        .read
        .iter()
        .map(|r| {
            let data = quoted(r.data);
            format!("{{\"data\":{data},\"threads\":{},\"gbps\":{:.4}}}", r.threads, r.gbps)
        })
        .collect();
    writeln!(out, "\"read\":[{}],", reads.join(",\n "))?;
    let cases: Vec<_> = results
        .cases
        .iter()
        .map(|m| {
            format!(
                "{{\"case\":{},\"threads\":{},\"elements\":{},\"bytes\":{},\"ns\":{:.1},\"best_ns\":{:.1},\
                 \"gbps\":{:.4},\"of_read\":{},\"of_plain\":{}}}",
                quoted(&m.case),
                m.threads,
                m.elements,
                m.bytes,
                m.ns,
                m.best_ns,
                m.gbps(),
                number(m.of_read),
                number(m.of_plain),
            )
        })
        .collect();
    writeln!(out, "\"results\":[{}]}}", cases.join(",\n "))
}
