//! Texts of Arrow files as keys of groups: every way to store them, nulls, batches, dictionaries
//! that grow and are replaced, and damage.

use crate::common::{Dir, places};
use crate::texts::{LONG, answers, expected, grouped, number, texts};
use crate::thorough::thorough;
use arrow_array::types::{Int8Type, Int64Type, UInt16Type};
use arrow_array::{
    ArrayRef, BinaryArray, BinaryViewArray, DictionaryArray, Float64Array, Int32Array,
    LargeBinaryArray, LargeStringArray, RecordBatch, StringArray, StringViewArray,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use std::sync::Arc;
use warpfold_files::{ColumnSelector, OpenOptions, open_keyed};

/// Rows of a batch, and what stores their texts.
type Make = fn(&[Option<String>]) -> ArrayRef;

fn coded<K: arrow_array::types::ArrowDictionaryKeyType<Native: TryFrom<usize>>>(
    rows: &[Option<String>],
    values: impl Fn(Vec<Option<String>>) -> ArrayRef,
) -> ArrayRef {
    // A null is now one of the texts, now no key.
    let mut distinct: Vec<Option<String>> = vec![None];
    let keys: Vec<Option<K::Native>> = rows
        .iter()
        .enumerate()
        .map(|(i, row)| {
            let at = distinct.iter().position(|text| text == row).unwrap_or_else(|| {
                distinct.push(row.clone());
                distinct.len() - 1
            });
            if row.is_none() && i % 2 == 0 { None } else { K::Native::try_from(at).ok() }
        })
        .collect();
    let keys = keys.into_iter().collect::<arrow_array::PrimitiveArray<K>>();
    Arc::new(DictionaryArray::<K>::try_new(keys, values(distinct)).unwrap())
}

fn bytes(rows: &[Option<String>]) -> Vec<Option<&[u8]>> {
    rows.iter().map(|row| row.as_deref().map(str::as_bytes)).collect()
}

const MAKES: [(&str, Make); 10] = [
    ("utf8", |rows| Arc::new(StringArray::from(rows.to_vec()))),
    ("large utf8", |rows| Arc::new(LargeStringArray::from(rows.to_vec()))),
    ("binary", |rows| Arc::new(BinaryArray::from(bytes(rows)))),
    ("large binary", |rows| Arc::new(LargeBinaryArray::from(bytes(rows)))),
    ("view", |rows| Arc::new(rows.iter().map(Option::as_deref).collect::<StringViewArray>())),
    ("binary view", |rows| Arc::new(bytes(rows).into_iter().collect::<BinaryViewArray>())),
    ("i8 -> utf8", |rows| coded::<Int8Type>(rows, |v| Arc::new(StringArray::from(v)))),
    ("u16 -> large", |rows| coded::<UInt16Type>(rows, |v| Arc::new(LargeStringArray::from(v)))),
    ("i64 -> binary", |rows| coded::<Int64Type>(rows, |v| Arc::new(BinaryArray::from(bytes(&v))))),
    ("u16 -> view", |rows| {
        coded::<UInt16Type>(rows, |v| {
            Arc::new(v.iter().map(Option::as_deref).collect::<StringViewArray>())
        })
    }),
];

fn write(
    make: Make,
    batches: &[(usize, usize)],
    stream: bool,
    handling: DictionaryHandling,
    codec: Option<CompressionType>,
) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
    let options = options.with_dictionary_handling(handling);
    let mut first = 0;
    let batches: Vec<RecordBatch> = batches
        .iter()
        .map(|&(rows, seed)| {
            let numbers: Float64Array = (first..first + rows).map(number).collect();
            let years: Int32Array = (first..first + rows).map(|i| Some((i % 3) as i32)).collect();
            first += rows;
            let rows = texts(rows, seed);
            // What is in front has buffers of a number of its own.
            let before: StringViewArray = rows.iter().map(|_| Some(LONG)).collect();
            RecordBatch::try_from_iter_with_nullable([
                ("before", Arc::new(before) as ArrayRef, true),
                ("key", make(&rows), true),
                ("year", Arc::new(years), true),
                ("x", Arc::new(numbers), true),
            ])
            .unwrap()
        })
        .collect();
    let schema = batches[0].schema();
    if stream {
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.into_inner().unwrap()
    } else {
        let mut writer = FileWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.into_inner().unwrap()
    }
}

#[test]
fn texts_are_keys_however_they_are_stored() {
    let dir = Dir::new();
    // The second is longer than what is decoded at once.
    for batches in [vec![(20, 0), (0, 1), (7, 2), (200, 3)], vec![(132_000, 1)]] {
        let (one, both) = (expected(&batches, false), expected(&batches, true));
        for (turn, (name, make)) in MAKES.into_iter().enumerate() {
            for codec in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
                if codec.is_some() && batches.len() == 1 {
                    continue;
                }
                // Dictionaries of a file grow; those of a stream are replaced.
                for stream in [false, true] {
                    if name.contains("->") && !stream && batches.len() > 1 {
                        continue;
                    }
                    // A long batch is decoded by the same code in both: they take turns.
                    if batches.len() == 1 && stream != (turn % 2 == 1) {
                        continue;
                    }
                    let handling = DictionaryHandling::Resend;
                    let path = dir.file("t.arrow", write(make, &batches, stream, handling, codec));
                    // Of many rows one of the two questions, by turns.
                    let asks = |question: usize| {
                        batches.len() > 1 || thorough() || turn / 2 % 2 == question
                    };
                    let what = format!("{name} {codec:?} {stream}");
                    if asks(0) {
                        assert_eq!(answers(&path, &["key"]), one, "{what}");
                    }
                    if asks(1) {
                        assert_eq!(answers(&path, &["key", "year"]), both, "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn numbers_beside_no_texts_are_still_keys() {
    let dir = Dir::new();
    let batches = [(20, 0), (30, 1)];
    let written = write(MAKES[0].1, &batches, false, DictionaryHandling::Resend, None);
    let path = dir.file("t.arrow", written);
    let found = answers(&path, &["year"]);
    assert_eq!(found.keys()[0].slice::<i32>(), Some(&[0, 1, 2][..]));
    let error = grouped(&path, &["before", "nothing"]).unwrap_err();
    assert!(error.to_string().contains("nothing"), "{error}");
    // The only column of numbers that is no key.
    let options = OpenOptions::default();
    let keys = [ColumnSelector::Name("key".into()), ColumnSelector::Name("year".into())];
    let keyed = open_keyed(&path, &keys, &options).unwrap();
    assert_eq!(keyed.value_names().collect::<Vec<_>>(), ["x"]);
}

#[test]
fn damaged_texts_are_errors() {
    let dir = Dir::new();
    for (name, make) in [MAKES[0], MAKES[1], MAKES[4], MAKES[6], MAKES[9]] {
        let whole = write(make, &[(12, 0), (9, 0)], true, DictionaryHandling::Resend, None);
        for end in (0..whole.len()).step_by(37) {
            let _ = grouped(&dir.file("t.arrows", &whole[..end]), &["key"]);
        }
        let mut failed = 0;
        for at in places(whole.len()) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x81;
            failed += usize::from(grouped(&dir.file("t.arrows", bytes), &["key"]).is_err());
        }
        assert!(failed > 20, "{name}: {failed} of {} bytes matter", whole.len());
    }
}
