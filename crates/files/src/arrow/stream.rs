//! The stream form front to back: the chosen columns in one pass.

use super::decode::{ArrowBlock, Bytes};
use super::messages::{Header, Message};
use super::plan::{Plan, Span};
use super::schema::Table;
use super::{
    Reading, choose, damaged, number, numeric, read_metadata, read_schema, read_up_to, skip,
};
use crate::columns::{self, ColumnSelector};
use crate::fixed::stream_error;
use crate::open::{OpenOptions, Stream};
use crate::table::{self, LeftOut, ReadTable, TableBlock, TableBlocks, TableColumn, Typing};
use crate::{Access, Batch, Error, Extent, Result, Source};
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};
use warpfold_core::DType;

/// The chosen columns of a stream.
pub(crate) fn open_stream(
    stream: Stream,
    columns: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Vec<Source>> {
    let to_end = stream.to_end;
    let (stream_name, mut reader) = stream.into_reader();
    let table = Arc::new(read_schema(&mut reader, &stream_name)?);
    let by_default = columns.is_empty();
    let all = if by_default && options.all_columns { numeric(&table) } else { Vec::new() };
    let left_out = if all.is_empty() { Vec::new() } else { left_out(&table, &all) };
    let chosen = if all.is_empty() { choose(&table, &stream_name, columns)? } else { all };
    let numbers: Vec<_> = chosen
        .iter()
        .map(|&place| number(&table, place, &stream_name, options))
        .collect::<Result<_>>()?;
    let names: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
    let selectors = by_default.then(|| columns::selectors(&chosen, &names));
    let whole = StreamTable {
        name: Arc::from(&*stream_name),
        table: Arc::clone(&table),
        input: Mutex::new(Some(Input { reader, to_end })),
    };
    let whole = Arc::new(table::Table {
        name: stream_name,
        reader: Box::new(whole),
        left_out,
        remark: None,
    });
    let source = |(i, (place, (name, dtype))): (usize, (usize, (String, DType)))| Source {
        name,
        dtype,
        extent: Extent::Column { rows: None },
        bytes: None,
        access: Access::Column(TableColumn {
            table: Arc::clone(&whole),
            place,
            typing: Typing::Fixed(dtype),
            decimals: false,
            unit: table.columns[place].unit.clone(),
            selector: selectors.as_ref().map(|all| all[i].clone()),
        }),
    };
    Ok(chosen.into_iter().zip(numbers).enumerate().map(source).collect())
}

/// The columns that are not among those that are taken.
fn left_out(table: &Table, taken: &[usize]) -> Vec<LeftOut> {
    let rest = table.columns.iter().enumerate().filter(|(i, _)| taken.binary_search(i).is_err());
    rest.map(|(_, column)| {
        let why = column.read.as_ref().err().cloned();
        let why = why.unwrap_or_else(|| "it has a unit; name it with -c".into());
        LeftOut { name: column.name.clone(), why }
    })
    .collect()
}

/// A stream behind its schema.
struct Input {
    reader: Box<dyn Read + Send>,
    /// Whether the reader has something to check at its end.
    to_end: bool,
}

struct StreamTable {
    name: Arc<str>,
    table: Arc<Table>,
    /// Until somebody reads it.
    input: Mutex<Option<Input>>,
}

impl ReadTable for StreamTable {
    fn read(&self, columns: &[(usize, Typing)]) -> Result<Box<dyn TableBlocks>> {
        let input = self.input.lock().unwrap_or_else(PoisonError::into_inner).take();
        let input = input.ok_or_else(|| {
            Error::format(&*self.name, "a stream can be read only once")
                .with_hint("save the table to a file and name the file")
        })?;
        let reading = |&(place, typing): &(usize, Typing)| {
            let Typing::Fixed(dtype) = typing else {
                return Err(Error::format(&*self.name, "Arrow data know their types"));
            };
            let name = format!("{}:{}", self.name, self.table.columns[place].name);
            Ok((place, Reading::new(&self.table, place, &name, dtype)))
        };
        let columns = columns.iter().map(reading).collect::<Result<_>>()?;
        let (name, table) = (Arc::clone(&self.name), Arc::clone(&self.table));
        Ok(Box::new(StreamBlocks { name, input, columns, table }))
    }

    fn bytes(&self) -> Option<u64> {
        None
    }
}

/// Columns of a stream.
struct StreamBlocks {
    name: Arc<str>,
    input: Input,
    /// Each with its place in the table.
    columns: Vec<(usize, Reading)>,
    table: Arc<Table>,
}

impl TableBlocks for StreamBlocks {
    fn next_block(&mut self) -> Result<Option<Box<dyn TableBlock>>> {
        let name = Arc::clone(&self.name);
        let wrong = |what: String| damaged(&name, what);
        let Input { reader, to_end } = &mut self.input;
        loop {
            let Some((metadata, _)) = read_metadata(reader, &name)? else {
                if *to_end {
                    io::copy(reader, &mut io::sink()).map_err(|e| stream_error(&name, e))?;
                }
                return Ok(None);
            };
            let Message { header, body } = Message::new(&metadata).map_err(wrong)?;
            if let Header::Dictionary(dictionary) = header {
                let mut plans = Vec::new();
                for (i, (_, column)) in self.columns.iter().enumerate() {
                    plans.extend(column.plan(dictionary, body).map_err(wrong)?.map(|p| (i, p)));
                }
                let buffers = take_buffers(reader, plans.iter().map(|(_, p)| p), body, &name)?;
                for ((i, plan), (validity, data)) in plans.iter().zip(buffers) {
                    self.columns[*i].1.learn(dictionary.is_delta, plan, validity, data)?;
                }
                continue;
            }
            let Header::Batch(batch) = header else {
                skip(reader, body, &name)?;
                continue;
            };
            let plan = |(place, _): &(usize, Reading)| Plan::new(&self.table, *place, batch, body);
            let plans: Vec<Plan> =
                self.columns.iter().map(plan).collect::<Result<_, String>>().map_err(wrong)?;
            let buffers = take_buffers(reader, plans.iter(), body, &name)?;
            let block =
                |(((_, column), plan), (validity, data)): ((&(usize, Reading), &Plan), _)| {
                    column.block(plan, validity, data)
                };
            let columns = self.columns.iter().zip(&plans).zip(buffers).map(block).collect();
            return Ok(Some(Box::new(StreamBlock { columns })));
        }
    }
}

/// A record batch: the chosen columns of it.
struct StreamBlock {
    columns: Vec<ArrowBlock>,
}

impl TableBlock for StreamBlock {
    fn rows(&self) -> Option<u64> {
        // All columns of a batch have as many; a plan says so.
        Some(self.columns.first().map_or(0, |column| column.rows))
    }

    fn bytes(&self) -> u64 {
        self.columns.iter().map(|column| column.bytes).sum()
    }

    fn decode(
        self: Box<Self>,
        batch: &mut Batch,
        sink: &mut dyn FnMut(usize, &mut Batch) -> Result<()>,
    ) -> Result<()> {
        self.columns
            .into_iter()
            .enumerate()
            .try_for_each(|(i, column)| column.unpack(batch, &mut |batch| sink(i, batch)))
    }
}

/// The bitmap and the elements of a column.
type Buffers = (Option<Bytes>, Bytes);

/// Takes a body off a stream, of which it keeps the buffers of some columns.
fn take_buffers<'a>(
    reader: &mut dyn Read,
    plans: impl Iterator<Item = &'a Plan>,
    body: u64,
    name: &str,
) -> Result<Vec<Buffers>> {
    let (mut found, mut wanted): (Vec<Buffers>, Vec<(Span, usize, bool)>) = Default::default();
    for (i, plan) in plans.enumerate() {
        found.push((plan.validity.map(|_| Bytes::none()), Bytes::none()));
        wanted.extend(plan.validity.map(|span| (span, i, true)));
        wanted.push((plan.data, i, false));
    }
    wanted.retain(|(span, ..)| span.len > 0);
    // Columns may be chosen in any order, and twice.
    wanted.sort_by_key(|(span, ..)| (span.at, span.len));
    let mut at = 0;
    let mut last: Option<(Span, usize, bool)> = None;
    for this in wanted {
        let (span, i, is_validity) = this;
        let bytes = match last {
            Some((same, j, was_validity)) if same == span => {
                let (validity, data) = &found[j];
                if was_validity { validity.clone() } else { Some(data.clone()) }
            }
            _ => {
                let gap = span.at.checked_sub(at);
                let gap = gap.ok_or_else(|| damaged(name, "buffers that overlap"))?;
                skip(reader, gap, name)?;
                let bytes = read_up_to(reader, span.len, name)?;
                if (bytes.len() as u64) < span.len {
                    return Err(damaged(name, "truncated in a record batch"));
                }
                at = span.at + span.len;
                Some(Bytes::Memory(bytes))
            }
        };
        match is_validity {
            true => found[i].0 = bytes,
            false => found[i].1 = bytes.unwrap_or_else(Bytes::none),
        }
        last = Some(this);
    }
    skip(reader, body - at, name)?;
    Ok(found)
}
