//! Arrow and Parquet: columns with gaps, among columns of every other kind.

use crate::common::*;
use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Date64Array, Decimal128Array, DictionaryArray,
    DurationNanosecondArray, Float16Array, Float32Array, Float64Array, Int8Array, Int16Array,
    Int32Array, Int64Array, NullArray, RecordBatch, StringArray, StringViewArray, StructArray,
    Time32SecondArray, Time64NanosecondArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field};
use half::f16;
use parquet::basic::Compression;
use parquet::data_type as pq;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;
use warpfold::{Op, Reduction};
use warpfold_core::DType;
use warpfold_files::stream::{self, Inputs, Silent};
use warpfold_files::{Access, ColumnSelector, Extent, Format, OpenOptions, inspect, open};

fn defaults() -> OpenOptions {
    OpenOptions::default()
}

fn columns(list: &str) -> OpenOptions {
    OpenOptions { columns: ColumnSelector::parse_list(list).unwrap(), ..defaults() }
}

/// Whether row `i` has a value: long runs, short runs, single rows.
fn present(i: usize) -> bool {
    (i / 1000) % 3 != 1 && i % 7 != 3 || i % 1000 > 900
}

/// The value of row `i`: all bytes in use.
fn value(i: usize) -> u64 {
    (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What reading column `dtype` should give for these rows, gaps at `gap`.
fn expected(dtype: DType, rows: usize, gap: impl Fn(usize) -> bool) -> Contents {
    let mut bytes = Vec::new();
    for i in (0..rows).filter(|&i| !gap(i)) {
        let v = value(i);
        match dtype {
            DType::Bool => bytes.push((v >> 63) as u8),
            d => bytes.extend(&v.to_ne_bytes()[..d.size()]),
        }
    }
    let gaps = (0..rows).filter(|&i| gap(i)).map(|i| i as u64).collect();
    Contents { bytes, gaps, rows: rows as u64 }
}

const NUMBERS: [DType; 12] = [
    DType::Bool,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F16,
    DType::F32,
    DType::F64,
];

/// A batch with a column of every number type, with and without gaps, and
/// between them columns of all other kinds.
pub(crate) fn batch(from: usize, rows: usize) -> RecordBatch {
    let range = from..from + rows;
    let mut fields: Vec<(String, ArrayRef)> = Vec::new();
    for (gaps, suffix) in [(true, "?"), (false, "")] {
        let cells = || range.clone().map(move |i| (!gaps || present(i)).then(|| value(i)));
        macro_rules! array {
            ($array:ident, $f:expr) => {
                Arc::new(cells().map(|c| c.map($f)).collect::<$array>()) as ArrayRef
            };
        }
        let words = || range.clone().map(|i| present(i).then(|| format!("word {i} of the text")));
        let odd: Vec<(&str, ArrayRef)> = vec![
            ("text", Arc::new(words().collect::<StringArray>())),
            ("null", Arc::new(NullArray::new(rows))),
            ("view", Arc::new(words().collect::<StringViewArray>())),
            ("date", Arc::new(cells().map(|c| c.map(|v| v as i32)).collect::<Date32Array>())),
            (
                "decimal",
                Arc::new(cells().map(|c| c.map(|v| v as i128)).collect::<Decimal128Array>()),
            ),
            ("list", {
                let mut list = ListBuilder::new(Int32Builder::new());
                for i in range.clone() {
                    list.values().append_value(i as i32);
                    list.append(true);
                }
                Arc::new(list.finish())
            }),
            ("dictionary", {
                let keys: Int8Array = range.clone().map(|i| Some((i % 2) as i8)).collect();
                let words = Arc::new(StringArray::from(vec!["a", "b"]));
                Arc::new(DictionaryArray::new(keys, words))
            }),
            ("struct", {
                let x: ArrayRef = Arc::new(cells().collect::<UInt64Array>());
                let y: ArrayRef = Arc::new(words().collect::<StringArray>());
                Arc::new(StructArray::from(vec![
                    (Arc::new(Field::new("x", DataType::UInt64, true)), x),
                    (Arc::new(Field::new("y", DataType::Utf8, true)), y),
                ]))
            }),
        ];
        let numbers = NUMBERS.map(|dtype| match dtype {
            DType::Bool => array!(BooleanArray, |v| v >> 63 == 1),
            DType::I8 => array!(Int8Array, |v| v as i8),
            DType::I16 => array!(Int16Array, |v| v as i16),
            DType::I32 => array!(Int32Array, |v| v as i32),
            DType::I64 => array!(Int64Array, |v| v as i64),
            DType::U8 => array!(UInt8Array, |v| v as u8),
            DType::U16 => array!(UInt16Array, |v| v as u16),
            DType::U32 => array!(UInt32Array, |v| v as u32),
            DType::U64 => array!(UInt64Array, |v| v),
            DType::F16 => array!(Float16Array, |v| f16::from_bits(v as u16)),
            DType::F32 => array!(Float32Array, |v| f32::from_bits(v as u32)),
            _ => array!(Float64Array, f64::from_bits),
        });
        let mut odd = odd.into_iter();
        for (dtype, array) in NUMBERS.into_iter().zip(numbers) {
            if let Some((name, array)) = odd.next() {
                fields.push((format!("{name}{suffix}"), array));
            }
            fields.push((format!("{dtype}{suffix}"), array));
        }
    }
    RecordBatch::try_from_iter_with_nullable(fields.into_iter().map(|(n, a)| (n, a, true))).unwrap()
}

pub(crate) fn arrow(
    batches: &[RecordBatch],
    stream: bool,
    codec: Option<CompressionType>,
) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
    let schema = batches[0].schema();
    if stream {
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
        batches.iter().for_each(|b| writer.write(b).unwrap());
        writer.into_inner().unwrap()
    } else {
        let mut writer = FileWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
        batches.iter().for_each(|b| writer.write(b).unwrap());
        writer.into_inner().unwrap()
    }
}

/// Bytes that come through a named pipe.
#[cfg(unix)]
fn piped(dir: &Dir, bytes: &[u8]) -> String {
    let path = dir.path("pipe");
    let _ = std::fs::remove_file(&path);
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let (bytes, writer) = (bytes.to_vec(), path.clone());
    // Whoever reads may stop early.
    std::thread::spawn(move || drop(std::fs::write(writer, bytes)));
    path.to_str().unwrap().into()
}

/// In any order, twice, with gaps and without, of a batch that comes in parts.
#[test]
#[cfg(unix)]
fn columns_of_an_arrow_stream_come_in_one_pass() {
    let dir = Dir::new();
    let question = Reduction::new([Op::Sum, Op::ArgMax, Op::CountNan]);
    for (codec, rows) in [
        (None, vec![5, 1_000, 1, 140_000]),
        (Some(CompressionType::ZSTD), vec![3_000, 700]),
        (Some(CompressionType::LZ4_FRAME), vec![0, 9, 2_000]),
    ] {
        let mut from = 0;
        let batches: Vec<RecordBatch> = rows
            .iter()
            .map(|&n| {
                from += n;
                batch(from - n, n)
            })
            .collect();
        let bytes = arrow(&batches, true, codec);
        let file = dir.file("t.arrows", &bytes);
        let alone = |name: &str| {
            let items = open(&file, &columns(name)).unwrap();
            let inputs = Inputs { items, others: Vec::new() };
            stream::partial(inputs, &question, 0, None, &Silent).unwrap()
        };
        let mut names: Vec<String> =
            NUMBERS.iter().flat_map(|d| [d.to_string(), format!("{d}?")]).collect();
        names.rotate_left(7);
        names.reverse();
        names.extend(["f64".into(), "bool?".into()]);
        let together = |sources: Vec<warpfold_files::Source>| {
            let arrays = sources.into_iter().map(|s| Inputs { items: vec![s], others: vec![] });
            stream::partials(arrays.collect(), &question, 0, None, &Silent).unwrap()
        };
        let sources = open(piped(&dir, &bytes), &columns(&names.join(","))).unwrap();
        for (partial, name) in together(sources).iter().zip(&names) {
            assert_eq!(partial, &alone(name), "{name} {codec:?} {rows:?}");
        }
        // All that are plain numbers; the others are named, with the reason.
        let all = OpenOptions { all_columns: true, ..defaults() };
        let sources = open(piped(&dir, &bytes), &all).unwrap();
        assert_eq!(sources.len(), 24);
        let Access::Column(column) = &sources[0].access else { panic!("a column") };
        let left_out: Vec<_> = column.left_out().iter().map(|c| (&*c.name, &*c.why)).collect();
        assert!(left_out.contains(&("text", "text and bytes are not numbers")), "{left_out:?}");
        assert!(left_out.contains(&("date?", "it has a unit; name it with -c")), "{left_out:?}");
        let names: Vec<String> =
            sources.iter().map(|s| s.name.rsplit(':').next().unwrap().to_string()).collect();
        for (partial, name) in together(sources).iter().zip(&names) {
            assert_eq!(partial, &alone(name), "{name} {codec:?} {rows:?}");
        }
        // Pairs, and what cannot be asked of dates.
        let dot = Reduction::of(Op::Dot);
        let pair = |path: &str| {
            let mut items = open(path, &columns("f64,f64")).unwrap();
            let others = items.split_off(1);
            stream::partial(Inputs { items, others }, &dot, 0, None, &Silent).unwrap()
        };
        assert_eq!(pair(&piped(&dir, &bytes)), pair(&file));
        let items = open(piped(&dir, &bytes), &columns("date")).unwrap();
        let inputs = Inputs { items, others: Vec::new() };
        let error = stream::reduce(inputs, &Reduction::of(Op::Sum), None, &Silent).unwrap_err();
        assert!(error.to_string().contains("sum is not defined for"), "{error}");
    }
}

/// Every cut of a stream is an error, whichever columns are read; so is every
/// byte of the body of the wrong kind that can be told.
#[test]
#[cfg(unix)]
fn cut_streams_are_errors_for_all_columns_at_once() {
    let dir = Dir::new();
    let whole = arrow(&[batch(0, 40)], true, None);
    let all = OpenOptions { all_columns: true, ..defaults() };
    let sums = |bytes: &[u8]| -> warpfold_files::Result<usize> {
        let sources = open(piped(&dir, bytes), &all)?;
        let arrays = sources.into_iter().map(|s| Inputs { items: vec![s], others: vec![] });
        let question = Reduction::of(Op::Count);
        Ok(stream::partials(arrays.collect(), &question, 0, None, &Silent)?.len())
    };
    assert_eq!(sums(&whole).unwrap(), 24);
    let schema = arrow(&[batch(0, 0)], true, None);
    for len in (1..whole.len() - 8).step_by(whole.len() / 60) {
        match sums(&whole[..len]) {
            // Without a batch it ends where a stream may end.
            Ok(_) => assert!(len <= schema.len(), "cut to {len} of {}", whole.len()),
            Err(error) => assert!(!error.to_string().contains("panic"), "{error}"),
        }
    }
}

#[test]
fn arrow_columns_among_all_others() {
    let dir = Dir::new();
    let rows = [2003, 1, 8_000];
    let mut batches = Vec::new();
    let mut total = 0;
    for n in rows {
        batches.push(batch(total, n));
        total += n;
    }
    for codec in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        for (stream, name) in [(false, "t.arrow"), (true, "t.arrows"), (true, "untold")] {
            let path = dir.file(name, arrow(&batches, stream, codec));
            for dtype in NUMBERS {
                for suffix in ["", "?"] {
                    let source = one(&format!("{path}:{dtype}{suffix}"), &defaults());
                    assert_eq!(source.dtype, dtype);
                    assert_eq!(source.extent, Extent::Column { rows: Some(total as u64) });
                    let gap = |i: usize| !suffix.is_empty() && !present(i);
                    assert_eq!(
                        read(source).unwrap(),
                        expected(dtype, total, gap),
                        "{dtype}{suffix} {codec:?} {name}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_large_arrow_batch_comes_in_parts() {
    let dir = Dir::new();
    let rows = 3 * (1 << 17) + 77;
    for codec in [None, Some(CompressionType::ZSTD)] {
        let numbers: Int64Array = (0..rows).map(|i| present(i).then(|| value(i) as i64)).collect();
        let flags: BooleanArray =
            (0..rows).map(|i| present(i).then(|| value(i) >> 63 == 1)).collect();
        let fields = [("n", Arc::new(numbers) as ArrayRef), ("b", Arc::new(flags))];
        let table = RecordBatch::try_from_iter(fields).unwrap();
        let path = dir.file("t.feather", arrow(&[table], false, codec));
        for (name, dtype) in [("n", DType::I64), ("b", DType::Bool)] {
            let source = one(&path, &columns(name));
            assert_eq!(read(source).unwrap(), expected(dtype, rows, |i| !present(i)));
        }
    }
}

#[test]
fn arrow_columns_that_cannot_be_read() {
    let dir = Dir::new();
    let path = dir.file("t.arrow", arrow(&[batch(0, 10)], false, None));
    for (column, what) in [
        ("text", "type utf8: text and bytes"),
        ("view", "text and bytes"),
        ("null", "a column of nulls"),
        ("list", "nested columns"),
        ("dictionary", "dictionary<utf8>: text and bytes are not numbers"),
        ("struct", "nested columns"),
        ("nope", "there is no column \"nope\"; there are text?, bool?"),
    ] {
        let (message, hint) = complaint(&path, &columns(column));
        assert!(message.contains(what), "{message}");
        assert!(column == "nope" || hint.contains("columns of numbers are"), "{hint}");
    }
    let (message, _) = complaint(&path, &defaults());
    assert!(message.contains("which column? There are 24 with numbers"), "{message}");
    let (message, _) = complaint(&path, &OpenOptions { dtype: Some(DType::F64), ..columns("i8") });
    assert!(message.contains("f64 was asked for, but the elements are i8"), "{message}");
    let all = inspect(&path, &defaults()).unwrap();
    assert_eq!(all.len(), 40);
    assert_eq!((all[0].stored_as.as_str(), all[0].dtype), ("utf8", None));
    assert_eq!(all[0].extent, Some(Extent::Column { rows: Some(10) }));
    assert_eq!((all[1].name.clone(), all[1].dtype), (format!("{path}:bool?"), Some(DType::Bool)));
}

/// Dates, times and durations: name, array, what `inspect` says, the unit.
fn times() -> Vec<(&'static str, ArrayRef, &'static str, &'static str)> {
    let wide = || vec![Some(1_700_000_000_123_i64), None, Some(-5)];
    let narrow = || vec![Some(43_200_i32), None, Some(5)];
    vec![
        ("date32", Arc::new(Date32Array::from(narrow())), "date32", "days since 1970-01-01"),
        ("date64", Arc::new(Date64Array::from(wide())), "date64", "milliseconds since 1970-01-01"),
        ("t32", Arc::new(Time32SecondArray::from(narrow())), "time32[s]", "seconds since midnight"),
        (
            "t64",
            Arc::new(Time64NanosecondArray::from(wide())),
            "time64[ns]",
            "nanoseconds since midnight",
        ),
        (
            "ts",
            Arc::new(TimestampMicrosecondArray::from(wide())),
            "timestamp[us]",
            "microseconds since 1970-01-01",
        ),
        (
            "zone",
            Arc::new(TimestampMillisecondArray::from(wide()).with_timezone("Europe/Berlin")),
            "timestamp[ms, Europe/Berlin]",
            "milliseconds since 1970-01-01 UTC",
        ),
        ("length", Arc::new(DurationNanosecondArray::from(wide())), "duration[ns]", "nanoseconds"),
    ]
}

#[test]
fn dates_and_times_are_integers_with_a_unit() {
    let dir = Dir::new();
    let number: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 4]));
    let fields = times().into_iter().map(|(name, array, ..)| (name, array, true));
    let table = RecordBatch::try_from_iter_with_nullable(fields.chain([("n", number, true)]));
    let path = dir.file("t.arrow", arrow(&[table.unwrap()], false, None));
    let described = inspect(&path, &defaults()).unwrap();
    for (i, (name, _, stored_as, unit)) in times().into_iter().enumerate() {
        let source = one(&path, &columns(name));
        let narrow = matches!(source.dtype, DType::I32);
        assert_eq!(narrow, name.ends_with("32"), "{name}");
        assert_eq!(source.unit().unwrap().to_string(), unit);
        assert_eq!(&*described[i].stored_as, stored_as);
        assert_eq!(described[i].dtype, Some(source.dtype));
        assert_eq!(described[i].unit, source.unit());
        assert!(!described[i].is_plain());
        let contents = read(source).unwrap();
        assert_eq!((contents.rows, &contents.gaps[..]), (3, &[1][..]));
        // Some questions have no answer in that unit.
        for (op, fine) in [(Op::Max, true), (Op::Mean, true), (Op::Var, false)] {
            let inputs = Inputs { items: vec![one(&path, &columns(name))], others: vec![] };
            let result = stream::reduce(inputs, &Reduction::of(op), None, &Silent);
            assert_eq!(result.is_ok(), fine, "{name}: {op}");
        }
        let inputs = Inputs { items: vec![one(&path, &columns(name))], others: vec![] };
        let result = stream::reduce(inputs, &Reduction::of(Op::Sum), None, &Silent);
        match (name, result) {
            ("length", result) => assert!(result.is_ok()),
            (_, result) => {
                let error = result.unwrap_err();
                assert!(error.to_string().contains("sum is not defined for"), "{error}");
                assert!(error.hint().unwrap().contains("min, max"));
            }
        }
    }
    // They are no candidates where no column is named.
    assert_eq!(load::<i32>(&path, &defaults()), [1, 2, 4]);
    // Different units are not joined.
    let items = vec![one(&path, &columns("ts")), one(&path, &columns("zone"))];
    let inputs = Inputs { items, others: vec![] };
    let error = stream::reduce(inputs, &Reduction::of(Op::Max), None, &Silent).unwrap_err();
    assert!(error.to_string().contains("its unit is milliseconds"), "{error}");
}

#[test]
fn parquet_dates_and_times_have_units_too() {
    const TIMES: &str = "message t {
        required int32 date (DATE);
        required int32 ms (TIME(MILLIS,true));
        required int64 ns (TIME(NANOS,false));
        required int64 local (TIMESTAMP(MICROS,false));
        required int64 utc (TIMESTAMP(MILLIS,true));
        required int64 old (TIMESTAMP_MICROS);
        required int64 plain;
    }";
    let dir = Dir::new();
    let schema = Arc::new(parse_message_type(TIMES).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut place = 0;
    while let Some(mut column) = group.next_column().unwrap() {
        if place < 2 {
            column.typed::<pq::Int32Type>().write_batch(&[3, -1, 2], None, None).unwrap();
        } else {
            column.typed::<pq::Int64Type>().write_batch(&[3, -1, 2], None, None).unwrap();
        }
        column.close().unwrap();
        place += 1;
    }
    group.close().unwrap();
    let path = dir.file("t.parquet", writer.into_inner().unwrap());
    for (column, unit) in [
        ("date", "days since 1970-01-01"),
        ("ms", "milliseconds since midnight"),
        ("ns", "nanoseconds since midnight"),
        ("local", "microseconds since 1970-01-01"),
        ("utc", "milliseconds since 1970-01-01 UTC"),
        ("old", "microseconds since 1970-01-01 UTC"),
    ] {
        let source = one(&path, &columns(column));
        assert_eq!(source.unit().unwrap().to_string(), unit, "{column}");
        assert_eq!(read(source).unwrap().rows, 3);
    }
    assert_eq!(load::<i64>(&path, &defaults()), [3, -1, 2]);
    let described = inspect(&path, &defaults()).unwrap();
    assert_eq!(described[4].stored_as, "INT64 (milliseconds since 1970-01-01 UTC)");
    assert_eq!(described[4].dtype, Some(DType::I64));
    assert!(!described[4].is_plain() && described[6].is_plain());
}

#[test]
fn the_only_column_of_numbers_is_implied() {
    let dir = Dir::new();
    let words: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let numbers: ArrayRef = Arc::new(Float32Array::from(vec![1.5, 2.5]));
    let table = RecordBatch::try_from_iter([("w", words), ("n", numbers)]).unwrap();
    let path = dir.file("t.arrow", arrow(&[table], false, None));
    assert_eq!(load::<f32>(&path, &defaults()), [1.5, 2.5]);
}

#[test]
fn damaged_arrow_files() {
    let dir = Dir::new();
    for stream in [false, true] {
        let whole = arrow(&[batch(0, 100)], stream, Some(CompressionType::LZ4_FRAME));
        for len in [9, 20, 1000, whole.len() / 2, whole.len() - 20] {
            let path = dir.file("t.arrow", &whole[..len]);
            let (message, _) = match open(&path, &columns("f64?")).map(|mut s| read(s.remove(0))) {
                // A stream may end without its mark.
                Ok(Ok(_)) if stream && len == whole.len() - 20 => continue,
                _ => complaint(&path, &columns("f64?")),
            };
            assert!(
                message.contains("damaged") || message.contains("truncated"),
                "{len}: {message}"
            );
        }
        // A flipped byte anywhere is an error or goes unnoticed, never a panic.
        for (turn, at) in (0..whole.len()).step_by(37).enumerate() {
            let mut flipped = whole.clone();
            flipped[at] ^= 0xff;
            let path = dir.file("t.arrow", flipped);
            let _ = inspect(&path, &defaults());
            for column in ["f64?", ["bool?", "i16"][turn % 2]] {
                let _ = open(&path, &columns(column)).map(|s| s.into_iter().map(read).count());
            }
        }
    }
}

/// The schema of the Parquet files below.
const SCHEMA: &str = "message t {
    required binary text (STRING);
    optional boolean bool;
    optional int32 i8 (INTEGER(8,true));
    optional int32 i16 (INTEGER(16,true));
    optional int32 i32;
    optional int64 i64;
    optional int32 u8 (INTEGER(8,false));
    optional int32 u16 (INTEGER(16,false));
    optional int32 u32 (INTEGER(32,false));
    optional int64 u64 (INTEGER(64,false));
    optional fixed_len_byte_array(2) f16 (FLOAT16);
    optional float f32;
    optional double f64;
    required int64 dense;
    required int32 date (DATE);
    required int64 decimal (DECIMAL(10,2));
    required int96 old;
    repeated int32 list;
    optional group g { optional double x; }
}";

pub(crate) fn parquet(
    groups: &[usize],
    compression: Compression,
    version: WriterVersion,
    dictionary: bool,
) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_writer_version(version)
        .set_dictionary_enabled(dictionary)
        .set_data_page_row_count_limit(3000)
        .set_write_batch_size(500)
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    let mut from = 0;
    for &rows in groups {
        let range = from..from + rows;
        from += rows;
        let levels: Vec<i16> = range.clone().map(|i| i16::from(present(i))).collect();
        let some = || range.clone().filter(|&i| present(i)).map(value);
        let all = || range.clone().map(value);
        let nothing = vec![0_i16; rows];
        let mut group = writer.next_row_group().unwrap();
        let mut place = 0;
        while let Some(mut column) = group.next_column().unwrap() {
            macro_rules! write {
                ($kind:ident, $values:expr, $levels:expr) => {
                    column
                        .typed::<pq::$kind>()
                        .write_batch(&$values.collect::<Vec<_>>(), $levels, None)
                        .unwrap()
                };
            }
            let levels = Some(&levels[..]);
            match place {
                0 => write!(
                    ByteArrayType,
                    all().map(|v| pq::ByteArray::from(v.to_string().into_bytes())),
                    None
                ),
                1 => write!(BoolType, some().map(|v| v >> 63 == 1), levels),
                2 => write!(Int32Type, some().map(|v| i32::from(v as i8)), levels),
                3 => write!(Int32Type, some().map(|v| i32::from(v as i16)), levels),
                4 => write!(Int32Type, some().map(|v| v as i32), levels),
                5 => write!(Int64Type, some().map(|v| v as i64), levels),
                6 => write!(Int32Type, some().map(|v| i32::from(v as u8)), levels),
                7 => write!(Int32Type, some().map(|v| i32::from(v as u16)), levels),
                8 => write!(Int32Type, some().map(|v| v as i32), levels),
                9 => write!(Int64Type, some().map(|v| v as i64), levels),
                10 => write!(
                    FixedLenByteArrayType,
                    some().map(|v| pq::FixedLenByteArray::from((v as u16).to_le_bytes().to_vec())),
                    levels
                ),
                11 => write!(FloatType, some().map(|v| f32::from_bits(v as u32)), levels),
                12 => write!(DoubleType, some().map(f64::from_bits), levels),
                13 => write!(Int64Type, all().map(|v| v as i64), None),
                14 => write!(Int32Type, all().map(|v| v as i32), None),
                15 => write!(Int64Type, all().map(|v| v as i64), None),
                16 => write!(Int96Type, all().map(|v| pq::Int96::from(vec![v as u32, 0, 0])), None),
                17 => column
                    .typed::<pq::Int32Type>()
                    .write_batch(&[], Some(&nothing), Some(&nothing))
                    .unwrap(),
                // The group is there in every row, its field in some.
                18 => {
                    let levels: Vec<i16> =
                        range.clone().map(|i| 1 + i16::from(present(i))).collect();
                    write!(DoubleType, some().map(f64::from_bits), Some(&levels))
                }
                _ => unreachable!(),
            };
            column.close().unwrap();
            place += 1;
        }
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

#[test]
fn parquet_columns_of_every_type() {
    let dir = Dir::new();
    use WriterVersion::{PARQUET_1_0, PARQUET_2_0};
    for (compression, version, dictionary) in [
        (Compression::UNCOMPRESSED, PARQUET_1_0, false),
        (Compression::SNAPPY, PARQUET_1_0, true),
        (Compression::LZ4_RAW, PARQUET_2_0, false),
        (Compression::ZSTD(Default::default()), PARQUET_2_0, true),
        (Compression::GZIP(Default::default()), PARQUET_1_0, false),
        (Compression::BROTLI(Default::default()), PARQUET_2_0, false),
    ] {
        // Longer than what is decoded at once where it is in pages of one version or the other.
        let is_long = matches!(compression, Compression::SNAPPY | Compression::LZ4_RAW);
        let groups = [if is_long { 66_000 } else { 8_000 }, 1, 5_000];
        let rows = groups.iter().sum();
        let file = parquet(&groups, compression, version, dictionary);
        let path = dir.file("t.parquet", file);
        for dtype in NUMBERS {
            let source = one(&path, &columns(dtype.name()));
            assert_eq!(source.dtype, dtype);
            assert_eq!(source.extent, Extent::Column { rows: Some(rows as u64) });
            assert_eq!(
                read(source).unwrap(),
                expected(dtype, rows, |i| !present(i)),
                "{dtype} {compression}"
            );
        }
        let source = one(&format!("{path}:dense"), &defaults());
        assert_eq!(read(source).unwrap(), expected(DType::I64, rows, |_| false));
        let source = one(&path, &columns("g.x"));
        assert_eq!(read(source).unwrap(), expected(DType::F64, rows, |i| !present(i)));
    }
}

#[test]
fn parquet_columns_that_cannot_be_read() {
    let dir = Dir::new();
    let file = parquet(&[10], Compression::UNCOMPRESSED, WriterVersion::PARQUET_1_0, false);
    let path = dir.file("t.parquet", file);
    for (column, what) in [
        ("text", "BYTE_ARRAY (String): text and bytes are not numbers"),
        ("old", "INT96: timestamps of the old kind"),
        ("list", "lists are not supported"),
        ("nope", "no column \"nope\"; there are text, bool, i8"),
    ] {
        let (message, hint) = complaint(&path, &columns(column));
        assert!(message.contains(what), "{message}");
        assert!(column == "nope" || hint.contains("columns of numbers are bool, i8"), "{hint}");
    }
    let (message, _) = complaint(&path, &defaults());
    assert!(message.contains("which column? There are 14 with numbers: bool, i8"), "{message}");
    let all = inspect(&path, &defaults()).unwrap();
    assert_eq!(all.len(), 19);
    assert_eq!((all[2].stored_as.as_str(), all[2].dtype), ("INT32 (INT_8)", Some(DType::I8)));
    assert_eq!(all[2].format, Format::Parquet);
    assert_eq!(all[17].dtype, None);
}

#[test]
fn damaged_parquet_files() {
    let dir = Dir::new();
    let whole = parquet(&[300], Compression::SNAPPY, WriterVersion::PARQUET_1_0, true);
    for len in [4, 8, 500, whole.len() - 9, whole.len() - 1] {
        let (message, _) = complaint(&dir.file("t.parquet", &whole[..len]), &columns("f64"));
        assert!(message.contains("damaged Parquet file"), "{len}: {message}");
    }
    for (turn, at) in (0..whole.len()).step_by(41).enumerate() {
        let mut flipped = whole.clone();
        flipped[at] ^= 0xff;
        let path = dir.file("t.parquet", flipped);
        let _ = inspect(&path, &defaults());
        let columns_of = [["f64", "bool"], ["i8", "f16"]];
        for column in columns_of[turn % 2] {
            let _ = open(&path, &columns(column)).map(|s| s.into_iter().map(read).count());
        }
    }
}

#[test]
fn a_flipped_byte_of_a_parquet_page_is_told_by_its_checksum() {
    let dir = Dir::new();
    // By pyarrow 26, with `write_page_checksum=True`: see `fixtures/make.py`.
    for name in ["checksums.v1.parquet", "checksums.v2.parquet"] {
        let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
        let whole = std::fs::read(&path).unwrap();
        let metadata = ParquetMetaDataReader::new()
            .parse_and_finish(&bytes::Bytes::from(whole.clone()))
            .unwrap();
        for (i, column) in ["plain", "dictionary"].into_iter().enumerate() {
            let whole_column = |c: &str| read(one(&format!("{path}:{c}"), &defaults())).unwrap();
            assert_eq!(whole_column(column).rows, 1000);
            let chunk = metadata.row_group(0).column(i);
            let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
            let (start, end) = (start as usize, (start + chunk.compressed_size()) as usize);
            let mut told = 0;
            for at in (start..end).step_by(7) {
                let mut flipped = whole.clone();
                flipped[at] ^= 4;
                let path = dir.file("f.parquet", flipped);
                // Bytes of the header of a page have no checksum.
                let Ok(sources) = open(&path, &columns(column)) else { continue };
                match sources.into_iter().map(read).collect::<Result<Vec<_>, _>>() {
                    Ok(found) => assert_eq!(found, [whole_column(column)], "{name}, {at}"),
                    Err(e) => {
                        let message = e.to_string();
                        let said = format!("f.parquet:{column}: damaged");
                        assert!(message.contains(&said), "{message}");
                        told += usize::from(message.contains("CRC"));
                    }
                }
            }
            assert!(told * 7 > (end - start) / 2, "{name} {column}: {told}");
        }
    }
}

/// Two small batches with a column `n` of numbers.
pub(crate) fn small_batches() -> [RecordBatch; 2] {
    let numbers: ArrayRef = Arc::new(Int16Array::from(vec![Some(1), None, Some(3)]));
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
    let words: ArrayRef = Arc::new(StringViewArray::from(vec!["a", "b", "a word that is long"]));
    let table = RecordBatch::try_from_iter([("w", words), ("n", numbers), ("b", flags)]).unwrap();
    [table.clone(), table]
}

/// Small Arrow files and streams: name, bytes, whether a stream.
pub(crate) fn arrow_seeds() -> Vec<(String, Vec<u8>, bool)> {
    let mut seeds = Vec::new();
    for stream in [false, true] {
        for codec in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
            let bytes = arrow(&small_batches(), stream, codec);
            seeds.push((format!("{codec:?}").to_lowercase(), bytes, stream));
        }
    }
    seeds
}

/// Small Parquet files.
pub(crate) fn parquet_seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for (compression, version, dictionary) in [
        (Compression::UNCOMPRESSED, WriterVersion::PARQUET_1_0, false),
        (Compression::SNAPPY, WriterVersion::PARQUET_1_0, true),
        (Compression::ZSTD(Default::default()), WriterVersion::PARQUET_2_0, false),
        (Compression::LZ4_RAW, WriterVersion::PARQUET_2_0, true),
    ] {
        let name = format!("{version:?}-{dictionary}").to_lowercase();
        seeds.push((name, parquet(&[7, 3], compression, version, dictionary)));
    }
    seeds
}
