//! Counters as tables, with the names that Nsight Compute has for them.

use super::report::lines;
use super::source::Sources;
use crate::output::grid;
use std::io::{Result, Write};
use std::sync::Arc;
use warpfold_ptx::count::{Banked, Contended, Counters, KernelCounters, Traffic};

type Rows = Vec<Vec<String>>;

/// The counters of a kernel, a row each; those of memories that it does not use are left out.
pub(crate) fn write_total(counters: &Counters, out: &mut dyn Write) -> Result<()> {
    let mut rows = Rows::new();
    let mut row = |name: &str, value: String, metric: &str| {
        rows.push(vec![name.into(), metric.into(), value]);
    };
    row("instructions", counters.instructions.to_string(), "smsp__inst_executed.sum *");
    row(
        "lane instructions",
        counters.lane_instructions.to_string(),
        "smsp__thread_inst_executed.sum *",
    );
    let lanes = "smsp__thread_inst_executed_per_inst_executed.ratio *";
    row("active lanes an instruction", ratio(counters.active_lanes()), lanes);
    row("branches", counters.branches.to_string(), "smsp__sass_branch_targets.sum *");
    let divergent = "smsp__sass_branch_targets_threads_divergent.sum *";
    row("divergent branches", counters.divergent_branches.to_string(), divergent);
    row("barriers", counters.barriers.to_string(), "");
    row("warp barriers, shuffles, votes", counters.warp_barriers.to_string(), "");
    global("loads", "ld", &counters.global_loads, &mut rows);
    global("stores", "st", &counters.global_stores, &mut rows);
    shared("loads", "ld", &counters.shared_loads, &mut rows);
    shared("stores", "st", &counters.shared_stores, &mut rows);
    atomics("global", &counters.global_atomics, &mut rows);
    atomics("shared", &counters.shared_atomics, &mut rows);
    writeln!(out, "{}", grid(&["counter", "in Nsight Compute", "value"], rows, 2))?;
    writeln!(out, "* counts machine code, not PTX: the figures are similar, not equal")
}

fn global(what: &str, op: &str, t: &Traffic, rows: &mut Rows) {
    if t.requests == 0 {
        return;
    }
    let mut row = |name: &str, metric: String, value: String| {
        rows.push(vec![format!("global {what}: {name}"), metric, value]);
    };
    let lsu = |unit: &str| format!("l1tex__t_{unit}_pipe_lsu_mem_global_op_{op}.sum");
    row("requests", lsu("requests"), t.requests.to_string());
    row("sectors", lsu("sectors"), t.sectors.to_string());
    let each = format!("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{op}.ratio");
    row("sectors a request", each, ratio(t.sectors_per_request()));
    row("lines of 128 bytes", String::new(), t.lines.to_string());
    row("bytes asked for", String::new(), t.bytes_asked.to_string());
    row("bytes moved", String::new(), t.bytes_moved().to_string());
    let percent = t.efficiency().map_or_else(|| "-".into(), |x| format!("{:.1}%", 100.0 * x));
    let pct = format!("smsp__sass_average_data_bytes_per_sector_mem_global_op_{op}.pct");
    row("efficiency", pct, percent);
}

fn shared(what: &str, op: &str, b: &Banked, rows: &mut Rows) {
    if b.requests == 0 {
        return;
    }
    let mut row = |name: &str, metric: String, value: u64| {
        rows.push(vec![format!("shared {what}: {name}"), metric, value.to_string()]);
    };
    row("requests", format!("smsp__inst_executed_op_shared_{op}.sum"), b.requests);
    let passes = format!("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum");
    row("wavefronts", passes, b.wavefronts);
    let conflicts = format!("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum");
    row("bank conflicts", conflicts, b.conflicts);
    row("bytes asked for", String::new(), b.bytes_asked);
}

fn atomics(memory: &str, c: &Contended, rows: &mut Rows) {
    if c.requests == 0 {
        return;
    }
    let mut row = |name: &str, value: String| {
        rows.push(vec![format!("{memory} atomics: {name}"), String::new(), value]);
    };
    row("requests", c.requests.to_string());
    row("operations", c.operations.to_string());
    row("most lanes at one address", c.largest_crowd.to_string());
    let crowds: Vec<_> = c.crowds.iter().map(u64::to_string).collect();
    row("requests by lanes at one address: 1, 2, to 4, 8, 16, 32", crowds.join(" "));
}

/// The counters of each line, a row each.
pub(crate) fn write_lines(
    counters: &KernelCounters,
    files: &[Arc<str>],
    sources: &mut Sources,
    out: &mut dyn Write,
) -> Result<()> {
    const HEADER: [&str; 13] = [
        "line", "source", "instr", "lanes", "branch", "diverge", "ld req", "ld sect", "st req",
        "st sect", "sh req", "sh wave", "atomic",
    ];
    let lines = lines(counters);
    let mut numbers: Vec<_> =
        lines.iter().filter_map(|(line, _)| line.and_then(|l| l.source)).collect();
    numbers.dedup_by_key(|(file, _)| *file);
    let one_file = numbers.len() <= 1;
    let rows = lines.iter().map(|(line, c)| {
        let (name, text) = match line {
            None => ("-".into(), "no line of source".into()),
            Some(line) => match line.source {
                None => (format!("PTX {}", line.ptx), String::new()),
                Some((file, number)) => {
                    let file = files.get(file as usize).map_or("", |f| f);
                    let text = sources.line(file, number).unwrap_or("").trim().to_string();
                    let name =
                        if one_file { number.to_string() } else { format!("{file}:{number}") };
                    (name, shortened(&text))
                }
            },
        };
        let shared = |f: fn(&Banked) -> u64| f(&c.shared_loads) + f(&c.shared_stores);
        let mut row = vec![name, text, c.instructions.to_string(), ratio(c.active_lanes())];
        row.extend(
            [
                c.branches,
                c.divergent_branches,
                c.global_loads.requests,
                c.global_loads.sectors,
                c.global_stores.requests,
                c.global_stores.sectors,
                shared(|b| b.requests),
                shared(|b| b.wavefronts),
                c.global_atomics.requests + c.shared_atomics.requests,
            ]
            .map(|n| if n == 0 { String::new() } else { n.to_string() }),
        );
        row
    });
    writeln!(out, "{}", grid(&HEADER, rows.collect(), 2))
}

/// A line of source that leaves room for numbers.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 48;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.into(),
    }
}

fn ratio(x: Option<f64>) -> String {
    x.map_or_else(|| "-".into(), |x| format!("{x:.2}"))
}
