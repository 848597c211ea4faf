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

/// No bytes mean the same in a file, on a pipe and redirected; only what files
/// say of themselves differs.
#[test]
fn no_bytes_are_the_same_wherever_they_come_from() {
    let dir = Dir::new();
    dir.file("empty", "");
    for (line, status, part) in [
        ("sum", 0, "0\n"),
        ("min", 1, "min of no elements"),
        ("mean", 0, "nan\n"),
        ("stats", 0, "count\t0\n"),
        ("sum --dtype f32", 0, "0\n"),
        ("max --dtype i8", 1, "max of no elements"),
        ("sum --strict", 0, "0\n"),
        ("sum --format text", 0, "0\n"),
        ("sum --format raw", 1, "--dtype"),
        ("sum --format raw --dtype f64", 0, "0\n"),
        ("min --format raw --dtype f64", 1, "min of no elements"),
        ("stats --format raw --dtype i32 -f json", 0, "\"count\":0"),
        ("sum --format raw --dtype f64 --shape 0", 0, "0\n"),
        ("sum --dtype f64 --shape 0", 0, "0\n"),
        ("sum --shape 0", 1, "--dtype"),
        ("sum --dtype f64 --shape 0,3 -a 0", 0, "0 0 0\n"),
        ("sum --dtype f32 --endian big", 0, "0\n"),
        ("sum --dtype f32 --offset 8", 1, "offset 8 lies beyond the data's 0 bytes"),
        ("sum --format csv", 1, "no rows"),
        ("sum -c x", 1, "no rows"),
        ("inspect --format csv", 1, "no rows"),
        ("sum --format npy", 1, "it is empty, but npy data begin with a header"),
        ("sum --format parquet", 1, "it is empty"),
        ("partial sum -o -", 0, "WARPFOLD"),
        ("partial sum,prod,argmax --format raw --dtype f32 -o -", 0, "WARPFOLD"),
        ("inspect", 0, "text\tf64"),
        ("inspect --format raw --dtype f64", 0, "raw\tf64"),
    ] {
        let run = |line: &str, input: Option<&str>| {
            let mut command = dir.command(line);
            match input {
                Some(file) => command.stdin(std::fs::File::open(dir.path(file)).unwrap()),
                None => command.stdin(Stdio::piped()),
            };
            let output = command.spawn().unwrap().wait_with_output().unwrap();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("stdin", "empty");
            (output.status.code(), text(&output.stdout), text(&output.stderr))
        };
        let pipe = run(line, None);
        assert_eq!(pipe.0, Some(status), "{line}: {pipe:?}");
        assert!(pipe.1.contains(part) || pipe.2.contains(part), "{line}: {pipe:?}");
        let (file, redirected) = (run(&format!("{line} empty"), None), run(line, Some("empty")));
        assert_eq!(file, redirected, "{line}");
        if line.starts_with("inspect") && status == 0 {
            assert!(file.1.contains(part), "{line}: {file:?}");
        } else {
            assert_eq!(pipe, file, "{line}");
        }
    }
    // A name can promise bytes, too.
    dir.file("e.npy", "").file("e.txt", "");
    assert!(dir.fails(1, "sum e.npy").contains("e.npy: it is empty"));
    assert_eq!(dir.prints("sum e.txt"), "0\n");
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
