//! CSV, TSV and plain numbers.

use crate::common::*;
use crate::thorough::cases;
use half::{bf16, f16};
use proptest::prelude::*;
use warpfold_core::DType;
use warpfold_files::{ColumnSelector, Extent, Format, OpenOptions, inspect, open};

fn defaults() -> OpenOptions {
    OpenOptions::default()
}

fn columns(list: &str) -> OpenOptions {
    OpenOptions { columns: ColumnSelector::parse_list(list).unwrap(), ..defaults() }
}

fn typed(dtype: DType) -> OpenOptions {
    OpenOptions { dtype: Some(dtype), ..defaults() }
}

#[test]
fn csv_columns_by_name_place_and_range() {
    let dir = Dir::new();
    let path = dir.file("t.csv", "id,price,qty,name\n1,2.5,10,a\n2,-3e2,20,b\n3,+7,30,c\n");
    assert_eq!(load::<f64>(&path, &columns("price")), [2.5, -300.0, 7.0]);
    assert_eq!(load::<f64>(&path, &columns("2")), [2.5, -300.0, 7.0]);
    assert_eq!(load::<f64>(&format!("{path}:qty"), &defaults()), [10.0, 20.0, 30.0]);
    let three = open(&path, &columns("qty,1-2")).unwrap();
    let names: Vec<_> = three.iter().map(|s| s.name.clone()).collect();
    assert_eq!(names, ["qty", "id", "price"].map(|n| format!("{path}:{n}")));
    let all: Vec<Vec<f64>> = three.into_iter().map(values).collect();
    assert_eq!(all, [[10.0, 20.0, 30.0], [1.0, 2.0, 3.0], [2.5, -300.0, 7.0]]);
    let (message, hint) = complaint(&path, &defaults());
    assert!(message.contains("There are 3 with numbers: id, price, qty"), "{message}");
    assert!(hint.contains("-c"), "{hint}");
    let (message, _) = complaint(&path, &columns("prize"));
    assert!(message.contains("no column \"prize\"; there are id, price, qty, name"), "{message}");
    let (message, _) = complaint(&path, &columns("5"));
    assert!(message.contains("there are only 4"), "{message}");
}

#[test]
fn csv_headers_are_found_by_their_not_being_numbers() {
    let dir = Dir::new();
    let with = |text: &str, options: &OpenOptions| load::<f64>(&dir.file("t.csv", text), options);
    let header = |h| OpenOptions { header: Some(h), ..defaults() };
    assert_eq!(with("1\n2\n", &defaults()), [1.0, 2.0]);
    assert_eq!(with("x\n1\n2\n", &defaults()), [1.0, 2.0]);
    assert_eq!(with("2019\n1\n2\n", &header(true)), [1.0, 2.0]);
    assert_eq!(with("1\n2\n", &header(false)), [1.0, 2.0]);
    // Only the columns of numbers tell: text in the first row is data here.
    assert_eq!(with("abc,1\ndef,2\n", &defaults()), [1.0, 2.0]);
    assert_eq!(with("name,n\ndef,2\n", &defaults()), [2.0]);
    assert_eq!(with("abc,1\ndef,2\n", &columns("2")), [1.0, 2.0]);
    assert_eq!(with("\"n\",\"m\"\r\n\"1\",\"2\"\r\n", &columns("m")), [2.0]);
    assert_eq!(with("x,y\n", &columns("y")), [0.0; 0]);
    let (message, _) = complaint(&dir.file("t.csv", "x\n1\n"), &header(false));
    assert!(message.contains("line 1, column 1: \"x\" is not a number"), "{message}");
}

#[test]
fn csv_oddities() {
    let dir = Dir::new();
    for (text, expected) in [
        ("\u{feff}x\n1\n2\n", vec![1.0, 2.0]),
        ("\u{feff}1\n2\n", vec![1.0, 2.0]),
        ("1\r\n2\r\n\r\n3", vec![1.0, 2.0, 3.0]),
        ("\n\n1\n\n  \n2\n\n", vec![1.0, 2.0]),
        (" 1 \n\t2\t\n", vec![1.0, 2.0]),
        ("\"1\"\n\" 2 \"\n3\n", vec![1.0, 2.0, 3.0]),
        ("nan\ninf\n-Inf\n", vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
        ("1e-400\n+5\n.5\n", vec![0.0, 5.0, 0.5]),
        ("\"a\nb\"\n1\n", vec![1.0]),
    ] {
        let got = load::<f64>(&dir.file("t.csv", text), &defaults());
        let bits = |v: &[f64]| {
            v.iter().map(|x| if x.is_nan() { 1 } else { x.to_bits() }).collect::<Vec<_>>()
        };
        assert_eq!(bits(&got), bits(&expected), "{text:?}");
    }
    let text = "note,n\n\"a, \"\"quoted\"\"\nnote\",1\nplain \" quote,2\n\"x\"y,3\n";
    let path = dir.file("q.csv", text);
    assert_eq!(load::<f64>(&path, &columns("n")), [1.0, 2.0, 3.0]);
}

#[test]
fn csv_delimiters() {
    let dir = Dir::new();
    for (name, text) in [
        ("a.csv", "a;b\n1;2\n"),
        ("a.csv", "a|b\n1|2\n"),
        ("a.tsv", "a\tb\n1\t2\n"),
        ("a.csv", "a\tb\n1\t2\n"),
    ] {
        assert_eq!(load::<f64>(&dir.file(name, text), &columns("b")), [2.0], "{text:?}");
    }
    let colon = OpenOptions { delimiter: Some(b':'), ..columns("2") };
    assert_eq!(load::<f64>(&dir.file("a.txt", "1:2\n3:4\n"), &colon), [2.0, 4.0]);
    // In a table of tabs an empty line of tabs is a row of gaps.
    let path = dir.file("g.tsv", "a\tb\n1\t2\n\t\n3\t\n");
    let all = read(one(&path, &columns("b"))).unwrap();
    assert_eq!((all.gaps, all.rows), (vec![1, 2], 3));
}

#[test]
fn csv_gaps_are_counted_or_refused() {
    let dir = Dir::new();
    let path = dir.file("g.csv", "a,b\n,1\n2,\n,\n\"\",4\n5,5\n");
    let all = read(one(&path, &columns("a"))).unwrap();
    assert_eq!((all.gaps, all.rows, all.bytes.len()), (vec![0, 2, 3], 5, 16));
    let (message, _) = complaint(&path, &OpenOptions { strict: true, ..columns("b") });
    assert!(message.contains("line 3, column 2 (b): the cell is empty"), "{message}");
}

#[test]
fn csv_complaints_name_the_place() {
    let dir = Dir::new();
    let long = "y".repeat(900);
    for (text, column, what) in [
        ("a,b\n1,2\n3,4x\n", "b", "t.csv: line 3, column 2 (b): \"4x\" is not a number"),
        ("a,b\n\n\"x\ny\",2\n\n3,z\n", "b", "line 6, column 2 (b): \"z\" is not a number"),
        ("a,b\n1,2\n3\n", "a", "line 3: 1 field where the first row has 2"),
        ("a,b\n1,2\n3,4,5\n", "a", "line 3: 3 fields where the first row has 2"),
        ("a,b\n\"1\",2\n3,4,5\n", "a", "line 3: 3 fields where the first row has 2"),
        ("a,b\n1,2\n3,\"4\n5,6\n", "a", "line 3: a quote in this row is never closed"),
        (&format!("a,b\n1,2\n3,{long}\n"), "b", "yyyy…\" is not a number"),
        ("a,b\n1,2\n3,na\n", "b", "\"na\" is not a number"),
    ] {
        let (message, _) = complaint(&dir.file("t.csv", text), &columns(column));
        assert!(message.contains(what), "{message}");
        assert!(message.len() < 300);
    }
    let (message, hint) = complaint(&dir.file("t.csv", "5\n5.5\n"), &typed(DType::I32));
    assert!(message.contains("line 2, column 1: \"5.5\" is not an integer"), "{message}");
    assert!(hint.contains("--dtype f64"), "{hint}");
    let (message, _) = complaint(&dir.file("t.csv", "5\n300\n"), &typed(DType::U8));
    assert!(message.contains("line 2, column 1: \"300\" does not fit u8"), "{message}");
    let (message, _) = complaint(&dir.file("t.csv", "a,b\n1,x\n"), &columns("c"));
    assert!(message.contains("there are a, b"), "{message}");
    let (message, hint) = complaint(&dir.file("t.csv", "1,2\n"), &columns("3"));
    assert!(message.contains("only 2"), "{message}");
    assert!(hint.contains("--header"), "{hint}");
    let (message, hint) = complaint(&dir.file("t.csv", b"\xff\xfe1\0\n\0"), &defaults());
    assert!(message.contains("UTF-16") && hint.contains("iconv"), "{message}");
    let (message, _) = complaint(&dir.file("t.csv", "\n \n"), &defaults());
    assert!(message.contains("no rows"), "{message}");
}

#[test]
fn lines_are_counted_across_blocks() {
    let dir = Dir::new();
    // Several blocks, with quotes only in the middle one.
    let rows = 400_000;
    let mut text = String::from("k,v\n");
    for i in 0..rows {
        if i == rows / 2 {
            text += "\"two\nlines\",1\n";
        } else {
            text += &format!("{i},{}\n", i as f64 / 8.0);
        }
    }
    let path = dir.file("t.csv", &text);
    let got = load::<f64>(&path, &columns("v"));
    let expected = (0..rows).map(|i| if i == rows / 2 { 1.0 } else { i as f64 / 8.0 });
    assert!(got.into_iter().eq(expected));
    let path = dir.file("t.csv", text + "1,oops\n");
    let (message, _) = complaint(&path, &columns("v"));
    assert!(message.contains(&format!("line {}, column 2 (v): \"oops\"", rows + 3)), "{message}");
}

#[test]
fn text_of_every_type() {
    let dir = Dir::new();
    fn check<T: bytemuck::Pod + PartialEq + std::fmt::Debug>(
        dir: &Dir,
        dtype: DType,
        text: &[&str],
        expected: &[T],
    ) {
        for name in ["t.csv", "t.txt"] {
            let path = dir.file(name, text.join("\n"));
            let source = one(&path, &typed(dtype));
            assert_eq!(source.dtype, dtype);
            assert_eq!(source.extent, Extent::Column { rows: None });
            assert_eq!(values::<T>(source), expected, "{dtype}");
        }
    }
    check(&dir, DType::Bool, &["true", "FALSE", "1", "0"], &[1_u8, 0, 1, 0]);
    check(&dir, DType::I8, &["-128", "+127"], &[-128_i8, 127]);
    check(&dir, DType::I16, &["-32768", "32767"], &[i16::MIN, i16::MAX]);
    check(&dir, DType::I32, &["-2147483648", "2147483647"], &[i32::MIN, i32::MAX]);
    check(
        &dir,
        DType::I64,
        &["-9223372036854775808", "9007199254740993"],
        &[i64::MIN, (1 << 53) + 1],
    );
    check(&dir, DType::U8, &["0", "255"], &[0_u8, 255]);
    check(&dir, DType::U16, &["65535"], &[u16::MAX]);
    check(&dir, DType::U32, &["4294967295"], &[u32::MAX]);
    check(&dir, DType::U64, &["18446744073709551615"], &[u64::MAX]);
    check(
        &dir,
        DType::F16,
        &["1.00048828125", "65504", "1e9"],
        &[f16::ONE, f16::MAX, f16::INFINITY].map(f16::to_bits),
    );
    check(
        &dir,
        DType::BF16,
        &["-1.5", "1e-45"],
        &[bf16::from_f32(-1.5), bf16::ZERO].map(bf16::to_bits),
    );
    // Halfway between two f32, and a trace above: through f64 it would be lost.
    check(
        &dir,
        DType::F32,
        &["1.000000059604644775390625", "1.0000000596046447753906250000000001"],
        &[1.0_f32, 1.0 + f32::EPSILON],
    );
    check(&dir, DType::F64, &["0.1", "-0"], &[0.1_f64, -0.0]);
}

#[test]
fn plain_numbers_in_any_arrangement() {
    let dir = Dir::new();
    for text in [
        "1 2\t3\n\n4\n",
        "\u{feff}1\r\n2\r\n3 4",
        "  1\n2  3\n 4 \n\n",
        "\u{feff}\"1\"\r\n2 \"+3\"\n4",
    ] {
        for name in ["n.txt", "n"] {
            assert_eq!(
                load::<f64>(&dir.file(name, text), &defaults()),
                [1.0, 2.0, 3.0, 4.0],
                "{text:?}"
            );
        }
    }
    // Commas make it a table.
    let (message, _) = complaint(&dir.file("n.txt", "1,2\n3,4\n"), &defaults());
    assert!(message.contains("which column"), "{message}");
    let (message, hint) = complaint(&dir.file("n.txt", "1 2\n3 x4\n"), &defaults());
    assert!(message.contains("line 2: \"x4\" is not a number"), "{message}");
    assert!(hint.contains("--na"), "{hint}");
    let (message, hint) = complaint(&dir.file("n.txt", "price 5\n1\n"), &defaults());
    assert!(
        message.contains("line 1: \"price\" is not a number") && hint.contains("--header"),
        "{message}"
    );
    let header = OpenOptions { header: Some(true), ..defaults() };
    assert_eq!(load::<f64>(&dir.file("n.txt", "price 5\n1\n"), &header), [1.0]);
    let (message, hint) = complaint(&dir.file("n.txt", "1\n2,3\n"), &defaults());
    assert!(message.contains("line 2") && hint.contains("csv"), "{message}");
    let forced = OpenOptions { format: Some(Format::Text), ..columns("a") };
    let (message, _) = complaint(&dir.file("n.txt", "1\n"), &forced);
    assert!(message.contains("text data have none"), "{message}");
}

#[test]
fn plain_numbers_over_several_blocks() {
    let dir = Dir::new();
    let numbers: Vec<i64> = (0..700_000).map(|i| i * 7919 - 1_000_000).collect();
    let text: String =
        numbers.iter().map(|n| format!("{n}{}", if n % 3 == 0 { "\n" } else { " " })).collect();
    assert_eq!(load::<i64>(&dir.file("n.txt", text), &typed(DType::I64)), numbers);
}

#[test]
fn a_record_without_end_is_refused_in_bounded_memory() {
    let dir = Dir::new();
    let mut text = b"a,b\n1,2\n3,\"".to_vec();
    text.resize(70 << 20, b'x');
    let (message, hint) = complaint(&dir.file("t.csv", &text), &columns("a"));
    assert!(
        message.contains("line 2: the record that begins here")
            || message.contains("line 3: the record"),
        "{message}"
    );
    assert!(hint.contains("quote"), "{hint}");
}

#[test]
fn inspect_lists_the_columns_of_a_table() {
    let dir = Dir::new();
    let path = dir.file("t.csv", "id,name,x\n1,bob,\n");
    let all = inspect(&path, &defaults()).unwrap();
    let seen: Vec<_> = all.iter().map(|d| (d.name.clone(), d.dtype, d.why_not.is_some())).collect();
    let f64s = Some(DType::F64);
    let i64s = Some(DType::I64);
    assert_eq!(
        seen,
        [("id", i64s, false), ("name", None, true), ("x", f64s, false)].map(|(n, d, w)| (
            format!("{path}:{n}"),
            d,
            w
        ))
    );
    let path = dir.file("t.txt", "1 2 3");
    assert_eq!(inspect(&path, &defaults()).unwrap()[0].format, Format::Text);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// Quotes around cells change nothing: rows with them and without take
    /// different paths to the same values.
    #[test]
    fn quoting_changes_nothing(
        rows in prop::collection::vec(
            (prop::option::of(any::<f64>()), "[a-z ]{0,5}", any::<(bool, bool)>()), 1..40),
        crlf in any::<bool>(),
        last in any::<bool>(),
    ) {
        let end = if crlf { "\r\n" } else { "\n" };
        let mut plain = format!("x,note{end}");
        let mut quoted = plain.clone();
        for (value, note, (q1, q2)) in &rows {
            let cell = value.map_or(String::new(), |v| format!("{v:e}"));
            plain += &format!("{cell},{note}{end}");
            let cell = if *q1 { format!("\"{cell}\"") } else { cell };
            let note = if *q2 { format!("\"{note},\n\"\"\"") } else { note.clone() };
            quoted += &format!("{cell},{note}{end}");
        }
        if last {
            plain.truncate(plain.len() - end.len());
            quoted.truncate(quoted.len() - end.len());
        }
        let dir = Dir::new();
        let floats = |path: &str| read_as(one(path, &columns("x")), DType::F64).unwrap();
        let plain = floats(&dir.file("p.csv", plain));
        let quoted = floats(&dir.file("q.csv", quoted));
        prop_assert_eq!(&plain, &quoted);
        let bits = |b: &[u8]| b.chunks(8).map(|c| f64::from_ne_bytes(c.try_into().unwrap())).collect::<Vec<_>>();
        let expected: Vec<f64> = rows.iter().filter_map(|r| r.0).collect();
        for (a, b) in bits(&plain.bytes).into_iter().zip(expected) {
            prop_assert!(a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()));
        }
        let gaps: Vec<u64> = (0..).zip(&rows).filter(|(_, r)| r.0.is_none()).map(|(i, _)| i).collect();
        prop_assert_eq!(plain.gaps, gaps);
    }
}
