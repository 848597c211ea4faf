//! What the operations answer over files.

use crate::common::Dir;

fn sample() -> Dir {
    let dir = Dir::new();
    dir.f64s("a.npy", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    dir.f64s("b.npy", &[1, 3], &[7.0, 8.0, 9.5]);
    dir.file("t.csv", "x,y,t\n1,2,a\n3,,b\n5,6,c\n");
    dir
}

#[test]
fn every_operation_answers() {
    let dir = sample();
    dir.npy("i.npy", "|u1", &[4], &[3, 0, 5, 5]);
    for (line, expected) in [
        ("sum i.npy", "13"),
        ("mean i.npy", "3.25"),
        ("norm1 a.npy", "21"),
        ("norm2 i.npy", "7.681145747868608"),
        ("norm-inf a.npy", "6"),
        ("sumsq i.npy", "59"),
        ("dot a.npy a.npy", "91"),
        ("var i.npy", "4.1875"),
        ("var --ddof 1 a.npy", "3.5"),
        ("std i.npy", "2.0463381929681126"),
        ("min i.npy", "0"),
        ("max i.npy", "5"),
        ("minmax i.npy", "0 5"),
        ("range i.npy", "5"),
        ("argmin i.npy", "1"),
        ("argmax i.npy", "2"),
        ("argminmax i.npy", "1 2"),
        ("any i.npy", "true"),
        ("all i.npy", "false"),
        ("count i.npy", "4"),
        ("count-nonzero i.npy", "3"),
        ("count-nan i.npy", "0"),
        ("and i.npy", "0"),
        ("or i.npy", "7"),
        ("xor i.npy", "3"),
        ("prod a.npy", "720"),
        ("logsumexp b.npy", "9.766367899807134"),
    ] {
        assert_eq!(dir.prints(line), format!("{expected}\n"), "{line}");
    }
}

#[test]
fn axes_count_from_both_ends() {
    let dir = sample();
    assert_eq!(dir.prints("sum -a 0 a.npy"), "5 7 9\n");
    assert_eq!(dir.prints("sum -a -1 a.npy"), "6 15\n");
    assert_eq!(dir.prints("sum -a 0,-1 a.npy"), "21\n");
    assert_eq!(dir.prints("sum -a -1,0 --keepdims a.npy"), "21\n");
    assert_eq!(dir.prints("sum --axis=-1 --keepdims a.npy"), "6\n15\n");
}

#[test]
fn files_are_joined_in_the_order_given() {
    let dir = sample();
    assert_eq!(dir.prints("sum a.npy b.npy"), "45.5\n");
    assert_eq!(dir.prints("argmax a.npy b.npy"), "8\n");
    assert_eq!(dir.prints("argmax b.npy a.npy"), "2\n");
    assert_eq!(dir.prints("sum -a 1 b.npy a.npy"), "24.5 6 15\n");
    assert_eq!(dir.prints("argmax ?.npy"), "8\n");
}

#[test]
fn a_real_name_wins_over_a_glob() {
    let dir = sample();
    dir.f64s("[ab].npy", &[1], &[-1.0]);
    assert_eq!(dir.prints("sum [ab].npy"), "-1\n");
}

#[test]
fn columns_are_answered_one_by_one() {
    let dir = sample();
    assert_eq!(dir.prints("sum -c x t.csv"), "9\n");
    assert_eq!(dir.prints("sum t.csv:y"), "8\n");
    assert_eq!(dir.prints("sum -c x,2 t.csv"), "x\t9\ny\t8\n");
    dir.file("u.csv", "y,x\n10,20\n");
    assert_eq!(dir.prints("sum -c x,y t.csv u.csv"), "x\t29\ny\t18\n");
}

#[test]
fn missing_cells_are_left_out_aloud() {
    let dir = sample();
    let run = dir.run("mean t.csv:y");
    assert!(run.err.contains("note: ") && run.err.contains("1 row"), "{run:?}");
    assert_eq!(run.success(), "4\n");
    assert_eq!(dir.run("mean -q t.csv:y").err, "");
    assert!(dir.fails(1, "mean --strict t.csv:y").contains("line 3"));
}

#[test]
fn dot_pairs_files_or_columns() {
    let dir = sample();
    dir.file("p.csv", "x,y\n1,2\n3,4\n");
    assert_eq!(dir.prints("dot -c x,y p.csv"), "14\n");
    assert_eq!(dir.prints("dot p.csv:x p.csv:y"), "14\n");
    assert_eq!(dir.prints("dot p.csv p.csv -c x,y"), "x\t10\ny\t20\n");
}

#[test]
fn the_last_word_on_headers_counts() {
    let dir = Dir::new();
    dir.file("n.csv", "1\n2\n3\n");
    assert_eq!(dir.prints("sum --format csv n.csv"), "6\n");
    assert_eq!(dir.prints("sum --format csv --header n.csv"), "5\n");
    assert_eq!(dir.prints("sum --format csv --header --no-header n.csv"), "6\n");
    assert_eq!(dir.prints("sum --format csv --no-header --header n.csv"), "5\n");
}

#[test]
fn raw_bytes_need_only_flags() {
    let dir = Dir::new();
    let values: Vec<u8> = [1.5f32, 2.0, -4.0].iter().flat_map(|x| x.to_be_bytes()).collect();
    dir.file("r.bin", [b"head".to_vec(), values].concat());
    let flags = "--dtype float32 --offset 4 --endian big r.bin";
    assert_eq!(dir.prints(&format!("sum {flags}")), "-0.5\n");
    assert_eq!(dir.prints(&format!("sum -a 0 --shape 3,1 {flags}")), "-0.5\n");
    assert_eq!(dir.prints(&format!("sum -a 1 --shape 3,1 {flags}")), "1.5 2 -4\n");
}

#[test]
fn nans_follow_the_policy() {
    let dir = Dir::new();
    dir.f64s("n.npy", &[3], &[1.0, f64::NAN, 2.0]);
    assert_eq!(dir.prints("sum n.npy"), "nan\n");
    assert_eq!(dir.prints("argmax n.npy"), "1\n");
    assert_eq!(dir.prints("sum --nan omit n.npy"), "3\n");
    assert_eq!(dir.prints("count-nan n.npy"), "1\n");
    let complaint = dir.fails(1, "max --nan error n.npy");
    assert!(complaint.contains("1 NaN") && complaint.contains("hint: "), "{complaint}");
}

#[test]
fn integers_answer_in_the_type_asked_for() {
    let dir = Dir::new();
    let values: Vec<u8> = [i64::MAX, 1].iter().flat_map(|x| x.to_le_bytes()).collect();
    dir.npy("i.npy", "<i8", &[2], &values);
    let complaint = dir.fails(1, "sum i.npy");
    assert!(complaint.contains("9223372036854775808"), "{complaint}");
    assert!(complaint.contains("--out f64") && complaint.contains("--wrap"), "{complaint}");
    assert_eq!(dir.prints("sum --wrap i.npy"), "-9223372036854775808\n");
    assert_eq!(dir.prints("sum --out u64 i.npy"), "9223372036854775808\n");
    assert_eq!(dir.prints("sum --out f64 i.npy"), "9.223372036854776e18\n");
}

#[test]
fn threads_instructions_and_memory_change_nothing() {
    let dir = Dir::new();
    let values = crate::common::noise(100_003);
    dir.f64s("n.npy", &[values.len()], &values);
    let ops = "reduce --op sum,mean,var,norm2,prod,logsumexp,argmin,min --hex n.npy";
    let expected = dir.prints(ops);
    for flags in ["-j 1", "-j 2", "-j 5 --memory-limit 1M", "--device cpu"] {
        assert_eq!(dir.prints(&format!("{ops} {flags}")), expected, "{flags}");
    }
    for isa in ["sse2", "avx2", "avx512"] {
        let output = dir.command(ops).env("WARPFOLD_CPU", isa).output().unwrap();
        if output.status.success() {
            assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{isa}");
        }
    }
}

#[test]
fn statistics_show_a_dash_where_there_is_no_value() {
    let dir = sample();
    dir.f64s("e.npy", &[0], &[]);
    let answers = dir.prints("stats e.npy");
    assert!(answers.contains("min\t-\n") && answers.contains("sum\t0\n"), "{answers}");
    let answers = dir.prints("stats -f json e.npy");
    assert!(answers.contains("\"min\":null") && answers.contains("\"mean\":\"NaN\""), "{answers}");
    // A position has no float form: the type is meant for the others.
    let answers = dir.prints("stats --out f64 a.npy");
    assert!(answers.contains("argmax\t5\n") && answers.contains("sum\t21\n"), "{answers}");
}

#[test]
fn statistics_take_all_columns_with_numbers() {
    let dir = sample();
    let answers = dir.prints("stats -f csv t.csv");
    let expected = "\
name,count,sum,mean,std,min,max,argmin,argmax,count-nan,missing
x,3,9,3,1.632993161855452,1,5,0,2,0,0
y,2,8,4,2,2,6,0,2,0,1
";
    assert_eq!(answers, expected);
}

#[test]
fn statistics_join_tables_column_by_column() {
    let dir = sample();
    dir.file("u.csv", "y,x\n10,20\n");
    let answers = dir.prints("stats t.csv u.csv");
    assert!(answers.contains("x\tsum\t29\n") && answers.contains("y\tsum\t18\n"), "{answers}");
}

/// An empty file is a mistake, unless the caller says that it holds nothing.
#[test]
fn nothing_is_no_elements() {
    let dir = Dir::new();
    dir.file("none.bin", "");
    assert_eq!(dir.prints("sum --dtype f32 --shape 0 none.bin"), "0\n");
    assert_eq!(dir.prints("sum --dtype f32 --shape 2,0 --axis 1 none.bin"), "0 0\n");
    // Raw bytes that are none are no elements, as on a pipe.
    assert_eq!(dir.prints("sum --dtype f32 none.bin"), "0\n");
    assert!(dir.fails(1, "sum --dtype f32 --shape 1 none.bin").contains("has 0"));
}
