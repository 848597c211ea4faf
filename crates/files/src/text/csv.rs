//! Comma-separated values: the chosen columns, in one pass.

use super::cells::{Cells, Problem};
use super::chunks::{CHUNK, Chunk, Chunks, MOST_CHUNK};
use super::grid::Grid;
use super::missing::Missing;
use super::record::{self, QUOTE, is_blank};
use super::sniff::{Head, Sniffed};
use crate::columns::ColumnSelector;
use crate::file::{Cursor, PositionalFile};
use crate::groups::Keyed;
use crate::open::{OpenOptions, Stream};
use crate::table::{ReadTable, Table, TableBlock, TableBlocks, TableColumn, Typing};
use crate::{Access, Batch, Description, Error, Extent, Format, Result, Source};
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use warpfold_core::DType;

/// A chunk has room for so many rows of a wide table.
const ROWS: usize = 64;

/// The chosen columns of a file.
pub(crate) fn open(
    file: &Arc<PositionalFile>,
    format: Format,
    columns: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Vec<Source>> {
    let name = file.name();
    let mut head = FileHead::new(file)?;
    let table = Arc::new(Sniffed::new(&name, &mut head, format, columns, options)?);
    let bytes = file.len() - table.start;
    let input = Input::File(Arc::clone(file));
    let by_name = Format::from_extension(file.path());
    let remark = remark(&table, by_name, columns, options);
    sources(name, table, input, Some(bytes), remark, columns, options)
}

/// The chosen columns of a stream.
pub(crate) fn open_stream(
    mut stream: Stream,
    format: Format,
    columns: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Vec<Source>> {
    let name = stream.name.clone();
    let table = Arc::new(Sniffed::new(&name, &mut stream, format, columns, options)?);
    stream.head.drain(..table.start as usize);
    let remark = remark(&table, stream.by_name, columns, options);
    let (name, reader) = stream.into_reader();
    let input = Input::Stream(Mutex::new(Some(reader)));
    sources(name, table, input, None, remark, columns, options)
}

/// The chosen columns, and those of keys, which are read as texts.
pub(crate) fn open_keyed(
    input: Either,
    format: Format,
    columns: &[ColumnSelector],
    keys: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Keyed> {
    // Columns of keys are chosen as others are, so that they tell of a header.
    let asked = [columns, keys].concat();
    let (name, sniffed, input, bytes) = match input {
        Either::File(file) => {
            let name = file.name();
            let sniffed = Sniffed::new(&name, &mut FileHead::new(&file)?, format, &asked, options)?;
            let bytes = file.len() - sniffed.start;
            (name, sniffed, Input::File(file), Some(bytes))
        }
        Either::Stream(mut stream) => {
            let name = stream.name.clone();
            let sniffed = Sniffed::new(&name, &mut stream, format, &asked, options)?;
            stream.head.drain(..sniffed.start as usize);
            let (name, reader) = stream.into_reader();
            (name, sniffed, Input::Stream(Mutex::new(Some(reader))), None)
        }
    };
    let places = sniffed.choose(&name, keys, options)?.places;
    let chosen = match columns {
        [] => sniffed.numeric_without(&name, &places, options)?,
        columns => sniffed.choose(&name, columns, options)?.places,
    };
    let label = |&place: &usize| sniffed.labels[place].clone();
    let typing = |&place: &usize| match options.dtype {
        Some(dtype) => Typing::Fixed(dtype),
        None if sniffed.looks[place].decimals => Typing::Fixed(DType::F64),
        None => Typing::Open,
    };
    let values: Vec<(String, Typing)> = chosen.iter().map(|p| (label(p), typing(p))).collect();
    let key_columns = places.iter().map(|p| (label(p), Typing::Text)).collect();
    let read = places.iter().map(|&p| (p, Typing::Text));
    let read = read.chain(chosen.iter().map(|p| (*p, typing(p)))).collect();
    let wide = (ROWS * sniffed.row_bytes).clamp(CHUNK, MOST_CHUNK);
    let table = CsvTable {
        file: Arc::from(&*name),
        sniffed: Arc::new(sniffed),
        input,
        bytes,
        missing: Arc::new(Missing::new(options.na.as_deref())),
        strict: options.strict,
        chunk: options.chunk.unwrap_or(wide),
    };
    Ok(Keyed::of_table(name, key_columns, values, Box::new(table), read))
}

/// A file, or a stream.
pub(crate) enum Either {
    File(Arc<PositionalFile>),
    Stream(Stream),
}

/// What to tell of the first row: that it could be read the other way, or that
/// it names a column where nothing promised a table.
fn remark(
    sniffed: &Sniffed,
    by_name: Option<Format>,
    columns: &[ColumnSelector],
    options: &OpenOptions,
) -> Option<String> {
    let promised = options.format.or(by_name).is_some_and(|f| f != Format::Text);
    let asked = options.header.is_some() || !columns.is_empty();
    match &sniffed.labels[..] {
        [only] if sniffed.has_header && !promised && !asked => {
            Some(format!("the first line, {only:?}, names the column"))
        }
        _ => sniffed.remark.clone(),
    }
}

fn sources(
    name: String,
    sniffed: Arc<Sniffed>,
    input: Input,
    bytes: Option<u64>,
    remark: Option<String>,
    columns: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Vec<Source>> {
    let choice = sniffed.choose(&name, columns, options)?;
    let wide = (ROWS * sniffed.row_bytes).clamp(CHUNK, MOST_CHUNK);
    let reader = CsvTable {
        file: Arc::from(&*name),
        sniffed: Arc::clone(&sniffed),
        input,
        bytes,
        missing: Arc::new(Missing::new(options.na.as_deref())),
        strict: options.strict,
        chunk: options.chunk.unwrap_or(wide),
    };
    let left_out = choice.left_out;
    let table = Table { name: name.clone(), reader: Box::new(reader), left_out, remark };
    let table = Arc::new(table);
    let selectors = choice.by_default.then(|| sniffed.selectors(&choice.places));
    let source = |(i, &place): (usize, &usize)| {
        let look = &sniffed.looks[place];
        Source {
            name: column_name(&name, &sniffed, place),
            dtype: options.dtype.unwrap_or(look.dtype()),
            extent: Extent::Column { rows: None },
            bytes,
            access: Access::Column(TableColumn {
                table: Arc::clone(&table),
                place,
                typing: options.dtype.map_or(Typing::Open, Typing::Fixed),
                decimals: look.decimals,
                unit: None,
                selector: selectors.as_ref().map(|all| all[i].clone()),
            }),
        }
    };
    Ok(choice.places.iter().enumerate().map(source).collect())
}

fn column_name(file: &str, table: &Sniffed, column: usize) -> String {
    match &table.labels[column] {
        _ if table.labels.len() == 1 && !table.has_header => file.into(),
        label => format!("{file}:{label}"),
    }
}

/// The head of a file.
pub(crate) struct FileHead<'a> {
    file: &'a PositionalFile,
    bytes: Vec<u8>,
}

impl<'a> FileHead<'a> {
    pub(crate) fn new(file: &'a PositionalFile) -> Result<Self> {
        Ok(FileHead { file, bytes: file.head(crate::open::HEAD)? })
    }
}

impl Head for FileHead<'_> {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn whole(&self) -> bool {
        self.bytes.len() as u64 == self.file.len()
    }

    fn grow(&mut self) -> Result<()> {
        self.bytes = self.file.head(2 * self.bytes.len())?;
        Ok(())
    }
}

/// Where the text comes from.
enum Input {
    File(Arc<PositionalFile>),
    /// Until somebody reads it.
    Stream(Mutex<Option<Box<dyn Read + Send>>>),
}

struct CsvTable {
    file: Arc<str>,
    sniffed: Arc<Sniffed>,
    input: Input,
    bytes: Option<u64>,
    missing: Arc<Missing>,
    strict: bool,
    chunk: usize,
}

impl CsvTable {
    /// A reader from the first data row on.
    fn reader(&self) -> Result<Box<dyn Read + Send>> {
        match &self.input {
            Input::File(file) => {
                let start = self.sniffed.start;
                Ok(Box::new(Cursor::part(Arc::clone(file), start, u64::MAX)))
            }
            Input::Stream(reader) => {
                let reader = reader.lock().unwrap_or_else(PoisonError::into_inner).take();
                reader.ok_or_else(|| {
                    Error::format(&*self.file, "a stream can be read only once")
                        .with_hint("save the table to a file and name the file")
                })
            }
        }
    }

    /// The column for messages: `2 (price)`.
    fn label(&self, place: usize) -> String {
        match &self.sniffed.names[place] {
            name if self.sniffed.has_header && !name.is_empty() => {
                format!("{} ({name})", place + 1)
            }
            _ => (place + 1).to_string(),
        }
    }
}

impl ReadTable for CsvTable {
    fn read(&self, columns: &[(usize, Typing)]) -> Result<Box<dyn TableBlocks>> {
        let width = self.sniffed.names.len();
        let mut wanted = vec![false; width];
        columns.iter().for_each(|&(place, _)| wanted[place] = true);
        // The places of the wanted ones among themselves.
        let mut slots = vec![0; width];
        let mut taken = 0;
        for (slot, &wanted) in slots.iter_mut().zip(&wanted) {
            *slot = taken;
            taken += usize::from(wanted);
        }
        let column = |&(place, typing): &(usize, Typing)| Column {
            cells: Cells::new(typing, self.label(place), Arc::clone(&self.missing), self.strict),
            place,
            slot: slots[place],
        };
        let delimiter = self.sniffed.delimiter;
        let reading = Arc::new(Reading {
            file: Arc::clone(&self.file),
            columns: columns.iter().map(column).collect(),
            delimiter,
            wanted,
            taken,
            blank_rows: width == 1 && self.sniffed.has_header,
        });
        let cut = Box::new(move |text: &[u8]| record::last_end(text, delimiter));
        let chunks =
            Chunks::new(&self.file, self.reader()?, self.sniffed.line, cut).in_bytes(self.chunk);
        Ok(Box::new(CsvBlocks { reading, chunks }))
    }

    fn bytes(&self) -> Option<u64> {
        self.bytes
    }
}

/// What every block knows.
struct Reading {
    file: Arc<str>,
    columns: Vec<Column>,
    delimiter: u8,
    /// For each column of the file whether it is read, and how many are.
    wanted: Vec<bool>,
    taken: usize,
    /// Whether an empty line is a row without a value.
    blank_rows: bool,
}

/// A column that is read.
struct Column {
    cells: Cells,
    /// Its place in the file, and in the grid.
    place: usize,
    slot: usize,
}

struct CsvBlocks {
    reading: Arc<Reading>,
    chunks: Chunks,
}

impl TableBlocks for CsvBlocks {
    fn next_block(&mut self) -> Result<Option<Box<dyn TableBlock>>> {
        Ok(self.chunks.next()?.map(|chunk| {
            let reading = Arc::clone(&self.reading);
            Box::new(CsvBlock { reading, chunk }) as Box<dyn TableBlock>
        }))
    }
}

struct CsvBlock {
    reading: Arc<Reading>,
    chunk: Chunk,
}

impl TableBlock for CsvBlock {
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
        let mut grid = Grid::new(r.taken);
        let quoted = memchr::memchr(QUOTE, text).is_some();
        let indexed = match quoted {
            true => r.index_records(text, &mut grid),
            false => r.index_lines(text, &mut grid),
        };
        let mut first: Option<(&Column, Problem)> = None;
        for (i, column) in r.columns.iter().enumerate() {
            let place = (&*r.file, self.chunk.first_line);
            match column.cells.decode(&grid, column.slot, text, place, batch) {
                Ok(()) if first.is_none() => sink(i, batch)?,
                Ok(()) => {}
                // The first in the file is told.
                Err(problem) => {
                    let this = (problem.row, column.place);
                    if first.as_ref().is_none_or(|(c, p)| this < (p.row, c.place)) {
                        first = Some((column, problem));
                    }
                }
            }
        }
        let line = |line: u64| self.chunk.first_line + line;
        if let Some((column, problem)) = first {
            let Problem { row, what, hint } = problem;
            let line = line(grid.line(row));
            let what = format!("line {line}, column {}: {what}", column.cells.label);
            let error = Error::format(&*r.file, what);
            return Err(hint.into_iter().fold(error, Error::with_hint));
        }
        // Rows that are not of the table come after all that were indexed.
        indexed.map_err(|(at, problem)| r.error(line(at), problem))
    }
}

/// Why indexing stops before the end, and in which line of the block.
type Stopped = (u64, Misfit);

enum Misfit {
    Ragged(usize),
    OpenQuote,
}

impl Reading {
    /// Records without quotes: lines.
    fn index_lines(&self, text: &[u8], grid: &mut Grid) -> Result<(), Stopped> {
        let mut line = Line { number: 0, start: 0, cell: 0, field: 0 };
        for at in memchr::memchr2_iter(self.delimiter, b'\n', text) {
            if text[at] == b'\n' {
                self.end_line(&mut line, text, at, grid)?;
            } else {
                if self.wanted.get(line.field).is_some_and(|&wanted| wanted) {
                    grid.push(line.cell, at);
                }
                line.field += 1;
                line.cell = at + 1;
            }
        }
        if line.start < text.len() {
            self.end_line(&mut line, text, text.len(), grid)?;
        }
        Ok(())
    }

    /// The line ends at `at`, with a line feed unless the text does.
    #[inline]
    fn end_line(
        &self,
        line: &mut Line,
        text: &[u8],
        at: usize,
        grid: &mut Grid,
    ) -> Result<(), Stopped> {
        let content = &text[line.start..at];
        let content = content.strip_suffix(b"\r").unwrap_or(content);
        let (fields, width) = (line.field + 1, self.wanted.len());
        if fields == width && (fields > 1 || !is_blank(content, self.delimiter)) {
            if self.wanted[line.field] {
                grid.push(line.cell, (line.start + content.len()).max(line.cell));
            }
            grid.end_row(line.number);
        } else if is_blank(content, self.delimiter) {
            self.blank_row(line.start, at < text.len(), line.number, grid);
        } else {
            grid.drop_row();
            return Err((line.number, Misfit::Ragged(fields)));
        }
        *line = Line { number: line.number + 1, start: at + 1, cell: at + 1, field: 0 };
        Ok(())
    }

    /// An empty line: a row without a value where a column has a header and
    /// stands alone, which is how a missing value is written there. What follows
    /// the last line feed is no line.
    fn blank_row(&self, at: usize, ended: bool, line: u64, grid: &mut Grid) {
        grid.drop_row();
        if self.blank_rows && ended {
            grid.push(at, at);
            grid.end_row(line);
        }
    }

    /// Records with quotes, which may run over several lines.
    fn index_records(&self, text: &[u8], grid: &mut Grid) -> Result<(), Stopped> {
        let (mut start, mut line) = (0, 0);
        let place = |cell: &[u8]| cell.as_ptr() as usize - text.as_ptr() as usize;
        while start < text.len() {
            let mut fields = 0;
            let scanned = record::scan(&text[start..], self.delimiter, |cell| {
                if self.wanted.get(fields).is_some_and(|&wanted| wanted) {
                    grid.push(place(cell), place(cell) + cell.len());
                }
                fields += 1;
            });
            let Ok((len, ended)) = scanned else {
                grid.drop_row();
                return Err((line, Misfit::OpenQuote));
            };
            let record = &text[start..start + len];
            if is_blank(record, self.delimiter) {
                self.blank_row(start, ended, line, grid);
            } else if fields == self.wanted.len() {
                grid.end_row(line);
            } else {
                grid.drop_row();
                return Err((line, Misfit::Ragged(fields)));
            }
            start += len;
            line += super::chunks::count_lines(record);
        }
        Ok(())
    }

    fn error(&self, line: u64, problem: Misfit) -> Error {
        let fail = |what: String| Error::format(&*self.file, format!("line {line}{what}"));
        match problem {
            Misfit::Ragged(fields) => fail(format!(
                ": {fields} field{} where the first row has {}",
                if fields == 1 { "" } else { "s" },
                self.wanted.len()
            ))
            .with_hint("if the cells are separated by something else: --delimiter"),
            Misfit::OpenQuote => fail(": a quote in this row is never closed".into()),
        }
    }
}

/// A line on its way through [`Reading::index_lines`].
struct Line {
    /// Counted from the first of the block.
    number: u64,
    /// Where it begins, and where its current cell does.
    start: usize,
    cell: usize,
    /// The number of that cell, from 0.
    field: usize,
}

/// What `inspect` says about a table.
pub(crate) fn describe(
    name: &str,
    head: &mut dyn Head,
    format: Format,
    options: &OpenOptions,
) -> Result<Vec<Description>> {
    let table = Sniffed::new(name, head, format, &options.columns, options)?;
    let one = |(i, look): (usize, &super::sniff::Look)| Description {
        name: column_name(name, &table, i),
        format,
        stored_as: "text".into(),
        dtype: look.is_readable().then(|| options.dtype.unwrap_or(look.dtype())),
        why_not: look.why_not(),
        extent: Some(Extent::Column { rows: None }),
        endian: None,
        offset: None,
        bytes: None,
        compression: None,
        unit: None,
    };
    Ok(table.looks.iter().enumerate().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_chosen_twice_has_one_place_in_the_grid() {
        let reading = |wanted: &[bool]| Reading {
            file: "t".into(),
            columns: Vec::new(),
            delimiter: b',',
            wanted: wanted.to_vec(),
            taken: wanted.iter().filter(|w| **w).count(),
            blank_rows: wanted.len() == 1,
        };
        let text = b"1,2,3\r\n\n4,5,6\n7,8,9";
        let r = reading(&[true, false, true]);
        for index in [Reading::index_lines, Reading::index_records] {
            let mut grid = Grid::new(2);
            assert!(index(&r, text, &mut grid).is_ok());
            let column = |i| grid.column(i, text).map(|c| c.trim_ascii()).collect::<Vec<_>>();
            assert_eq!(column(0), [b"1", b"4", b"7"]);
            assert_eq!(column(1), [b"3", b"6", b"9"]);
            assert_eq!([0, 1, 2].map(|row| grid.line(row)), [0, 2, 3]);
            let mut grid = Grid::new(2);
            let ragged = index(&r, b"1,2,3\n\n4,5\n7,8,9", &mut grid);
            assert!(matches!(ragged, Err((2, Misfit::Ragged(2)))));
            assert_eq!(grid.rows(), 1);
            // Blank lines are rows where a column stands alone.
            let mut grid = Grid::new(1);
            let one = reading(&[true]);
            assert!(index(&one, b"1\n\n \r\n2\n ", &mut grid).is_ok());
            let rows: Vec<_> = grid.column(0, b"1\n\n \r\n2\n ").collect();
            assert_eq!(rows, [&b"1"[..], b"", b"", b"2"]);
        }
    }
}
