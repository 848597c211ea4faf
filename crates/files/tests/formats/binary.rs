//! npy, npz, raw and safetensors: what was written is what is read.

use crate::common::*;
use crate::thorough::thorough;
use std::io::Write;
use warpfold_core::DType;
use warpfold_files::{
    Access, ColumnSelector, Endian, Extent, Format, OpenOptions, Order, inspect, open,
};
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

fn defaults() -> OpenOptions {
    OpenOptions::default()
}

fn columns(list: &str) -> OpenOptions {
    OpenOptions { columns: ColumnSelector::parse_list(list).unwrap(), ..defaults() }
}

/// A number that is no multiple of any block.
const COUNT: usize = 3 * 7919;

#[test]
fn npy_of_every_type_version_and_byte_order() {
    let dir = Dir::new();
    for dtype in DType::ALL {
        for version in 1..=3 {
            for (mark, endian) in [('<', Endian::Little), ('>', Endian::Big)] {
                let native = sample(dtype, COUNT);
                let stored = match endian {
                    Endian::NATIVE => native.clone(),
                    _ => reversed(&native, dtype.size()),
                };
                let descr = format!("'{mark}{}'", npy_name(dtype));
                let bytes = npy(version, &descr, false, "(3, 7919)", &stored);
                let path = dir.file("a.npy", bytes);
                // NumPy has no bfloat16: it is stored as void.
                let asked = (dtype == DType::BF16).then_some(dtype);
                let source = one(&path, &OpenOptions { dtype: asked, ..defaults() });
                assert_eq!(source.dtype, dtype);
                let shape = vec![3, 7919];
                assert_eq!(source.extent, Extent::Array { shape, order: Order::C });
                assert!(matches!(source.access, Access::Random(_)));
                assert_eq!(read(source).unwrap().bytes, native, "{descr} version {version}");
            }
        }
    }
}

#[test]
fn npy_in_fortran_order_scalars_and_empties() {
    let dir = Dir::new();
    let path = dir.file("f.npy", npy(1, "'<i4'", true, "(2, 3)", &sample(DType::I32, 6)));
    let source = one(&path, &defaults());
    assert_eq!(source.extent, Extent::Array { shape: vec![2, 3], order: Order::Fortran });
    let path = dir.file("s.npy", npy(1, "'<f8'", false, "()", &2.5_f64.to_le_bytes()));
    let source = one(&path, &defaults());
    assert_eq!(source.extent, Extent::Array { shape: vec![], order: Order::C });
    assert_eq!(values::<f64>(source), [2.5]);
    let path = dir.file("e.npy", npy(1, "'<f8'", false, "(0, 9223372036854775807)", &[]));
    assert_eq!(load::<f64>(&path, &defaults()), [0.0; 0]);
}

#[test]
fn npy_fields_are_picked_out_of_records() {
    // A small record, one of which few are read at once, one not read whole.
    for padding in [3, 3985, 5000] {
        let dir = Dir::new();
        let mut data = Vec::new();
        let count = 2500_usize;
        for i in 0..count {
            data.extend((i as f32).to_le_bytes());
            data.extend(vec![0xee; padding]);
            data.extend((i as i64 * -7).to_be_bytes());
        }
        let descr = format!("[('a', '<f4'), ('', '|V{padding}'), ('b', '>i8')]");
        let path = dir.file("r.npy", npy(1, &descr, false, &format!("({count},)"), &data));
        let sources = open(&path, &columns("b,a")).unwrap();
        assert_eq!(sources[0].name, format!("{path}:b"));
        let mut read = sources.into_iter();
        let b: Vec<i64> = values(read.next().unwrap());
        let a: Vec<f32> = values(read.next().unwrap());
        assert!(b.iter().enumerate().all(|(i, &v)| v == i as i64 * -7));
        assert!(a.iter().enumerate().all(|(i, &v)| v == i as f32));
        assert_eq!(load::<f32>(&format!("{path}:a"), &defaults()), a);
    }
}

#[test]
fn npy_that_lies_or_is_no_array_of_numbers() {
    let dir = Dir::new();
    let short = |descr: &str, shape: &str| npy(1, descr, false, shape, &[0; 16]);
    for (bytes, what, hint) in [
        (short("'<f8'", "(3,)"), "takes 24 bytes, but only 16 follow", ""),
        (short("'<f8'", "(4294967296, 4294967296)"), "more elements than can be counted", ""),
        (short("'<f8'", "(-2,)"), "the shape holds -2", ""),
        (short("'|O'", "(2,)"), "Python objects are pickled", ""),
        (short("'<c16'", "(1,)"), "complex numbers are not supported", ""),
        (short("'<U4'", "(1,)"), "text is not a number", ""),
        (short("'<M8[ns]'", "(2,)"), "dates and durations are not numbers", ""),
        (short("'<f16'", "(1,)"), "floats of this width", ""),
        (short("'|V2'", "(8,)"), "bytes without a type", "--dtype bf16"),
        (short("[('a', '<f4'), ('b', '<f4')]", "(2,)"), "its fields are a, b", "-c NAME"),
        (short("'<q9'", "(2,)"), "type \"<q9\" is not known", ""),
        (short("'<f8'", "(2,"), "damaged npy header", ""),
    ] {
        let (message, given) = complaint(&dir.file("x.npy", bytes), &defaults());
        assert!(message.contains(what), "{message}");
        assert!(given.contains(hint), "{given}");
    }
}

#[test]
fn npy_fields_that_cannot_be_read() {
    let dir = Dir::new();
    let descr = "[('a', '<f4', (2,)), ('s', [('x', '<f4')]), ('t', '<U1')]";
    let path = dir.file("x.npy", npy(1, descr, false, "(1,)", &[0; 16]));
    for (column, what) in [
        ("a", "an array within a record"),
        ("s", "a record within a record"),
        ("t", "text is not a number"),
        ("q", "no column \"q\"; there are a, s, t"),
    ] {
        let (message, _) = complaint(&path, &columns(column));
        assert!(message.contains(what), "{message}");
    }
    let plain = dir.file("p.npy", npy(1, "'<f4'", false, "(4,)", &[0; 16]));
    let (message, _) = complaint(&plain, &columns("a"));
    assert!(message.contains("the array has no fields"), "{message}");
    let (message, _) = complaint(&plain, &OpenOptions { dtype: Some(DType::F64), ..defaults() });
    assert!(message.contains("f64 was asked for, but the elements are f32"), "{message}");
}

#[test]
fn npy_truncated_in_the_header() {
    let dir = Dir::new();
    let whole = npy(1, "'<f8'", false, "(2,)", &[0; 16]);
    for len in [6, 7, 9, 10, 40] {
        let path = dir.file("t.npy", &whole[..len]);
        let (message, _) = complaint(&path, &defaults());
        assert!(message.contains("cut short"), "{len}: {message}");
    }
}

#[test]
fn a_file_that_shrinks_is_an_error_and_not_a_signal() {
    let dir = Dir::new();
    let path = dir.file("t.npy", npy(1, "'<f8'", false, "(1000,)", &[0; 8000]));
    let source = one(&path, &defaults());
    std::fs::File::options().write(true).open(&path).unwrap().set_len(1000).unwrap();
    let message = read(source).unwrap_err().to_string();
    assert!(message.contains("the file ends at byte"), "{message}");
}

/// An archive of npy members.
pub(crate) fn npz(members: &[(&str, Vec<u8>)], method: CompressionMethod, large: bool) -> Vec<u8> {
    let mut zip = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in members {
        let options = SimpleFileOptions::default().compression_method(method).large_file(large);
        zip.start_file(*name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn npz_stored_and_deflated() {
    let dir = Dir::new();
    let native = sample(DType::F64, 3 * 100_003);
    let big = npy(1, "'>f8'", true, "(100003, 3)", &reversed(&native, 8));
    let small = npy(1, "'<i2'", false, "(2,)", &[1, 0, 2, 0]);
    let members = [("w/big.npy", big), ("small.npy", small), ("notes.txt", b"hello".to_vec())];
    for (method, large, random) in [
        (CompressionMethod::Stored, false, true),
        (CompressionMethod::Stored, true, true),
        (CompressionMethod::Deflated, false, false),
        (CompressionMethod::Deflated, true, false),
    ] {
        let path = dir.file("a.npz", npz(&members, method, large));
        for name in ["w/big", "w/big.npy"] {
            let source = one(&format!("{path}:{name}"), &defaults());
            let shape = vec![100_003, 3];
            assert_eq!(source.extent, Extent::Array { shape, order: Order::Fortran });
            assert_eq!(matches!(source.access, Access::Random(_)), random);
            assert_eq!(read(source).unwrap().bytes, native);
        }
        let both = open(&path, &columns("small,w/big")).unwrap();
        assert_eq!(both.len(), 2);
        assert_eq!(both[0].name, format!("{path}:small"));
        let (message, hint) = complaint(&path, &defaults());
        assert!(message.contains("which array? There are 2: w/big, small"), "{message}");
        assert!(hint.contains("a.npz:w/big"), "{hint}");
        let (message, _) = complaint(&format!("{path}:nope"), &defaults());
        assert!(message.contains("no array \"nope\"; there are w/big, small"), "{message}");
        let all = inspect(&path, &defaults()).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].stored_as, ">f8");
        assert_eq!(all[0].compression.is_some(), !random);
        assert_eq!(all[1].name, format!("{path}:small"));
    }
}

#[test]
fn npz_with_one_member_needs_no_name() {
    let dir = Dir::new();
    let record = npy(
        1,
        "[('x', '<i4'), ('y', '<u2')]",
        false,
        "(2,)",
        &[1, 0, 0, 0, 9, 0, 2, 0, 0, 0, 8, 0],
    );
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let path = dir.file("r.npz", npz(&[("arr_0.npy", record.clone())], method, false));
        assert_eq!(load::<i32>(&path, &columns("x")), [1, 2]);
        assert_eq!(load::<u16>(&format!("{path}:arr_0:y"), &defaults()), [9, 8]);
        assert_eq!(open(&path, &columns("x,y")).unwrap().len(), 2);
        let names: Vec<_> =
            inspect(&path, &defaults()).unwrap().into_iter().map(|d| d.name).collect();
        assert_eq!(names, [format!("{path}:arr_0:x"), format!("{path}:arr_0:y")]);
    }
}

#[test]
fn damaged_archives() {
    let dir = Dir::new();
    let array = npy(1, "'<f8'", false, "(1000,)", &sample(DType::F64, 1000));
    let whole = npz(&[("a.npy", array)], CompressionMethod::Deflated, false);
    // A flipped bit in the middle of the data: the checksum or the decoder finds it.
    let mut flipped = whole.clone();
    flipped[3000] ^= 0x10;
    let (message, _) = complaint(&dir.file("f.npz", flipped), &defaults());
    assert!(message.contains("damaged"), "{message}");
    for len in [4, 30, 2000, whole.len() - 1] {
        let (message, _) = complaint(&dir.file("t.npz", &whole[..len]), &defaults());
        assert!(message.contains("zip"), "{len}: {message}");
    }
    let empty = npz(&[], CompressionMethod::Stored, false);
    let (message, _) = complaint(&dir.file("e.npz", empty), &defaults());
    assert!(message.contains("no npy arrays"), "{message}");
    // Claims more elements than the member holds.
    let liar = npy(1, "'<f8'", false, "(1000,)", &[0; 800]);
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let path = dir.file("l.npz", npz(&[("a.npy", liar.clone())], method, false));
        let (message, _) = complaint(&path, &defaults());
        assert!(message.contains("takes 8000 bytes, but only 800"), "{message}");
    }
}

/// The first place of `what` in an archive.
fn find(archive: &[u8], what: &[u8]) -> usize {
    archive.windows(what.len()).position(|w| w == what).unwrap()
}

#[test]
fn a_flipped_bit_of_a_stored_member_is_told_by_its_checksum() {
    let dir = Dir::new();
    let data = sample(DType::F64, 100_000);
    let plain = npy(1, "'<f8'", false, "(1000, 100)", &data);
    let record = npy(1, "[('a', '<f4'), ('b', '>i2'), ('c', '<i2')]", true, "(100000,)", &data);
    let trailing = npy(1, "'<f8'", false, "(99000,)", &data);
    let none = npy(1, "'<f8'", false, "(0, 3)", &[]);
    for (what, array, column) in [
        ("plain", plain, None),
        ("field", record.clone(), Some("b")),
        ("last field", record, Some("c")),
        ("bytes behind the array", trailing, None),
        ("no elements", none, None),
    ] {
        let options = column.map_or_else(defaults, columns);
        for (method, large) in [
            (CompressionMethod::Stored, false),
            (CompressionMethod::Stored, true),
            (CompressionMethod::Deflated, false),
        ] {
            let whole = npz(&[("a.npy", array.clone())], method, large);
            let path = dir.file("whole.npz", &whole);
            read(one(&path, &options)).unwrap();
            if method == CompressionMethod::Stored {
                let start = find(&whole, b"\x93NUMPY");
                // In the blanks of the header, at the ends, anywhere.
                for at in [100, 127, 128, 130, 140_000, array.len() - 1] {
                    let mut flipped = whole.clone();
                    let Some(byte) = flipped.get_mut(start + at) else { continue };
                    if at >= array.len() {
                        continue;
                    }
                    *byte ^= 1;
                    // A blank that becomes another character is told earlier.
                    let (message, _) = complaint(&dir.file("f.npz", flipped), &options);
                    assert!(
                        message.contains("checksum of the zip member") || at < 128,
                        "{what}, {at}: {message}"
                    );
                }
            }
            // The checksum itself, in both places.
            let crc = crc32(&array).to_le_bytes();
            let mut wrong = whole.clone();
            while let Some(at) = wrong.windows(4).position(|w| w == crc) {
                wrong[at] ^= 1;
            }
            let (message, _) = complaint(&dir.file("c.npz", wrong), &options);
            assert!(
                message.contains("checksum of the zip member")
                    || message.contains("checksum of a zip member"),
                "{what}: {message}"
            );
        }
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut hasher = flate2::Crc::new();
    hasher.update(bytes);
    hasher.sum()
}

#[test]
fn directories_that_disagree_with_their_members() {
    let dir = Dir::new();
    let array = npy(1, "'<f8'", false, "(1000,)", &sample(DType::F64, 1000));
    for (method, large) in [
        (CompressionMethod::Stored, false),
        (CompressionMethod::Stored, true),
        (CompressionMethod::Deflated, false),
        (CompressionMethod::Deflated, true),
    ] {
        let whole = npz(&[("a.npy", array.clone())], method, large);
        // Where the sizes of the local header are.
        let (stored, size) = if large { (30 + 5 + 12, 30 + 5 + 4) } else { (18, 22) };
        for (at, what) in [
            (0, "no member"),
            (6, "disagree about its compression"),
            (8, "disagree about its compression"),
            (14, "disagree about its checksum"),
            (30, "disagree about its name"),
            (stored, "disagree about its size"),
            (size, "disagree about its size"),
        ] {
            let mut wrong = whole.clone();
            wrong[at] ^= 1;
            let (message, _) = complaint(&dir.file("w.npz", wrong), &defaults());
            assert!(message.contains(what), "{at}: {message}");
        }
        // Encrypted.
        let mut secret = whole.clone();
        for at in [6, find(&whole, b"PK\x01\x02") + 8] {
            secret[at] |= 1;
        }
        let (message, hint) = complaint(&dir.file("e.npz", secret), &defaults());
        assert!(message.contains("encrypted") && hint.contains("password"), "{message}");
    }
}

/// An archive whose only member was written to a pipe: its sizes follow it.
fn streamed(mut whole: Vec<u8>, signature: bool, wide: bool) -> Vec<u8> {
    let central = find(&whole, b"PK\x01\x02");
    for at in [6, central + 8] {
        whole[at] |= 8;
    }
    let mut descriptor = if signature { b"PK\x07\x08".to_vec() } else { Vec::new() };
    descriptor.extend(&whole[14..18]);
    for size in [18, 22] {
        descriptor.extend(&whole[size..size + 4]);
        descriptor.extend(if wide { &[0; 4][..] } else { &[] });
    }
    whole[14..26].fill(0);
    let end = find(&whole, b"PK\x05\x06");
    let moved = (central + descriptor.len()) as u32;
    whole[end + 16..end + 20].copy_from_slice(&moved.to_le_bytes());
    whole.splice(central..central, descriptor);
    whole
}

/// The same archive with the record of a directory that is too large for the usual one.
fn with_wide_end(mut whole: Vec<u8>) -> Vec<u8> {
    let end = find(&whole, b"PK\x05\x06");
    let count = u64::from(whole[end + 10]);
    let word = |at: usize| u64::from(u32::from_le_bytes(whole[at..at + 4].try_into().unwrap()));
    let (size, offset) = (word(end + 12), word(end + 16));
    let mut record = b"PK\x06\x06".to_vec();
    record.extend(44u64.to_le_bytes());
    record.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    record.extend([count, count, size, offset].iter().flat_map(|n| n.to_le_bytes()));
    record.extend(b"PK\x06\x07\0\0\0\0");
    record.extend((end as u64).to_le_bytes());
    record.extend(1u32.to_le_bytes());
    whole[end + 8..end + 20].fill(0xff);
    whole.splice(end..end, record);
    whole
}

/// Two arrays, and what they hold.
fn two() -> [(&'static str, Vec<u8>); 2] {
    [("a.npy", vec![1, 2]), ("b.npy", vec![40, 50, 60])]
        .map(|(name, data)| (name, npy(1, "'|u1'", false, &format!("({},)", data.len()), &data)))
}

/// What all arrays of an archive hold.
fn arrays(path: &str) -> warpfold_files::Result<Vec<(String, Vec<u8>)>> {
    let described = inspect(path, &defaults())?.into_iter();
    let read = |name: String| {
        let contents = open(&name, &defaults()).and_then(|mut all| read(all.remove(0)))?;
        Ok((name, contents.bytes))
    };
    described.map(|array| read(array.name)).collect()
}

#[test]
fn members_that_were_written_to_a_pipe() {
    let dir = Dir::new();
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let whole = npz(&two()[..1], method, false);
        for (signature, wide) in [(false, false), (true, false), (false, true), (true, true)] {
            let streamed = streamed(whole.clone(), signature, wide);
            let path = dir.file("s.npz", &streamed);
            assert_eq!(load::<u8>(&path, &defaults()), [1, 2]);
            // Each byte behind the data.
            let directory = find(&streamed, b"PK\x01\x02");
            let before = find(&whole, b"PK\x01\x02");
            for at in before..directory {
                let mut wrong = streamed.clone();
                wrong[at] ^= 1;
                let (message, _) = complaint(&dir.file("w.npz", wrong), &defaults());
                assert!(message.contains("no member has"), "{at}: {message}");
            }
        }
    }
}

/// A directory that differs in any byte gives the same arrays, or none.
#[test]
fn a_damaged_directory_gives_no_other_arrays() {
    let dir = Dir::new();
    let plain = |method, large| npz(&two(), method, large);
    let archives = [
        ("stored", plain(CompressionMethod::Stored, false)),
        ("large", plain(CompressionMethod::Stored, true)),
        ("deflated", plain(CompressionMethod::Deflated, false)),
        ("wide end", with_wide_end(plain(CompressionMethod::Stored, false))),
        (
            "behind others",
            [b"#!/bin/sh\n".to_vec(), plain(CompressionMethod::Stored, false)].concat(),
        ),
    ];
    for (turn, (what, whole)) in archives.into_iter().enumerate() {
        let path = dir.file("m.npz", &whole);
        let wanted = arrays(&path).unwrap();
        assert_eq!(wanted.len(), 2, "{what}");
        // One or two bits, the neighbours, and what stands for a value elsewhere.
        let changes: [fn(u8) -> u8; 6] =
            [|b| b ^ 1, |b| b ^ 0x28, |b| b ^ 0x80, |b| b.wrapping_add(1), |_| 0, |_| 0xff];
        for at in 0..whole.len() {
            for (i, change) in changes.iter().enumerate() {
                // Three of the six, by turns of bytes and archives.
                if !thorough() && (at + i + turn) % 2 == 0 {
                    continue;
                }
                let mut wrong = whole.clone();
                wrong[at] = change(wrong[at]);
                if wrong == whole {
                    continue;
                }
                let path = dir.file("m.npz", wrong);
                if let Ok(found) = arrays(&path) {
                    assert_eq!(found, wanted, "{what}: byte {at}, change {i}");
                }
                // One array would need no name.
                assert!(open(&path, &defaults()).is_err(), "{what}: byte {at}, change {i}");
            }
        }
        // Anything behind it, and less of it.
        for len in 0..whole.len() {
            assert!(arrays(&dir.file("m.npz", &whole[..len])).is_err(), "{what}: {len} bytes");
        }
        let (message, _) = complaint(&dir.file("m.npz", [&whole[..], b"\n"].concat()), &defaults());
        assert!(message.contains("other bytes behind the end"), "{message}");
    }
}

#[test]
fn a_directory_lists_each_member_once() {
    let dir = Dir::new();
    let whole = npz(&two(), CompressionMethod::Stored, false);
    let end = find(&whole, b"PK\x05\x06");
    let first = find(&whole, b"PK\x01\x02");
    let second = first + 46 + 5;
    let directory = |entries: &[&[u8]], counted: u8| {
        let entries = entries.concat();
        let mut tail = whole[end..].to_vec();
        (tail[8], tail[10]) = (counted, counted);
        tail[12..16].copy_from_slice(&(entries.len() as u32).to_le_bytes());
        [&whole[..first], &entries, &tail].concat()
    };
    let (a, b) = (&whole[first..second], &whole[second..end]);
    assert_eq!(arrays(&dir.file("m.npz", directory(&[b, a], 2))).unwrap().len(), 2);
    let none = || npy(1, "'|u1'", false, "(1,)", &[7]);
    let twice = [("a.npy", none()), ("c.npy", none())];
    let mut twice = npz(&twice, CompressionMethod::Stored, false);
    while let Some(at) = twice.windows(5).position(|w| w == b"c.npy") {
        twice[at] = b'a';
    }
    for (what, bytes, says) in [
        ("the first is missing", directory(&[b], 1), "does not list"),
        ("the last is missing", directory(&[a], 1), "no member has"),
        ("counts one", directory(&[a, b], 1), "has 2 entries, and its end counts 1"),
        ("counts three", directory(&[a, b], 3), "has 2 entries, and its end counts 3"),
        ("one twice", directory(&[a, b, b], 3), "into what follows"),
        ("a name twice", twice, "two members \"a.npy\""),
        ("two archives", [&whole[..], &whole].concat(), "does not list"),
        ("no directory", directory(&[], 0), "does not list"),
    ] {
        let path = dir.file("m.npz", bytes);
        let message = arrays(&path).expect_err(what).to_string();
        assert!(message.contains(says), "{what}: {message}");
        assert!(open(&path, &defaults()).is_err(), "{what}");
    }
}

#[test]
fn raw_bytes_of_every_type() {
    let dir = Dir::new();
    // What begins like something else is raw all the same if one says so.
    for (name, head) in
        [("x.bin", &b"\x1f\x8b\x08\0PARE"[..]), ("x.dat", b"\xff\xff\xff\xff\x08\0\0\0")]
    {
        let path = dir.file(name, [head, &[1; 16]].concat());
        let i32s = OpenOptions { dtype: Some(DType::I32), ..defaults() };
        assert_eq!(load::<i32>(&path, &i32s).len(), 6);
    }
    for dtype in DType::ALL {
        for (endian, name) in [(Endian::Little, "x.bin"), (Endian::Big, "x.dat")] {
            let native = sample(dtype, COUNT);
            let stored = match endian {
                Endian::NATIVE => native.clone(),
                _ => reversed(&native, dtype.size()),
            };
            let path = dir.file(name, [&b"\0head"[..], &stored].concat());
            let options = OpenOptions { dtype: Some(dtype), offset: 5, endian, ..defaults() };
            let source = one(&path, &options);
            assert_eq!(source.extent, Extent::Array { shape: vec![COUNT], order: Order::C });
            assert_eq!(read(source).unwrap().bytes, native, "{dtype}");
            let shaped = OpenOptions { shape: Some(vec![7919, 3]), ..options };
            let source = one(&path, &shaped);
            assert_eq!(source.extent, Extent::Array { shape: vec![7919, 3], order: Order::C });
        }
    }
}

#[test]
fn raw_bytes_that_do_not_fit() {
    let dir = Dir::new();
    let path = dir.file("x.bin", [0; 30]);
    let f64s = |shape: Option<Vec<usize>>, offset| OpenOptions {
        dtype: Some(DType::F64),
        shape,
        offset,
        ..defaults()
    };
    for (options, what, hint) in [
        (defaults(), "do not say what type", "--dtype"),
        (f64s(None, 0), "30 bytes are not a whole number of f64", "--offset 6"),
        (f64s(Some(vec![4]), 6), "takes 32 bytes, but the file has 24 behind offset 6", "--shape"),
        (f64s(Some(vec![2]), 6), "takes 16 bytes, but the file has 24", "--shape"),
        (f64s(Some(vec![usize::MAX, 9]), 6), "more elements than can be counted", ""),
        (f64s(None, 31), "offset 31 lies beyond the data's 30 bytes", ""),
    ] {
        let (message, given) = complaint(&path, &options);
        assert!(message.contains(what), "{message}");
        assert!(given.contains(hint), "{given}");
    }
    let npy = dir.file("x.npy", npy(1, "'<f8'", false, "(1,)", &[0; 8]));
    let (message, hint) = complaint(&npy, &f64s(None, 8));
    assert!(message.contains("an offset was given, but this is read as npy"), "{message}");
    assert!(hint.contains("--format raw"), "{hint}");
    let forced = OpenOptions { format: Some(Format::Raw), ..f64s(None, 128) };
    assert_eq!(load::<f64>(&npy, &forced), [0.0]);
}

/// A safetensors file of these entries, as JSON, and data.
pub(crate) fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

#[test]
fn safetensors_of_every_type() {
    let dir = Dir::new();
    let mut header = String::from(r#"{"__metadata__":{"format":"pt"}"#);
    let mut data = Vec::new();
    for dtype in DType::ALL {
        let (start, name) = (data.len(), dtype.name().to_uppercase());
        data.extend(sample(dtype, 6 * 1009));
        header += &format!(
            r#","layer.{dtype}":{{"dtype":"{name}","shape":[2,3,1009],"data_offsets":[{start},{}]}}"#,
            data.len()
        );
    }
    header += "}  ";
    let file = safetensors(&header, &data);
    for name in ["m.safetensors", "without-a-telling-name"] {
        let path = dir.file(name, &file);
        for dtype in DType::ALL {
            let source = one(&format!("{path}:layer.{dtype}"), &defaults());
            assert_eq!(source.dtype, dtype);
            assert_eq!(source.extent, Extent::Array { shape: vec![2, 3, 1009], order: Order::C });
            assert_eq!(read(source).unwrap().bytes, sample(dtype, 6 * 1009));
        }
        let (message, _) = complaint(&path, &defaults());
        assert!(message.contains("which tensor? There are 13: layer.bool, layer.i8"), "{message}");
        assert_eq!(open(&path, &columns("layer.f16,layer.bf16")).unwrap().len(), 2);
        assert_eq!(inspect(&path, &defaults()).unwrap().len(), 13);
    }
}

#[test]
fn safetensors_that_lie() {
    let dir = Dir::new();
    let entry = |entry: &str| safetensors(&format!(r#"{{"a":{entry}}}"#), &[0; 16]);
    for (file, what) in [
        (entry(r#"{"dtype":"F8_E4M3","shape":[16],"data_offsets":[0,16]}"#), "8-bit floats"),
        (entry(r#"{"dtype":"F64","shape":[3],"data_offsets":[0,16]}"#), "does not take the 16"),
        (entry(r#"{"dtype":"F64","shape":[3],"data_offsets":[0,24]}"#), "do not lie within the 16"),
        (entry(r#"{"dtype":"F64","shape":[2],"data_offsets":[16,0]}"#), "do not lie within"),
        (entry(r#"{"dtype":"F64","shape":[-2],"data_offsets":[0,16]}"#), "tensor \"a\""),
        (
            entry(r#"{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,16]}"#),
            "does not take the 16",
        ),
        (entry("3"), "tensor \"a\""),
        (entry(r#"{"dtype":"F64","shape":[2],"data_offsets":[0,16]},"a":3"#), "tensor \"a\""),
        (
            entry(
                r#"{"dtype":"F64","shape":[2],"data_offsets":[0,16]},
                "a":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}"#,
            ),
            "tensor \"a\" is there twice",
        ),
        (
            entry(&format!(
                r#"{{"dtype":"U8","shape":[{}16],"data_offsets":[0,16]}}"#,
                "1,".repeat(64)
            )),
            "at most 64 axes",
        ),
        (safetensors("{", &[]), "damaged safetensors header"),
        (safetensors("{} x", &[]), "damaged safetensors header"),
        (safetensors("[]", &[]), "an object of tensors"),
        (safetensors("{}", &[]), "no tensors"),
        (b"\xff\xff\xff\xff\xff\xff\xff\x7f{}".to_vec(), "claims to be 9223372036854775807"),
        (b"abc".to_vec(), "truncated"),
    ] {
        let (message, _) = complaint(&dir.file("m.safetensors", file), &defaults());
        assert!(message.contains(what), "{what}: {message}");
    }
    let file = entry(r#"{"dtype":"F64","shape":[2],"data_offsets":[0,16]}"#);
    let path = dir.file("m.safetensors", file);
    assert_eq!(load::<f64>(&path, &defaults()), [0.0, 0.0]);
    let (message, _) = complaint(&format!("{path}:b"), &defaults());
    assert!(message.contains("no tensor \"b\"; there are a"), "{message}");
}

#[test]
fn files_that_are_none() {
    let dir = Dir::new();
    let (message, _) = complaint(dir.path("absent.npy").to_str().unwrap(), &defaults());
    assert!(message.contains("absent.npy: No such file"), "{message}");
    let (message, _) = complaint(dir.path("absent.npz:member").to_str().unwrap(), &defaults());
    assert!(message.contains("absent.npz:member: No such file"), "{message}");
    let (message, hint) = complaint(dir.path("").to_str().unwrap(), &defaults());
    assert!(message.contains("this is a directory") && hint.contains("*.npy"), "{message}");
    for name in ["e.npy", "e.npz", "e.parquet", "e.arrow", "e.arrows", "e.safetensors"] {
        let (message, _) = complaint(&dir.file(name, ""), &defaults());
        assert!(message.contains("it is empty, but") && message.contains("header"), "{message}");
    }
    let (message, _) = complaint(&dir.file("e.csv", ""), &defaults());
    assert!(message.contains("no rows"), "{message}");
    let (_, hint) = complaint(&dir.file("e.bin", ""), &defaults());
    assert!(hint.contains("--dtype"), "{hint}");
    let (message, hint) = complaint(&dir.file("x.unknown", [0, 1, 2, 200]), &defaults());
    assert!(message.contains("what format this is") && hint.contains("--dtype"), "{message}");
    for (bytes, what) in [
        (&b"CDF\x01\0\0\0\0"[..], "classic kind"),
        (b"FEA1\0\0\0", "Feather version 1"),
        (b"PARE\0\0\0", "encrypted Parquet"),
    ] {
        let (message, hint) = complaint(&dir.file("x.dat", bytes), &defaults());
        assert!(message.contains(what) && !hint.is_empty(), "{message}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_without_permission() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new();
    let path = dir.file("secret.npy", npy(1, "'<f8'", false, "(1,)", &[0; 8]));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    // Root may read everything; nothing to see then.
    if std::fs::File::open(&path).is_err() {
        let (message, _) = complaint(&path, &defaults());
        assert!(message.contains("Permission denied"), "{message}");
    }
}

#[test]
fn a_real_file_with_a_colon_wins_over_a_member() {
    let dir = Dir::new();
    dir.file(
        "a.npz",
        npz(&[("x.npy", npy(1, "'|u1'", false, "(1,)", &[1]))], CompressionMethod::Stored, false),
    );
    let path = dir.path("a.npz:x").to_str().unwrap().to_owned();
    assert_eq!(load::<u8>(&path, &defaults()), [1]);
    dir.file("a.npz:x", npy(1, "'|u1'", false, "(1,)", &[2]));
    assert_eq!(load::<u8>(&path, &defaults()), [2]);
}

#[test]
fn inspect_tells_where_and_what() {
    let dir = Dir::new();
    let path = dir.file("a.npy", npy(1, "'>f4'", true, "(2, 3)", &[0; 24]));
    let d = &inspect(&path, &defaults()).unwrap()[0];
    assert_eq!((d.name.as_str(), d.format, d.stored_as.as_str()), (&*path, Format::Npy, ">f4"));
    assert_eq!(
        (d.dtype, d.endian, d.offset, d.bytes),
        (Some(DType::F32), Some(Endian::Big), Some(128), Some(24))
    );
    let path = dir.file("c.npy", npy(1, "'<c8'", false, "(3,)", &[0; 24]));
    let d = &inspect(&path, &defaults()).unwrap()[0];
    assert_eq!((d.dtype, d.stored_as.as_str()), (None, "<c8"));
    assert!(d.why_not.as_ref().unwrap().contains("complex"));
}
