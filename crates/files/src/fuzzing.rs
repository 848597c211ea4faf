//! Doors for fuzzing: each format's parser over bytes in memory.
//!
//! Nothing here is part of the interface.

use crate::file::PositionalFile;
use crate::open::{Stream, inspect_file, inspect_stream, open_file, open_stream};
use crate::stream::{self, Inputs, Silent};
use crate::{Access, Batch, Blocks, Extent, Format, OpenOptions, Source};
use std::sync::Arc;
use warpfold::{Op, Reduction, Threads};
use warpfold_core::DType;

/// The most elements read from an array; headers may claim more than a fuzzer
/// has time for.
const ENOUGH: usize = 1 << 16;

/// Inspects, opens and reads `bytes` as a file of the given format, or of
/// whatever format they show.
pub fn file(bytes: &[u8], options: &OpenOptions) {
    let file = Arc::new(PositionalFile::memory("fuzz", bytes.to_vec()));
    let described = inspect_file(&file, options).unwrap_or_default();
    if let Ok(sources) = open_file(&file, None, options) {
        sources.into_iter().for_each(drain);
        return;
    }
    // Several arrays: one after the other, by the names just given.
    for description in described.iter().take(16) {
        let member = description.name.strip_prefix("fuzz:");
        if let Ok(sources) = open_file(&file, member, options) {
            sources.into_iter().for_each(drain);
        }
    }
}

/// The same bytes as a stream.
pub fn stream(bytes: &[u8], options: &OpenOptions) {
    let reader = std::io::Cursor::new(bytes.to_vec());
    let Ok(stream) = Stream::new("fuzz", Box::new(reader)) else { return };
    if let Ok(sources) = open_stream(stream, None, options) {
        sources.into_iter().for_each(drain);
    }
}

/// `bytes` as a compressed stream: what it unpacks to is read as whatever it
/// is.
pub fn compressed(bytes: &[u8]) {
    let options = OpenOptions { dtype: Some(DType::F32), ..OpenOptions::default() };
    let reader = std::io::Cursor::new(bytes.to_vec());
    if let Ok(stream) = Stream::new("fuzz", Box::new(reader)) {
        let _ = inspect_stream(stream, &options);
    }
    file(bytes, &options);
    stream(bytes, &options);
}

/// `bytes` as a file and as a stream of one format.
pub fn format(bytes: &[u8], format: Format) {
    let options = OpenOptions { format: Some(format), ..OpenOptions::default() };
    file(bytes, &options);
    stream(bytes, &options);
}

/// Text, read with options that its first byte picks.
pub fn text(bytes: &[u8], format: Format) {
    let Some((&pick, bytes)) = bytes.split_first() else { return };
    let options = OpenOptions {
        format: Some(format),
        dtype: Some(DType::ALL[usize::from(pick) % DType::ALL.len()]),
        header: [None, Some(true), Some(false)][usize::from(pick >> 4) % 3],
        strict: pick & 0x80 != 0,
        ..OpenOptions::default()
    };
    file(bytes, &options);
    stream(bytes, &options);
}

/// Reads a source to its end, or to its first error.
fn drain(source: Source) {
    match source.access {
        Access::Random(file) => {
            let Extent::Array { shape, .. } = &source.extent else { return };
            let count = crate::source::element_count(shape).unwrap_or(0);
            let take = usize::try_from(count).unwrap_or(ENOUGH).min(ENOUGH);
            let mut out = vec![0; take * source.dtype.size()];
            let _ = file.read_at(0, &mut out);
            let _ = file.read_at(count - take as u64, &mut out);
        }
        Access::Column(ref column) => {
            if let Ok(blocks) = column.blocks(source.dtype) {
                drain_blocks(blocks, source.dtype);
            }
            // The same, with the type that only the last cell tells.
            let question = Reduction::new([Op::Sum, Op::ArgMin]).threads(Threads::Exactly(1));
            let inputs = Inputs { items: vec![source], others: Vec::new() };
            let _ = stream::partial(inputs, &question, 0, None, &Silent);
        }
        Access::Sequential(blocks) => drain_blocks(blocks, source.dtype),
    }
}

fn drain_blocks(mut blocks: Box<dyn Blocks>, dtype: DType) {
    let mut batch = Batch::new(dtype);
    let mut rows = 0;
    while let Ok(Some(block)) = blocks.next_block() {
        let announced = block.rows();
        let mut seen = 0;
        let result = block.decode(&mut batch, &mut |b| {
            assert_eq!(b.bytes().len() as u64, b.len() * b.dtype().size() as u64);
            seen += b.rows();
            Ok(())
        });
        if result.is_err() {
            return;
        }
        assert!(announced.is_none_or(|n| n == seen), "a block keeps its word");
        rows += seen;
        // What compresses well can be very long.
        if rows > 1 << 24 {
            return;
        }
    }
}
