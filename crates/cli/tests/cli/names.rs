//! Names of any bytes: files, columns, members; as input, in messages, in answers.

use crate::common::{Dir, Run};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

/// A run with words that are bytes.
fn run(dir: &Dir, words: &[&[u8]]) -> Run {
    let words = words.iter().map(|w| OsStr::from_bytes(w));
    Run::from(dir.command("").args(words).output().unwrap())
}

fn write(dir: &Dir, name: &[u8], bytes: impl AsRef<[u8]>) {
    std::fs::write(dir.path("").join(OsStr::from_bytes(name)), bytes).unwrap();
}

/// Files whose names hold bytes that are no text, controls and spaces.
fn odd() -> Dir {
    let dir = Dir::new();
    for (i, name) in
        [&b"a\xff.csv"[..], b"b\n.csv", "ä\u{202e}.csv".as_bytes(), b"\xfe \x1b[31m.csv"]
            .iter()
            .enumerate()
    {
        write(&dir, name, format!("x,y\n{},0\n", 10_u32.pow(i as u32)));
    }
    write(&dir, b".hidden.csv", "x,y\n5000000,0\n");
    dir
}

#[test]
fn explicit_names_are_any_bytes() {
    let dir = odd();
    assert_eq!(run(&dir, &[b"sum", b"-c", b"x", b"a\xff.csv", b"b\n.csv"]).success(), "11\n");
    assert_eq!(run(&dir, &[b"sum", b"a\xff.csv:x"]).success(), "1\n");
    assert_eq!(run(&dir, &[b"dot", b"a\xff.csv:x", b"\xfe \x1b[31m.csv:x"]).success(), "1000\n");
    assert_eq!(run(&dir, &[b"stats", b"-f", b"csv", b"a\xff.csv"]).success().lines().count(), 3);
    let state = [&b"partial"[..], b"--op", b"sum", b"a\xff.csv:x", b"-o", b"\xff.state"];
    assert_eq!(run(&dir, &state).success(), "");
    assert_eq!(run(&dir, &[b"merge", b"\xff.state"]).success(), "1\n");
    assert_eq!(run(&dir, &[b"merge", b"*.state"]).success(), "1\n");
    let inspected = run(&dir, &[b"inspect", b"a\xff.csv"]).success();
    assert!(inspected.contains("a\u{fffd}.csv:x\tcsv"), "{inspected}");
    assert_eq!(run(&dir, &[b"sum", b"a\xff.csv:x", b"-o", b"\xfd.json"]).success(), "");
}

#[test]
fn globs_take_all_names_but_hidden_ones() {
    let dir = odd();
    assert_eq!(dir.prints("sum -c x *.csv"), "1111\n");
    assert_eq!(dir.prints("sum *.csv:x"), "1111\n");
    assert_eq!(dir.prints("sum -c x .*.csv"), "5000000\n");
    assert_eq!(dir.prints("sum -c x .hidden.csv"), "5000000\n");
    let first = dir.prints("inspect -f json *.csv");
    let parsed: serde_json::Value = serde_json::from_str(&first).unwrap();
    let names: Vec<_> =
        parsed.as_array().unwrap().iter().map(|d| d["name"].as_str().unwrap()).collect();
    let files = ["a\u{fffd}.csv", "b\n.csv", "ä\u{202e}.csv", "\u{fffd} \u{1b}[31m.csv"];
    let expected: Vec<_> =
        files.iter().flat_map(|f| [format!("{f}:x"), format!("{f}:y")]).collect();
    assert_eq!(names, expected, "in the order of their bytes");
    assert!(dir.fails(1, "sum none*.csv").contains("none*.csv: no file matches"));
}

#[test]
fn a_file_that_looks_like_a_glob_is_itself() {
    let dir = Dir::new();
    dir.f64s("*", &[1], &[1.0]).f64s("b.npy", &[1], &[2.0]);
    dir.f64s("a[1].npy", &[1], &[4.0]).f64s("a1.npy", &[1], &[8.0]);
    assert_eq!(dir.prints("sum *"), "1\n");
    assert_eq!(dir.prints("sum a[1].npy"), "4\n");
    assert_eq!(dir.prints("sum a[12].npy"), "8\n");
    dir.file("c?.csv", "x[0],y\n3,4\n").file("cd.csv", "x[0],y\n5,6\n");
    assert_eq!(dir.prints("sum c?.csv:x[0]"), "3\n");
    assert_eq!(dir.pipe("sum -- -:x[0]", "x[0],y\n3,4\n").success(), "3\n");
}

/// Nothing that acts on a terminal comes out but line ends.
fn assert_tame(text: &str) {
    let tame = |c: char| c == '\n' || !c.is_control() && !matches!(c, '\u{202a}'..='\u{202e}');
    assert!(text.chars().all(tame), "{text:?}");
}

#[test]
fn names_and_cells_are_escaped_in_messages() {
    let dir = odd();
    let column = "\x1b]0;owned\x07\u{9b}31m\u{202e}";
    dir.file("t.csv", format!("{column},y\n1,\n\x1b[2J,\u{9b}\u{202e}\n"));
    dir.file("text.txt", "1\n\x1b]52;c;\x07\n");
    let (t, name) = (b"t.csv", column.as_bytes());
    let fail = |words: &[&[u8]]| {
        let run = run(&dir, words);
        assert!(run.status == 1 || run.status == 2, "{run:?}");
        assert_eq!(run.out, "");
        assert!(run.err.starts_with("error: ") || run.err.starts_with("note: "), "{run:?}");
        assert_tame(&run.err);
        run.err
    };
    assert!(fail(&[b"sum", b"\x1b[31m"]).contains("\\u{1b}[31m: "));
    assert!(fail(&[b"sum", b"x\ny"]).starts_with("error: x\\ny: "));
    assert!(fail(&[b"sum", b"\xfe \x1b[31m.csv:z"]).contains("\u{fffd} \\u{1b}[31m.csv: "));
    fail(&[b"sum", b"-c", name, t]);
    fail(&[b"sum", b"-c", b"y", t]);
    fail(&[b"sum", b"-c", b"z", t]);
    fail(&[b"stats", t]);
    fail(&[b"sum", b"text.txt"]);
    fail(&[b"sum", b"\x1b*\n"]);
    fail(&[b"sum", b"-c", b"x", b"ok.csv", b"-o", b"\x1b/x"]);
    fail(&[b"merge", b"\x1b[31m"]);
    fail(&[b"ptx", b"info", b"\x1b[31m"]);
    // Those that a shell finds are words as well.
    fail(&[b"--\x1b]0;x\x07"]);
    fail(&[b"sum", b"a", b"--\x1b]0;\xc2\x9b\x07"]);
    // A note.
    dir.file("gap.csv", format!("{column},y\n1,2\n,4\n"));
    let run = run(&dir, &[b"sum", b"-c", b"1,2", b"gap.csv"]);
    assert_tame(&run.err);
    assert!(run.err.starts_with("note: \\u{1b}]0;owned\\u{7}\\u{9b}31m\\u{202e}: "), "{run:?}");
}

#[test]
fn names_are_escaped_for_people_and_kept_for_programs() {
    let dir = Dir::new();
    let column = "\x1b[31m\u{9b}\u{202e}\x7f";
    dir.file("t.csv", format!("{column},\"a\tb\nc\"\n1,2\n"));
    for format in ["plain", "table", "json", "jsonl"] {
        for line in ["sum -c 1,2", "stats", "inspect", "max -c 2,1"] {
            let out = dir.prints(&format!("{line} -f {format} t.csv"));
            assert!(out.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()), "{out:?}");
            assert!(!out.contains('\u{202e}'), "{out:?}");
        }
    }
    assert_eq!(
        dir.prints("sum -c 1,2 -f plain t.csv"),
        "\\u{1b}[31m\\u{9b}\\u{202e}\\u{7f}\t1\na\\tb\\nc\t2\n"
    );
    let inspected = dir.prints("inspect -f plain t.csv");
    assert!(inspected.lines().all(|line| line.split('\t').count() == 7), "{inspected:?}");
    let json = dir.prints("sum -c 1,2 -f json t.csv");
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&parsed[0]["name"], &parsed[1]["name"]), (&column.into(), &"a\tb\nc".into()));
    let csv = dir.prints("sum -c 1,2 -f csv t.csv");
    assert_eq!(csv, format!("name,op,value\n{column},sum,1\n\"a\tb\nc\",sum,2\n"));
    let tsv = dir.prints("inspect -f tsv t.csv");
    assert!(tsv.contains(&format!("\nt.csv:{column}\tcsv")), "{tsv:?}");
    assert!(tsv.contains("\n\"t.csv:a\tb\nc\"\tcsv"), "{tsv:?}");
}

#[test]
fn members_behind_odd_names() {
    let dir = Dir::new();
    write(&dir, b"\xff:y.csv", "x:z,y\n1,2\n");
    assert_eq!(run(&dir, &[b"sum", b"\xff:y.csv:x:z"]).success(), "1\n");
    assert_eq!(run(&dir, &[b"sum", b"\xff:y.csv:y"]).success(), "2\n");
    // A member is text.
    assert!(run(&dir, &[b"sum", b"\xff:y.csv:\xff"]).failure(1).contains("No such file"));
    let child = dir
        .command("")
        .args([OsStr::new("sum"), OsStr::new("--"), OsStr::from_bytes(b"-:\xff")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(child.status.code(), Some(1), "{child:?}");
}
