//! The report as one page that needs nothing beside it.

use super::figures::{bare, verdicts};
use super::groups::{
    Group, digits, groups, ladders, over_blocks, over_elements, over_launches, speed,
};
use super::judged::judged;
use super::published::{CLAIMS, HARRIS};
use super::read::Gathered;
use super::record::{Machine, Measured, Trial};
use super::steps::{self, badge, introduction};
use super::style;
use super::svg::{Width, draw, escaped};
use crate::baselines::{Baseline, baseline, between};
use crate::chart::Chart;
use crate::experiments::{Table, number};
use crate::faulty::{STATEMENTS, wrong_listings};
use crate::rung::Plan;
use core::fmt::Write;
use std::collections::HashSet;
use warpfold_core::DType;

const SCRIPT: &str = include_str!("page.js");

/// A page that grows.
#[derive(Default)]
struct Page {
    body: String,
    charts: usize,
}

/// The page.
#[must_use]
pub fn html(all: &Gathered) -> String {
    let all = &judged(all);
    let groups = groups(all);
    let ladders = ladders(&groups);
    let mut page = Page::default();
    let mut sections = Vec::new();
    let timed = all.rungs.iter().any(|row| row.seconds().is_some())
        || all.trials.iter().any(|trial| trial.machine.is_some());
    page.headline(ladders);
    if ladders.is_empty() {
        page.body += &introduction(timed);
    }
    if !ladders.is_empty() {
        sections.extend([
            ("speed", if timed { "Speed" } else { "Instructions" }),
            ("table", "Rungs and verdicts"),
            ("faults", "What the texts get wrong"),
            ("steps", "Step by step"),
            ("expected", "Expected and measured"),
            ("sweeps", "Sizes and blocks"),
        ]);
        page.speed(ladders, timed);
        page.rungs(ladders);
        page.faults();
        page.steps(&ladders[0], timed);
        page.expected(&ladders[0]);
        page.sweeps(all);
        if ladders.iter().any(|group| CLAIMS.iter().any(|claim| claim.ours(group).is_some())) {
            sections.push(("published", "The texts' figures"));
            page.published(ladders);
        }
    }
    for trial in &all.trials {
        sections.push((&trial.experiment, &trial.experiment));
        page.trial(trial);
    }
    let links: Vec<String> = sections
        .iter()
        .map(|(id, name)| format!("<a href=\"#{}\">{}</a>", anchor(id), escaped(name)))
        .collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>The ladder: {}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{}</style>\n</head>\n<body>\n\
         <header><h1>The ladder</h1><div class=\"machine\">{}</div>\
         <button id=\"theme\" type=\"button\" hidden title=\"Switch between light and dark\">Dark</button></header>\n\
         <main>\n<nav aria-label=\"Sections\">{}</nav>\n{}</main>\n\
         <footer>{} by warpfold{}. {}Every answer was compared with the exact one.</footer>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        escaped(&machines(all).join("; ")),
        style::page(),
        machines(all).iter().map(|line| escaped(line)).collect::<Vec<_>>().join("<br>"),
        links.join(" "),
        page.body,
        if timed { "Measured and drawn" } else { "Counted and drawn" },
        versions(all),
        if timed {
            "Times are medians, by the device's own clock, of launches that follow each other. "
        } else {
            "The interpreter has no clock: there are instructions and sectors, and no times. "
        },
    )
}

fn versions(all: &Gathered) -> String {
    let mut known: Vec<&str> = all.documents.iter().map(|d| d.warpfold.as_str()).collect();
    known.dedup();
    if known.is_empty() { String::new() } else { format!(" {}", escaped(&known.join(", "))) }
}

/// The lines that say what was measured on.
pub(super) fn machines(all: &Gathered) -> Vec<String> {
    let full = |machine: &Machine| {
        let mut line = format!(
            "{}, compute capability {}, {} multiprocessors",
            machine.name, machine.capability, machine.multiprocessors
        );
        if machine.memory > 0 {
            let _ = write!(
                line,
                ", {} MiB of L2 cache, {} GiB of memory",
                machine.l2_bytes >> 20,
                machine.memory >> 30
            );
        }
        line
    };
    let mut lines: Vec<String> =
        all.documents.iter().filter_map(|d| d.machine.as_ref()).map(full).collect();
    lines.extend(all.trials.iter().filter_map(|trial| trial.machine.as_ref()).map(full));
    for row in &all.rungs {
        let Some(name) = &row.device else { continue };
        if lines.iter().any(|line| line.starts_with(name.as_str())) {
            continue;
        }
        let mut line = name.clone();
        if let Some(capability) = &row.capability {
            let _ = write!(line, ", compute capability {capability}");
        }
        if let Some(count) = row.multiprocessors {
            let _ = write!(line, ", {count} multiprocessors");
        }
        lines.push(line);
    }
    let mut seen = HashSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    if all.rungs.iter().any(|row| row.simulated == Some(true)) {
        lines.push("counted by the interpreter, which has no clock".into());
    }
    if lines.is_empty() { vec!["no device is named".into()] } else { lines }
}

/// A name as an anchor: what is no letter or digit is a hyphen.
pub(super) fn anchor(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// How a sentence of the registry is shown: its code marks are marks.
pub(super) fn prose(text: &str) -> String {
    let mut out = String::new();
    for (i, part) in escaped(text).split('`').enumerate() {
        match i % 2 {
            0 => out += part,
            _ => out += &format!("<code>{part}</code>"),
        }
    }
    out
}

fn cell(out: &mut String, class: &str, sort: Option<Option<f64>>, shown: &str) {
    let sort = match sort {
        Some(Some(value)) => format!(" data-v=\"{value}\""),
        Some(None) => " data-v=\"\"".into(),
        None => String::new(),
    };
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let _ = write!(out, "<td{class}{sort}>{shown}</td>");
}

/// A column of the table of rungs: its name, and what a row has there.
pub(super) type Column = (&'static str, fn(&Measured) -> Option<f64>, fn(f64) -> String);

fn short(x: f64) -> String {
    number(x)
}

fn two(x: f64) -> String {
    format!("{x:.2}")
}

fn one(x: f64) -> String {
    format!("{x:.1}")
}

fn whole(x: f64) -> String {
    digits(x as u64)
}

/// The columns that stand beside the verdict.
const FIRST: [&str; 8] = [
    "over baseline",
    "time, us",
    "GB/s",
    "% of read",
    "over neighbored",
    "warp instructions",
    "bank conflicts",
    "divergent branches",
];

const COLUMNS: [Column; 19] = [
    ("block", |r| Some(r.block as f64), whole),
    ("blocks", |r| r.grid.first().map(|&blocks| blocks as f64), whole),
    ("launches", |r| (!r.grid.is_empty()).then_some(r.grid.len() as f64), whole),
    ("time, us", |r| r.seconds().map(|s| s * 1e6), two),
    (
        "spread, %",
        |r| {
            let (low, high) = r.quartiles?;
            Some(100.0 * (high - low) / r.seconds()?).filter(|x| x.is_finite())
        },
        one,
    ),
    ("GB/s", Measured::rate, short),
    ("% of read", |r| r.of_ceiling.map(|x| 100.0 * x), one),
    ("over neighbored", |r| r.over_neighbored, two),
    ("over baseline", |r| r.over_baseline, two),
    ("registers", |r| r.registers.map(|x| x as f64), whole),
    ("static shared", |r| r.static_shared.map(|x| x as f64), whole),
    ("dynamic shared", |r| r.dynamic_shared.map(|x| x as f64), whole),
    ("local bytes", |r| r.local_bytes.map(|x| x as f64), whole),
    ("occupancy, %", |r| r.occupancy.map(|x| 100.0 * x), one),
    ("warp instructions", |r| r.counter(&["instructions"]), whole),
    ("sectors per load", |r| r.counter(&["global_loads", "sectors_per_request"]), two),
    ("bank conflicts", |r| r.counter(&["shared_loads", "bank_conflicts"]), whole),
    ("divergent branches", |r| r.counter(&["divergent_branches"]), whole),
    ("active lanes", |r| r.counter(&["active_lanes"]), one),
];

/// What a profiler counted of a row's first launch.
pub(super) const PROFILED: [Column; 9] = [
    ("achieved occupancy, %", |r| r.profiled("achieved_occupancy"), one),
    ("load efficiency, %", |r| r.profiled("gld_efficiency"), one),
    ("load throughput, GB/s", |r| r.profiled("gld_throughput").map(|bytes| bytes / 1e9), short),
    ("sectors per request", |r| r.profiled("gld_transactions_per_request"), two),
    ("L1 hit rate, %", |r| r.profiled("global_hit_rate"), one),
    ("branch efficiency, %", |r| r.profiled("branch_efficiency"), one),
    ("warp execution, %", |r| r.profiled("warp_execution_efficiency"), one),
    ("waits for memory, %", |r| r.profiled("stall_memory_dependency"), one),
    ("waits at barriers, %", |r| r.profiled("stall_sync"), one),
];

impl Page {
    fn chart(&mut self, chart: &Chart) {
        self.charts += 1;
        let id = format!("chart{}", self.charts);
        let _ = writeln!(
            self.body,
            "<figure data-marks=\"{}\"><figcaption>{}</figcaption>{}{}</figure>",
            chart.marks(),
            escaped(chart.title()),
            draw(chart, &id, Width::Wide),
            draw(chart, &id, Width::Narrow)
        );
    }

    fn begin(&mut self, id: &str, title: &str) {
        let _ = write!(self.body, "<section id=\"{}\">\n<h2>{}</h2>\n", anchor(id), escaped(title));
    }

    fn end(&mut self) {
        self.body += "</section>\n";
    }

    /// The table of all steps, and each of them.
    fn steps(&mut self, group: &Group<'_>, timed: bool) {
        self.begin("steps", "Step by step");
        self.body += &introduction(timed);
        let _ = writeln!(
            self.body,
            "<p>{}, each rung beside the one that it is compared with.</p>",
            escaped(&group.key.name())
        );
        self.body += &steps::steps(group);
        self.end();
    }

    fn speed(&mut self, ladders: &[Group<'_>], timed: bool) {
        self.begin("speed", if timed { "Speed" } else { "Instructions" });
        if !timed {
            self.body += "<p>How many warp instructions each rung takes, on the interpreter.</p>\n";
        }
        self.body += if !timed {
            ""
        } else {
            "<p>How many bytes of the input are reduced in a nanosecond, by rung, from the bottom of the ladder to its top. What lies in the cache may be read faster than memory gives.</p>\n"
        };
        self.body += "<div class=\"figures\">\n";
        for chart in ladders.iter().filter_map(speed) {
            self.chart(&chart);
        }
        self.body += "</div>\n";
        self.end();
    }

    /// What depends on the size of the array, of the blocks, of the grid.
    fn sweeps(&mut self, all: &Gathered) {
        self.begin("sweeps", "Sizes and blocks");
        self.body += "<div class=\"figures\">\n";
        let swept = [over_elements(all), over_blocks(all), over_launches(all)];
        for chart in swept.iter().flatten() {
            self.chart(chart);
        }
        self.body += "</div>\n";
        self.end();
    }

    /// What the page says in a line: from where to where, and how many expectations failed.
    fn headline(&mut self, ladders: &[Group<'_>]) {
        let Some(group) = ladders.first() else { return };
        let told = Headline::of(group);
        self.body += "<section id=\"headline\">";
        if let Some(climb) = &told.climb {
            let _ = write!(self.body, "<p class=\"headline\">{climb}</p>");
        }
        let facts: Vec<String> = told.facts.iter().map(|fact| format!("<li>{fact}</li>")).collect();
        let _ = writeln!(
            self.body,
            "<ul class=\"facts\">{}</ul><p class=\"note\">{}</p></section>",
            facts.concat(),
            escaped(&group.key.name())
        );
    }

    /// The statements and listings of the texts that are wrong.
    fn faults(&mut self) {
        self.begin("faults", "What the texts get wrong");
        let _ = writeln!(
            self.body,
            "<p>{} of the texts' listings are wrong as printed, each shown at work by the interpreter: <code>warpfold ladder show --faulty RUNG</code> runs one, and <code>warpfold ladder faults</code> all of them.</p>",
            wrong_listings()
        );
        self.begin_table(
            "What the texts get wrong",
            "prose",
            &["from", "the text", "when it is run", "why", "instead"],
        );
        for statement in STATEMENTS {
            let happens = match statement.shown {
                Some((rung, _)) => format!("<code>--faulty {}</code> shows it", escaped(rung)),
                None => prose(&bare(statement.happens)),
            };
            let _ = writeln!(
                self.body,
                "<tr><td>{}</td><td class=\"words\"><strong>{}</strong>: {}</td><td class=\"words\">{happens}</td><td class=\"words\">{}</td><td class=\"words\">{}</td></tr>",
                statement.text,
                escaped(statement.place),
                prose(&bare(statement.says)),
                prose(&bare(statement.why)),
                prose(&bare(statement.repair))
            );
        }
        self.body += "</tbody></table></div>\n";
        self.end();
    }

    /// A table up to its first row.
    fn begin_table(&mut self, label: &str, class: &str, names: &[&str]) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let _ = write!(
            self.body,
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table{class}><thead><tr>",
            escaped(label)
        );
        for name in names {
            let _ = write!(self.body, "<th scope=\"col\">{}</th>", escaped(name));
        }
        self.body += "</tr></thead><tbody>\n";
    }

    fn rungs(&mut self, ladders: &[Group<'_>]) {
        self.begin("table", "Rungs");
        self.body += "<p>Columns can be sorted. Beneath each rung its kernel is folded, and what was learnt from it.</p>\n";
        if ladders.len() > 1 {
            self.body += "<p class=\"tools\"><label>Show <select id=\"group\">";
            for (i, group) in ladders.iter().enumerate() {
                let _ = write!(
                    self.body,
                    "<option value=\"{i}\">{}</option>",
                    escaped(&group.key.name())
                );
            }
            self.body += "<option value=\"\">all</option></select></label></p>\n";
        }
        let rows = || ladders.iter().flat_map(|group| &group.rows);
        let is_there = |column: &&Column| rows().any(|row| column.1(row).is_some());
        let columns: Vec<&Column> = COLUMNS.iter().filter(is_there).collect();
        let (columns, others): (Vec<_>, Vec<_>) =
            columns.into_iter().partition(|column| FIRST.contains(&column.0));
        let profiled: Vec<&Column> = PROFILED.iter().filter(is_there).collect();
        self.body += "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Rungs\"><table id=\"rungs\"><thead><tr>";
        let names = ["rung", "verdict", "compared with", "expected"]
            .into_iter()
            .chain(columns.iter().map(|column: &&Column| column.0))
            .chain(["answer"]);
        for name in names {
            let _ = write!(
                self.body,
                "<th scope=\"col\"><button type=\"button\">{}</button></th>",
                escaped(name)
            );
        }
        self.body += "</tr></thead>\n";
        let mut sources = HashSet::new();
        for (i, group) in ladders.iter().enumerate() {
            for row in &group.rows {
                let first = sources.insert(row.rung.as_str());
                self.rung(i, row, &columns, first);
            }
        }
        self.body += "</table></div>\n";
        self.more_columns("Launches, memory and occupancy", ladders, &others);
        self.more_columns(
            "Hardware counters of the first launch, which reads the elements",
            ladders,
            &profiled,
        );
        self.end();
    }

    /// Columns that few look for, in a table of their own.
    fn more_columns(&mut self, title: &str, ladders: &[Group<'_>], columns: &[&Column]) {
        if columns.is_empty() {
            return;
        }
        let _ = write!(self.body, "<details><summary>{}</summary>", escaped(title));
        let names: Vec<&str> = ["rung", "from", "type", "elements"]
            .into_iter()
            .chain(columns.iter().map(|c| c.0))
            .collect();
        self.begin_table(title, "", &names);
        for row in ladders.iter().flat_map(|group| &group.rows) {
            if columns.iter().all(|column| column.1(row).is_none()) {
                continue;
            }
            let texts = crate::find(&row.rung)
                .map_or_else(Vec::new, |r| r.texts.iter().map(|t| t.name()).collect());
            let _ = write!(
                self.body,
                "<tr><td>{}</td><td class=\"left\">{}</td><td class=\"left\">{}</td><td>{}</td>",
                escaped(&row.rung),
                escaped(&texts.join(", ")),
                escaped(&row.dtype),
                whole(row.n as f64)
            );
            for column in columns {
                let shown =
                    column.1(row).filter(|x| x.is_finite()).map_or_else(|| "-".into(), column.2);
                let _ = write!(self.body, "<td>{shown}</td>");
            }
            self.body += "</tr>\n";
        }
        self.body += "</tbody></table></div></details>\n";
    }

    fn rung(&mut self, group: usize, row: &Measured, columns: &[&Column], first: bool) {
        let known = crate::find(&row.rung);
        let out = &mut self.body;
        let _ = write!(out, "<tbody class=\"has-fold\" data-group=\"{group}\"><tr>");
        cell(out, "", None, &escaped(&row.rung));
        cell(out, "left", None, &badge(row));
        cell(out, "left", None, baseline(&row.rung).and_then(Baseline::with).unwrap_or("-"));
        cell(out, "left", None, &range(row).unwrap_or_else(|| "-".into()));
        for column in columns {
            let value = column.1(row).filter(|value| value.is_finite());
            cell(out, "", Some(value), &value.map_or_else(|| "-".into(), column.2));
        }
        match (row.right, &row.skipped) {
            (_, Some(_)) => cell(out, "skipped", None, "skipped"),
            (Some(true), _) => cell(out, "ok", None, "ok"),
            (Some(false), _) => cell(out, "wrong", None, "wrong"),
            (None, _) => cell(out, "skipped", None, "-"),
        }
        let _ = write!(out, "</tr>\n<tr class=\"folded\"><td colspan=\"{}\">", columns.len() + 5);
        for (class, text) in [("wrong", &row.wrong), ("skipped", &row.skipped)] {
            if let Some(text) = text {
                let _ = write!(out, "<p class=\"{class}\">{}</p>", escaped(text));
            }
        }
        let id = format!("source-{}", anchor(&row.rung));
        match (known, first) {
            (Some(rung), true) => {
                let _ = write!(
                    out,
                    "<details id=\"{id}\"><summary>{}</summary><p>Teaches: {}.</p><p>Changed: {}.</p><p>The classic listing: {}.</p><p>Launches: {}.</p>",
                    escaped(rung.title),
                    prose(rung.teaches),
                    prose(rung.change),
                    prose(rung.fault),
                    escaped(&rung.plan.to_string())
                );
                more(out, row);
                let _ = write!(
                    out,
                    "<pre><code>{}</code></pre></details>",
                    escaped(rung.source().trim_end())
                );
            }
            (Some(_), false) => {
                let _ = write!(out, "<a href=\"#{id}\">kernel</a> ");
            }
            (None, _) => {
                out.push_str("<span class=\"note\">a rung that this warpfold does not have</span>")
            }
        }
        out.push_str("</td></tr></tbody>\n");
    }

    fn expected(&mut self, group: &Group<'_>) {
        self.begin("expected", "Expected and measured");
        let _ = writeln!(
            self.body,
            "<p>The expectations, written down before the measurements, and the results: {}.</p>",
            escaped(&group.key.name())
        );
        self.begin_table(
            "Expected and measured",
            "prose",
            &["rung", "verdict", "why", "changed", "expected"],
        );
        for row in &group.rows {
            let Some(rung) = crate::find(&row.rung) else { continue };
            let why: Vec<String> =
                row.unexpected.iter().flatten().map(|text| prose(text)).collect();
            let _ = writeln!(
                self.body,
                "<tr><td>{}</td><td class=\"left\">{}</td><td class=\"words\">{}</td><td class=\"words\">{}</td><td class=\"words\">{}</td></tr>",
                escaped(rung.id),
                badge(row),
                if why.is_empty() { "-".into() } else { why.join("<br>") },
                prose(rung.change),
                prose(rung.expectation)
            );
        }
        self.body += "</tbody></table></div>\n";
        self.end();
    }

    fn published(&mut self, ladders: &[Group<'_>]) {
        self.begin("published", "The texts' figures");
        self.body += "<p>The texts measured on devices of their time. A ratio that is another today is no fault: it says what the hardware has learnt to hide.</p>\n";
        self.body += "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"The texts' figures\"><table><thead><tr><th class=\"words\">what</th><th class=\"words\">published</th>";
        for group in ladders {
            let _ =
                write!(self.body, "<th class=\"words\">here: {}</th>", escaped(&group.key.name()));
        }
        self.body += "</tr></thead><tbody>\n";
        for claim in &CLAIMS {
            let _ = write!(
                self.body,
                "<tr><td class=\"words\">{}</td><td class=\"words\">{}</td>",
                escaped(claim.what),
                escaped(claim.published)
            );
            for group in ladders {
                let ours = claim.ours(group).unwrap_or_else(|| "-".into());
                let _ = write!(self.body, "<td class=\"words\">{}</td>", escaped(&ours));
            }
            self.body += "</tr>\n";
        }
        self.body += "</tbody></table></div>\n";
        self.harris(ladders);
        self.end();
    }

    /// The steps that most lectures take, beside the rungs that do the same.
    fn harris(&mut self, ladders: &[Group<'_>]) {
        let Some(group) = ladders.iter().find(|g| g.key.dtype == "i32").or(ladders.first()) else {
            return;
        };
        let _ = writeln!(
            self.body,
            "<h3>Mark Harris, Optimizing Parallel Reduction in CUDA (NVIDIA, 2007)</h3>\n<p>His seven steps over 2^22 integers on a device of 2006, beside the rungs that do the same: {}.</p>",
            escaped(&group.key.name())
        );
        self.begin_table(
            "The steps of Harris",
            "",
            &["step", "his GB/s", "his speed-up", "rung", "GB/s", "speed-up"],
        );
        for step in &HARRIS {
            let row = step.rung.and_then(|rung| group.find(rung));
            let missing = row.and_then(|row| row.skipped.as_deref()).unwrap_or("-");
            let shown = |x: Option<f64>, digits: fn(f64) -> String| {
                x.map_or_else(|| escaped(missing), digits)
            };
            let speedup = step.rung.and_then(|rung| group.ratio("shared-neighbored", rung));
            let _ = writeln!(
                self.body,
                "<tr><td>{}</td><td>{}</td><td>{:.2}</td><td class=\"left\">{}</td><td>{}</td><td>{}</td></tr>",
                escaped(step.what),
                step.gbps,
                step.speedup,
                step.rung.unwrap_or("-"),
                shown(row.and_then(Measured::rate), short),
                shown(speedup, two)
            );
        }
        self.body += "</tbody></table></div>\n";
    }

    fn table(&mut self, table: &Table) {
        let table = table.without_empty_columns();
        let words = |at: usize| {
            let long = |row: &Vec<crate::experiments::Cell>| {
                row.get(at).is_some_and(|c| c.shown().len() > 44)
            };
            if table.rows.iter().any(long) { " class=\"words\"" } else { "" }
        };
        let _ = write!(
            self.body,
            "<details><summary>{}</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table><thead><tr>",
            escaped(&table.title)
        );
        for (at, name) in table.columns.iter().enumerate() {
            let _ = write!(self.body, "<th scope=\"col\"{}>{}</th>", words(at), escaped(name));
        }
        self.body += "</tr></thead><tbody>\n";
        for row in &table.rows {
            self.body += "<tr>";
            for (at, cell) in row.iter().enumerate() {
                let _ = write!(self.body, "<td{}>{}</td>", words(at), escaped(&cell.shown()));
            }
            self.body += "</tr>\n";
        }
        self.body += "</tbody></table></div></details>\n";
    }

    fn trial(&mut self, trial: &Trial) {
        let outcome = &trial.outcome;
        self.begin(&trial.experiment, &trial.experiment);
        let texts = if trial.texts.is_empty() {
            String::new()
        } else {
            format!(" ({})", trial.texts.join(", "))
        };
        let _ = writeln!(
            self.body,
            "<div class=\"figures\"><div><p>{}{}.</p>",
            escaped(&trial.title),
            escaped(&texts)
        );
        let _ = writeln!(
            self.body,
            "<p class=\"expected\">Expected: {}.</p>",
            prose(&trial.expectation)
        );
        self.body += "<div class=\"found\"><ul>";
        for (class, word, texts) in [
            ("", "", &outcome.findings),
            ("skipped", "skipped: ", &outcome.skipped),
            ("wrong", "wrong: ", &outcome.wrong),
        ] {
            for text in texts {
                let _ = write!(self.body, "<li class=\"{class}\">{word}{}</li>", escaped(text));
            }
        }
        self.body += "</ul></div></div>\n";
        for chart in &outcome.charts {
            self.chart(chart);
        }
        self.body += "</div>\n";
        for drawing in &outcome.drawings {
            let _ = writeln!(self.body, "<pre>{}</pre>", escaped(drawing.trim_end()));
        }
        for table in &outcome.tables {
            self.table(table);
        }
        self.end();
    }
}

/// What was expected of an array of this size, against the baseline.
fn range(row: &Measured) -> Option<String> {
    let dtype: DType = row.dtype.parse().ok()?;
    let bytes = row.n.saturating_mul(dtype.size() as u64);
    baseline(&row.rung)?.comparisons.first()?.range(bytes).map(between)
}

/// What a page says first of a ladder.
pub(super) struct Headline {
    /// `From 375 to 4461 GB/s: 11.9 times as fast`, where it was timed.
    pub(super) climb: Option<String>,
    /// Sentences without a full stop.
    pub(super) facts: Vec<String>,
}

impl Headline {
    pub(super) fn of(group: &Group<'_>) -> Headline {
        let on_host = |row: &Measured| crate::find(&row.rung).is_some_and(|r| r.plan == Plan::Host);
        let timed =
            || group.rows.iter().copied().filter(|row| !on_host(row) && row.rate().is_some());
        let best =
            timed().max_by(|a, b| a.rate().unwrap_or(0.0).total_cmp(&b.rate().unwrap_or(0.0)));
        let climb = timed().next().zip(best).and_then(|(first, best)| {
            let (from, to) = (first.rate()?, best.rate()?);
            Some(format!("From {from:.0} to {to:.0} GB/s: {:.1} times as fast", to / from))
        });
        let (judged, failed) = verdicts(group).fold((0, 0), |(all, off), verdict| {
            (all + 1, off + u32::from(verdict != "as expected"))
        });
        let mut facts = Vec::new();
        if judged > 0 {
            facts.push(format!("{failed} of {judged} expectations failed"));
        }
        facts.push(format!("{} of the texts' listings are wrong as printed", wrong_listings()));
        let missing = group.rows.iter().filter(|row| row.skipped.is_some()).count();
        match missing {
            0 => {}
            1 => facts.push("1 rung is not measured".into()),
            _ => facts.push(format!("{missing} rungs are not measured")),
        }
        Headline { climb, facts }
    }
}

/// What else is known of a row: what limits its occupancy, what a profiler said.
fn more(out: &mut String, row: &Measured) {
    if let Some(limits) = row.limited_by.as_ref().filter(|limits| !limits.is_empty()) {
        let _ = write!(out, "<p>Occupancy is limited by {}.</p>", escaped(&limits.join(" and ")));
    }
    for suspicion in row.warnings.iter().flatten() {
        let _ = write!(
            out,
            "<p class=\"note\">Doubtful: {}; {}.</p>",
            escaped(&suspicion.what),
            escaped(&suspicion.hint)
        );
    }
    for launch in row.profile.iter().flatten() {
        let _ = write!(out, "<p>The profiler of {}:</p><ul>", escaped(&launch.kernel));
        for (name, value) in &launch.metrics {
            let _ = write!(out, "<li>{} {}</li>", escaped(name), escaped(&number(*value)));
        }
        out.push_str("</ul>");
    }
}
