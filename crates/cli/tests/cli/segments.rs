//! Segments of files: told by offsets of any format and type.

use crate::common::{Dir, Run};

fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
}

fn sample() -> Dir {
    let dir = Dir::new();
    dir.f64s("x.npy", &[6], &[3.0, 1.0, 4.0, 1.0, 5.0, 9.0]);
    dir.f64s("y.npy", &[6], &[1.0, 0.5, 2.0, 4.0, -1.0, 0.0]);
    dir.file("o.txt", "0\n2\n2\n6\n");
    dir.file("full.txt", "0\n2\n6\n");
    dir
}

#[test]
fn each_segment_has_an_answer() {
    let dir = sample();
    for (line, expected) in [
        ("sum --segments o.txt x.npy", "4 0 19\n"),
        ("mean --segments o.txt x.npy", "2 nan 4.75\n"),
        ("count --segments o.txt x.npy", "2 0 4\n"),
        ("argmax --segments full.txt x.npy", "0 3\n"),
        ("minmax --segments full.txt x.npy", "1 3\n1 9\n"),
        ("dot --segments o.txt x.npy y.npy", "3.5 0 7\n"),
        ("max --segments o.txt --initial -1 x.npy", "3 -1 9\n"),
        ("prod --segments o.txt --initial 2 x.npy", "6 2 360\n"),
        ("min --segments o.txt --initial=inf x.npy", "1 inf 1\n"),
        ("sum --segments full.txt --out f32 x.npy", "4 19\n"),
        (
            "sum --segments full.txt x.npy -f json",
            "{\"op\":\"sum\",\"dtype\":\"f64\",\"shape\":[2],\"value\":[4,19]}\n",
        ),
    ] {
        assert_eq!(dir.prints(line), expected, "{line}");
    }
    let several = dir.prints("reduce --op sum,argmin --segments full.txt x.npy -f csv");
    assert_eq!(several, "i0,sum,argmin\n0,4,1\n1,19,1\n");
    dir.prints("sum --segments full.txt x.npy -o out.npy");
    assert_eq!(dir.prints("sum out.npy"), "23\n");
    assert_eq!(dir.pipe("sum --segments full.txt", "1\n2\n3\n4\n5\n6\n").success(), "3 18\n");
    let piped = dir.pipe("sum --segments - x.npy", "0\n1\n6\n");
    assert_eq!(piped.success(), "3 20\n");
}

#[test]
fn offsets_are_integers_of_any_type_and_format() {
    let dir = sample();
    let sums = "4 0 19\n";
    let bytes = |size: usize| -> Vec<u8> {
        [0u64, 2, 2, 6].iter().flat_map(|n| n.to_le_bytes()[..size].to_vec()).collect()
    };
    for (descr, size) in [
        ("|i1", 1),
        ("|u1", 1),
        ("<i2", 2),
        ("<u2", 2),
        ("<i4", 4),
        ("<u4", 4),
        ("<i8", 8),
        ("<u8", 8),
    ] {
        dir.npy("o.npy", descr, &[4], &bytes(size));
        assert_eq!(dir.prints("sum --segments o.npy x.npy"), sums, "{descr}");
    }
    dir.file("t.csv", "day,first\nmon,0\ntue,2\nwed,2\nthu,6\n");
    assert_eq!(dir.prints("sum --segments t.csv:first x.npy"), sums);
    for (descr, size, says_it) in [("<f8", 8, "f64"), ("|b1", 1, "bool")] {
        dir.npy("o.npy", descr, &[4], &bytes(size));
        says(
            &dir.fails(1, "sum --segments o.npy x.npy"),
            &["o.npy", "integers", says_it, "hint: "],
        );
    }
    dir.file("gap.csv", "first,b\n0,1\n,2\n6,3\n");
    says(&dir.fails(1, "sum --segments gap.csv:first x.npy"), &["1 of the offsets", "hint: "]);
    dir.file("two.csv", "a,b\n0,0\n1,6\n");
    says(&dir.fails(1, "sum --segments two.csv x.npy"), &["which column"]);
    says(&dir.fails(1, "sum --segments none.npy x.npy"), &["none.npy"]);
}

#[test]
fn columns_of_text_are_of_the_type_that_all_cells_show() {
    let dir = sample();
    // Integers, with a hole; a decimal that comes late; one beyond i64; minus zero.
    dir.file(
        "t.csv",
        "a,b,c,d\n1,1,1,-0\n,2,2,-0\n3,3,3,0\n4,4,4,-0\n5,5.5,5,0.5\n6,6,18446744073709551615,1\n",
    );
    assert_eq!(dir.prints("sum -q -c a --segments o.txt t.csv"), "1 0 18\n");
    assert_eq!(dir.prints("argmax -q -c a --segments full.txt t.csv"), "0 3\n");
    assert_eq!(dir.prints("count -q -c a --segments o.txt t.csv"), "1 0 4\n");
    assert_eq!(dir.prints("sum -c b --segments full.txt t.csv"), "3 18.5\n");
    assert_eq!(dir.prints("max -c c --segments full.txt t.csv"), "2 18446744073709551615\n");
    assert_eq!(
        dir.prints("max -c d --segments full.txt t.csv --hex"),
        "0x8000000000000000 0x3ff0000000000000\n"
    );
    let both = dir.prints("sum -q -c a,b --segments full.txt t.csv -f csv");
    assert_eq!(both.lines().count(), 5, "{both}");
    let Run { err, .. } = dir.run("sum -c a --segments o.txt t.csv");
    says(&err, &["1 row has no value"]);
    // Two pieces, the second with decimals, one after the other.
    dir.file("p.txt", "1\n2\n3\n");
    dir.file("q.txt", "4\n5\n6.5\n");
    assert_eq!(dir.prints("sum --segments full.txt p.txt q.txt"), "3 18.5\n");
    dir.file("large.txt", "-1\n18446744073709551615\n");
    dir.file("two.txt", "0\n2\n");
    says(&dir.fails(1, "sum --segments two.txt large.txt"), &["line 2", "does not fit i64"]);
}

#[test]
fn what_does_not_fit_is_an_error_with_a_hint() {
    let dir = sample();
    dir.file("down.txt", "0\n4\n2\n6\n");
    says(
        &dir.fails(1, "sum --segments down.txt x.npy"),
        &["down.txt, for x.npy: segment 1 begins at 4 and ends before that, at 2", "hint: "],
    );
    dir.file("far.txt", "0\n4\n7\n");
    says(
        &dir.fails(1, "sum --segments far.txt x.npy"),
        &["far.txt, for x.npy: segment 1 ends at 7", "6 elements", "hint: "],
    );
    dir.file("negative.txt", "-1\n4\n");
    says(&dir.fails(1, "sum --segments negative.txt x.npy"), &["segment 0 begins at -1"]);
    says(
        &dir.fails(1, "min --segments o.txt x.npy"),
        &["segment 1: min of no elements has no value", "hint: ", "--initial"],
    );
    says(
        &dir.fails(1, "mean --segments o.txt --initial 0 x.npy"),
        &["mean takes no initial", "hint: "],
    );
    dir.npy("b.npy", "|u1", &[2], &[1, 2]);
    dir.file("two.txt", "0\n2\n");
    says(&dir.fails(1, "sum --segments two.txt --initial -1 b.npy"), &["-1 is no u8", "hint: "]);
    dir.f64s("m.npy", &[2, 3], &[0.0; 6]);
    says(&dir.fails(1, "sum --segments o.txt m.npy"), &["m.npy", "2 axes", "hint: ", "--axis -1"]);
    says(
        &dir.fails(1, "sum --segments o.txt --memory-limit 40 x.npy"),
        &["40 bytes", "hint: ", "--memory-limit"],
    );
    assert_eq!(dir.prints("sum --segments o.txt --memory-limit 48 x.npy"), "4 0 19\n");
    assert_eq!(dir.prints("sum --segments o.txt --device sim x.npy"), "4 0 19\n");
    dir.fails(2, "sum --segments o.txt --axis 0 x.npy");
    dir.fails(2, "sum --initial 0 x.npy");
    dir.fails(2, "sum --segments o.txt --initial x x.npy");
    says(&dir.fails(2, "sum --segments - -"), &["stdin"]);
    // What is written is written whole or not at all.
    dir.fails(1, "min --segments o.txt x.npy -o out.npy");
    assert!(!dir.list().contains(&"out.npy".to_string()));
}

#[test]
fn segments_are_told_by_where_they_begin_and_end() {
    let dir = sample();
    dir.file("a.txt", "4\n0\n2\n").file("b.csv", "n,end\n1,6\n2,5\n3,2\n");
    let both = "--starts a.txt --stops b.csv:end";
    for (line, expected) in [
        ("sum {} x.npy", "14 14 0\n"),
        ("dot {} x.npy y.npy", "-5 10.5 0\n"),
        ("max --initial 7 {} x.npy", "9 7 7\n"),
        ("sum -j 2 --device sim {} x.npy", "14 14 0\n"),
    ] {
        assert_eq!(dir.prints(&line.replace("{}", both)), expected, "{line}");
    }
    let piped = dir.pipe("sum --starts - --stops b.csv:end x.npy", "4\n0\n2\n");
    assert_eq!(piped.success(), "14 14 0\n");
    dir.file("short.txt", "1\n").file("real.txt", "0.5\n1\n2\n").file("c.txt", "6\n-1\n2\n");
    for (line, parts) in [
        (
            "sum --starts a.txt --stops short.txt x.npy",
            &["a.txt and short.txt", "3 starts and 1 stops"][..],
        ),
        (
            "sum --starts a.txt --stops c.txt x.npy",
            &["a.txt and c.txt, for x.npy", "segment 1 begins at 0 and ends before"],
        ),
        ("sum --starts real.txt --stops a.txt x.npy", &["real.txt", "are f64", "hint: "]),
        ("min --starts a.txt --stops b.csv:end x.npy", &["x.npy", "segment 2", "--initial"]),
    ] {
        says(&dir.fails(1, line), parts);
    }
    for line in [
        "sum --starts a.txt x.npy",
        "sum --stops a.txt x.npy",
        "sum --starts a.txt --stops a.txt --segments o.txt x.npy",
        "sum --starts a.txt --stops a.txt --axis 0 x.npy",
        "sum --starts - --stops - x.npy",
        "sum --starts - --stops a.txt -",
    ] {
        dir.fails(2, line);
    }
}
