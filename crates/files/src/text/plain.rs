//! Numbers with white space between them, any number on a line.

use super::chunks::{Chunk, Chunks, count_lines};
use super::number::TextNumber;
use super::{BOM, check_encoding};
use crate::file::{Cursor, PositionalFile};
use crate::open::{OpenOptions, Stream};
use crate::{Access, Batch, Block, Blocks, Description, Error, Extent, Format, Result, Source};
use std::io::Read;
use std::sync::Arc;
use warpfold_core::{DType, with_element};

/// The numbers of a text file.
pub(crate) fn open(file: &Arc<PositionalFile>, options: &OpenOptions) -> Result<Source> {
    let name = file.name();
    let head = file.head(BOM.len())?;
    check_encoding(&head, &name)?;
    let start = if head == BOM { BOM.len() as u64 } else { 0 };
    let bytes = file.len() - start;
    let reader = Cursor::part(Arc::clone(file), start, bytes);
    Ok(source(name, Box::new(reader), Some(bytes), options))
}

/// The numbers of a stream.
pub(crate) fn open_stream(mut stream: Stream, options: &OpenOptions) -> Result<Source> {
    check_encoding(&stream.head, &stream.name)?;
    if stream.head.starts_with(BOM) {
        stream.head.drain(..BOM.len());
    }
    let (name, reader) = stream.into_reader();
    Ok(source(name, reader, None, options))
}

fn source(
    name: String,
    reader: Box<dyn Read + Send>,
    bytes: Option<u64>,
    options: &OpenOptions,
) -> Source {
    let dtype = options.dtype.unwrap_or(DType::F64);
    let cut = |text: &[u8]| text.iter().rposition(u8::is_ascii_whitespace).map(|i| i + 1);
    let chunks = Chunks::new(&name, reader, 1, Box::new(cut));
    let numbers = Numbers { name: Arc::from(&*name), dtype, chunks };
    Source {
        name,
        dtype,
        extent: Extent::Column { rows: None },
        bytes,
        access: Access::Sequential(Box::new(numbers)),
    }
}

struct Numbers {
    name: Arc<str>,
    dtype: DType,
    chunks: Chunks,
}

impl Blocks for Numbers {
    fn next_block(&mut self) -> Result<Option<Box<dyn Block>>> {
        Ok(self.chunks.next()?.map(|chunk| {
            let name = Arc::clone(&self.name);
            Box::new(NumberBlock { name, dtype: self.dtype, chunk }) as Box<dyn Block>
        }))
    }
}

struct NumberBlock {
    name: Arc<str>,
    dtype: DType,
    chunk: Chunk,
}

impl Block for NumberBlock {
    fn rows(&self) -> Option<u64> {
        None
    }

    fn bytes(&self) -> u64 {
        self.chunk.text.len() as u64
    }

    fn decode(
        self: Box<Self>,
        batch: &mut Batch,
        sink: &mut dyn FnMut(&Batch) -> Result<()>,
    ) -> Result<()> {
        batch.reset(self.dtype);
        with_element!(self.dtype, T => self.parse::<T>(batch))?;
        sink(batch)
    }
}

impl NumberBlock {
    fn parse<T: TextNumber>(&self, batch: &mut Batch) -> Result<()> {
        let text = &self.chunk.text;
        for word in text.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()) {
            match T::parse(word).or_else(|refusal| quoted(word).ok_or(refusal)) {
                Ok(value) => batch.push(value),
                Err(refusal) => {
                    let at = word.as_ptr() as usize - text.as_ptr() as usize;
                    let line = self.chunk.first_line + count_lines(&text[..at]);
                    let what = refusal.explain(word, self.dtype);
                    let error = Error::format(&*self.name, format!("line {line}: {what}"));
                    return Err(if word.iter().any(|b| matches!(b, b',' | b';' | b'|')) {
                        error.with_hint("to read the lines as columns: --format csv")
                    } else if line == 1 {
                        error.with_hint("if the first line names the column: --header")
                    } else {
                        error
                    });
                }
            }
        }
        Ok(())
    }
}

/// The number in a quoted word, as spreadsheets write them.
#[cold]
fn quoted<T: TextNumber>(word: &[u8]) -> Option<T> {
    T::parse(word.strip_prefix(b"\"")?.strip_suffix(b"\"")?).ok()
}

/// What `inspect` says about plain numbers.
pub(crate) fn describe(name: &str, bytes: Option<u64>, options: &OpenOptions) -> Description {
    Description {
        name: name.into(),
        format: Format::Text,
        stored_as: "text".into(),
        dtype: Some(options.dtype.unwrap_or(DType::F64)),
        why_not: None,
        extent: Some(Extent::Column { rows: None }),
        endian: None,
        offset: None,
        bytes,
        compression: None,
        unit: None,
    }
}
