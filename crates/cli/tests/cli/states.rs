//! `partial` and `merge`.

use crate::common::{Dir, noise};
use crate::thorough::up_to;

/// Every operation whose answer the pieces must not change, by bits.
const EXACT: &str = "sum,mean,norm1,norm2,norm-inf,sumsq,var,std,minmax,range,argmin,argmax,argminmax,\
                     any,all,count,count-nonzero,count-nan,prod,logsumexp";

/// Seven uneven pieces, merged in an order that is not theirs.
#[test]
fn merged_pieces_print_what_a_single_run_prints() {
    let dir = Dir::new();
    let values = noise(70_001);
    dir.f64s("all.npy", &[values.len()], &values);
    let cuts = [0, 1, 4_096, 4_099, 20_000, 20_000, 65_537, values.len()];
    let mut states = Vec::new();
    for (i, pair) in cuts.windows(2).enumerate() {
        let piece = &values[pair[0]..pair[1]];
        dir.f64s("piece.npy", &[piece.len()], piece);
        let start = pair[0];
        dir.prints(&format!("partial {EXACT} --start {start} piece.npy -o {i}.state"));
        states.push(i);
    }
    for order in [[6, 0, 3, 5, 1, 4, 2], [0, 1, 2, 3, 4, 5, 6], [3, 2, 1, 0, 6, 5, 4]] {
        let list: String = order.iter().map(|i| format!(" {i}.state")).collect();
        let single = dir.prints(&format!("reduce --op {EXACT} --hex all.npy"));
        assert_eq!(dir.prints(&format!("merge --hex{list}")), single, "{order:?}");
    }
    // Merging some, then the rest, is merging all.
    dir.prints("merge 4.state 1.state 6.state -o some.state");
    let rest = "merge --hex 0.state some.state 5.state 3.state 2.state";
    let single = dir.prints(&format!("reduce --op {EXACT} --hex all.npy"));
    assert_eq!(dir.prints(rest), single);
}

#[test]
fn states_are_finished_under_any_rules() {
    let dir = Dir::new();
    dir.f64s("a.npy", &[4], &[1.0, f64::NAN, 3.0, 8.0]);
    dir.prints("partial mean,var a.npy -o a.state");
    assert_eq!(dir.prints("merge a.state"), "mean\tnan\nvar\tnan\n");
    assert_eq!(dir.prints("merge --nan omit --ddof 1 a.state"), "mean\t4\nvar\t13\n");
    assert_eq!(
        dir.prints("merge --nan omit --out f32 --hex a.state"),
        "mean\t0x40800000\nvar\t0x410aaaab\n"
    );
    assert!(dir.fails(1, "merge --nan error a.state").contains("NaN"));
    dir.prints("merge --nan omit a.state -o a.csv");
    assert!(dir.path("a.csv").exists());
}

/// As `reduce` takes them, and as the first word.
#[test]
fn operations_are_named_by_flag_or_first() {
    let dir = Dir::new();
    dir.f64s("a.npy", &[2], &[1.0, 2.0]).f64s("b.npy", &[1], &[5.0]).f64s("sum", &[1], &[9.0]);
    for line in [
        "partial sum,max a.npy b.npy -o s.state",
        "partial --op sum,max a.npy b.npy -o s.state",
        "partial --op sum --op max a.npy b.npy -o s.state",
        "partial a.npy --op=sum,max b.npy -o s.state",
        "partial -o s.state a.npy b.npy --op sum,max",
    ] {
        dir.prints(line);
        assert_eq!(dir.prints("merge s.state"), "sum\t8\nmax\t5\n", "{line}");
    }
    // The first word is the first file.
    for (line, place) in [("a.npy --op argmax b.npy", "2"), ("b.npy --op argmax a.npy", "0")] {
        dir.prints(&format!("partial {line} -o s.state"));
        assert_eq!(dir.prints("merge s.state"), format!("{place}\n"), "{line}");
    }
    // A file may be called like an operation.
    dir.prints("partial --op max sum -o s.state");
    assert_eq!(dir.prints("merge s.state"), "9\n");
    assert_eq!(dir.pipe("partial --op max -o s.state", "1\n4\n").success(), "");
    assert_eq!(dir.prints("merge s.state"), "4\n");
    for (line, part) in [
        ("partial total a.npy -o s.state", "'total'"),
        ("partial a.npy -o s.state", "'a.npy'"),
        ("partial sum, a.npy -o s.state", "OPS"),
        ("partial --op total a.npy -o s.state", "'total'"),
        ("partial -o s.state", "<OPS>"),
        ("partial --op sum,sum a.npy -o s.state", "sum is named twice"),
        ("partial sum --start -1 a.npy -o s.state", "'-1'"),
        ("partial argmax --start 18446744073709551615 a.npy -o s.state", "9223372036854775807"),
    ] {
        let complaint = dir.fails(2, line);
        assert!(complaint.contains(part), "{line}: {complaint}");
    }
    dir.prints("partial argmax --start 9223372036854775807 a.npy -o s.state");
    assert_eq!(dir.prints("merge s.state"), "9223372036854775808\n");
}

#[test]
fn rules_are_for_answers() {
    let dir = Dir::new();
    dir.f64s("a.npy", &[2], &[1.0, 2.0]);
    dir.prints("partial var a.npy -o a.state");
    for rule in ["--hex", "--ddof 1", "--nan omit", "--out f32", "--wrap"] {
        let complaint = dir.fails(2, &format!("merge a.state {rule} -o b.state"));
        assert!(complaint.contains("hint: "), "{complaint}");
    }
    dir.prints("merge a.state -o b.state");
    assert_eq!(dir.prints("merge --ddof 1 b.state"), "0.5\n");
}

#[test]
fn states_travel_through_pipes() {
    let dir = Dir::new();
    dir.f64s("a.npy", &[2], &[1.0, 2.0]);
    let mut partial = dir.command("partial sum a.npy -o -");
    let state = partial.output().unwrap().stdout;
    assert_eq!(dir.pipe("merge -", &state).success(), "3\n");
}

#[test]
fn states_along_axes_of_pairs_and_of_gaps() {
    let dir = Dir::new();
    dir.file("p.csv", "x,y\n1,2\n3,4\n").file("g.csv", "x,y\n1,2\n,4\n");
    dir.prints("partial dot -c x,y p.csv -o d.state");
    assert_eq!(dir.prints("merge d.state"), "14\n");
    dir.prints("partial count -c x g.csv -o g.state");
    let json = dir.prints("merge -f json g.state g.state");
    assert!(json.contains("\"missing\":2"), "{json}");
}

/// Pieces along the first axis, which goes with or without others.
#[test]
fn states_keep_the_axes_that_stay() {
    let dir = Dir::new();
    let values = noise(60 * 4 * 3);
    dir.f64s("all.npy", &[60, 4, 3], &values);
    let cuts = [0, 7, 8, 41, 60];
    for (axes, each) in [("0", 1), ("0,2", 3), ("-3,1", 4), ("0,1,2", 12), ("0 --keepdims", 1)] {
        let ops = "sum,var,minmax,argmax,prod,logsumexp,norm2,count";
        let mut states = String::new();
        for (i, pair) in cuts.windows(2).enumerate() {
            let piece = &values[pair[0] * 12..pair[1] * 12];
            dir.f64s("piece.npy", &[pair[1] - pair[0], 4, 3], piece);
            dir.prints(&format!(
                "partial {ops} --axis {axes} --start {} piece.npy -o {i}.state",
                pair[0] * each
            ));
            states = format!(" {i}.state{states}");
        }
        let single = dir.prints(&format!("reduce --op {ops} --axis {axes} --hex -f json all.npy"));
        let merged = dir.prints(&format!("merge --hex -f json{states}"));
        assert_eq!(merged, single, "{axes}");
    }
    dir.prints("partial sum --axis 0 all.npy -o a.state");
    dir.prints("partial sum --axis 0,1 all.npy -o b.state");
    assert!(dir.fails(1, "merge a.state b.state").contains("b.state: "));
    for axes in ["1", "-1", "1,2"] {
        let complaint = dir.fails(2, &format!("partial sum --axis {axes} all.npy -o c.state"));
        assert!(
            complaint.contains("axis 0, which is not reduced") && complaint.contains("hint: "),
            "{complaint}"
        );
    }
    assert!(dir.fails(1, "partial sum --axis 3 all.npy -o c.state").contains("axis 3"));
    assert!(!dir.path("c.state").exists());
}

#[test]
fn states_that_do_not_belong_together() {
    let dir = Dir::new();
    dir.f64s("a.npy", &[2], &[1.0, 2.0]).npy("f.npy", "<f4", &[2], &[0; 8]);
    dir.prints("partial sum a.npy -o sum.state");
    dir.prints("partial max a.npy -o max.state");
    dir.prints("partial sum f.npy -o f32.state");
    dir.prints("partial argmax a.npy -o arg.state");
    for (line, parts) in [
        ("merge sum.state max.state", &["max.state", "operation"][..]),
        ("merge sum.state f32.state", &["f32.state", "f64", "f32"]),
        ("merge arg.state arg.state", &["arg.state", "element 0", "--start"]),
    ] {
        let complaint = dir.fails(1, line);
        for part in parts {
            assert!(complaint.contains(part), "{line}: {part:?} is not in:\n{complaint}");
        }
    }
    // Nothing in a plain sum tells a piece from its copy.
    assert_eq!(dir.prints("merge sum.state sum.state"), "6\n");
}

#[test]
fn a_piece_that_is_missing_is_noticed() {
    let dir = Dir::new();
    dir.f64s("a.npy", &[2], &[1.0, 2.0]);
    dir.prints("partial argmin a.npy -o first.state");
    dir.prints("partial argmin a.npy --start 5 -o last.state");
    let complaint = dir.fails(1, "merge first.state last.state");
    assert!(complaint.contains("2 to 5"), "{complaint}");
    // Products know no positions.
    dir.prints("partial prod a.npy -o first.state");
    assert_eq!(dir.prints("merge first.state first.state"), "4\n");
    let rows = |from: usize, to: usize| (from..to).map(|i| format!("{i}\n")).collect::<String>();
    for (name, from, to) in [("a", 0, 3000), ("b", 3000, 7000), ("c", 7000, 10_000)] {
        dir.file("piece.txt", rows(from, to));
        dir.prints(&format!("partial argmax,max piece.txt --start {from} -o {name}.state"));
    }
    let complaint = dir.fails(1, "merge a.state c.state");
    assert!(complaint.contains("3000 to 7000") && complaint.contains("--start"), "{complaint}");
    assert_eq!(dir.prints("merge a.state c.state b.state"), "argmax\t9999\nmax\t9999\n");
    // A piece from anywhere has an answer, and so have neighbours.
    assert_eq!(dir.prints("merge c.state b.state"), "argmax\t9999\nmax\t9999\n");
}

#[test]
fn an_empty_raw_piece_is_a_piece() {
    let dir = Dir::new();
    let x: Vec<u8> = [1.0f64, 3.0, 2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    dir.file("empty.bin", []).file("empty", []).file("x.bin", &x);
    dir.prints("partial sum,argmax --dtype f64 x.bin -o x.state");
    dir.prints("partial sum,argmax --dtype f64 --start 3 empty.bin -o by-name.state");
    dir.prints("partial sum,argmax --dtype f64 --format raw empty -o by-format.state");
    let merged = dir.prints("merge by-name.state x.state by-format.state");
    assert_eq!(merged, "sum\t6\nargmax\t1\n");
    assert_eq!(dir.prints("sum --dtype f64 x.bin empty.bin x.bin"), "12\n");
    let piped = dir.pipe("partial sum,argmax --dtype f64 --format raw - -o pipe.state", []);
    piped.success();
    assert_eq!(dir.prints("merge pipe.state x.state"), "sum\t6\nargmax\t1\n");
    // Without a word about raw bytes they are text without a line.
    assert_eq!(dir.prints("sum empty"), "0\n");
    assert_eq!(dir.prints("sum --dtype f64 empty"), "0\n");
}

/// What version 0.1 wrote for `partial sum --accuracy fast` of 1.5 and 2.
const PLAIN_SUM: &str = "57415250464f4c44010000000d010000010000000000000000000000000000000000010000000000\
     00000100000000000000e3552b845746737401000c0d3b0000000000000000000000000000000000\
     000000000000000000000000000000010000000000000000000000000000000200000000000000f8\
     3f0000000000000040face8e5c00000000";

#[test]
fn states_of_sums_that_were_not_exact_say_so() {
    let dir = Dir::new();
    let hex = |at: usize| u8::from_str_radix(&PLAIN_SUM[at..at + 2], 16).unwrap();
    dir.file("plain.state", (0..PLAIN_SUM.len()).step_by(2).map(hex).collect::<Vec<u8>>());
    let complaint = dir.fails(1, "merge plain.state");
    for part in ["plain.state: the state is a plain sum", "hint: ", "without --accuracy fast"] {
        assert!(complaint.contains(part), "{part:?} is not in:\n{complaint}");
    }
}

#[test]
fn damaged_states_are_refused() {
    let dir = Dir::new();
    dir.f64s("a.npy", &[2], &[1.0, 2.0]);
    dir.prints("partial sum,argmax a.npy -o whole.state");
    let whole = std::fs::read(dir.path("whole.state")).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        if at % up_to(7, 11) == 0 || at < 48 {
            dir.file("bad.state", &bytes);
            let complaint = dir.fails(1, "merge bad.state");
            assert!(complaint.contains("bad.state"), "byte {at}: {complaint}");
        }
    }
    dir.file("bad.state", &whole[..whole.len() - 1]);
    dir.fails(1, "merge bad.state");
    dir.file("bad.state", [&whole[..], b"x"].concat());
    dir.fails(1, "merge bad.state");
    let mut newer = whole.clone();
    newer[8] = 99;
    dir.file("bad.state", &newer);
    assert!(dir.fails(1, "merge bad.state").contains("version 99"));
    dir.fails(1, "merge a.npy");
}

/// A piece of text without a decimal merges with one that has some, in any order
/// and in stages, to what one pass over all of them gives.
#[test]
fn pieces_of_text_may_differ_in_type() {
    let dir = Dir::new();
    let pieces =
        ["9007199254740993\n-3\n", "NA\nNA\n", "0.5\n1e300\n", "18446744073709551615\n7\n"];
    let all: String = pieces.concat();
    dir.file("all.csv", format!("x\n{all}"));
    for (i, piece) in pieces.iter().enumerate() {
        dir.file(&format!("{i}.csv"), format!("x\n{piece}"));
        dir.prints(&format!("partial {EXACT} -c x --start {} {i}.csv -o {i}.state", 2 * i));
    }
    let single = dir.prints(&format!("reduce --op {EXACT} -c x --hex all.csv"));
    for order in [[0, 1, 2, 3], [3, 0, 1, 2], [1, 3, 2, 0], [0, 3, 1, 2]] {
        let list: String = order.iter().map(|i| format!(" {i}.state")).collect();
        assert_eq!(dir.prints(&format!("merge --hex{list}")), single, "{order:?}");
    }
    dir.prints("merge 0.state 1.state -o front.state");
    dir.prints("merge 3.state 2.state -o back.state");
    assert_eq!(dir.prints("merge --hex front.state back.state"), single);
    // Without the decimals no type holds all.
    let complaint = dir.fails(1, "merge 1.state 0.state 3.state");
    assert!(complaint.contains("3.state: states of different element type"), "{complaint}");
    assert!(complaint.contains("hint: ") && complaint.contains("--dtype f64"), "{complaint}");
    dir.prints("partial sum -c x 0.csv -o 0.state");
    dir.prints("partial sum -c x --dtype f64 3.csv -o 3.state");
    let sum = dir.prints("sum --dtype f64 -c x 0.csv 3.csv");
    assert_eq!(dir.prints("merge 0.state 3.state"), sum);
}
