//! The example data against values that rational arithmetic gave.

use crate::common::Dir;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

type Record = Map<String, Value>;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data")
}

/// Every question that `expected.json` answers: a file, how to choose from it,
/// and a record for each output.
fn questions() -> Vec<(String, String, Vec<Record>)> {
    let text = std::fs::read_to_string(data().join("expected.json")).unwrap();
    let expected: Value = serde_json::from_str(&text).unwrap();
    let record = |value: &Value| value.as_object().unwrap().clone();
    let mut questions = Vec::new();
    for (file, answers) in expected.as_object().unwrap() {
        for (what, wanted) in answers.as_object().unwrap() {
            let (flags, records) = match (what.as_str(), what.strip_prefix("axis ")) {
                ("shape", _) => continue,
                ("all", _) => (String::new(), vec![record(wanted)]),
                (_, Some(axis)) => {
                    let outputs = wanted.as_array().unwrap();
                    (format!("--axis {axis}"), outputs.iter().map(record).collect())
                }
                // The values expected are those of floats, also of columns of integers.
                (column, None) => (format!("-c {column} --dtype f64"), vec![record(wanted)]),
            };
            questions.push((file.clone(), flags, records));
        }
    }
    questions
}

/// Floats come with their bits, counts and positions without.
fn wanted_bits(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| bits(&value["bits"]))
}

/// A number, or its bits in hexadecimal.
fn bits(value: &Value) -> u64 {
    let text = value.as_str().map_or_else(|| value.to_string(), Into::into);
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

#[test]
fn real_files_give_the_expected_bits() {
    let dir = Dir::new();
    let mut checked = 0;
    for (file, flags, wanted) in questions() {
        std::fs::copy(data().join(&file), dir.path(&file)).unwrap();
        let told = ["rows", "missing"];
        let ops: Vec<&str> =
            wanted[0].keys().map(String::as_str).filter(|k| !told.contains(k)).collect();
        for threads in [1, 2] {
            let ops = ops.join(",");
            let line = format!("reduce --op {ops} {flags} --hex -q -f jsonl -j {threads} {file}");
            for answer in dir.prints(&line).lines() {
                let answer: Value = serde_json::from_str(answer).unwrap();
                let op = answer["op"].as_str().unwrap();
                let values = answer["value"].as_array().cloned();
                let got: Vec<u64> = match &values {
                    Some(values) => values.iter().map(bits).collect(),
                    None => vec![bits(&answer["value"])],
                };
                let want: Vec<u64> = wanted.iter().map(|w| wanted_bits(&w[op])).collect();
                assert_eq!(got, want, "{line}: {op}");
                let missing = wanted[0].get("missing").and_then(Value::as_u64).unwrap_or(0);
                assert_eq!(answer["missing"].as_u64().unwrap_or(0), missing, "{line}");
                checked += got.len();
            }
        }
    }
    assert!(checked > 1000, "only {checked} answers were checked");
}
