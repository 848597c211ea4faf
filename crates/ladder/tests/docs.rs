//! The pages of docs/ladder are true: what they show is what the code draws, and no
//! rung or experiment is forgotten.

use serde_json::Value;
use std::path::{Path, PathBuf};
use warpfold_ladder::ALL;
use warpfold_ladder::experiments::EXPERIMENTS;
use warpfold_ladder::learn::{Figures, LESSONS, OWN, lesson};
use warpfold_ladder::report::DRAWINGS;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/ladder")
}

fn pages() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
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
    for lesson in &LESSONS {
        assert_is(&folder.join(format!("{:02}.md", lesson.number)), &lesson.page().unwrap());
        assert!(folder.join(lesson.drawing.path()).exists(), "{}", lesson.number);
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

/// What the course says of an H200 is what the record of its measurement says.
#[test]
fn figures_of_the_course_are_those_of_the_record() {
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
            lines += &format!("{rung},{gbps:.1},{over:.3}\n");
        }
    }
    assert_is(&Path::new(env!("CARGO_MANIFEST_DIR")).join("learn/h200.csv"), &lines);
    // What a title and a text say themselves.
    let rate = |rung| Figures::of(rung).unwrap().gbps;
    let title = format!("From {:.0} to {:.0} GB/s", rate("neighbored"), rate("vector-load"));
    assert_eq!(lesson(14).unwrap().title, title);
    let all = record["experiments"].as_array().unwrap().iter();
    let latency = all.clone().find(|e| e["experiment"] == "latency").unwrap().to_string();
    for said in
        ["339.7 ns x 4480 GB/s are 11.26 KiB", "24 KiB reach nine tenths", "780.8 ns with 24 KiB"]
    {
        assert!(latency.contains(said), "lesson 13 says otherwise than the record: {said}");
    }
}
