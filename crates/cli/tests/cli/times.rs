//! Dates, times and durations, as keys and as values.

use crate::common::Dir;
use arrow_array::{
    ArrayRef, Date32Array, Date64Array, Decimal64Array, Decimal128Array, DurationMillisecondArray,
    Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, Time32SecondArray,
    Time64NanosecondArray, TimestampMicrosecondArray, TimestampNanosecondArray,
    TimestampSecondArray, UInt64Array,
};
use std::sync::Arc;

/// An Arrow file of columns.
fn arrow(columns: &[(&str, ArrayRef)]) -> Vec<u8> {
    let columns = columns.iter().map(|(name, array)| (*name, Arc::clone(array), true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

fn values(rows: usize) -> (&'static str, ArrayRef) {
    ("x", Arc::new(Float64Array::from_iter_values((0..rows).map(|i| i as f64 + 1.0))))
}

const DAY: i64 = 86_400_000_000;

/// Two moments, in micro- and in nanoseconds; and the same integers without a unit.
fn moments(dir: &Dir) {
    let us = vec![19_723 * DAY, 19_723 * DAY + 1_500_000];
    let ns: Vec<i64> = us.iter().map(|us| us * 1000).collect();
    let file = |name: &str, keys: ArrayRef| {
        dir.file(name, arrow(&[("k", keys), values(2)]));
    };
    file("us.arrow", Arc::new(TimestampMicrosecondArray::from(us.clone())));
    file("ns.arrow", Arc::new(TimestampNanosecondArray::from(ns.clone())));
    file("zone.arrow", Arc::new(TimestampNanosecondArray::from(ns).with_timezone("Asia/Tokyo")));
    file("utc.arrow", Arc::new(TimestampMicrosecondArray::from(us.clone()).with_timezone("UTC")));
    file("plain.arrow", Arc::new(Int64Array::from(us)));
    // Beyond what nanoseconds reach.
    file("far.arrow", Arc::new(TimestampMicrosecondArray::from(vec![i64::MAX / 500, 0])));
}

const MERGED: &str = "2024-01-01T00:00:00\t2\n2024-01-01T00:00:01.500\t4\n";

#[test]
fn moments_are_one_key_in_any_unit() {
    let dir = Dir::new();
    moments(&dir);
    for files in ["us.arrow ns.arrow", "ns.arrow us.arrow"] {
        assert_eq!(dir.prints(&format!("sum -c x --by k {files}")), MERGED);
    }
    for name in ["us", "ns", "zone", "utc", "plain", "far"] {
        dir.prints(&format!("partial sum -c x --by k {name}.arrow -o {name}.state"));
    }
    for states in ["us.state ns.state", "ns.state us.state"] {
        assert_eq!(dir.prints(&format!("merge {states}")), MERGED);
        dir.prints(&format!("merge {states} -o both.state"));
        assert_eq!(dir.prints("merge both.state"), MERGED);
    }
    // Two zones are one time line.
    let zoned = "2024-01-01T00:00:00Z\t2\n2024-01-01T00:00:01.500Z\t4\n";
    assert_eq!(dir.prints("sum -c x --by k zone.arrow utc.arrow"), zoned);
    assert_eq!(dir.prints("merge utc.state zone.state"), zoned);
    // And no zone is another.
    for (left, right) in [("us", "plain"), ("plain", "ns"), ("us", "zone"), ("far", "ns")] {
        for (verb, end) in [("sum -c x --by k", "arrow"), ("merge", "state")] {
            let complaint = dir.fails(1, &format!("{verb} {left}.{end} {right}.{end}"));
            for part in [&format!("{left}.{end}"), &format!("{right}.{end}"), "hint: "] {
                assert!(complaint.contains(part), "{part} is not in {complaint}");
            }
        }
    }
}

#[test]
fn values_of_several_units_have_the_right_answer() {
    let dir = Dir::new();
    moments(&dir);
    let ops = "max,min,argmax,range,mean,std,count";
    for name in ["us", "ns", "plain", "zone", "far"] {
        let line = format!("partial max,min -q -c k {name}.arrow -o {name}.state");
        dir.prints(&line);
    }
    let expected = "max\t2024-01-01T00:00:01.500\nmin\t2024-01-01T00:00:00\n";
    for states in ["us.state ns.state", "ns.state us.state", "us.state us.state", "ns.state"] {
        assert_eq!(dir.prints(&format!("merge {states}")), expected, "{states}");
    }
    for (left, right) in [("us", "plain"), ("plain", "us"), ("ns", "zone"), ("ns", "far")] {
        let complaint = dir.fails(1, &format!("merge {left}.state {right}.state"));
        assert!(complaint.contains(left) && complaint.contains(right), "{complaint}");
        let complaint = dir.fails(1, &format!("max -c k {left}.arrow {right}.arrow"));
        assert!(complaint.contains(left) && complaint.contains(right), "{complaint}");
    }
    // Every other answer, too: as of the files that are joined.
    for (name, start) in [("us", 0), ("ns", 2)] {
        let from = format!("-c k {name}.arrow --start {start}");
        dir.prints(&format!("partial {ops} -q {from} -o {name}.state"));
    }
    let joined = dir.prints(&format!("reduce --op {ops} -q -c k us.arrow ns.arrow"));
    assert_eq!(dir.prints("merge ns.state us.state"), joined);
    assert!(joined.starts_with("max\t2024-01-01T00:00:01.500\n"), "{joined}");
    assert!(joined.contains("range\t1500000000\nmean\t1.70406720075e18\n"), "{joined}");
    // By groups: `x` is 1 and 2 in both.
    for (name, start) in [("us", 0), ("ns", 2)] {
        let from = format!("-c k --by x {name}.arrow --start {start}");
        dir.prints(&format!("partial {ops} -q {from} -o {name}.by.state"));
    }
    let joined = dir.prints(&format!("reduce --op {ops} -q -c k --by x us.arrow ns.arrow"));
    assert_eq!(dir.prints("merge ns.by.state us.by.state"), joined);
    assert!(
        joined.contains("2\t2024-01-01T00:00:01.500\t2024-01-01T00:00:01.500\t1\t0\t"),
        "{joined}"
    );
}

#[test]
fn stats_of_dates_have_what_dates_have() {
    let dir = Dir::new();
    let days: ArrayRef = Arc::new(Date32Array::from(vec![Some(19_723), None, Some(-1)]));
    dir.file("t.arrow", arrow(&[("day", Arc::clone(&days)), values(3)]));
    let stats = dir.prints("stats -q -c day t.arrow");
    let expected = "count\t2\nsum\t-\nmean\t9861\nstd\t9862\nmin\t1969-12-31\nmax\t2024-01-01\n\
        argmin\t2\nargmax\t0\ncount-nan\t0\nmissing\t1\n";
    assert_eq!(stats, expected);
    // Keys are printed in the same way.
    let keys = dir.prints("sum -c x --by day t.arrow");
    assert_eq!(keys, "1969-12-31\t3\n2024-01-01\t1\n-\t2\n");
    let json = dir.prints("reduce --op min,count -c day -f json t.arrow");
    let min =
        "{\"op\":\"min\",\"dtype\":\"date\",\"shape\":[],\"value\":\"1969-12-31\",\"missing\":1}";
    assert!(json.starts_with(&format!("[{min}")), "{json}");
    assert_eq!(dir.prints("max -q --hex -c day t.arrow"), "0x00004d0b\n");
    let complaint = dir.fails(1, "sum -q -c day t.arrow");
    assert!(complaint.contains("sum is not defined for days since 1970-01-01"), "{complaint}");
    let complaint = dir.fails(1, "sum -c day --by x t.arrow");
    assert!(complaint.contains("sum is not defined for days since 1970-01-01"), "{complaint}");
    let grouped = dir.prints("stats -q -c day --by x -f csv t.arrow");
    assert!(grouped.contains("1,1,,19723,0,2024-01-01,2024-01-01,0,0,0\n"), "{grouped}");
}

/// Keys of all types, and the largest of each as a value, in every kind of file, and read again
/// with their types.
#[test]
fn keys_are_written_with_their_types() {
    let dir = Dir::new();
    let stamps = TimestampSecondArray::from(vec![Some(1_704_067_200), None, Some(-5)]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("date32", Arc::new(Date32Array::from(vec![Some(19_723), None, Some(-1)]))),
        ("date64", Arc::new(Date64Array::from(vec![Some(86_400_000), None, Some(0)]))),
        ("time32", Arc::new(Time32SecondArray::from(vec![Some(86_399), None, Some(1)]))),
        ("time64", Arc::new(Time64NanosecondArray::from(vec![Some(1), None, Some(0)]))),
        ("local", Arc::new(stamps.clone())),
        ("zoned", Arc::new(stamps.with_timezone("+09:00"))),
        ("length", Arc::new(DurationMillisecondArray::from(vec![Some(-1), None, Some(90_000)]))),
    ];
    let all: Vec<_> = columns.iter().cloned().chain([values(3)]).collect();
    dir.file("t.arrow", arrow(&all));
    for (name, arrow_type, parquet_type, keys) in [
        ("date32", "date32", "INT32 (Date)", "1969-12-31,3\n2024-01-01,1\n,2\n"),
        ("date64", "date64", "INT32 (Date)", "1970-01-01,3\n1970-01-02,1\n,2\n"),
        (
            "time32",
            "time32[s]",
            "INT32 (milliseconds since midnight)",
            "00:00:01,3\n23:59:59,1\n,2\n",
        ),
        (
            "time64",
            "time64[ns]",
            "INT64 (nanoseconds since midnight)",
            "00:00:00,3\n00:00:00.000000001,1\n,2\n",
        ),
        (
            "local",
            "timestamp[s]",
            "INT64 (milliseconds since 1970-01-01)",
            "1969-12-31T23:59:55,3\n2024-01-01T00:00:00,1\n,2\n",
        ),
        (
            "zoned",
            "timestamp[s, +09:00]",
            "INT64 (milliseconds since 1970-01-01 UTC)",
            "1969-12-31T23:59:55Z,3\n2024-01-01T00:00:00Z,1\n,2\n",
        ),
        ("length", "duration[ms]", "", "-PT0.001S,1\nPT90S,3\n,2\n"),
    ] {
        let csv = dir.prints(&format!("sum -c x --by {name} -f csv t.arrow"));
        assert_eq!(csv, format!("{name},sum\n{keys}"));
        let json = dir.prints(&format!("sum -c x --by {name} -f jsonl t.arrow"));
        let first = keys.split(',').next().unwrap();
        let row = format!("{{\"by\":{{\"{name}\":\"{first}\"}},\"sum\":");
        assert!(json.starts_with(&row), "{json}");
        assert!(json.ends_with(&format!("{{\"by\":{{\"{name}\":null}},\"sum\":2}}\n")), "{json}");
        for (end, stored_as) in [("arrow", arrow_type), ("parquet", parquet_type)] {
            let write = format!("sum -c x --by {name} t.arrow -o keys.{end}");
            if stored_as.is_empty() {
                let complaint = dir.fails(2, &write);
                assert!(complaint.contains("no durations") && complaint.contains(".arrow"));
                continue;
            }
            dir.prints(&write);
            let inspected = dir.prints(&format!("inspect keys.{end}"));
            let row = inspected.lines().nth(1).unwrap();
            assert!(row.contains(&format!("\t{stored_as}\t")), "{row}");
            // And as keys again, joined with what they came from.
            let again = dir.prints(&format!("sum -c sum --by {name} -f csv keys.{end}"));
            assert_eq!(again, csv, "{name} {end}");
            // Values, of an axis without rows that lack one.
            dir.prints(&format!("max -q -c {name} t.arrow -o max.{end}"));
            let inspected = dir.prints(&format!("inspect max.{end}"));
            assert!(inspected.contains(&format!("\t{stored_as}\t")), "{inspected}");
        }
        dir.prints(&format!("sum -c x --by {name} t.arrow -o keys.npz"));
        let npz = std::fs::read(dir.path("keys.npz")).unwrap();
        let descr = match name {
            "date32" => "'<M8[D]'",
            "date64" => "'<M8[ms]'",
            "local" | "zoned" => "'<M8[s]'",
            "length" => "'<m8[ms]'",
            _ => "'<i8'",
        };
        let has = npz.windows(descr.len()).any(|bytes| bytes == descr.as_bytes());
        assert!(has, "{name} is not of {descr}");
    }
}

#[test]
fn integers_of_any_width_are_one_key() {
    let dir = Dir::new();
    let file = |name: &str, keys: ArrayRef| {
        dir.file(&format!("{name}.arrow"), arrow(&[("k", keys), values(2)]));
        dir.prints(&format!("partial sum -c x --by k {name}.arrow -o {name}.state"));
    };
    file("i32", Arc::new(Int32Array::from(vec![-1, 7])));
    file("i64", Arc::new(Int64Array::from(vec![7, 1 << 40])));
    file("u64", Arc::new(UInt64Array::from(vec![7, 3])));
    file("large", Arc::new(UInt64Array::from(vec![7, u64::MAX])));
    dir.file("t.csv", "k,x\n7,1\n-1,1\n07,1\n");
    let expected = "-1\t1\n7\t3\n1099511627776\t2\n";
    for pair in ["i32 i64", "i64 i32"] {
        let [left, right] = [pair.split(' ').next().unwrap(), pair.split(' ').nth(1).unwrap()];
        assert_eq!(dir.prints(&format!("sum -c x --by k {left}.arrow {right}.arrow")), expected);
        assert_eq!(dir.prints(&format!("merge {left}.state {right}.state")), expected);
    }
    assert_eq!(dir.prints("sum -c x --by k i32.arrow u64.arrow"), "-1\t1\n3\t2\n7\t3\n");
    assert_eq!(dir.prints("merge u64.state i32.state"), "-1\t1\n3\t2\n7\t3\n");
    let complaint = dir.fails(1, "sum -c x --by k i32.arrow large.arrow");
    assert!(complaint.contains("18446744073709551615") && complaint.contains("large.arrow"));
    assert!(dir.fails(1, "merge i32.state large.state").contains("large.state"));
    // To text they are as they are written; and values are as cells are.
    assert_eq!(dir.prints("sum -c x --by k i32.arrow t.csv"), "-1\t2\n7\t3\n07\t1\n");
    assert_eq!(
        dir.prints("sum -c x --by k t.csv i64.arrow"),
        "-1\t1\n7\t2\n1099511627776\t2\n07\t1\n"
    );
    dir.prints("sum -c x --by k i32.arrow -o i32.parquet");
    dir.file("sum.csv", "k,sum\n7,0.5\n");
    assert_eq!(dir.prints("sum -c sum --by k i32.parquet sum.csv"), "-1\t1\n7\t2.5\n");
}

#[test]
fn dates_go_with_dates_of_text() {
    let dir = Dir::new();
    let days: ArrayRef = Arc::new(Date32Array::from(vec![19_723, 0]));
    dir.file("t.arrow", arrow(&[("k", days), values(2)]));
    dir.file("t.csv", "k,x\n2024-01-01,5\n");
    assert_eq!(dir.prints("sum -c x --by k t.arrow t.csv"), "1970-01-01\t2\n2024-01-01\t6\n");
}

/// Numbers that are no keys, and lists.
#[test]
fn a_refused_key_is_told_what_keys_are() {
    let dir = Dir::new();
    let nothing: ArrayRef = Arc::new(arrow_array::NullArray::new(2));
    let name: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    dir.file("t.arrow", arrow(&[("k", nothing), values(2), ("name", name)]));
    let complaint = dir.fails(1, "sum -c x --by k t.arrow");
    assert!(complaint.contains("hint: keys are numbers"), "{complaint}");
    assert!(complaint.contains("as in x, name"), "{complaint}");
    // Decimals are no texts of cells, which look like numbers; and lists are told of as lists.
    let cents = Decimal128Array::from(vec![150, 200]).with_precision_and_scale(9, 2).unwrap();
    dir.file("d.arrow", arrow(&[("k", Arc::new(cents)), values(2)]));
    dir.file("d.csv", "k,x\n1.5,3\n2,4\n");
    for files in ["d.arrow d.csv", "d.csv d.arrow"] {
        let complaint = dir.fails(1, &format!("sum -c x --by k {files}"));
        assert!(complaint.contains("decimals with 2 digits behind the point"), "{complaint}");
        assert!(complaint.contains("the text of its cells, as it is written"), "{complaint}");
        assert!(complaint.contains("hint: cast the column of numbers to text"), "{complaint}");
    }
    // Values are told of values.
    assert!(dir.fails(1, "sum -c name --by x t.arrow").contains("the columns of numbers are x"));
}

/// Decimals of any width, with nulls, as values and as keys.
#[test]
fn decimals_are_exact_and_keep_their_digits() {
    let dir = Dir::new();
    let cents: ArrayRef = Arc::new(
        Decimal128Array::from(vec![Some(10), Some(20), None, Some(-5), Some(10)])
            .with_precision_and_scale(12, 2)
            .unwrap(),
    );
    dir.file("t.arrow", arrow(&[("price", Arc::clone(&cents)), values(5)]));
    let ops = "sum,min,max,range,norm1,mean,count,argmin";
    let expected = "sum\t0.35\nmin\t-0.05\nmax\t0.20\nrange\t0.25\nnorm1\t0.45\nmean\t0.0875\ncount\t4\nargmin\t3\n";
    assert_eq!(dir.prints(&format!("reduce -q --op {ops} -c price t.arrow")), expected);
    // As a float 0.1 + 0.2 is not 0.3.
    assert_eq!(dir.prints("sum -q --out f64 -c price t.arrow"), "0.35\n");
    dir.prints(&format!("partial {ops} -q -c price t.arrow -o t.state"));
    assert_eq!(dir.prints("merge t.state"), expected);
    let stats = dir.prints("stats -q -c price t.arrow");
    assert!(
        stats.starts_with(
            "count\t4\nsum\t0.35\nmean\t0.0875\nstd\t0.08926785535678562\nmin\t-0.05\n"
        ),
        "{stats}"
    );
    let json = dir.prints("sum -q -c price -f json t.arrow");
    assert!(json.contains("\"dtype\":\"decimal(2)\",\"shape\":[],\"value\":0.35"), "{json}");
    // Keys, and files of other digits.
    let keys = "-0.05\t4\n0.10\t6\n0.20\t2\n-\t3\n";
    assert_eq!(dir.prints("sum -c x --by price t.arrow"), keys);
    let mills = Decimal64Array::from(vec![100, -50]).with_precision_and_scale(10, 3).unwrap();
    dir.file("m.arrow", arrow(&[("price", Arc::new(mills)), values(2)]));
    assert_eq!(dir.prints("sum -q -c price t.arrow m.arrow"), "0.400\n");
    let both = "-0.050\t6\n0.100\t7\n0.200\t2\n-\t3\n";
    assert_eq!(dir.prints("sum -c x --by price t.arrow m.arrow"), both);
    for name in ["t", "m"] {
        dir.prints(&format!("partial sum -c x --by price {name}.arrow -o {name}.by"));
        dir.prints(&format!("partial sum,mean -q -c price {name}.arrow -o {name}.state"));
    }
    assert_eq!(dir.prints("merge m.by t.by"), both);
    assert_eq!(dir.prints("merge m.state t.state"), "sum\t0.400\nmean\t0.06666666666666667\n");
    // Written and read again, also as Parquet has them.
    for (end, stored_as) in [("arrow", "decimal128(38, 2)"), ("parquet", "INT64 (Decimal 18,2)")] {
        dir.prints(&format!("reduce -q --op sum,min -c price --by x t.arrow -o by.{end}"));
        assert!(dir.prints(&format!("inspect by.{end}")).contains(stored_as));
        assert_eq!(dir.prints(&format!("sum -q -c sum by.{end}")), "0.35\n");
        dir.prints(&format!("sum -c x --by price t.arrow -o keys.{end}"));
        assert_eq!(dir.prints(&format!("sum -c sum --by price keys.{end}")), keys);
    }
    let wide = |values: Vec<Option<i128>>| -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(38, 10).unwrap())
    };
    let most = i128::from(i64::MAX);
    dir.file("most.arrow", arrow(&[("d", wide(vec![Some(most), Some(-most - 1), None]))]));
    assert_eq!(
        dir.prints("reduce -q --op sum,min -c d most.arrow"),
        "sum\t-0.0000000001\nmin\t-922337203.6854775808\n"
    );
    let complaint = dir.fails(1, "prod -q -c price t.arrow");
    assert!(complaint.contains("prod is not defined for decimals"), "{complaint}");
    let plain: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    dir.file("plain.arrow", arrow(&[("price", plain), values(2)]));
    let complaint = dir.fails(1, "sum -c x --by price t.arrow plain.arrow");
    assert!(complaint.contains("t.arrow") && complaint.contains("plain.arrow"), "{complaint}");
}

/// Decimals beyond 64 bits: each number, in any format, as a value and as a key, is that of
/// integers of any size.
#[test]
fn decimals_beyond_64_bits_are_exact() {
    let dir = Dir::new();
    let most = 10i128.pow(38) - 1;
    let decimals = |values: Vec<Option<i128>>, digits| -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(38, digits).unwrap())
    };
    // The sum of some leaves 128 bits.
    let d = vec![Some(most), Some(most), Some(5), None, Some(-most), Some(most), Some(1 << 70)];
    let k = [(7, most), (1, -5), (7, most), (0, 3), (1, -5), (2, 1 << 64), (0, 3)];
    let key = |(_, key): (i64, i128)| Some(key);
    let small = |(small, _): (i64, i128)| small;
    let columns = [
        ("d", decimals(d.clone(), 10)),
        ("k", decimals(k.map(key).to_vec(), 2)),
        ("s", Arc::new(Int64Array::from(k.map(small).to_vec()))),
        values(7),
    ];
    dir.file("t.arrow", arrow(&columns));
    let halves = [0..3, 3..7].map(|rows| {
        columns.clone().map(|(name, column)| (name, column.slice(rows.start, rows.len())))
    });
    dir.file("a.arrow", arrow(&halves[0]));
    dir.file("b.arrow", arrow(&halves[1]));

    let sum = "20000000000000000118059162071.7411303427";
    let expected = format!(
        "sum\t{sum}\nmin\t-9999999999999999999999999999.9999999999\nmax\t9999999999999999999999999999.9999999999\n\
         range\t19999999999999999999999999999.9999999998\nnorm1\t40000000000000000118059162071.7411303425\n\
         norm-inf\t9999999999999999999999999999.9999999999\ncount\t6\ncount-nonzero\t6\nargmin\t4\nargmax\t0\n\
         mean\t3.3333333333333336e27\nvar\t5.555555555555556e55\nstd\t7.453559924999299e27\n"
    );
    let ops = "sum,min,max,range,norm1,norm-inf,count,count-nonzero,argmin,argmax,mean,var,std";
    for files in ["t.arrow", "a.arrow b.arrow"] {
        for threads in ["1", "3"] {
            let line = format!("reduce -q -j {threads} --op {ops} -c d {files}");
            assert_eq!(dir.prints(&line), expected, "{files}");
        }
    }
    dir.prints(&format!("partial {ops} -q -c d a.arrow -o a.state"));
    dir.prints(&format!("partial {ops} -q -c d b.arrow --start 3 -o b.state"));
    assert_eq!(dir.prints("merge b.state a.state"), expected);
    assert_eq!(
        dir.prints("sum -q --out f64 -c d t.arrow"),
        "2.0000000000000000e28\n".replace(".0000000000000000", "")
    );
    assert!(dir.fails(1, "sum -q --out i64 -c d t.arrow").contains(sum));
    assert!(
        dir.prints("sum -q -f json -c d t.arrow")
            .contains(&format!("\"decimal(10)\",\"shape\":[],\"value\":{sum}"))
    );
    let stats = dir.prints("stats -q -c d t.arrow");
    assert!(stats.starts_with(&format!("count\t6\nsum\t{sum}\nmean\t")), "{stats}");
    let hex = dir.prints("max -q --hex -c k t.arrow");
    assert_eq!(hex, format!("0x{:048x}\n", most));

    // As values of groups, which have them or not, and as keys; states merge to the same.
    let by = "s\tsum\tmin\n0\t118059162071.7411303424\t118059162071.7411303424\n\
        1\t0.0000000000\t-9999999999999999999999999999.9999999999\n\
        2\t9999999999999999999999999999.9999999999\t9999999999999999999999999999.9999999999\n\
        7\t10000000000000000000000000000.0000000004\t0.0000000005\n";
    let keys = "-0.05\t7\n0.03\t11\n184467440737095516.16\t6\n999999999999999999999999999999999999.99\t4\n";
    for files in ["t.arrow", "a.arrow b.arrow"] {
        let line = format!("reduce -q --op sum,min -c d --by s {files}");
        assert_eq!(dir.prints(&line), by, "{files}");
        assert_eq!(dir.prints(&format!("sum -c x --by k {files}")), keys, "{files}");
    }
    for (ops, column, key, expected) in [("sum,min", "d", "s", by), ("sum", "x", "k", keys)] {
        for half in ["a", "b"] {
            dir.prints(&format!(
                "partial {ops} -q -c {column} --by {key} {half}.arrow -o {half}.by"
            ));
        }
        for states in ["a.by b.by", "b.by a.by"] {
            assert_eq!(dir.prints(&format!("merge -q {states}")), expected);
            dir.prints(&format!("merge -q {states} -o both.state"));
            assert_eq!(dir.prints("merge -q both.state"), expected);
        }
    }
    // Other digits behind the point, and what is written is read again.
    let mills = Decimal64Array::from(vec![-50, 30]).with_precision_and_scale(10, 3).unwrap();
    dir.file("m.arrow", arrow(&[("k", Arc::new(mills)), values(2)]));
    let finer = "-0.050\t8\n0.030\t13\n184467440737095516.160\t6\n";
    assert!(dir.fails(1, "sum -c x --by k t.arrow m.arrow").contains("t.arrow:k"), "39 digits");
    let rest = columns.clone().map(|(name, column)| (name, column.slice(3, 4)));
    dir.file("rest.arrow", arrow(&rest));
    assert_eq!(dir.prints("sum -c x --by k rest.arrow m.arrow"), finer.replace("\t8", "\t6"));
    for (end, wide, narrow) in [
        ("arrow", "decimal256(76, 10)", "decimal128(38, 2)"),
        ("parquet", "(Decimal 76,10)", "(Decimal 38,2)"),
    ] {
        dir.prints(&format!("reduce -q --op sum,min -c d --by s t.arrow -o by.{end}"));
        assert!(dir.prints(&format!("inspect by.{end}")).contains(wide));
        assert_eq!(dir.prints(&format!("sum -q -c sum by.{end}")), format!("{sum}\n"));
        dir.prints(&format!("sum -c x --by k t.arrow -o keys.{end}"));
        assert!(dir.prints(&format!("inspect keys.{end}")).contains(narrow));
        assert_eq!(dir.prints(&format!("sum -c sum --by k keys.{end}")), keys);
        dir.prints(&format!("norm1 -q -c d t.arrow -o norm.{end}"));
        assert!(dir.prints(&format!("inspect norm.{end}")).contains(wide));
    }
    assert_eq!(dir.prints("max -q -c sum by.arrow"), "10000000000000000000000000000.0000000004\n");
    for end in ["arrow", "parquet"] {
        let complaint = dir.fails(1, &format!("sum -q -c norm1 norm.{end}"));
        assert!(complaint.contains("a decimal is beyond 128 bits"), "{complaint}");
        assert!(complaint.contains("hint: cast the column"), "{complaint}");
    }
    let refused = dir.fails(2, "max -q -c d t.arrow -o max.npy");
    assert!(refused.contains("NumPy has no decimals"), "{refused}");
}
