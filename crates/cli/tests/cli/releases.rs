//! A release: what is packed is what is installed, and nothing that is not whole.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn has(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok_and(|said| said.status.success())
}

fn run(script: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{} \"$@\"", root().join("tools").join(script).display()));
    command.arg(script).args(arguments).envs(variables.iter().copied()).output().unwrap()
}

#[test]
fn what_is_packed_is_installed_and_what_is_damaged_is_not() {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) || !has("curl") || !has("tar") {
        eprintln!("skipped: needs Linux on x86-64, curl and tar");
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_string();
    let version = env!("CARGO_PKG_VERSION");
    let releases = path(&format!("releases/v{version}"));
    let target = "x86_64-unknown-linux-gnu";
    // Another command takes the place of the whole one, which is long to pack.
    let command = format!("#!/bin/sh\n[ \"$1\" = --version ] && echo warpfold {version}\n");
    let binary = path("command");
    std::fs::write(&binary, &command).unwrap();
    std::fs::set_permissions(&binary, PermissionsExt::from_mode(0o755)).unwrap();
    let packed = run("archive.sh", &[&releases, target], &[("WARPFOLD_BIN", &binary)]);
    assert!(packed.status.success(), "{packed:?}");
    let archive = format!("{releases}/warpfold-{version}-{target}.tar.gz");
    let from = format!("file://{}", path("releases"));
    let install = |version: &str, to: &str| {
        run("install.sh", &[version, to], &[("WARPFOLD_RELEASES", &from)])
    };
    let installed = install(version, &path("bin"));
    assert!(installed.status.success(), "{installed:?}");
    let said = Command::new(path("bin/warpfold")).arg("--version").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout).trim(), format!("warpfold {version}"));
    assert_eq!(std::fs::read_to_string(path("bin/warpfold")).unwrap(), command);

    std::fs::write(path("bin/warpfold"), "old").unwrap();
    let missing = install("99.0.0", &path("bin"));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("hint: is there a release 99.0.0?"));
    let mut bytes = std::fs::read(&archive).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&archive, bytes).unwrap();
    let damaged = install(version, &path("bin"));
    assert!(!damaged.status.success());
    assert!(String::from_utf8_lossy(&damaged.stderr).contains("SHA-256"), "{damaged:?}");
    assert_eq!(std::fs::read_to_string(path("bin/warpfold")).unwrap(), "old");
}
