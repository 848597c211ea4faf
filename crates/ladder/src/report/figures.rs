//! Figures of pages that a record gives: `<!--h200 gbps unroll8-->3543<!--/-->` is the rate of a rung in the record, and reads as its number.
//!
//! ```text
//!   gbps RUNG               GB/s                      us RUNG           microseconds
//!   times SLOW FAST         how many times as fast    percent ONE TWO   how much longer ONE takes, in per cent of TWO
//!   of-ceiling RUNG         per cent of the rate at which the device reads
//!   of-rate ONE TWO         the rate of ONE in per cent of TWO's
//!   profiled METRIC RUNG    what the profiler counted
//!   cell EXPERIMENT TABLE ROW COLUMN    a number of an experiment's table; names have - for spaces
//!   found EXPERIMENT PHRASE             the number behind these words of a finding, with - for spaces
//!   failed, judged          rungs whose expectation failed, and those that were judged
//!   date                    when the record was made
//! ```
//!
//! `i32` asks for another type than f32, `small` for 2^20 elements and not 2^28, `.2` for two decimals. What a text has published is
//! marked, too: `<!--said-->1.69<!--/-->`. A page has no other figures with a unit: [`unmarked`] finds these.

use super::groups::{Group, groups, ladders};
use super::judged::judged;
use super::read::Gathered;
use super::record::Measured;
use crate::experiments::Cell;

const OPEN: &str = "<!--h200 ";
const SAID: &str = "<!--said-->";
const CLOSE: &str = "<!--/-->";

/// A page with every figure of the record as the record has it.
///
/// # Errors
/// A figure that the record does not have, or a mark without an end: the mark.
pub fn refreshed(page: &str, all: &Gathered) -> Result<String, String> {
    let all = judged(all);
    let groups = groups(&all);
    let mut out = String::with_capacity(page.len());
    let mut rest = page;
    while let Some((before, mark)) = rest.split_once(OPEN) {
        let (asked, behind) = mark.split_once("-->").ok_or_else(|| format!("{OPEN} has no end"))?;
        let (_, after) =
            behind.split_once(CLOSE).ok_or_else(|| format!("{OPEN}{asked}--> is not closed"))?;
        let figure = figure(asked, &all, ladders(&groups))
            .ok_or_else(|| format!("{OPEN}{asked}-->: the record has no such figure"))?;
        out += &format!("{before}{OPEN}{asked}-->{figure}{CLOSE}");
        rest = after;
    }
    Ok(out + rest)
}

/// A text without marks and links: figures are what was written between marks, and of a link its words.
#[must_use]
pub fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, mark)) = rest.split_once("<!--") {
        out += before;
        rest = mark.split_once("-->").map_or("", |(_, after)| after);
    }
    out += rest;
    while let Some((before, words, after)) = link(&out) {
        out = format!("{before}{words}{after}");
    }
    out
}

/// What stands before the first link of a text, its words, and what stands behind it.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let (before, behind) = text.split_once("](")?;
    let (before, words) = before.rsplit_once('[')?;
    Some((before, words, behind.split_once(')')?.1))
}

fn figure(asked: &str, all: &Gathered, ladders: &[Group<'_>]) -> Option<String> {
    let (mut dtype, mut large, mut decimals) = ("f32", true, None);
    let mut words = Vec::new();
    for word in asked.split_whitespace() {
        match word {
            "i32" | "f32" => dtype = word,
            "small" => large = false,
            _ => match word.strip_prefix('.') {
                Some(digits) => decimals = Some(digits.parse::<usize>().ok()?),
                None => words.push(word),
            },
        }
    }
    let in_group =
        |group: &&Group<'_>| group.key.dtype == dtype && (group.key.n >= 1 << 24) == large;
    let group = ladders.iter().find(in_group)?;
    let row = |rung: &str| group.find(rung);
    // The record says of a rung why it has no figures.
    if let Some(why) = words.iter().find_map(|word| row(word)?.skipped.clone()) {
        return Some(why);
    }
    let value = match words[..] {
        ["gbps", rung] => row(rung)?.rate()?,
        ["us", rung] => row(rung)?.seconds()? * 1e6,
        ["times", slow, fast] => group.ratio(slow, fast)?,
        ["percent", one, two] => 100.0 * (group.ratio(one, two)? - 1.0),
        ["of-ceiling", rung] => 100.0 * row(rung)?.of_ceiling?,
        ["of-rate", one, two] => 100.0 * row(one)?.rate()? / row(two)?.rate()?,
        ["profiled", metric, rung] => {
            let has = |row: &&Measured| row.rung == rung && row.profiled(metric).is_some();
            all.rungs.iter().find(has)?.profiled(metric)?
        }
        ["cell", experiment, table, at, column] => cell(all, [experiment, table, at, column])?,
        ["found", experiment, phrase] => found(all, experiment, phrase)?,
        ["failed"] => verdicts(group).filter(|verdict| *verdict != "as expected").count() as f64,
        ["judged"] => verdicts(group).count() as f64,
        ["date"] => {
            let measured = all.documents.iter().find_map(|d| d.measured.as_deref())?;
            return measured.split(' ').next().map(Into::into);
        }
        _ => return None,
    };
    Some(format!("{value:.*}", decimals.unwrap_or(0)))
}

/// What came of the expectations of a group.
pub(super) fn verdicts<'a>(group: &'a Group<'_>) -> impl Iterator<Item = &'a str> {
    group.rows.iter().filter_map(|row| row.verdict.as_deref())
}

/// A number of an experiment's table: its row begins with `at`.
fn cell(all: &Gathered, [experiment, table, at, column]: [&str; 4]) -> Option<f64> {
    let named = |text: &str| text.replace(' ', "-");
    let trial = all.trials.iter().find(|trial| trial.experiment == experiment)?;
    let table = trial.outcome.tables.iter().find(|t| named(&t.title) == table)?;
    let column = table.columns.iter().position(|name| named(name) == column)?;
    let is_asked = |row: &&Vec<Cell>| {
        let begin: Vec<String> = row.iter().map(|cell| named(&cell.shown())).collect();
        begin
            .join("/")
            .strip_prefix(at)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    match table.rows.iter().find(is_asked)?.get(column)? {
        Cell::Number(value) => Some(*value),
        Cell::Whole(value) => Some(*value as f64),
        Cell::Text(_) | Cell::None => None,
    }
}

/// The number that a finding has behind these words.
fn found(all: &Gathered, experiment: &str, phrase: &str) -> Option<f64> {
    let trial = all.trials.iter().find(|trial| trial.experiment == experiment)?;
    let phrase = phrase.replace('-', " ") + " ";
    let behind =
        trial.outcome.findings.iter().find_map(|text| Some(text.split_once(&phrase)?.1))?;
    let end = behind.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(behind.len());
    behind[..end].parse().ok()
}

/// What follows a number that somebody has measured.
const UNITS: [&str; 9] =
    ["GB/s", "us", "ns", "ms", "%", "per cent", "times as fast", "times as long", "times faster"];

/// Numbers with a unit of a measurement that are neither marked nor code, each with what stands around it.
#[must_use]
pub fn unmarked(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_code = false;
    for line in page.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
            continue;
        }
        if in_code {
            continue;
        }
        let text = without_code(&without_marked(line));
        for (at, _) in text.char_indices().filter(|(_, c)| c.is_ascii_digit()) {
            let tail = &text[at + 1..];
            let unit = tail.trim_start();
            let ends = |unit: &str, rest: &str| {
                unit == "%" || !rest.starts_with(|c: char| c.is_alphanumeric())
            };
            let is_unit = |name: &str| unit.strip_prefix(name).is_some_and(|rest| ends(name, rest));
            if UNITS.into_iter().any(is_unit) {
                found.push(line.trim().into());
                break;
            }
        }
    }
    found
}

/// A line without what is marked as the record's or as a text's.
fn without_marked(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = [OPEN, SAID].iter().filter_map(|open| rest.find(open)).min() {
        out += &rest[..at];
        // Something, so that what stands before it has no unit.
        out.push('x');
        rest = rest[at..].split_once(CLOSE).map_or("", |(_, after)| after);
    }
    out + rest
}

fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Gathered {
        let row = |rung: &str, us: f64| {
            let gbps = 4.0 * 268_435_459.0 / us / 1e3;
            format!(
                r#"{{"rung": "{rung}", "dtype": "f32", "op": "sum", "n": 268435459, "block": 256, "median": {us}e-6, "gbps": {gbps}}}"#
            )
        };
        let trial = r#"{"experiment": "e", "findings": ["a is 3.5 KiB"], "tables": [{"title": "How much", "columns": ["a b", "GB/s"], "rows": [["one x", 2.5], [2, 7]]}]}"#;
        let mut all = Gathered::default();
        let rungs = [row("unroll4", 600.0), row("unroll8", 300.0)].join(",");
        all.add(&format!(
            r#"{{"warpfold": "1", "measured": "2027-01-02 03:04", "rungs": [{rungs}], "experiments": [{trial}]}}"#
        ))
        .unwrap();
        all
    }

    #[test]
    fn figures_are_those_of_the_record() {
        let all = record();
        for (asked, wanted) in [
            ("gbps unroll8", "3579"),
            ("us unroll8 .1", "300.0"),
            ("times unroll4 unroll8 .2", "2.00"),
            ("percent unroll4 unroll8", "100"),
            ("of-rate unroll4 unroll8", "50"),
            ("cell e How-much one-x GB/s .1", "2.5"),
            ("cell e How-much 2 GB/s", "7"),
            ("found e a-is .1", "3.5"),
            ("failed", "1"),
            ("judged", "1"),
            ("date", "2027-01-02"),
        ] {
            let page = format!("a {OPEN}{asked}-->x{CLOSE} b");
            let wanted = format!("a {OPEN}{asked}-->{wanted}{CLOSE} b");
            assert_eq!(refreshed(&page, &all), Ok(wanted.clone()));
            assert_eq!(refreshed(&wanted, &all), Ok(wanted));
        }
        for wrong in [
            "gbps unroll9",
            "gbps",
            "gbps unroll8 i32",
            "gbps unroll8 small",
            "cell e x 2 GB/s",
            "us unroll8 .x",
        ] {
            let page = format!("{OPEN}{wrong}-->1{CLOSE}");
            assert!(refreshed(&page, &all).is_err_and(|what| what.contains(wrong)), "{wrong}");
        }
        assert!(refreshed("<!--h200 gbps unroll8-->3", &all).is_err());
        assert_eq!(bare("as [the machine](machine.md) has it"), "as the machine has it");
        assert_eq!(bare("a <!--h200 gbps x-->3<!--/--> GB/s"), "a 3 GB/s");
    }

    #[test]
    fn figures_without_a_mark_are_found() {
        for page in ["it takes 3543 GB/s", "a\n1.9 times as fast\n", "65% of", "7.2us.", "12 ns"] {
            assert_eq!(unmarked(page).len(), 1, "{page}");
        }
        for page in [
            "it takes <!--h200 gbps a-->3<!--/--> GB/s",
            "the text says <!--said-->1.69<!--/--> times as fast",
            "```\n3 GB/s\n```",
            "`3 GB/s` and 3 uses, 16 bytes, 2^28",
            "GB/s of 3 rungs",
        ] {
            assert!(unmarked(page).is_empty(), "{page}");
        }
    }
}
