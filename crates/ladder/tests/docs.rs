//! The pages of docs/ladder are true: what they show is what the code draws, and no
//! rung or experiment is forgotten.

use std::path::PathBuf;
use warpfold_ladder::ALL;
use warpfold_ladder::experiments::EXPERIMENTS;
use warpfold_ladder::learn::LESSONS;
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

/// `LEARN=overwrite cargo test -p warpfold-ladder --test docs` writes the pages anew.
#[test]
fn pages_are_what_the_course_says() {
    let folder = folder().join("../learn");
    for lesson in &LESSONS {
        let path = folder.join(format!("{:02}.md", lesson.number));
        let page = lesson.page().unwrap();
        if std::env::var("LEARN").is_ok_and(|value| value == "overwrite") {
            std::fs::write(&path, &page).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == page, "{}: run with LEARN=overwrite", path.display());
    }
}
