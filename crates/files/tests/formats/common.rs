//! Reading sources whole, and writing the files that tests read.

use crate::thorough::up_to;
use std::path::PathBuf;
use warpfold_core::DType;
use warpfold_core::element::Known;
use warpfold_files::{Access, Batch, Extent, OpenOptions, Source, open};

/// A directory that goes away with the test.
pub(crate) struct Dir(tempfile::TempDir);

impl Dir {
    pub(crate) fn new() -> Self {
        Dir(tempfile::tempdir().unwrap())
    }

    /// Writes a file and gives its path.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().into()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Where so many bytes are damaged or cut: everywhere, or at both ends and here and there between them.
pub(crate) fn places(len: usize) -> impl Iterator<Item = usize> {
    let step = up_to(1, 11);
    (0..len).filter(move |at| at.min(&(len - 1 - at)) < &64 || at % step == 0)
}

/// The only source of a file.
pub(crate) fn one(path: &str, options: &OpenOptions) -> Source {
    let mut sources = open(path, options).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(sources.len(), 1);
    sources.remove(0)
}

/// What `open` or the reading of its sources complains about, and the hint.
pub(crate) fn complaint(path: &str, options: &OpenOptions) -> (String, String) {
    let result = open(path, options).and_then(|sources| {
        sources.into_iter().try_for_each(|source| read_as(source, DType::F64).map(|_| ()))
    });
    let error = result.expect_err("this file is bad");
    (error.to_string(), error.hint().unwrap_or_default())
}

/// Everything a source holds.
#[derive(Debug, PartialEq)]
pub(crate) struct Contents {
    /// The bytes of the values, gaps closed.
    pub(crate) bytes: Vec<u8>,
    /// The rows without a value.
    pub(crate) gaps: Vec<u64>,
    pub(crate) rows: u64,
}

/// Reads a source to its end; random access in pieces of odd size, backwards;
/// a column as elements of the source's type.
pub(crate) fn read(source: Source) -> warpfold_files::Result<Contents> {
    let dtype = source.dtype;
    read_as(source, dtype)
}

/// The same, but a column whose type nobody told as elements of this type.
pub(crate) fn read_as(mut source: Source, dtype: DType) -> warpfold_files::Result<Contents> {
    if let Access::Column(column) = &source.access {
        if column.is_open() {
            source.dtype = dtype;
        }
        source.access = Access::Sequential(column.blocks(source.dtype)?);
    }
    let size = source.dtype.size();
    match source.access {
        Access::Column(_) => unreachable!("made sequential above"),
        Access::Random(file) => {
            let Extent::Array { shape, .. } = &source.extent else { panic!("no array") };
            let count = shape.iter().product::<usize>();
            let mut bytes = vec![0xaa; count * size];
            let mut end = count;
            while end > 0 {
                let start = end.saturating_sub(1009);
                file.read_at(start as u64, &mut bytes[start * size..end * size])?;
                end = start;
            }
            assert_eq!(source.bytes, Some((count * size) as u64));
            Ok(Contents { bytes, gaps: vec![], rows: count as u64 })
        }
        Access::Sequential(mut blocks) => {
            let mut all = Contents { bytes: vec![], gaps: vec![], rows: 0 };
            let mut batch = Batch::new(source.dtype);
            let mut progress = 0;
            while let Some(block) = blocks.next_block()? {
                let announced = block.rows();
                progress += block.bytes();
                let (before, mut batches) = (all.rows, 0);
                block.decode(&mut batch, &mut |b| {
                    assert_eq!(b.dtype(), source.dtype);
                    assert!(announced.is_none() || b.bytes().len() <= 1 << 20);
                    for gap in b.gaps() {
                        all.gaps.extend((gap.row..gap.row + gap.len).map(|r| all.rows + r));
                    }
                    all.bytes.extend(b.bytes());
                    all.rows += b.rows();
                    batches += 1;
                    Ok(())
                })?;
                match announced {
                    Some(rows) => assert_eq!(all.rows - before, rows),
                    None => assert!(batches <= 1),
                }
            }
            assert!(blocks.next_block()?.is_none(), "the end stays the end");
            if let Some(bytes) = source.bytes {
                assert_eq!(progress, bytes, "progress ends where it said");
            }
            if let Extent::Array { shape, .. } = &source.extent {
                assert_eq!(all.rows, shape.iter().product::<usize>() as u64);
            }
            Ok(all)
        }
    }
}

/// The values of a source without gaps.
pub(crate) fn values<T: bytemuck::Pod>(source: Source) -> Vec<T> {
    // Columns of text are read as floats where floats are expected.
    let floats = std::any::TypeId::of::<T>() == std::any::TypeId::of::<f64>();
    let dtype = if floats { DType::F64 } else { source.dtype };
    let contents = read_as(source, dtype).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(contents.gaps, [0; 0]);
    contents.bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

/// The values of the only source of a file.
pub(crate) fn load<T: bytemuck::Pod>(path: &str, options: &OpenOptions) -> Vec<T> {
    values(one(path, options))
}

/// `count` elements of type `dtype` in native order, all bytes in use.
pub(crate) fn sample(dtype: DType, count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(count * dtype.size());
    while bytes.len() < count * dtype.size() {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        bytes.extend((state >> 11).to_le_bytes());
    }
    bytes.truncate(count * dtype.size());
    if dtype == DType::Bool {
        bytes.iter_mut().for_each(|b| *b &= 1);
    }
    bytes
}

/// NumPy's name of a type, without the order.
pub(crate) fn npy_name(dtype: DType) -> &'static str {
    match dtype.known() {
        Known::Bool => "b1",
        Known::I8 => "i1",
        Known::I16 => "i2",
        Known::I32 => "i4",
        Known::I64 => "i8",
        Known::U8 => "u1",
        Known::U16 => "u2",
        Known::U32 => "u4",
        Known::U64 => "u8",
        Known::F16 => "f2",
        Known::BF16 => "V2",
        Known::F32 => "f4",
        Known::F64 => "f8",
    }
}

/// An npy file: `descr` as a Python literal, `shape` as one.
pub(crate) fn npy(version: u8, descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let mut header = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}");
    let fixed = if version == 1 { 10 } else { 12 };
    while (fixed + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    match version {
        1 => file.extend((header.len() as u16).to_le_bytes()),
        _ => file.extend((header.len() as u32).to_le_bytes()),
    }
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

/// The bytes with each element reversed.
pub(crate) fn reversed(bytes: &[u8], size: usize) -> Vec<u8> {
    bytes.chunks(size).flat_map(|c| c.iter().rev().copied()).collect()
}
