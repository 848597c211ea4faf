//! Threads that the system refuses.
#![cfg(target_os = "linux")]

use crate::common::Dir;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Every way through files starts threads of another kind: without any, answers
/// are the same.
#[test]
fn answers_without_a_second_thread_are_the_same() {
    let dir = Dir::new();
    let values: Vec<f64> = (0..200_000).map(|i| f64::from(i % 1000) * 0.25).collect();
    dir.f64s("a.npy", &[200, 1000], &values).f64s("b.npy", &[200, 1000], &values);
    let text: String = values.iter().map(|x| format!("{x},1\n")).collect();
    dir.file("t.csv", format!("x,y\n{text}"));
    let root = std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0);
    std::fs::set_permissions(dir.path(""), PermissionsExt::from_mode(0o755)).unwrap();
    for line in [
        "sum a.npy -j 8",
        "prod a.npy -a 0 -j 8",
        "argmax a.npy -a 1",
        "dot a.npy b.npy -j 8",
        "stats t.csv -j 8",
        "sum t.csv -c x",
        "sum a.npy --device sim",
    ] {
        let usual = dir.run(line);
        assert_eq!(usual.status, 0, "{line}: {}", usual.err);
        let plain = dir.command(line);
        let mut limited = Command::new("prlimit");
        // By an open file: the folder may be one that the other user may not enter.
        limited.stdin(std::fs::File::open(plain.get_program()).unwrap());
        limited.arg("--nproc=1").arg("/proc/self/fd/0").args(plain.get_args());
        limited.current_dir(dir.path("")).env("NO_COLOR", "1").env("RAYON_NUM_THREADS", "1000");
        if root {
            // The limit does not bind root; nobody else is this user.
            limited.uid(3_000_000 + std::process::id());
        }
        let output = match limited.output() {
            Ok(output) => output,
            Err(error) => return println!("skipped: prlimit: {error}"),
        };
        let (out, err) = (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned());
        assert!(output.status.success(), "{line}: {err}");
        assert_eq!(String::from_utf8_lossy(&out), usual.out, "{line}");
    }
}
