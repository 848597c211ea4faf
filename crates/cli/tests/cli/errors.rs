//! Every way to be wrong: what is said, and the exit status.

use crate::common::{Dir, npy, stored_zip};

#[track_caller]
fn assert_says(complaint: &str, parts: &[&str]) {
    for part in parts {
        assert!(complaint.contains(part), "{part:?} is not in:\n{complaint}");
    }
}

#[test]
fn files_that_cannot_be_read() {
    let dir = Dir::new();
    dir.file("empty.npy", "").file("noise.xyz", [0u8, 1, 2, 255]);
    std::fs::create_dir(dir.path("folder")).unwrap();
    assert_says(&dir.fails(1, "sum none.npy"), &["none.npy", "No such file"]);
    assert_says(&dir.fails(1, "sum folder"), &["folder", "directory", "hint: "]);
    assert_says(&dir.fails(1, "sum empty.npy"), &["empty.npy", "empty"]);
    assert_says(&dir.fails(1, "sum noise.xyz"), &["noise.xyz", "--dtype"]);
    assert_says(&dir.fails(1, "sum *.parquet"), &["*.parquet", "no file matches"]);
    assert_says(&dir.fails(1, "sum [.npy"), &["[.npy", "No such file"]);
    assert_says(&dir.fails(1, "inspect none.npy"), &["none.npy"]);
    assert_says(&dir.fails(1, "merge none.state"), &["none.state", "No such file"]);
}

#[cfg(unix)]
#[test]
fn files_without_permission() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new();
    dir.f64s("secret.npy", &[1], &[1.0]);
    let path = dir.path("secret.npy");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(&path).is_ok() {
        eprintln!("skipped: permissions do not bind this user");
        return;
    }
    assert_says(&dir.fails(1, "sum secret.npy"), &["secret.npy", "ermission denied"]);
}

#[test]
fn files_that_are_damaged() {
    let dir = Dir::new();
    let whole = npy("<f8", &[4], &[0; 32]);
    dir.file("short.npy", &whole[..whole.len() - 5]).file("head.npy", &whole[..20]);
    assert_says(&dir.fails(1, "sum short.npy"), &["short.npy"]);
    assert_says(&dir.fails(1, "sum head.npy"), &["head.npy"]);
}

#[test]
fn cells_that_are_not_numbers() {
    let dir = Dir::new();
    dir.file("t.csv", "x,y\n1,2\n3,oops\n").file("ragged.csv", "x,y\n1,2\n3\n");
    assert_says(&dir.fails(1, "sum -c y t.csv"), &["t.csv", "line 3", "(y)", "\"oops\""]);
    assert_says(&dir.fails(1, "sum -c x ragged.csv"), &["ragged.csv", "line 3"]);
    assert_says(&dir.fails(1, "sum -c z t.csv"), &["t.csv", "\"z\"", "x, y"]);
    assert_says(&dir.fails(1, "sum t.csv"), &["t.csv", "x", "hint: ", "-c"]);
    let run = dir.pipe("sum", "1\n2\nx\n");
    assert_says(&run.failure(1), &["stdin", "line 3", "\"x\""]);
}

#[test]
fn arrays_that_do_not_fit_together() {
    let dir = Dir::new();
    dir.f64s("a.npy", &[2, 3], &[0.0; 6]).f64s("b.npy", &[2, 2], &[0.0; 4]);
    dir.npy("c.npy", "<f4", &[2, 3], &[0; 24]);
    dir.file("t.csv", "x,y\n1,2\n").file("u.csv", "x\n1\n");
    assert_says(&dir.fails(1, "sum a.npy b.npy"), &["b.npy", "(2, 2)", "(2, 3)"]);
    assert_says(&dir.fails(1, "sum a.npy c.npy"), &["c.npy", "f32", "f64"]);
    assert_says(&dir.fails(1, "dot a.npy b.npy"), &["b.npy", "(2, 2)"]);
    assert_says(&dir.fails(1, "dot a.npy c.npy"), &["f32", "f64"]);
    assert_says(&dir.fails(1, "sum -c 1-2 t.csv u.csv"), &["u.csv"]);
}

#[test]
fn axes_that_are_not_there() {
    let dir = Dir::new();
    dir.f64s("a.npy", &[2, 3], &[0.0; 6]);
    assert_says(&dir.fails(1, "sum -a 2 a.npy"), &["axis 2", "hint: ", "0 to 1"]);
    assert_says(&dir.fails(1, "sum -a -3 a.npy"), &["axis -3"]);
    assert_says(&dir.fails(1, "sum -a 1,-1 a.npy"), &["axis -1", "twice"]);
}

#[test]
fn questions_without_an_answer() {
    let dir = Dir::new();
    dir.f64s("a.npy", &[2], &[0.0; 2]).f64s("none.npy", &[0], &[]);
    assert_says(&dir.fails(1, "min none.npy"), &["none.npy", "min of no elements"]);
    assert_says(&dir.fails(1, "xor a.npy"), &["xor", "f64"]);
    assert_says(&dir.fails(1, "sum --out i8 a.npy"), &["i8"]);
    assert_says(&dir.fails(1, "reduce --op sum,argmin none.npy"), &["argmin"]);
}

#[test]
fn instructions_that_are_not_there() {
    let dir = Dir::new();
    dir.f64s("a.npy", &[2], &[0.0; 2]);
    let output = dir.command("sum a.npy").env("WARPFOLD_CPU", "mmx").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_says(&String::from_utf8(output.stderr).unwrap(), &["WARPFOLD_CPU=mmx", "hint: "]);
}

#[test]
fn values_that_are_huge() {
    let dir = Dir::new();
    dir.f64s("a.npy", &[2, 1], &[1.0, 2.0]);
    assert_says(&dir.fails(1, "sum -a 99999999999 a.npy"), &["axis 99999999999", "hint: "]);
    assert_says(&dir.fails(1, "sum --axis=-9223372036854775808 a.npy"), &["out of range"]);
    assert_says(&dir.fails(2, "sum -a 99999999999999999999 a.npy"), &["AXES"]);
    assert_eq!(dir.prints("sum -j 100000 a.npy"), "3\n");
    assert_eq!(dir.prints("sum -a 0 -j 18446744073709551615 --memory-limit 1 a.npy"), "3\n");
    assert_eq!(dir.prints("sum --memory-limit 16777215T a.npy"), "3\n");
    assert_eq!(dir.prints("var --ddof 18446744073709551615 a.npy"), "nan\n");
    let shape = "sum --format raw --dtype f64 --shape 99999999999,99999999999 a.npy";
    assert_says(&dir.fails(1, shape), &["more elements than can be counted"]);
    let offset = "sum --format raw --dtype u8 --offset 18446744073709551615 a.npy";
    assert_says(&dir.fails(1, offset), &["lies beyond"]);
}

/// What a hint says can be done.
#[test]
fn hints_about_columns_name_some_with_numbers() {
    let dir = Dir::new();
    dir.file("t.csv", "name,x,y,x\nab,1,2,3\n");
    let complaint = dir.fails(1, "sum t.csv");
    assert_says(&complaint, &["x, y", "-c 2"]);
    assert_eq!(dir.prints("sum t.csv -c 2"), "1\n");
    assert_says(&dir.fails(1, "sum -c x t.csv"), &["several", "-c 2 or -c 4"]);
    let text = |bytes: &[u8]| npy("<U2", &[1], bytes);
    assert_says(&dir.fails(2, "dot t.csv:y"), &["hint: ", "-c NAME,NAME"]);
    let mut zip = Vec::new();
    for (name, array) in [("a", text(&[b'a'; 8])), ("b", npy("<f8", &[1], &[0; 8]))] {
        zip.push((name, array));
    }
    dir.file("z.npz", stored_zip(&zip));
    let complaint = dir.fails(1, "sum z.npz");
    assert_says(&complaint, &["a, b", "hint: name it after a colon: z.npz:b"]);
}

#[test]
fn wrong_usage() {
    let dir = Dir::new();
    dir.f64s("a.npy", &[2], &[0.0; 2]).file("t.csv", "x,y\n1,2\n");
    for (line, part) in [
        ("add a.npy", "unrecognized subcommand 'add'"),
        ("sum -a x a.npy", "'x'"),
        ("sum --nan maybe a.npy", "omit"),
        ("sum --dtype f31 a.npy", "bf16"),
        ("sum --device gpu a.npy", "cuda:N"),
        ("sum -j 0 a.npy", "expected a number from 1"),
        ("sum -j -1 a.npy", "'-1'"),
        ("sum -j 99999999999999999999 a.npy", "'99999999999999999999'"),
        ("var --ddof -1 a.npy", "'-1'"),
        ("sum --offset -1 a.npy", "'-1'"),
        ("sum --shape -1 a.npy", "'-1'"),
        ("sum --memory-limit -1 a.npy", "'-1'"),
        ("sum --memory-limit 0 a.npy", "more than 0"),
        ("sum --memory-limit 1X a.npy", "'1X'"),
        ("sum --shape 3,x a.npy", "'x'"),
        ("sum -c 0 a.npy", "counted from 1"),
        ("sum --delimiter ;; a.npy", "';;'"),
        ("sum -f yaml a.npy", "jsonl"),
        ("sum - -", "stdin"),
        ("sum -- - -:x", "stdin"),
        ("dot - -", "stdin"),
        ("merge - -", "stdin"),
        ("dot a.npy", "dot takes two arrays"),
        ("dot a.npy a.npy a.npy", "dot takes two arrays"),
        ("dot -c x,y t.csv t.csv:x", "paired"),
        ("reduce --op sum,dot a.npy a.npy", "dot"),
        ("reduce --op total a.npy", "total"),
        ("reduce a.npy", "--op"),
        ("partial sum a.npy", "--output"),
        ("partial sum,max,sum a.npy -o s.state", "sum is named twice"),
        ("partial sum -c x,y t.csv -o s.state", "several columns"),
        ("sum -f csv -o x.npy a.npy", ".npy"),
        ("sum --hex -o x.npy a.npy", ".npy"),
        ("reduce --op sum,max -o x.npy a.npy", ".npy"),
        ("bench --only nothing", "nothing"),
        ("bench --elements 10", "10"),
        ("completions tcsh", "bash"),
        ("merge a.state --hex -o b.state", ".state"),
    ] {
        let complaint = dir.fails(2, line);
        assert!(complaint.contains(part), "{line}: {part:?} is not in:\n{complaint}");
    }
    assert_eq!(dir.list(), ["a.npy", "t.csv"], "nothing is half-written");
}

#[test]
fn output_that_cannot_be_written() {
    let dir = Dir::new();
    dir.f64s("a.npy", &[2], &[1.0, 2.0]);
    std::fs::create_dir(dir.path("folder")).unwrap();
    assert_says(&dir.fails(1, "sum a.npy -o none/x.json"), &["none/x.json"]);
    assert_says(&dir.fails(1, "sum a.npy -o folder"), &["folder", "directory"]);
    assert_says(&dir.fails(1, "partial sum a.npy -o folder"), &["folder", "directory"]);
    // Before anything is read.
    assert_says(&dir.fails(1, "sum none.npy -o none/x.json"), &["no directory none"]);
}

#[test]
fn commas_and_line_ends_of_others_are_named() {
    let dir = Dir::new();
    dir.file("semi.csv", "a;b\n1,5;x\n2,5;y\n")
        .file("many.csv", "a;b\n1,234,567;1\n")
        .file("words.txt", "1\n1,5\n")
        .file("mac.csv", "a,b\r1,2\r3,4\r")
        .file("mac.txt", "1\r2\r3\r")
        .file("mac.tsv", "a\tb\r1\t2\r");
    assert_says(&dir.fails(1, "sum -c a semi.csv"), &["\"1,5\" is not a number", "decimal comma"]);
    assert_says(&dir.fails(1, "sum semi.csv"), &["no column has numbers", "decimal comma"]);
    assert_says(&dir.fails(1, "stats semi.csv"), &["no column has only numbers", "decimal comma"]);
    assert_says(&dir.fails(1, "sum --dtype i32 -c a semi.csv"), &["decimal comma"]);
    assert_says(&dir.fails(1, "sum --by b -c a semi.csv"), &["decimal comma"]);
    assert_says(&dir.fails(1, "sum -c a many.csv"), &["between thousands"]);
    assert_says(&dir.fails(1, "sum words.txt"), &["line 2", "decimal comma", "--format csv"]);
    for line in ["sum -c b mac.csv", "sum -c 1 mac.csv", "stats mac.csv", "inspect mac.csv"] {
        assert_says(
            &dir.fails(1, line),
            &["mac.csv", "carriage return alone", "hint: ", "tr '\\r'"],
        );
    }
    assert_says(&dir.fails(1, "sum --by a -c b mac.tsv"), &["carriage return alone"]);
    assert_eq!(dir.prints("sum mac.txt"), "6\n");
    // A blank stands where a number was left out.
    for blank in [" ", "\t", " \n ", "   \n"] {
        dir.file("blank", blank).file("blank.txt", blank);
        for message in [
            dir.pipe("sum", blank).failure(1),
            dir.fails(1, "sum blank"),
            dir.fails(1, "min blank.txt"),
        ] {
            assert_says(&message, &["nothing but blanks", "hint: ", "--format text"]);
        }
        assert_eq!(dir.pipe("sum --format text", blank).success(), "0\n");
    }
    // An empty line holds no numbers, as no bytes do.
    for blank in ["\n", "\r\n", "\n\n", "\r"] {
        dir.file("blank", blank);
        assert_eq!(dir.pipe("sum", blank).success(), "0\n", "{blank:?}");
        assert_eq!(dir.prints("sum blank"), "0\n", "{blank:?}");
        assert_says(&dir.pipe("min", blank).failure(1), &["min of no elements"]);
    }
    dir.file("four", "    ");
    assert_eq!(dir.prints("count --dtype f32 four"), "1\n");
}
