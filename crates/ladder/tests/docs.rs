//! The pages of docs/ladder are true: what they show is what the code draws, and no
//! rung or experiment is forgotten.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use warpfold_ladder::ALL;
use warpfold_ladder::baselines::{Range, baseline};
use warpfold_ladder::experiments::EXPERIMENTS;
use warpfold_ladder::learn::{LESSONS, OWN};
use warpfold_ladder::report::{DRAWINGS, Gathered, refreshed, unmarked};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/ladder")
}

fn pages() -> Vec<(String, String)> {
    pages_of(&folder())
}

fn pages_of(folder: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let pages = entries.filter(|path| path.extension().is_some_and(|e| e == "md"));
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    pages.map(|path| (name(&path), std::fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn drawings_are_what_the_code_draws() {
    let hint = "run `warpfold ladder report --drawings docs/ladder/drawings`";
    for drawing in &DRAWINGS {
        let path = folder().join("drawings").join(format!("{}.svg", drawing.name));
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == drawing.svg(), "{}: {hint}", path.display());
    }
    let files = std::fs::read_dir(folder().join("drawings")).unwrap().count();
    assert_eq!(files, DRAWINGS.len(), "a drawing that nobody draws");
}

#[test]
fn every_drawing_rung_and_experiment_has_its_page() {
    let pages = pages();
    let all: String = pages.iter().map(|(_, text)| text.as_str()).collect();
    for drawing in &DRAWINGS {
        assert!(all.contains(&format!("](drawings/{}.svg)", drawing.name)), "{}", drawing.name);
    }
    for rung in ALL {
        assert!(all.contains(&format!("`{}`", rung.id)), "{}", rung.id);
    }
    for experiment in EXPERIMENTS {
        assert!(all.contains(&format!("**`{}`**", experiment.id)), "{}", experiment.id);
    }
}

#[test]
fn links_lead_to_files() {
    for (name, text) in pages() {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')) {
            let path = link.0.split('#').next().unwrap();
            assert!(folder().join(path).exists(), "{name}: {path}");
        }
    }
}

/// `LEARN=overwrite cargo test -p warpfold-ladder --test docs` writes the pages, the drawings and the figures anew.
fn assert_is(path: &Path, wanted: &str) {
    if std::env::var("LEARN").is_ok_and(|value| value == "overwrite") {
        std::fs::write(path, wanted).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(committed == wanted, "{}: run with LEARN=overwrite", path.display());
}

#[test]
fn pages_are_what_the_course_says() {
    let folder = folder().join("../learn");
    let list = std::fs::read_to_string(folder.join("README.md")).unwrap();
    for lesson in &LESSONS {
        assert_is(&folder.join(format!("{:02}.md", lesson.number)), &lesson.page().unwrap());
        assert!(folder.join(lesson.drawing.path()).exists(), "{}", lesson.number);
        let line = format!("[{}]({:02}.md)", lesson.title, lesson.number);
        assert!(list.contains(&line), "README.md has no {line}");
    }
}

#[test]
fn drawings_of_the_course_are_what_the_code_draws() {
    let folder = folder().join("../learn/drawings");
    for rows in OWN {
        assert_is(&folder.join(format!("{}.svg", rows.name)), &rows.svg());
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), OWN.len(), "a drawing of nobody");
}

/// The figures of rungs that the course computes with are those of the record.
#[test]
fn rates_of_the_course_are_those_of_the_record() {
    let text = std::fs::read_to_string(folder().join("h200/h200.json")).unwrap();
    let record: Value = serde_json::from_str(&text).unwrap();
    let mut lines = String::from("rung,gbps,over_neighbored\n");
    for row in record["rungs"].as_array().unwrap() {
        let asked = row["dtype"] == "f32" && row["n"] == 268_435_459 && row["block"] == 256;
        let (Some(gbps), Some(over)) = (row["gbps"].as_f64(), row["over_neighbored"].as_f64())
        else {
            continue;
        };
        if asked && row["op"] == "sum" && row["per_multiprocessor"].is_null() {
            let rung = row["rung"].as_str().unwrap();
            lines += &format!("{rung},{gbps:.3},{over:.5}\n");
        }
    }
    assert_is(&Path::new(env!("CARGO_MANIFEST_DIR")).join("learn/h200.csv"), &lines);
}

fn record() -> Gathered {
    let text = std::fs::read_to_string(folder().join("h200/h200.json")).unwrap();
    let mut all = Gathered::default();
    all.add(&text).unwrap();
    all
}

/// `warpfold ladder report docs/ladder/h200/h200.json --figures PAGE` writes a page anew.
#[test]
fn figures_of_pages_are_those_of_the_record() {
    let record = record();
    let mut wrong = Vec::new();
    for (name, page) in pages().into_iter().chain(pages_of(&folder().join("../learn"))) {
        match refreshed(&page, &record) {
            Ok(now) if now == page => {}
            Ok(_) => wrong.push(format!(
                "{name}: a figure is not the record's: write it anew with --figures"
            )),
            Err(what) => wrong.push(format!("{name}: {what}")),
        }
        let loose = unmarked(&page);
        wrong.extend(loose.iter().map(|line| format!("{name}: a figure has no mark: {line}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A range that was widened together with the record that judges it, and that is as narrow again as it was before.
const RESTORED: [&str; 1] = ["complete-unroll8"];

/// Every range that judges the record is older than it, and is the one that the record was made with.
#[test]
fn ranges_are_older_than_the_record() {
    let path = folder().join("h200/h200.json");
    let record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let measured = record["measured"].as_str().unwrap();
    let mut judged = 0;
    for row in record["rungs"].as_array().unwrap() {
        let rung = row["rung"].as_str().unwrap();
        let expected = baseline(rung).unwrap();
        for compared in row["compared"].as_array().unwrap() {
            let with = compared["with"].as_str().unwrap_or("");
            let Some(now) = expected.comparisons.iter().find(|c| c.with == with) else {
                panic!(
                    "{rung}: the record compares it with {with}, and nothing is expected of that: keep the expectation as `was`"
                );
            };
            let Some(judge) = now.before(measured) else {
                panic!(
                    "{rung}: what is expected against {with} was set at {}, and the record is of {measured}: keep the older range as `was`",
                    now.set
                );
            };
            let then: Option<Range> = serde_json::from_value(compared["expected"].clone()).unwrap();
            let (n, size) = (row["n"].as_u64().unwrap(), 4);
            if !RESTORED.contains(&rung) {
                assert_eq!(
                    then,
                    judge.range(n * size),
                    "{rung} against {with}: the range is not what the record was made with, and its date is as old"
                );
            }
            judged += 1;
        }
    }
    assert!(judged > 100, "{judged}");
}

/// No commit changes both what is expected and what is measured. A copy without history is not asked.
#[test]
fn no_commit_changes_a_range_and_its_record() {
    let root = folder().join("../..");
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(&root).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    if git(&["rev-parse", "--is-shallow-repository"]).as_deref().map(str::trim) != Some("false") {
        return;
    }
    // From where records have dates on. Merges join commits that were looked at by themselves.
    let since = ["log", "--since=2026-11-25", "--min-parents=1", "--max-parents=1", "--format=%h"];
    let commits = git(&[&since[..], &["--", "docs/ladder/h200/h200.json"]].concat()).unwrap();
    for commit in commits.lines() {
        let changed =
            git(&["show", "--format=", commit, "--", "crates/ladder/src/baselines.rs"]).unwrap();
        let changed = changed.lines().filter(|line| line.starts_with(['-', '+']));
        let ranges: Vec<&str> = changed.filter(|line| line.contains("with(\"")).collect();
        assert!(ranges.is_empty(), "{commit} changes the record and ranges: {}", ranges.join("\n"));
    }
}
