//! Dictionary-encoded numbers in Arrow: keys of every width, nulls in keys
//! and in values, dictionaries that grow and that are replaced.

use crate::common::*;
use arrow_array::builder::PrimitiveBuilder;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, BooleanArray, DictionaryArray, RecordBatch};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::ArrowError;
use std::sync::Arc;
use warpfold_core::DType;
use warpfold_files::{OpenOptions, inspect};

/// The value of dictionary entry `i`; every fifth is null, if there are nulls.
fn entry(i: usize, seed: usize, nulls: bool) -> Option<f64> {
    (!nulls || i % 5 != 2).then(|| (i * 31 + seed) as f64 * 0.5)
}

/// The key of row `i`, if it has one.
fn key(i: usize, entries: usize) -> Option<usize> {
    (i % 11 != 4).then_some(i * 7919 % entries)
}

/// `rows` rows whose keys name the first `entries` entries.
fn column<K: ArrowDictionaryKeyType<Native: TryFrom<usize>>>(
    rows: usize,
    entries: usize,
    seed: usize,
    nulls: bool,
) -> ArrayRef {
    let mut keys = PrimitiveBuilder::<K>::new();
    for i in 0..rows {
        keys.append_option(key(i, entries).and_then(|k| k.try_into().ok()));
    }
    let mut values = PrimitiveBuilder::<Float64Type>::new();
    (0..entries).for_each(|i| values.append_option(entry(i, seed, nulls)));
    Arc::new(DictionaryArray::try_new(keys.finish(), Arc::new(values.finish())).unwrap())
}

fn write(
    columns: &[ArrayRef],
    stream: bool,
    handling: DictionaryHandling,
    codec: Option<CompressionType>,
) -> Result<Vec<u8>, ArrowError> {
    let options =
        IpcWriteOptions::default().try_with_compression(codec)?.with_dictionary_handling(handling);
    let batch = |c: &ArrayRef| {
        let plain: ArrayRef = Arc::new(BooleanArray::from(vec![true; c.len()]));
        // Another column with a dictionary in front.
        let other = column::<Int16Type>(c.len(), 3, 0, false);
        RecordBatch::try_from_iter_with_nullable([
            ("other", other, true),
            ("n", Arc::clone(c), true),
            ("b", plain, true),
        ])
    };
    let schema = batch(&columns[0])?.schema();
    if stream {
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options)?;
        columns.iter().try_for_each(|c| writer.write(&batch(c)?))?;
        writer.into_inner()
    } else {
        let mut writer = FileWriter::try_new_with_options(Vec::new(), &schema, options)?;
        columns.iter().try_for_each(|c| writer.write(&batch(c)?))?;
        writer.into_inner()
    }
}

/// What reading batches of `(rows, entries, seed)` should give.
fn expected(batches: &[(usize, usize, usize)], nulls: bool) -> Contents {
    let mut all = Contents { bytes: vec![], gaps: vec![], rows: 0 };
    for &(rows, entries, seed) in batches {
        for i in 0..rows {
            match key(i, entries).and_then(|k| entry(k, seed, nulls)) {
                Some(value) => all.bytes.extend(value.to_ne_bytes()),
                None => all.gaps.push(all.rows),
            }
            all.rows += 1;
        }
    }
    all
}

fn check<K: ArrowDictionaryKeyType<Native: TryFrom<usize>>>(most: usize) {
    use DictionaryHandling::{Delta, Resend};
    let dir = Dir::new();
    let growing = [(2000, most / 2, 1), (3, most / 2, 1), (1000, most - 1, 1), (50, most, 1)];
    let replaced = [(2000, most, 1), (700, most / 3, 2), (300, most, 1)];
    for nulls in [false, true] {
        for codec in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
            for (batches, stream, handling) in [
                (&growing[..], true, Delta),
                (&growing[..], false, Delta),
                (&growing[..1], false, Resend),
                (&replaced[..], true, Resend),
            ] {
                let columns: Vec<_> =
                    batches.iter().map(|&(r, e, s)| column::<K>(r, e, s, nulls)).collect();
                let bytes = write(&columns, stream, handling, codec).unwrap();
                let path = dir.file("d.arrow", &bytes);
                let source = one(&format!("{path}:n"), &OpenOptions::default());
                assert_eq!(source.dtype, DType::F64);
                let wanted = expected(batches, nulls);
                let what = format!("{:?} {nulls} {codec:?} {stream}", K::DATA_TYPE);
                assert!(read(source).unwrap() == wanted, "{what}");
                // The same through a stream, where it is one.
                #[cfg(unix)]
                if stream && codec.is_none() {
                    let source = through_pipe(&dir, &bytes, "n");
                    assert!(read(source).unwrap() == wanted, "{what}");
                }
            }
        }
    }
}

/// The column of a stream that comes through a named pipe.
#[cfg(unix)]
fn through_pipe(dir: &Dir, bytes: &[u8], column: &str) -> warpfold_files::Source {
    let path = dir.path("pipe");
    let _ = std::fs::remove_file(&path);
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let (bytes, writer) = (bytes.to_vec(), path.clone());
    std::thread::spawn(move || std::fs::write(writer, bytes).unwrap());
    one(&format!("{}:{column}", path.display()), &OpenOptions::default())
}

#[test]
fn keys_of_every_width() {
    check::<Int8Type>(100);
    check::<UInt8Type>(250);
    check::<Int16Type>(300);
    check::<UInt16Type>(300);
    check::<Int32Type>(1000);
    check::<UInt32Type>(1000);
    check::<Int64Type>(1000);
    check::<UInt64Type>(1000);
}

#[test]
fn large_batches_come_in_parts_and_booleans_are_values() {
    let dir = Dir::new();
    let rows = (1 << 17) * 2 + 5;
    let column = column::<Int8Type>(rows, 77, 3, true);
    let bytes = write(&[column], false, DictionaryHandling::Resend, None).unwrap();
    let path = dir.file("d.arrow", bytes);
    let source = one(&format!("{path}:n"), &OpenOptions::default());
    assert!(read(source).unwrap() == expected(&[(rows, 77, 3)], true));
    let keys: PrimitiveBuilder<Int8Type> = [Some(1), Some(0), None, Some(2), Some(1)]
        .into_iter()
        .fold(PrimitiveBuilder::new(), |mut b, k| {
            b.append_option(k);
            b
        });
    let mut keys = keys;
    let flags = Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]));
    let flags: ArrayRef = Arc::new(DictionaryArray::try_new(keys.finish(), flags).unwrap());
    let path =
        dir.file("f.arrow", write(&[flags], false, DictionaryHandling::Resend, None).unwrap());
    let source = one(&format!("{path}:n"), &OpenOptions::default());
    let contents = read(source).unwrap();
    assert_eq!((contents.bytes, contents.gaps), (vec![0, 1, 0], vec![2, 3]));
    let described = &inspect(&path, &OpenOptions::default()).unwrap()[1];
    assert_eq!((&*described.stored_as, described.dtype), ("dictionary<bool>", Some(DType::Bool)));
}

#[test]
fn keys_that_name_nothing() {
    let dir = Dir::new();
    let column = column::<Int8Type>(100, 20, 0, false);
    for stream in [false, true] {
        let whole =
            write(&[Arc::clone(&column)], stream, DictionaryHandling::Resend, None).unwrap();
        // The key of rows 0 to 3: 0, 7919 % 20, ...
        let keys: Vec<u8> = (0..4).map(|i| key(i, 20).unwrap() as u8).collect();
        let at = whole.windows(4).position(|w| w == keys).unwrap();
        for (bad, said) in
            [(20_u8, "the key 20 is not among the 20"), (0xff, "the key -1 is not among")]
        {
            let mut broken = whole.clone();
            broken[at + 1] = bad;
            let path = dir.file("b.arrow", broken);
            let (message, _) = complaint(&format!("{path}:n"), &OpenOptions::default());
            assert!(message.contains(said), "{message}");
        }
        // Row 4 has no key: whatever lies there does not matter.
        let mut fine = whole.clone();
        fine[at + 4] = 0x7f;
        let path = dir.file("b.arrow", fine);
        read(one(&format!("{path}:n"), &OpenOptions::default())).unwrap();
        // A flipped byte anywhere is an error or goes unnoticed, never a panic.
        for at in (0..whole.len()).step_by(13) {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x81;
            let path = dir.file("b.arrow", flipped);
            let _ = inspect(&path, &OpenOptions::default());
            let _ = warpfold_files::open(format!("{path}:n"), &OpenOptions::default())
                .map(|s| s.into_iter().map(read).count());
        }
    }
}
