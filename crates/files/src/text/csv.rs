//! Comma-separated values: one column at a time.

use super::chunks::{Chunk, Chunks, count_lines};
use super::number::{TextNumber, trimmed};
use super::record::{self, QUOTE, is_blank};
use super::table::Table;
use crate::columns::{self, ColumnSelector};
use crate::file::{Cursor, PositionalFile};
use crate::open::{HEAD, OpenOptions, Stream};
use crate::{Access, Batch, Block, Blocks, Description, Error, Extent, Format, Result, Source};
use std::io::Read;
use std::sync::Arc;
use warpfold_core::{DType, with_element};

/// Header rows are looked for in this much of a file.
const LONGEST_HEAD: usize = 16 * HEAD;

/// The chosen columns of a file; each reads the file for itself.
pub(crate) fn open(
    file: &Arc<PositionalFile>,
    format: Format,
    columns: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Vec<Source>> {
    let name = file.name();
    let head = file.head(LONGEST_HEAD)?;
    let whole = head.len() as u64 == file.len();
    let table = sniff(&name, &head, whole, format, columns, options)?;
    let bytes = file.len() - table.start;
    Ok(table
        .chosen
        .iter()
        .map(|&column| {
            let reader = Box::new(Cursor::part(Arc::clone(file), table.start, bytes));
            source(&name, &table, column, reader, Some(bytes), options)
        })
        .collect())
}

/// The chosen column of a stream.
pub(crate) fn open_stream(
    mut stream: Stream,
    format: Format,
    columns: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Vec<Source>> {
    let table = sniff(&stream.name, &stream.head, stream.whole, format, columns, options)?;
    let [column] = table.chosen[..] else {
        let names: Vec<&String> = table.chosen.iter().map(|&i| &table.names[i]).collect();
        return Err(Error::format(
            &stream.name,
            format!("only one column can be read from a stream, not {}", columns::list(&names)),
        )
        .with_hint("save the table to a file and name the file"));
    };
    stream.head.drain(..table.start as usize);
    let (name, reader) = stream.into_reader();
    Ok(vec![source(&name, &table, column, reader, None, options)])
}

fn sniff(
    name: &str,
    head: &[u8],
    whole: bool,
    format: Format,
    columns: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Table> {
    let with_columns = OpenOptions { columns: columns.to_vec(), ..options.clone() };
    let mut table = Table::sniff(name, head, whole, format, &with_columns)?;
    table.choose(name, columns, options.dtype.unwrap_or(DType::F64))?;
    Ok(table)
}

fn source(
    file: &str,
    table: &Table,
    column: usize,
    reader: Box<dyn Read + Send>,
    bytes: Option<u64>,
    options: &OpenOptions,
) -> Source {
    let dtype = options.dtype.unwrap_or(DType::F64);
    let delimiter = table.delimiter;
    let label = match &table.names[column] {
        name if table.has_header && !name.is_empty() => format!("{} ({name})", column + 1),
        _ => (column + 1).to_string(),
    };
    let reading = Arc::new(Reading {
        file: file.into(),
        label,
        dtype,
        delimiter,
        column,
        width: table.names.len(),
        strict: options.strict,
    });
    let cut = Box::new(move |text: &[u8]| record::last_end(text, delimiter));
    let chunks = Chunks::new(file, reader, table.line, cut);
    Source {
        name: column_name(file, table, column),
        dtype,
        extent: Extent::Column { rows: None },
        bytes,
        access: Access::Sequential(Box::new(CsvBlocks { reading, chunks })),
    }
}

fn column_name(file: &str, table: &Table, column: usize) -> String {
    match &table.names[column] {
        name if name.is_empty() => format!("{file}:{}", column + 1),
        _ if table.names.len() == 1 && !table.has_header => file.into(),
        name => format!("{file}:{name}"),
    }
}

/// What every block of a column knows.
struct Reading {
    file: String,
    /// The column for messages: `2 (price)`.
    label: String,
    dtype: DType,
    delimiter: u8,
    column: usize,
    width: usize,
    strict: bool,
}

struct CsvBlocks {
    reading: Arc<Reading>,
    chunks: Chunks,
}

impl Blocks for CsvBlocks {
    fn next_block(&mut self) -> Result<Option<Box<dyn Block>>> {
        Ok(self.chunks.next()?.map(|chunk| {
            let reading = Arc::clone(&self.reading);
            Box::new(CsvBlock { reading, chunk }) as Box<dyn Block>
        }))
    }
}

struct CsvBlock {
    reading: Arc<Reading>,
    chunk: Chunk,
}

impl Block for CsvBlock {
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
        let r = &*self.reading;
        batch.reset(r.dtype);
        let text = &self.chunk.text;
        let quoted = memchr::memchr(QUOTE, text).is_some();
        let result = with_element!(r.dtype, T => match quoted {
            true => r.quoted::<T>(text, batch),
            false => r.unquoted::<T>(text, batch),
        });
        if let Err((at, what)) = result {
            let line = self.chunk.first_line + count_lines(&text[..at]);
            return Err(r.error(line, what));
        }
        sink(batch)
    }
}

/// A problem with the record that begins at some byte of the block.
type Located = (usize, Problem);

enum Problem {
    Cell(String),
    Ragged(usize),
    OpenQuote,
}

impl Reading {
    /// Records without quotes: lines.
    fn unquoted<T: TextNumber>(&self, text: &[u8], batch: &mut Batch) -> Result<(), Located> {
        let mut start = 0;
        while start < text.len() {
            let end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |n| start + n);
            let line = &text[start..end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            // The wanted cell begins and ends at these separators.
            let (mut fields, mut from, mut to) = (1, 0, line.len());
            for at in memchr::memchr_iter(self.delimiter, line) {
                if fields == self.column {
                    from = at + 1;
                } else if fields == self.column + 1 {
                    to = at;
                }
                fields += 1;
            }
            if fields == self.width && (fields > 1 || !line.trim_ascii().is_empty()) {
                self.cell::<T>(&line[from..to], batch).map_err(|p| (start, p))?;
            } else if !is_blank(line, self.delimiter) {
                return Err((start, Problem::Ragged(fields)));
            }
            start = end + 1;
        }
        Ok(())
    }

    /// Records with quotes, which may run over several lines.
    fn quoted<T: TextNumber>(&self, text: &[u8], batch: &mut Batch) -> Result<(), Located> {
        let mut start = 0;
        while start < text.len() {
            let mut fields = 0;
            let mut wanted: &[u8] = b"";
            let scanned = record::scan(&text[start..], self.delimiter, |cell| {
                if fields == self.column {
                    wanted = cell;
                }
                fields += 1;
            });
            let Ok((len, _)) = scanned else { return Err((start, Problem::OpenQuote)) };
            if !is_blank(&text[start..start + len], self.delimiter) {
                if fields != self.width {
                    return Err((start, Problem::Ragged(fields)));
                }
                self.cell::<T>(wanted, batch).map_err(|p| (start, p))?;
            }
            start += len;
        }
        Ok(())
    }

    #[inline]
    fn cell<T: TextNumber>(&self, cell: &[u8], batch: &mut Batch) -> Result<(), Problem> {
        // Most cells are bare numbers.
        if let Ok(value) = T::parse(cell) {
            batch.push(value);
            return Ok(());
        }
        let text = trimmed(cell);
        if text.is_empty() {
            if self.strict {
                return Err(Problem::Cell("the cell is empty".into()));
            }
            batch.skip(1);
            return Ok(());
        }
        let value = T::parse(text).map_err(|r| Problem::Cell(r.explain(text, self.dtype)))?;
        batch.push(value);
        Ok(())
    }

    fn error(&self, line: u64, problem: Problem) -> Error {
        let fail = |what: String| Error::format(&self.file, format!("line {line}{what}"));
        match problem {
            Problem::Cell(what) => {
                let error = fail(format!(", column {}: {what}", self.label));
                if what.ends_with("is not an integer") {
                    error.with_hint("for numbers with a fraction: --dtype f64")
                } else {
                    error
                }
            }
            Problem::Ragged(fields) => fail(format!(
                ": {fields} field{} where the first row has {}",
                if fields == 1 { "" } else { "s" },
                self.width
            ))
            .with_hint("if the cells are separated by something else: --delimiter"),
            Problem::OpenQuote => fail(": a quote in this row is never closed".into()),
        }
    }
}

/// What `inspect` says about a table.
pub(crate) fn describe(
    name: &str,
    head: &[u8],
    len: u64,
    format: Format,
    options: &OpenOptions,
) -> Result<Vec<Description>> {
    let whole = head.len() as u64 == len;
    let table = Table::sniff(name, head, whole, format, options)?;
    let dtype = options.dtype.unwrap_or(DType::F64);
    Ok((0..table.names.len())
        .map(|i| {
            let empty = table
                .sample
                .as_ref()
                .and_then(|row| row.get(i))
                .is_none_or(|c| trimmed(c).is_empty());
            let readable = empty || table.is_numeric(i, dtype);
            Description {
                name: column_name(name, &table, i),
                format,
                stored_as: "text".into(),
                dtype: readable.then_some(dtype),
                why_not: (!readable).then(|| "its first cell is not a number".into()),
                extent: Some(Extent::Column { rows: None }),
                endian: None,
                offset: None,
                bytes: None,
                compression: None,
                unit: None,
            }
        })
        .collect())
}
