//! The console sessions of README.md and docs/ptx.md print what the pages say.
//!
//! After a change that is meant, `README=overwrite cargo test -p warpfold-cli
//! --test readme` writes them anew.
#![cfg(unix)]

use std::path::Path;
use std::process::Command;

/// A directory with the example data and the sample kernels, in which the sessions run.
fn playground(root: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["examples/data", "crates/ptx/kernels", "crates/ptx/kernels/ptx/12.0"] {
        let copy = dir.path().join(folder);
        std::fs::create_dir_all(&copy).unwrap();
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                std::fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
            }
        }
    }
    dir
}

/// What a line of shell prints, on stdout and stderr.
fn shell(line: &str, dir: &Path) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_warpfold"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", binary.parent().unwrap().display());
    // What cargo would build is built already.
    let line = line.replace("cargo run --release -p warpfold-cli --", "warpfold");
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1; {line}")])
        .current_dir(dir)
        .env("PATH", path)
        .env_remove("WARPFOLD_CPU")
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Holds the sessions of a page, at least so many, against what they print now.
fn tells_the_truth(page: &str, at_least: usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let written = std::fs::read_to_string(root.join(page)).unwrap();
    let dir = playground(&root);
    let (mut told, mut commands, mut inside) = (String::new(), 0, false);
    for line in written.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        }
        match line.strip_prefix("$ ") {
            Some(command) if inside => {
                commands += 1;
                told += &format!("{line}\n{}", shell(command, dir.path()));
            }
            // What the command printed when this was written.
            _ if inside && line != "```console" => {}
            _ => told += &format!("{line}\n"),
        }
    }
    assert!(commands >= at_least, "the sessions of {page} were not found");
    if std::env::var_os("README").is_some_and(|v| v == "overwrite") {
        std::fs::write(root.join(page), told).unwrap();
        return;
    }
    for (number, (told, written)) in told.lines().zip(written.lines()).enumerate() {
        assert_eq!(told, written, "{page}, line {}", number + 1);
    }
    assert_eq!(told.lines().count(), written.lines().count());
}

#[test]
fn readme_tells_the_truth() {
    tells_the_truth("README.md", 11);
}

#[test]
fn the_page_about_ptx_tells_the_truth() {
    tells_the_truth("docs/ptx.md", 12);
}
