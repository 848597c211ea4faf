//! Texts of Parquet files as keys of groups: as codes of a dictionary and plain, in pages of both
//! versions, with and without nulls, dictionaries that are given up, and damage.

use crate::common::{Dir, places};
use crate::texts::{answers, expected, grouped, number, texts};
use crate::thorough::thorough;
use parquet::basic::{Compression, Encoding};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

/// Row groups of so many rows, of texts drawn by a seed; a key that each row has is written
/// as required.
fn write(groups: &[(usize, usize)], required: bool, properties: WriterProperties) -> Vec<u8> {
    let key = if required { "REQUIRED" } else { "OPTIONAL" };
    let message = format!(
        "message m {{ {key} BYTE_ARRAY key (UTF8); REQUIRED INT32 year; OPTIONAL DOUBLE x; }}"
    );
    let schema = Arc::new(parse_message_type(&message).unwrap());
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    let mut first = 0;
    for &(rows, seed) in groups {
        let keys = texts(rows, seed);
        let years: Vec<i32> = (first..first + rows).map(|i| (i % 3) as i32).collect();
        let numbers: Vec<Option<f64>> = (first..first + rows).map(number).collect();
        first += rows;
        let levels = |has: &mut dyn Iterator<Item = bool>| has.map(i16::from).collect::<Vec<_>>();
        let mut group = file.next_row_group().unwrap();
        while let Some(mut column) = group.next_column().unwrap() {
            match column.untyped() {
                ColumnWriter::ByteArrayColumnWriter(_) => {
                    let bytes = |text: &String| ByteArray::from(text.as_bytes().to_vec());
                    let levels = (!required).then(|| levels(&mut keys.iter().map(Option::is_some)));
                    let empty = String::new();
                    let values: Vec<_> = match required {
                        true => keys.iter().map(|t| bytes(t.as_ref().unwrap_or(&empty))).collect(),
                        false => keys.iter().flatten().map(bytes).collect(),
                    };
                    let column = column.typed::<ByteArrayType>();
                    column.write_batch(&values, levels.as_deref(), None).unwrap();
                }
                ColumnWriter::Int32ColumnWriter(_) => {
                    column.typed::<Int32Type>().write_batch(&years, None, None).unwrap();
                }
                _ => {
                    let levels = levels(&mut numbers.iter().map(Option::is_some));
                    let values: Vec<f64> = numbers.iter().copied().flatten().collect();
                    let column = column.typed::<DoubleType>();
                    column.write_batch(&values, Some(&levels), None).unwrap();
                }
            }
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    file.into_inner().unwrap()
}

/// Ways to write, by their names.
fn ways() -> Vec<(&'static str, WriterProperties)> {
    let builder = |version| WriterProperties::builder().set_writer_version(version);
    let (one, two) = (WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0);
    vec![
        ("codes", builder(one).build()),
        ("codes, second version", builder(two).set_compression(Compression::SNAPPY).build()),
        (
            "small pages",
            builder(one).set_data_page_row_count_limit(13).set_write_batch_size(5).build(),
        ),
        (
            "small pages, second version",
            builder(two).set_data_page_row_count_limit(7).set_write_batch_size(3).build(),
        ),
        ("a dictionary given up", builder(one).set_dictionary_page_size_limit(40).build()),
        ("plain", builder(one).set_dictionary_enabled(false).build()),
        (
            "delta",
            builder(two)
                .set_dictionary_enabled(false)
                .set_encoding(Encoding::DELTA_BYTE_ARRAY)
                .set_column_encoding("x".into(), Encoding::PLAIN)
                .set_column_encoding("year".into(), Encoding::PLAIN)
                .build(),
        ),
    ]
}

#[test]
fn texts_are_keys_however_they_are_stored() {
    let dir = Dir::new();
    // The last is longer than what is decoded at once.
    for groups in [vec![(20, 0), (1, 1), (7, 2), (200, 3)], vec![(66_000, 1)]] {
        let (one, both) = (expected(&groups, false), expected(&groups, true));
        for (turn, (name, properties)) in ways().into_iter().enumerate() {
            let path = dir.file("t.parquet", write(&groups, false, properties));
            // Of many rows one of the two questions, by turns.
            let asks = |question: usize| groups.len() > 1 || thorough() || turn % 2 == question;
            if asks(0) {
                assert_eq!(answers(&path, &["key"]), one, "{name}");
            }
            if asks(1) {
                assert_eq!(answers(&path, &["key", "year"]), both, "{name}");
            }
        }
    }
}

/// Columns without levels; empty texts where the others have no key.
#[test]
fn keys_that_every_row_has_are_the_same_by_codes_and_plain() {
    let dir = Dir::new();
    let groups = [(300, 0), (9, 4)];
    let all = ways().into_iter().map(|(name, properties)| {
        let path = dir.file("t.parquet", write(&groups, true, properties));
        (name, answers(&path, &["key"]))
    });
    let all: Vec<_> = all.collect();
    assert!(all[0].1.keys()[0].texts().unwrap().iter().all(Option::is_some));
    all.iter().for_each(|(name, found)| assert_eq!(found, &all[0].1, "{name}"));
}

#[test]
fn damaged_codes_are_errors_or_other_keys() {
    let dir = Dir::new();
    for (name, properties) in ways().into_iter().take(3) {
        let whole = write(&[(40, 0), (30, 1)], false, properties);
        for end in (0..whole.len()).step_by(31) {
            let found = grouped(&dir.file("t.parquet", &whole[..end]), &["key"]);
            assert!(found.is_err(), "{name}: {end} of {} bytes are enough", whole.len());
        }
        let mut failed = 0;
        for at in places(whole.len()) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x81;
            failed += usize::from(grouped(&dir.file("t.parquet", bytes), &["key"]).is_err());
        }
        assert!(failed > 20, "{name}: {failed} of {} bytes matter", whole.len());
    }
}
