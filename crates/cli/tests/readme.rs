//! README.md's console sessions print what README.md says.
//!
//! After a change that is meant, `README=overwrite cargo test -p warpfold-cli
//! --test readme` writes them anew.
#![cfg(unix)]

use std::path::Path;
use std::process::Command;

/// A directory with the example data, in which the sessions run.
fn playground(root: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("examples/data");
    std::fs::create_dir_all(&data).unwrap();
    for entry in std::fs::read_dir(root.join("examples/data")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, data.join(path.file_name().unwrap())).unwrap();
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

#[test]
fn readme_tells_the_truth() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let dir = playground(&root);
    let (mut told, mut commands, mut inside) = (String::new(), 0, false);
    for line in readme.lines() {
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
    assert!(commands > 10, "the sessions were not found");
    if std::env::var_os("README").is_some_and(|v| v == "overwrite") {
        std::fs::write(root.join("README.md"), told).unwrap();
        return;
    }
    for (number, (told, written)) in told.lines().zip(readme.lines()).enumerate() {
        assert_eq!(told, written, "README.md, line {}", number + 1);
    }
    assert_eq!(told.lines().count(), readme.lines().count());
}
