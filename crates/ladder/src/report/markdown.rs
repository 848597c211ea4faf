//! What was measured, in Markdown.

use super::groups::{Group, groups, ladders, over_blocks, over_elements, over_launches, speed};
use super::judged::judged;
use super::page::{Column, Headline, PROFILED, anchor, machines};
use super::published::CLAIMS;
use super::read::Gathered;
use super::record::{Measured, Trial};
use super::svg;
use crate::baselines::{Baseline, baseline};
use crate::chart::Chart;
use crate::experiments::{Table, number};

/// Text in which nothing is a mark of Markdown or of a table.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '\n' | '\r' => out.push(' '),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// A table.
pub(super) fn table(table: &Table) -> String {
    let table = table.without_empty_columns();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut out = line(table.columns.iter().map(|name| escaped(name)).collect());
    out += &format!("|{}\n", "---|".repeat(table.columns.len()));
    for row in &table.rows {
        out += &line(row.iter().map(|cell| escaped(&cell.shown())).collect());
    }
    out
}

/// An experiment: its expectation, its outcome, its tables. Charts are pictures, which
/// have their own files.
#[must_use]
pub fn trial_markdown(trial: &Trial) -> String {
    let outcome = &trial.outcome;
    let mut out = format!("## {}\n\n{}.\n\n", escaped(&trial.experiment), escaped(&trial.title));
    out += &format!("- expected: {}\n", escaped(&trial.expectation));
    for (word, texts) in
        [("found", &outcome.findings), ("skipped", &outcome.skipped), ("wrong", &outcome.wrong)]
    {
        for text in texts {
            out += &format!("- {word}: {}\n", escaped(text));
        }
    }
    for numbers in &outcome.tables {
        out += &format!("\n{}\n\n{}", escaped(&numbers.title), table(numbers));
    }
    for drawing in &outcome.drawings {
        out += &format!("\n```text\n{}\n```\n", drawing.trim_end());
    }
    out
}

/// A page in Markdown, and the pictures that belong beside it.
#[derive(Clone, Debug, Default)]
pub struct Markdown {
    /// The page.
    pub text: String,
    /// Names of files, and what they hold.
    pub pictures: Vec<(String, String)>,
}

/// The report in Markdown; the names of its pictures begin with `prefix`.
#[must_use]
pub fn markdown(all: &Gathered, prefix: &str) -> Markdown {
    let mut out = Markdown::default();
    let all = &judged(all);
    let groups = groups(all);
    let ladders = ladders(&groups);
    out.text += "# The ladder\n\n";
    for line in machines(all) {
        out.text += &format!("{}.\n", escaped(&line));
    }
    out.text += "\n";
    if let Some(group) = ladders.first() {
        let Headline { climb, facts } = Headline::of(group);
        out.text += &climb.map_or_else(String::new, |climb| format!("**{climb}.** "));
        out.text += &format!("{}: {}.\n\n", facts.join("; "), escaped(&group.key.name()));
    }
    for (i, chart) in ladders.iter().filter_map(speed).enumerate() {
        out.picture(&chart, &format!("{prefix}speed-{}", i + 1));
    }
    for (i, chart) in over_elements(all).iter().enumerate() {
        out.picture(chart, &format!("{prefix}elements-{}", i + 1));
    }
    for (i, chart) in over_blocks(all).iter().enumerate() {
        out.picture(chart, &format!("{prefix}blocks-{}", i + 1));
    }
    for (i, chart) in over_launches(all).iter().enumerate() {
        out.picture(chart, &format!("{prefix}launches-{}", i + 1));
    }
    for group in ladders {
        out.group(group);
    }
    if ladders.iter().any(|group| CLAIMS.iter().any(|claim| claim.ours(group).is_some())) {
        out.text += "## The texts' figures\n\n";
        let names: Vec<String> =
            ladders.iter().map(|group| format!("here: {}", escaped(&group.key.name()))).collect();
        out.text += &format!("| what | published | {} |\n", names.join(" | "));
        out.text += &format!("|{}\n", "---|".repeat(2 + ladders.len()));
        for claim in &CLAIMS {
            let ours = ladders.iter().map(|group| claim.ours(group).unwrap_or_else(|| "-".into()));
            let ours: Vec<String> = ours.map(|text| escaped(&text)).collect();
            let (what, published) = (escaped(claim.what), escaped(claim.published));
            out.text += &format!("| {what} | {published} | {} |\n", ours.join(" | "));
        }
        out.text.push('\n');
    }
    for trial in &all.trials {
        out.text += &trial_markdown(trial);
        out.text.push('\n');
        for (i, chart) in trial.outcome.charts.iter().enumerate() {
            out.picture(chart, &format!("{prefix}{}-{}", anchor(&trial.experiment), i + 1));
        }
    }
    out
}

impl Markdown {
    fn picture(&mut self, chart: &Chart, name: &str) {
        let name = format!("{name}.svg");
        let title = escaped(chart.title());
        self.text += &format!("**{title}**\n\n![{title}]({name})\n\n");
        self.pictures.push((name, svg::file(chart, "chart")));
    }

    fn group(&mut self, group: &Group<'_>) {
        self.text += &format!("## {}\n\n", escaped(&group.key.name()));
        self.text += "| rung | verdict | time, us | GB/s | % of read | baseline | over baseline | over neighbored | registers | occupancy, % | answer |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
        for row in &group.rows {
            let shown = |x: Option<f64>| x.map_or_else(|| "-".into(), number);
            let answer = match (row.right, &row.skipped) {
                (_, Some(why)) => format!("skipped: {}", escaped(why)),
                (Some(true), _) => "ok".into(),
                (Some(false), _) => escaped(row.wrong.as_deref().unwrap_or("wrong")),
                (None, _) => "-".into(),
            };
            let cells = [
                escaped(&row.rung),
                escaped(row.verdict.as_deref().unwrap_or("-")),
                shown(row.seconds().map(|s| s * 1e6)),
                shown(row.rate()),
                shown(row.of_ceiling.map(|x| 100.0 * x)),
                baseline(&row.rung).and_then(Baseline::with).unwrap_or("-").into(),
                shown(row.over_baseline),
                shown(row.over_neighbored),
                shown(row.registers.map(|x| x as f64)),
                shown(row.occupancy.map(|x| 100.0 * x)),
                answer,
            ];
            self.text += &format!("| {} |\n", cells.join(" | "));
        }
        self.text.push('\n');
        let surprises = |row: &&Measured| {
            let told = row.unexpected.iter().flatten();
            told.map(|text| format!("- {}: {}\n", escaped(&row.rung), escaped(text)))
                .collect::<String>()
        };
        let surprises: String = group.rows.iter().map(surprises).collect();
        if !surprises.is_empty() {
            self.text += &format!("Not as expected:\n\n{surprises}\n");
        }
        self.profiled(group);
    }

    /// What a profiler counted, if it looked at any of the rows.
    fn profiled(&mut self, group: &Group<'_>) {
        let has = |row: &Measured| PROFILED.iter().any(|(_, value, _)| value(row).is_some());
        let rows: Vec<_> = group.rows.iter().filter(|row| has(row)).collect();
        if rows.is_empty() {
            return;
        }
        self.text += "Hardware counters of the first launch, which reads the elements:\n\n";
        self.text += &format!("| rung | {} |\n", PROFILED.map(|(name, ..)| name).join(" | "));
        self.text += &format!("|{}\n", "---|".repeat(1 + PROFILED.len()));
        for row in rows {
            let cell = |(_, value, shown): Column| value(row).map_or_else(|| "-".into(), shown);
            self.text +=
                &format!("| {} | {} |\n", escaped(&row.rung), PROFILED.map(cell).join(" | "));
        }
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_profiled_has_a_table() {
        let page = |rows: &str| {
            let mut all = Gathered::default();
            all.add(rows).unwrap();
            markdown(&all, "").text
        };
        let row = r#"{"rung": "unroll8", "dtype": "f32", "op": "sum", "n": 7, "block": 32, "median": 1e-6}"#;
        let profiled = row.replace(
            "1e-6",
            r#"1e-6, "profile": [{"kernel": "k", "metrics": {"gld_efficiency": 25.04, "gld_throughput": 2e12}}]"#,
        );
        let text = page(&format!("[{row}, {}]", profiled.replace("unroll8", "unroll16")));
        assert!(
            text.contains("| unroll16 | - | 25.0 | 2000 | - | - | - | - | - | - |\n"),
            "{text}"
        );
        // One that was not profiled is in the first table alone.
        let rows = text.lines().filter(|line| line.starts_with("| unroll8 |"));
        assert_eq!(rows.count(), 1, "{text}");
        assert!(!page(&format!("[{row}]")).contains("counted"));
    }
}
