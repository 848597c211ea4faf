//! Compressed files and pipes: read as what they hold, or not at all.

use crate::common::*;
use crate::thorough::thorough;
use crate::{binary, tables};
use std::io::Write;
use warpfold_core::DType;
use warpfold_files::{ColumnSelector, Format, OpenOptions, Source, inspect, open};
use zip::CompressionMethod;

const CODECS: [&str; 5] = ["gz", "zst", "bz2", "xz", "lz4"];

/// `bytes`, compressed as the command lines of the codecs do: with checksums.
pub(crate) fn pack(codec: &str, bytes: &[u8]) -> Vec<u8> {
    match codec {
        "gz" => {
            let mut w = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            w.write_all(bytes).unwrap();
            w.finish().unwrap()
        }
        "zst" => {
            let mut w = zstd::Encoder::new(Vec::new(), 3).unwrap();
            w.include_checksum(true).unwrap();
            w.write_all(bytes).unwrap();
            w.finish().unwrap()
        }
        "bz2" => {
            let mut w = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(9));
            w.write_all(bytes).unwrap();
            w.finish().unwrap()
        }
        "xz" => {
            let options = lzma_rust2::XzOptions::with_preset(2);
            let mut w = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
            w.write_all(bytes).unwrap();
            w.finish().unwrap()
        }
        _ => {
            let info = lz4_flex::frame::FrameInfo::new()
                .content_checksum(true)
                .block_mode(lz4_flex::frame::BlockMode::Linked);
            let mut w = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
            w.write_all(bytes).unwrap();
            w.finish().unwrap()
        }
    }
}

fn defaults() -> OpenOptions {
    OpenOptions::default()
}

fn columns(list: &str) -> OpenOptions {
    OpenOptions { columns: ColumnSelector::parse_list(list).unwrap(), ..defaults() }
}

/// What each kind of data is: name, bytes, how to read them.
fn kinds() -> Vec<(&'static str, Vec<u8>, OpenOptions)> {
    let mut csv = "a,b\n".to_string();
    let mut numbers = String::new();
    // One file is longer than a block of bzip2, 900 kB, and all are longer than what is read at a time, 256 KiB.
    for i in 0..80_000 {
        csv += &format!("{i},{}.5\n", i * 7919 % 1000);
    }
    for i in 0..75_000 {
        numbers += &format!("{}\n", i * 31 % 977);
    }
    let data = sample(DType::F32, 70_000);
    let raw = OpenOptions { dtype: Some(DType::F32), ..defaults() };
    let shaped = OpenOptions { shape: Some(vec![680, 100]), ..raw.clone() };
    let record = npy(1, "[('a', '<f4'), ('b', '>i4')]", false, "(35000,)", &data);
    vec![
        ("t.csv", csv.into_bytes(), columns("b")),
        ("t.txt", numbers.into_bytes(), defaults()),
        ("t.npy", npy(1, "'<f4'", true, "(2, 35000)", &data), defaults()),
        ("r.npy", record, columns("b")),
        ("t.bin", data.clone(), raw),
        ("s.bin", data[..272_000].to_vec(), shaped),
        ("t.arrows", tables::arrow(&[tables::batch(0, 3000)], true, None), columns("f64?")),
    ]
}

/// A source over bytes that come through a named pipe.
#[cfg(unix)]
fn through_pipe(dir: &Dir, bytes: &[u8], options: &OpenOptions) -> warpfold_files::Result<Source> {
    let path = dir.path("pipe");
    let _ = std::fs::remove_file(&path);
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let (bytes, writer) = (bytes.to_vec(), path.clone());
    // The reader may have seen enough before the end.
    std::thread::spawn(move || drop(std::fs::write(writer, bytes)));
    open(path.to_str().unwrap(), options).map(|mut s| s.remove(0))
}

#[test]
fn every_codec_and_format() {
    let dir = Dir::new();
    for (kind, (name, bytes, options)) in kinds().into_iter().enumerate() {
        let path = dir.file(name, &bytes);
        let plain = one(&path, &options);
        let dtype = plain.dtype;
        let mut wanted = read(plain).unwrap();
        for (turn, codec) in CODECS.into_iter().enumerate() {
            // Of what is compressed at once and what is in pieces, a format has one with each codec, by turns.
            let one_piece = (kind + turn) % 2 == 0;
            let ways: &[bool] = if thorough() { &[true, false] } else { &[one_piece] };
            let mut last = Vec::new();
            for &one_piece in ways {
                let what = if one_piece { "one" } else { "several" };
                let (front, back) = bytes.split_at(bytes.len() / 3);
                let packed = &match one_piece {
                    true => pack(codec, &bytes),
                    false => [pack(codec, front), pack(codec, b""), pack(codec, back)].concat(),
                };
                let path = dir.file(&format!("{name}.{codec}"), packed);
                let source = one(&path, &options);
                assert_eq!(source.dtype, dtype);
                let found = read(source).unwrap_or_else(|e| panic!("{path}: {e}"));
                assert!(found == wanted, "{path}, {what}");
                // Without a name: raw numbers need one.
                #[cfg(unix)]
                if !name.ends_with(".bin") {
                    let source = through_pipe(&dir, packed, &options).unwrap();
                    assert!(read(source).unwrap() == wanted, "{path}, {what}, piped");
                }
                last.clone_from(packed);
            }
            // Under another name, with the format named.
            let format = Format::from_name(match &name[2..] {
                "npy" => "npy",
                "csv" => "csv",
                "txt" => "text",
                "bin" => "raw",
                _ => "arrow-stream",
            });
            let options = OpenOptions { format, ..options.clone() };
            let path = dir.file(&format!("data.{codec}"), &last);
            assert!(read(one(&path, &options)).unwrap() == wanted, "{path}");
        }
        wanted.bytes.clear();
    }
}

/// What a file of integers or its reading comes to.
fn outcome(path: &str, options: &OpenOptions) -> Result<Contents, String> {
    open(path, options).and_then(|mut s| read(s.remove(0))).map_err(|e| e.to_string())
}

#[test]
fn no_answer_from_damaged_data() {
    let dir = Dir::new();
    let numbers: String = (0..250).map(|i| format!("{}.25\n", i * i % 613)).collect();
    let array = npy(1, "'<u2'", false, "(200,)", &sample(DType::U16, 200));
    let stream = tables::arrow(&tables::small_batches(), true, None);
    let options = |name: &str| if name.ends_with(".arrows") { columns("n") } else { defaults() };
    for (name, bytes) in [("t.txt", numbers.into_bytes()), ("t.npy", array), ("t.arrows", stream)] {
        let options = options(name);
        let wanted = outcome(&dir.file(name, &bytes), &options).unwrap();
        for codec in CODECS {
            let whole = pack(codec, &bytes);
            let file = format!("{name}.{codec}");
            let bad = |what: &str, bytes: &[u8]| {
                let path = dir.file(&file, bytes);
                let error = outcome(&path, &options).expect_err(&format!("{file}: {what}"));
                assert!(error.starts_with(&path), "{error}");
                error
            };
            for len in places(whole.len()) {
                let error = bad(&format!("the first {len} bytes"), &whole[..len]);
                // With fewer bytes nothing shows that they are compressed.
                assert!(len < 10 || error.contains("damaged"), "{file}, {len}: {error}");
            }
            for garbage in [&b"garbage"[..], b"\0", b"\n", &[0xff; 100], &whole[..whole.len() / 2]]
            {
                let error = bad("garbage", &[&whole[..], garbage].concat());
                assert!(error.contains("damaged"), "{file}: {error}");
                let says_so = error.contains("follow") || codec == "xz";
                assert!(says_so || whole.starts_with(&garbage[..1]), "{file}: {error}");
            }
            // A flipped bit is an error, or it does not matter.
            for at in places(whole.len()) {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << (at % 8);
                let path = dir.file(&file, flipped);
                if let Ok(found) = outcome(&path, &options) {
                    assert!(found == wanted, "{file}: byte {at}");
                }
            }
        }
    }
}

#[test]
fn formats_that_seek_are_not_unpacked() {
    let dir = Dir::new();
    let array = npy(1, "'|u1'", false, "(1,)", &[1]);
    let (_, parquet) = tables::parquet_seeds().remove(0);
    let (_, arrow, _) = tables::arrow_seeds().remove(0);
    let tensor = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
    for (name, bytes) in [
        ("t.parquet", parquet),
        ("t.arrow", arrow),
        ("t.npz", binary::npz(&[("a.npy", array.clone())], CompressionMethod::Stored, false)),
        ("t.safetensors", binary::safetensors(tensor, &[7])),
    ] {
        for codec in CODECS {
            let path = dir.file(&format!("{name}.{codec}"), pack(codec, &bytes));
            let (message, hint) = complaint(&path, &defaults());
            assert!(message.contains("cannot be read while they are unpacked"), "{message}");
            assert!(hint.contains(" -d"), "{hint}");
            assert!(inspect(&path, &defaults()).is_err());
        }
    }
    let twice = pack("gz", &pack("zst", &array));
    let (message, hint) = complaint(&dir.file("t.npy.zst.gz", twice), &defaults());
    assert!(message.contains("zstd data within compressed data"), "{message}");
    assert!(hint.contains("outer layer"), "{hint}");
}

#[test]
fn raw_numbers_that_begin_like_compressed_ones() {
    let dir = Dir::new();
    let bytes = b"\x1f\x8b\x08\0\x01\x02\x03\x04";
    let raw = OpenOptions { dtype: Some(DType::U8), ..defaults() };
    assert_eq!(load::<u8>(&dir.file("x.bin", bytes), &raw), bytes);
    let named = OpenOptions { format: Some(Format::Raw), ..raw.clone() };
    assert_eq!(load::<u8>(&dir.file("x", bytes), &named), bytes);
    let (message, _) = complaint(&dir.file("x.bin.gz", bytes), &named);
    assert!(message.contains("damaged"), "{message}");
}

#[test]
fn inspect_tells_the_codec() {
    let dir = Dir::new();
    for (codec, name) in
        [("gz", "gzip"), ("zst", "zstd"), ("bz2", "bzip2"), ("xz", "xz"), ("lz4", "lz4")]
    {
        let array = npy(1, "'<f4'", false, "(2,)", &[0; 8]);
        let path = dir.file(&format!("a.npy.{codec}"), pack(codec, &array));
        let all = inspect(&path, &defaults()).unwrap();
        assert_eq!((all[0].format, all[0].dtype), (Format::Npy, Some(DType::F32)));
        assert_eq!(all[0].compression.as_deref(), Some(name));
        assert_eq!((all[0].offset, all[0].bytes), (None, None));
        let path = dir.file(&format!("t.tsv.{codec}"), pack(codec, b"a\tb\n1\t2\n"));
        let all = inspect(&path, &defaults()).unwrap();
        assert_eq!((all.len(), all[1].format), (2, Format::Tsv));
        assert_eq!(all[1].name, format!("{path}:b"));
    }
}

#[test]
fn a_bomb_takes_time_and_no_memory() {
    let dir = Dir::new();
    // 512 MiB of zeros, in 64 frames of the same bytes.
    let frame = pack("zst", &vec![0; 8 << 20]);
    let path = dir.file("bomb.bin.zst", frame.repeat(64));
    let source = one(&path, &OpenOptions { dtype: Some(DType::F64), ..defaults() });
    let warpfold_files::Access::Sequential(mut blocks) = source.access else { panic!("random") };
    let mut bytes = 0;
    while let Some(block) = blocks.next_block().unwrap() {
        assert!(block.bytes() <= 1 << 20);
        bytes += block.bytes();
    }
    assert_eq!(bytes, 1 << 29);
}
