//! Numbers with white space between them, any number on a line.

use super::cells::{Cells, Problem};
use super::chunks::{CHUNK, Chunk, Chunks};
use super::grid::Grid;
use super::missing::Missing;
use super::number::{Whole, comma_hint, trimmed, whole};
use super::{BOM, check_encoding};
use crate::file::{Cursor, PositionalFile};
use crate::open::{HEAD, OpenOptions, Stream};
use crate::table::{ReadTable, Table, TableBlock, TableBlocks, TableColumn, Typing};
use crate::{Access, Batch, Description, Error, Extent, Format, Result, Source};
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use warpfold_core::DType;

/// The numbers of a text file.
pub(crate) fn open(file: &Arc<PositionalFile>, options: &OpenOptions) -> Result<Source> {
    let name = file.name();
    let head = file.head(HEAD)?;
    check_encoding(&head, &name)?;
    let start = if head.starts_with(BOM) { BOM.len() } else { 0 };
    let bytes = file.len() - start as u64;
    let input = Input::File(Arc::clone(file), start as u64);
    Ok(source(name, input, Some(bytes), &head[start..], options))
}

/// The numbers of a stream.
pub(crate) fn open_stream(mut stream: Stream, options: &OpenOptions) -> Result<Source> {
    check_encoding(&stream.head, &stream.name)?;
    if stream.head.starts_with(BOM) {
        stream.head.drain(..BOM.len());
    }
    let head = stream.head.clone();
    let (name, reader) = stream.into_reader();
    Ok(source(name, Input::Stream(Mutex::new(Some(reader))), None, &head, options))
}

fn source(
    name: String,
    input: Input,
    bytes: Option<u64>,
    head: &[u8],
    options: &OpenOptions,
) -> Source {
    let shown = shown_type(head);
    let reader = Numbers {
        name: Arc::from(&*name),
        input,
        bytes,
        missing: Arc::new(Missing::new(options.na.as_deref())),
        strict: options.strict,
        chunk: options.chunk.unwrap_or(CHUNK),
    };
    let reader = Box::new(reader);
    let table = Table { name: name.clone(), reader, left_out: Vec::new(), remark: None };
    Source {
        name,
        dtype: options.dtype.unwrap_or(shown),
        extent: Extent::Column { rows: None },
        bytes,
        access: Access::Column(TableColumn {
            table: Arc::new(table),
            place: 0,
            typing: options.dtype.map_or(Typing::Open, Typing::Fixed),
            decimals: false,
            unit: None,
            selector: None,
        }),
    }
}

/// The type that the first numbers show.
fn shown_type(head: &[u8]) -> DType {
    let mut shown = DType::F64;
    // The last word may go on behind the head.
    let end = head.iter().rposition(u8::is_ascii_whitespace).unwrap_or(head.len());
    for word in head[..end].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        shown = match whole(trimmed(word)) {
            Whole::I64(_) | Whole::NegativeZero if shown == DType::U64 => DType::U64,
            Whole::I64(_) | Whole::NegativeZero => DType::I64,
            Whole::U64(_) | Whole::Huge => DType::U64,
            Whole::No => return DType::F64,
        };
    }
    shown
}

/// Where the text comes from.
enum Input {
    /// A file, and where its text begins.
    File(Arc<PositionalFile>, u64),
    /// A stream, until somebody reads it.
    Stream(Mutex<Option<Box<dyn Read + Send>>>),
}

struct Numbers {
    name: Arc<str>,
    input: Input,
    bytes: Option<u64>,
    missing: Arc<Missing>,
    strict: bool,
    chunk: usize,
}

impl ReadTable for Numbers {
    fn read(&self, columns: &[(usize, Typing)]) -> Result<Box<dyn TableBlocks>> {
        let reader: Box<dyn Read + Send> = match &self.input {
            Input::File(file, start) => Box::new(Cursor::part(Arc::clone(file), *start, u64::MAX)),
            Input::Stream(reader) => {
                let reader = reader.lock().unwrap_or_else(PoisonError::into_inner).take();
                reader
                    .ok_or_else(|| Error::format(&*self.name, "a stream can be read only once"))?
            }
        };
        let cut = |text: &[u8]| text.iter().rposition(u8::is_ascii_whitespace).map(|i| i + 1);
        let chunks = Chunks::new(&self.name, reader, 1, Box::new(cut)).in_bytes(self.chunk);
        // Nobody needs the same numbers twice, but whoever asks gets them.
        let cells = |&(_, typing): &(usize, Typing)| {
            Cells::new(typing, String::new(), Arc::clone(&self.missing), self.strict)
        };
        let reading =
            Reading { name: Arc::clone(&self.name), columns: columns.iter().map(cells).collect() };
        Ok(Box::new(NumberBlocks { reading: Arc::new(reading), chunks }))
    }

    fn bytes(&self) -> Option<u64> {
        self.bytes
    }
}

/// What every block knows.
struct Reading {
    name: Arc<str>,
    columns: Vec<Cells>,
}

struct NumberBlocks {
    reading: Arc<Reading>,
    chunks: Chunks,
}

impl TableBlocks for NumberBlocks {
    fn next_block(&mut self) -> Result<Option<Box<dyn TableBlock>>> {
        Ok(self.chunks.next()?.map(|chunk| {
            let reading = Arc::clone(&self.reading);
            Box::new(NumberBlock { reading, chunk }) as Box<dyn TableBlock>
        }))
    }
}

struct NumberBlock {
    reading: Arc<Reading>,
    chunk: Chunk,
}

impl TableBlock for NumberBlock {
    fn rows(&self) -> Option<u64> {
        None
    }

    fn bytes(&self) -> u64 {
        self.chunk.text.len() as u64
    }

    fn decode(
        self: Box<Self>,
        batch: &mut Batch,
        sink: &mut dyn FnMut(usize, &mut Batch) -> Result<()>,
    ) -> Result<()> {
        let (r, text) = (&*self.reading, &self.chunk.text[..]);
        let grid = words(text);
        for (i, cells) in r.columns.iter().enumerate() {
            let place = (&*r.name, self.chunk.first_line);
            cells.decode(&grid, 0, text, place, batch).map_err(|p| self.error(&grid, p))?;
            sink(i, batch)?;
        }
        Ok(())
    }
}

impl NumberBlock {
    fn error(&self, grid: &Grid, problem: Problem) -> Error {
        let Problem { row, what, hint } = problem;
        let line = self.chunk.first_line + grid.line(row);
        let word = grid.column(0, &self.chunk.text).nth(row).unwrap_or_default();
        let hint = if word.iter().any(|b| matches!(b, b',' | b';' | b'|')) {
            let columns = "to read the lines as columns: --format csv";
            Some(comma_hint(word).map_or(columns.into(), |hint| format!("{hint}; {columns}")))
        } else if line == 1 {
            Some("if the first line names the column: --header".into())
        } else {
            hint
        };
        let error = Error::format(&*self.reading.name, format!("line {line}: {what}"));
        hint.into_iter().fold(error, Error::with_hint)
    }
}

/// The words of a text, as the cells of one column.
fn words(text: &[u8]) -> Grid {
    let mut grid = Grid::new(1);
    let (mut line, mut start) = (0, 0);
    while start < text.len() {
        let end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |n| start + n);
        let mut at = start;
        while at < end {
            if text[at].is_ascii_whitespace() {
                at += 1;
                continue;
            }
            let rest = &text[at..end];
            let len = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
            grid.push(at, at + len);
            grid.end_row(line);
            at += len;
        }
        line += 1;
        start = end + 1;
    }
    grid
}

/// What `inspect` says about plain numbers.
pub(crate) fn describe(
    name: &str,
    head: &[u8],
    bytes: Option<u64>,
    options: &OpenOptions,
) -> Description {
    let head = head.strip_prefix(BOM).unwrap_or(head);
    Description {
        name: name.into(),
        format: Format::Text,
        stored_as: "text".into(),
        dtype: Some(options.dtype.unwrap_or(shown_type(head))),
        why_not: None,
        extent: Some(Extent::Column { rows: None }),
        endian: None,
        offset: None,
        bytes,
        compression: None,
        unit: None,
    }
}
