//! The console sessions of README.md, of the package's README.md and of the pages in
//! docs/ print what the pages say.
//!
//! After a change that is meant, `README=overwrite cargo test -p warpfold-cli readme` writes them anew.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// Pages that must have sessions, and how many commands at least: a page whose
/// sessions are not found must not pass.
const AT_LEAST: [(&str, usize); 16] = [
    ("README.md", 10),
    ("crates/cli/README.md", 5),
    ("docs/axes.md", 3),
    ("docs/command-line.md", 7),
    ("docs/devices.md", 4),
    ("docs/errors.md", 18),
    ("docs/exactness.md", 7),
    ("docs/formats.md", 3),
    ("docs/groups.md", 8),
    ("docs/install.md", 1),
    ("docs/ladder/README.md", 2),
    ("docs/operations.md", 4),
    ("docs/partials.md", 8),
    ("docs/ptx.md", 14),
    ("docs/segments.md", 4),
    ("docs/tables.md", 8),
];

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
        .env("LC_ALL", "C")
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// A page as its sessions print it now, and how many commands they have.
fn told(root: &Path, written: &str) -> (String, usize) {
    let dir = playground(root);
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
    (told, commands)
}

/// What is wrong with the sessions of a page.
fn fault(root: &Path, page: &str) -> Option<String> {
    let written = std::fs::read_to_string(root.join(page)).unwrap();
    let (told, commands) = told(root, &written);
    let wanted = AT_LEAST.iter().find(|(name, _)| *name == page).map_or(0, |(_, n)| *n);
    if commands < wanted {
        return Some(format!("{page}: {commands} commands were found, of at least {wanted}"));
    }
    if std::env::var_os("README").is_some_and(|v| v == "overwrite") {
        std::fs::write(root.join(page), told).unwrap();
        return None;
    }
    let (now, then) = (told.lines().chain([""]), written.lines().chain([""]));
    let number = now.zip(then).position(|(now, then)| now != then)?;
    let line = |text: &str| text.lines().nth(number).unwrap_or("(the end)").to_owned();
    let (now, then) = (line(&told), line(&written));
    Some(format!("{page}, line {}:\n  printed: {now}\n  written: {then}", number + 1))
}

/// The Markdown files in a folder of the repository, and in the folders in it.
fn pages(root: &Path, folder: &str) -> Vec<String> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(root.join(folder)).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        let name = format!("{folder}/{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            all.extend(pages(root, &name));
        } else if name.ends_with(".md") {
            all.push(name);
        }
    }
    all
}

#[test]
fn the_pages_tell_the_truth() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = pages(&root, "docs");
    all.extend(["README.md".into(), "crates/cli/README.md".into()]);
    for (page, _) in AT_LEAST {
        assert!(all.iter().any(|name| name == page), "{page} is not there");
    }
    let faults: Vec<String> = thread::scope(|scope| {
        let root = &root;
        let running: Vec<_> =
            all.iter().map(|page| scope.spawn(move || fault(root, page))).collect();
        running.into_iter().filter_map(|page| page.join().unwrap()).collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
