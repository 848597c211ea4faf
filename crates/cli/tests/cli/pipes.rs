//! Numbers on stdin, and readers that leave.

use crate::common::Dir;
use std::io::Read;
use std::process::Stdio;

#[test]
fn numbers_on_a_pipe_are_summed_exactly() {
    let dir = Dir::new();
    let three = "1e16\n1\n-1e16\n";
    assert_eq!(dir.pipe("sum", three).success(), "1\n");
    assert_eq!(dir.pipe("sum -", three.repeat(1000) + "1\n").success(), "1001\n");
    assert_eq!(dir.pipe("sum", "0.1\n".repeat(1_000_000)).success(), "100000\n");
}

#[test]
fn nothing_on_a_pipe_is_no_elements() {
    let dir = Dir::new();
    assert_eq!(dir.pipe("sum", "").success(), "0\n");
    assert!(dir.pipe("min", "").failure(1).contains("min of no elements"));
}

#[test]
fn files_come_through_pipes_too() {
    let dir = Dir::new();
    dir.f64s("a.npy", &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let npy = std::fs::read(dir.path("a.npy")).unwrap();
    assert_eq!(dir.pipe("sum -a 0", &npy).success(), "4 6\n");
    assert_eq!(dir.pipe("sum -c y", "x,y\n1,2\n3,4\n").success(), "6\n");
    assert_eq!(dir.pipe("stats -f json -c 1", "5\n7\n").success().matches("\"max\":7").count(), 1);
}

/// What `<(command)` names in a shell.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_with_a_name_is_read_once() {
    let dir = Dir::new();
    let answers = dir.pipe("stats -f json /dev/stdin", "1\n2\n").success();
    assert!(answers.contains("\"sum\":3"), "{answers}");
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_quiet() {
    let dir = Dir::new();
    let values = vec![1.0; 400_000];
    dir.f64s("a.npy", &[1, values.len()], &values);
    let mut child = dir.command("sum -a 0 -f csv a.npy").spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 16]).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let dir = Dir::new();
    dir.f64s("a.npy", &[1], &[1.0]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = dir.command("sum a.npy").stdout(Stdio::from(full)).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("error: "));
}
