//! What a suite gave, as SARIF 2.1.0: code hosts show it beside the lines.

use super::document::Suite;
use super::{Case, Outcome};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Result, Write};

/// The rule of tests that give a wrong output or do not end.
const FAILED: &str = "failed-test";

pub(super) fn write(suite: &Suite, outcome: &Outcome, out: &mut dyn Write) -> Result<()> {
    let mut rules: BTreeMap<&str, Value> = BTreeMap::new();
    let mut results = Vec::new();
    let mut told = BTreeSet::new();
    for case in &outcome.cases {
        for finding in &case.findings {
            let rule = json!({
                "id": finding.kind,
                "shortDescription": { "text": finding.title },
                "help": { "text": finding.hint },
            });
            rules.entry(finding.kind).or_insert(rule);
            if !told.insert((
                finding.kind,
                finding.kernel.as_str(),
                finding.file.as_str(),
                finding.line,
                &case.test,
            )) {
                continue;
            }
            let level = if finding.remark { "note" } else { "error" };
            let mut result =
                result(finding.kind, level, &finding.message, &finding.file, finding.line, case);
            if let Some(reason) = &finding.suppressed {
                result["suppressions"] = json!([{ "kind": "inSource", "justification": reason }]);
            }
            results.push(result);
        }
        for failure in &case.failures {
            let rule = json!({ "id": FAILED, "shortDescription": { "text": "a test failed" } });
            rules.entry(FAILED).or_insert(rule);
            results.push(result(FAILED, "error", failure, &suite.name, 1, case));
        }
    }
    let driver = json!({
        "name": "warpfold",
        "version": env!("CARGO_PKG_VERSION"),
        "informationUri": env!("CARGO_PKG_HOMEPAGE"),
        "rules": rules.into_values().collect::<Vec<_>>(),
    });
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{ "tool": { "driver": driver }, "results": results }],
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn result(rule: &str, level: &str, message: &str, file: &str, line: u32, case: &Case) -> Value {
    json!({
        "ruleId": rule,
        "level": level,
        "message": { "text": format!("{}, {}: {message}", case.test, case.schedule()) },
        "locations": [{
            "physicalLocation": {
                "artifactLocation": { "uri": uri(file) },
                "region": { "startLine": line.max(1) },
            }
        }],
    })
}

/// A path as part of a URI.
fn uri(path: &str) -> String {
    let mut text = String::new();
    for byte in path.bytes() {
        match byte {
            b'\\' => text.push('/'),
            b'/' | b'.' | b'-' | b'_' | b'~' => text.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => text.push(byte.into()),
            _ => text += &format!("%{byte:02X}"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_path_becomes_part_of_a_uri() {
        assert_eq!(super::uri("a dir/x#1.cu"), "a%20dir/x%231.cu");
    }
}
