//! Pipes and standard input.

use crate::common::*;
use std::io::Write;
use std::process::{Command, Stdio};
use warpfold_core::DType;
use warpfold_files::{Access, ColumnSelector, Extent, Format, OpenOptions, inspect, open};

/// Set for the child process of [`through_stdin`].
const CHILD: &str = "WARPFOLD_TEST_STDIN";

/// Runs `child_reads_stdin` in a process of its own; gives what it prints.
fn through_stdin(stdin: Stdio, bytes: &[u8], options: &str) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "stream::child_reads_stdin", "--nocapture"])
        .env(CHILD, options)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    if let Some(mut pipe) = child.stdin.take() {
        // The child may stop reading early.
        let _ = pipe.write_all(bytes);
    }
    let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let start = output.find("<<").expect("the child answers");
    output[start + 2..output.find(">>").unwrap()].into()
}

/// No test in itself: the child's side of [`through_stdin`].
#[test]
fn child_reads_stdin() {
    let Ok(words) = std::env::var(CHILD) else { return };
    let mut options = OpenOptions::default();
    let (mut input, mut inspects) = ("-".to_owned(), false);
    for word in words.split_whitespace() {
        match word.split_once('=').unwrap_or((word, "")) {
            ("-c", list) => options.columns = ColumnSelector::parse_list(list).unwrap(),
            ("--dtype", name) => options.dtype = DType::from_name(name),
            ("--format", name) => options.format = Format::from_name(name),
            ("--shape", n) => options.shape = Some(vec![n.parse().unwrap()]),
            ("--offset", n) => options.offset = n.parse().unwrap(),
            ("member", name) => input = format!("-:{name}"),
            ("inspect", _) => inspects = true,
            other => panic!("{other:?}"),
        }
    }
    if inspects {
        let all = inspect(&input, &options).unwrap();
        let all: Vec<_> =
            all.iter().map(|d| format!("{} {} {}", d.name, d.format, d.stored_as)).collect();
        println!("<<{}>>", all.join("; "));
        return;
    }
    let answer = open(&input, &options).and_then(|mut sources| {
        let source = sources.remove(0);
        let (name, dtype) = (source.name.clone(), source.dtype);
        let random = matches!(source.access, Access::Random(_));
        let all = read(source)?;
        Ok(format!(
            "{name} {dtype} rows={} gaps={} random={random} {:?}",
            all.rows,
            all.gaps.len(),
            all.bytes
                .chunks(dtype.size())
                .map(|c| match dtype {
                    DType::F64 => f64::from_ne_bytes(c.try_into().unwrap()),
                    DType::I64 => i64::from_ne_bytes(c.try_into().unwrap()) as f64,
                    _ => f64::from(i32::from_ne_bytes(c.try_into().unwrap())),
                })
                .take(4)
                .collect::<Vec<_>>()
        ))
    });
    match answer {
        Ok(text) => println!("<<{text}>>"),
        Err(e) => println!("<<{e} | {}>>", e.hint().unwrap_or_default()),
    }
}

fn piped(bytes: impl AsRef<[u8]>, options: &str) -> String {
    through_stdin(Stdio::piped(), bytes.as_ref(), options)
}

#[test]
fn stdin_is_recognised_by_what_it_holds() {
    assert_eq!(piped("1 2\n3\n", ""), "stdin i64 rows=3 gaps=0 random=false [1.0, 2.0, 3.0]");
    assert_eq!(piped("", ""), "stdin f64 rows=0 gaps=0 random=false []");
    assert_eq!(piped("7\n8", "--dtype=i32"), "stdin i32 rows=2 gaps=0 random=false [7.0, 8.0]");
    assert_eq!(piped("a,b\n1,2\n,3\n", "-c=a"), "stdin:a i64 rows=2 gaps=1 random=false [1.0]");
    assert_eq!(
        piped("a,b\n1,2\n,3\n", "member=b"),
        "stdin:b i64 rows=2 gaps=0 random=false [2.0, 3.0]"
    );
    assert_eq!(piped("x\n4\n", "-c=x"), "stdin:x i64 rows=1 gaps=0 random=false [4.0]");
    assert_eq!(piped("n\tm\n4\t5\n", "-c=m"), "stdin:m i64 rows=1 gaps=0 random=false [5.0]");
    let array = npy(1, "'>i4'", false, "(2,)", &[0, 0, 0, 9, 0, 0, 1, 0]);
    assert_eq!(piped(&array, ""), "stdin i32 rows=2 gaps=0 random=false [9.0, 256.0]");
    let raw = piped([0, 5, 0, 0, 0, 6, 0, 0, 0], "--format=raw --dtype=i32 --offset=1");
    assert_eq!(raw, "stdin i32 rows=2 gaps=0 random=false [5.0, 6.0]");
}

#[test]
fn stdin_that_cannot_be_read() {
    for (bytes, options, what) in [
        (&b"PAR1 and more"[..], "", "parquet data cannot be read from a stream"),
        (b"PK\x03\x04 and more", "", "npz data cannot be read from a stream"),
        (b"ARROW1\0\0 and more", "", "arrow data cannot be read from a stream"),
        (b"\x00\x01\x02\x03", "", "neither text nor of a known format"),
        (b"\x1f\x8b\x08", "", "gzip"),
        (b"1\nx\n", "", "line 2: \"x\" is not a number"),
        (b"a,b\n1,2\n", "", "which column"),
        (b"[1,2,3]\n", "", "looks like a JSON array"),
        (b"{\"a\":1}\n", "", "looks like a JSON object"),
        (b"\0\0\0\0\0", "--format=raw --dtype=i32", "the last 1 bytes are not a whole i32"),
        (b"\0\0\0\0", "--format=raw --dtype=i32 --shape=2", "the data ends 4 bytes too early"),
        (b"\0\0", "--format=raw --dtype=i32 --offset=3", "offset 3 lies beyond the data's 2 bytes"),
    ] {
        let answer = piped(bytes, options);
        assert!(answer.contains(what), "{answer}");
    }
    let short = npy(1, "'<f8'", false, "(3,)", &[0; 16]);
    assert!(piped(&short, "").contains("the data ends 8 bytes too early"));
}

#[test]
fn stdin_is_inspected_without_being_read() {
    assert_eq!(piped("1 2 3", "inspect"), "stdin text text");
    assert_eq!(piped("a,b\n1,2\n", "inspect"), "stdin:a csv text; stdin:b csv text");
    assert_eq!(piped(npy(1, "'<f8'", false, "(1,)", &[0; 8]), "inspect"), "stdin npy <f8");
}

#[cfg(unix)]
#[test]
fn stdin_redirected_from_a_file_is_that_file() {
    let dir = Dir::new();
    let path = dir.file("a.npy", npy(1, "'<f8'", false, "(2,)", &[0; 16]));
    let file = || Stdio::from(std::fs::File::open(&path).unwrap());
    let answer = through_stdin(file(), b"", "");
    assert_eq!(answer, "stdin f64 rows=2 gaps=0 random=true [0.0, 0.0]");
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_by_its_path_is_a_stream() {
    use std::os::fd::AsRawFd;
    let (reader, mut writer) = std::io::pipe().unwrap();
    let rows = 300_000;
    let sender = std::thread::spawn(move || {
        let text: String = (0..rows).map(|i| format!("{i};{}\n", i * 2)).collect();
        writer.write_all(b"a;b\n").unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    });
    let path = format!("/dev/fd/{}", reader.as_raw_fd());
    let options = OpenOptions {
        columns: ColumnSelector::parse_list("b").unwrap(),
        dtype: Some(DType::I32),
        ..OpenOptions::default()
    };
    let source = one(&path, &options);
    assert_eq!(source.extent, Extent::Column { rows: None });
    assert!(values::<i32>(source).into_iter().eq((0..rows).map(|i| i * 2)));
    sender.join().unwrap();
}
