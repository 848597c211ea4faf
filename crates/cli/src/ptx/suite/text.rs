//! What a suite gave, for people: a line for each test, and below it what is wrong, once for all schedules.

use super::document::Suite;
use super::{Case, Finding, Outcome};
use crate::printable::printable;
use std::io::{Result, Write};

pub(super) fn write(suite: &Suite, outcome: &Outcome, out: &mut dyn Write) -> Result<()> {
    for test in &suite.tests {
        let cases: Vec<_> = outcome.cases.iter().filter(|c| c.test == test.name).collect();
        let failed = cases.iter().filter(|c| !c.passed()).count();
        let (name, all) = (printable(&test.name), cases.len());
        let suppressed = cases.iter().flat_map(|c| &c.findings).any(|f| f.suppressed.is_some());
        let suppressed = if suppressed { ", with suppressed findings" } else { "" };
        match failed {
            0 => writeln!(out, "ok      {name}: {all} schedules{suppressed}")?,
            _ => writeln!(out, "FAILED  {name}: under {failed} of {all} schedules{suppressed}")?,
        }
        write_findings(&cases, out)?;
        let mut told: Vec<&str> = Vec::new();
        for case in &cases {
            for failure in
                case.failures.iter().filter(|f| !told.contains(&f.as_str())).collect::<Vec<_>>()
            {
                told.push(failure);
                let text = failure.replace('\n', "\n            ");
                writeln!(out, "        {}: {}", case.schedule(), text)?;
            }
        }
        let unset: Vec<_> =
            cases.first().map_or(&[][..], |c| &c.unset).iter().map(|n| printable(n)).collect();
        if !unset.is_empty() {
            writeln!(out, "        not set: {}; it holds zeros", unset.join(", "))?;
        }
        if cases.iter().any(|c| c.accesses_forgotten > 0) {
            writeln!(out, "        accesses had to be forgotten: there may be more races")?;
        }
    }
    for unused in &outcome.unused_suppressions {
        writeln!(out, "suppression without a finding: {}", printable(unused))?;
    }
    let failed = outcome.cases.iter().filter(|c| !c.passed()).count();
    writeln!(out, "{} passed, {failed} failed", outcome.cases.len() - failed)
}

/// Each kind and line once, with the schedule that met it first.
fn write_findings(cases: &[&Case], out: &mut dyn Write) -> Result<()> {
    let mut told: Vec<(&str, &str, u32)> = Vec::new();
    for case in cases {
        for finding in case.faults() {
            let Finding { kind, file, line, message, .. } = finding;
            let key = (*kind, file.as_str(), *line);
            if !told.contains(&key) {
                told.push(key);
                writeln!(out, "        {}: {}", case.schedule(), printable(message))?;
            }
        }
    }
    Ok(())
}
