//! Arrow IPC, file and stream, and with it Feather version 2.
//!
//! Only the buffers of the wanted column are read, and these piece by piece,
//! also where they are compressed: a batch may be as large as the file.

mod decode;
mod dictionary;
mod plan;
mod schema;
mod stream;

use crate::columns::{self, ColumnSelector};
use crate::file::{Cursor, PositionalFile};
use crate::fixed::stream_error;
use crate::open::{OpenOptions, Stream};
use crate::{
    Access, Block, Blocks, Description, Endian, Error, Extent, Format, Result, Source, Unit,
};
use arrow_ipc::{DictionaryBatch, Message, RecordBatch, root_as_footer, root_as_message};
use decode::{ArrowBlock, Bytes, ROWS};
use dictionary::Dictionary;
use plan::{Plan, Span};
use schema::{Keys, Table};
use std::collections::{HashSet, VecDeque};
use std::io::{self, Read};
use std::sync::Arc;
use warpfold_core::DType;

pub(crate) use stream::open_stream;

const MAGIC: &[u8] = b"ARROW1";

/// The mark before the length of a message.
const CONTINUATION: u32 = u32::MAX;

/// No message describes a batch in more bytes than this.
const LONGEST: u64 = 256 << 20;

/// The columns chosen from a file.
pub(crate) fn open(
    file: &Arc<PositionalFile>,
    format: Format,
    columns: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Vec<Source>> {
    let name = file.name();
    let Layout { table, batches, dictionaries } = read_layout(file, format)?;
    let dictionaries = Arc::new(dictionaries);
    choose(&table, &name, columns)?
        .into_iter()
        .map(|column| {
            let (name, dtype) = number(&table, column, &name, options)?;
            let mut blocks = FileBlocks {
                file: Arc::clone(file),
                column: Reading::new(&table, column, &name, dtype),
                batches: VecDeque::new(),
                begun: None,
                dictionaries: Arc::clone(&dictionaries),
                known: 0,
            };
            let (mut rows, mut bytes) = (0_u64, 0);
            for batch in &batches {
                let damaged = |what: String| damaged(&name, what);
                let plan = batch.plan(&table, column).map_err(damaged)?;
                let total = rows.checked_add(plan.rows);
                rows = total.ok_or_else(|| damaged("too many rows".into()))?;
                bytes += plan.bytes();
                let Found { body, after, .. } = *batch;
                blocks.batches.push_back(Placed { body, plan, after });
            }
            Ok(Source {
                name,
                dtype,
                extent: Extent::Column { rows: Some(rows) },
                bytes: Some(bytes),
                access: Access::Sequential(Box::new(blocks)),
            })
        })
        .collect()
}

/// What `inspect` says about a file.
pub(crate) fn inspect(file: &Arc<PositionalFile>, format: Format) -> Result<Vec<Description>> {
    let name = file.name();
    let Layout { table, batches, .. } = read_layout(file, format)?;
    let mut rows = 0_u64;
    let mut compression = None;
    for batch in &batches {
        let message = batch.message().map_err(|e| damaged(&name, e))?;
        let record = record_batch(message).map_err(|e| damaged(&name, e))?;
        rows = rows.saturating_add(plan::rows(record).map_err(|e| damaged(&name, e))?);
        compression = compression.or(record.compression().map(|c| c.codec()));
    }
    let compression = compression.and_then(|c| c.variant_name()).map(str::to_lowercase);
    Ok(describe(&table, &name, format, Some(rows), compression))
}

/// What `inspect` says about a stream.
pub(crate) fn inspect_stream(stream: Stream) -> Result<Vec<Description>> {
    let (name, mut reader) = stream.into_reader();
    let table = read_schema(&mut reader, &name)?;
    Ok(describe(&table, &name, Format::ArrowStream, None, None))
}

fn describe(
    table: &Table,
    name: &str,
    format: Format,
    rows: Option<u64>,
    compression: Option<String>,
) -> Vec<Description> {
    let one = |column: &schema::Column| Description {
        name: format!("{name}:{}", column.name),
        format,
        stored_as: column.stored_as.clone(),
        dtype: column.read.as_ref().ok().copied(),
        why_not: column.read.as_ref().err().cloned(),
        extent: Some(Extent::Column { rows }),
        endian: column.read.as_ref().ok().filter(|d| d.size() > 1).map(|_| table.endian),
        offset: None,
        bytes: None,
        compression: compression.clone(),
        unit: column.unit.clone(),
    };
    table.columns.iter().map(one).collect()
}

fn damaged(name: &str, what: impl core::fmt::Display) -> Error {
    Error::format(name, format!("damaged Arrow data: {what}"))
}

fn choose(table: &Table, name: &str, columns: &[ColumnSelector]) -> Result<Vec<usize>> {
    let names: Vec<String> = table.columns.iter().map(|c| c.name.clone()).collect();
    if columns.is_empty() {
        columns::only_numeric(&numeric(table), &names, name)
    } else {
        columns::resolve(columns, &names, name)
    }
}

/// The columns of plain numbers.
fn numeric(table: &Table) -> Vec<usize> {
    let is_plain = |c: &schema::Column| c.read.is_ok() && c.unit.is_none();
    (0..table.columns.len()).filter(|&i| is_plain(&table.columns[i])).collect()
}

/// The full name and type of a column, if it is one we read.
fn number(
    table: &Table,
    column: usize,
    file: &str,
    options: &OpenOptions,
) -> Result<(String, DType)> {
    let column = &table.columns[column];
    let name = format!("{file}:{}", column.name);
    match &column.read {
        Ok(dtype) => {
            options.expect_dtype(options.dtype, *dtype, &name)?;
            Ok((name, *dtype))
        }
        Err(why) => {
            let numbers: Vec<_> =
                numeric(table).into_iter().map(|i| &table.columns[i].name).collect();
            Err(Error::format(name, format!("a column of type {}: {why}", column.stored_as))
                .with_hint(format!("the columns of numbers are {}", columns::list(&numbers))))
        }
    }
}

/// What a file holds.
struct Layout {
    table: Table,
    batches: Vec<Found>,
    /// The dictionaries of all columns, and what later ones add to them.
    dictionaries: Vec<Found>,
}

/// A batch of a file: its description, and where its body lies.
struct Found {
    metadata: Vec<u8>,
    body: Span,
    /// How many dictionaries come before it.
    after: usize,
}

impl Found {
    fn message(&self) -> Result<Message<'_>, String> {
        root_as_message(&self.metadata).map_err(|e| e.to_string())
    }

    fn plan(&self, table: &Table, column: usize) -> Result<Plan, String> {
        Plan::new(table, column, record_batch(self.message()?)?, self.body.len)
    }
}

fn record_batch(message: Message<'_>) -> Result<RecordBatch<'_>, String> {
    message.header_as_record_batch().ok_or_else(|| "a message is not a record batch".into())
}

fn dictionary_batch(message: Message<'_>) -> Result<DictionaryBatch<'_>, String> {
    message.header_as_dictionary_batch().ok_or_else(|| "a message is not a dictionary".into())
}

/// The schema and the batches of a file in either form.
fn read_layout(file: &Arc<PositionalFile>, format: Format) -> Result<Layout> {
    let head = file.head(MAGIC.len())?;
    if format == Format::Arrow && head == MAGIC {
        read_footer(file)
    } else {
        // A stream saved under the name of a file is still a stream.
        scan_messages(file)
    }
}

/// The file form: a footer says where the batches are.
fn read_footer(file: &Arc<PositionalFile>) -> Result<Layout> {
    let name = file.name();
    let fail = |what: &str| damaged(&name, what);
    let tail_len = 4 + MAGIC.len() as u64;
    let Some(tail_at) = file.len().checked_sub(tail_len) else { return Err(fail("truncated")) };
    let tail = file.read_vec(tail_at, tail_len)?;
    if &tail[4..] != MAGIC {
        return Err(fail("the end of the file is missing"));
    }
    let len = i32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
    let footer_at = u64::try_from(len).ok().and_then(|len| tail_at.checked_sub(len));
    let Some(footer_at) = footer_at else { return Err(fail("a footer of impossible length")) };
    let footer = file.read_vec(footer_at, tail_at - footer_at)?;
    let footer = root_as_footer(&footer).map_err(|e| damaged(&name, e))?;
    let schema = footer.schema().ok_or_else(|| fail("the schema is missing"))?;
    let table = Table::new(schema, footer.version()).map_err(|e| damaged(&name, e))?;
    let found = |block: &arrow_ipc::Block, after: usize| -> Result<Found> {
        let place = |n: i64| u64::try_from(n).map_err(|_| fail("a negative place in the footer"));
        let at = place(block.offset())?;
        let metadata_len = place(block.metaDataLength().into())?;
        let body_len = place(block.bodyLength())?;
        if metadata_len < 8 {
            return Err(fail("a record batch without a description"));
        }
        let metadata = file.read_vec(at, metadata_len)?;
        // Before version 0.15 the length came without the mark.
        let skip = if metadata.starts_with(&CONTINUATION.to_le_bytes()) { 8 } else { 4 };
        let body = Span { at: at + metadata_len, len: body_len };
        Ok(Found { metadata: metadata[skip..].to_vec(), body, after })
    };
    let dictionaries: Vec<Found> = footer
        .dictionaries()
        .into_iter()
        .flatten()
        .map(|block| found(block, 0))
        .collect::<Result<_>>()?;
    let batches: Vec<Found> = footer
        .recordBatches()
        .into_iter()
        .flatten()
        .map(|block| found(block, dictionaries.len()))
        .collect::<Result<_>>()?;
    check_bodies(batches.iter().chain(&dictionaries), file)?;
    check_replacements(&dictionaries).map_err(|e| damaged(&name, e))?;
    Ok(Layout { table, batches, dictionaries })
}

/// The stream form: messages one after the other.
fn scan_messages(file: &Arc<PositionalFile>) -> Result<Layout> {
    let name = file.name();
    let mut table = None;
    let (mut batches, mut dictionaries) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < file.len() {
        let mut reader = Cursor::part(Arc::clone(file), at, u64::MAX);
        let Some((metadata, prefix)) = read_metadata(&mut reader, &name)? else { break };
        let message = root_as_message(&metadata).map_err(|e| damaged(&name, e))?;
        let body_at = at + prefix + metadata.len() as u64;
        let body_len = body_length(message).map_err(|e| damaged(&name, e))?;
        if let Some(schema) = message.header_as_schema() {
            let found = Table::new(schema, message.version()).map_err(|e| damaged(&name, e))?;
            table.get_or_insert(found);
        }
        let is_batch = message.header_as_record_batch().is_some();
        let is_dictionary = message.header_as_dictionary_batch().is_some();
        at = body_at
            .checked_add(body_len)
            .ok_or_else(|| damaged(&name, "a body of impossible length"))?;
        let after = dictionaries.len();
        let found = Found { metadata, body: Span { at: body_at, len: body_len }, after };
        if is_batch {
            batches.push(found);
        } else if is_dictionary {
            dictionaries.push(found);
        }
    }
    check_bodies(batches.iter().chain(&dictionaries), file)?;
    let table = table.ok_or_else(|| damaged(&name, "the schema is missing"))?;
    Ok(Layout { table, batches, dictionaries })
}

/// That no dictionary of a file takes the place of another: as batches may be read in
/// any order, it could not be told which of the two is meant.
fn check_replacements(dictionaries: &[Found]) -> Result<(), String> {
    let mut ids = HashSet::new();
    for found in dictionaries {
        let dictionary = dictionary_batch(found.message()?)?;
        if !ids.insert(dictionary.id()) && !dictionary.isDelta() {
            return Err(format!("dictionary {} is there twice", dictionary.id()));
        }
    }
    Ok(())
}

fn check_bodies<'a>(
    mut batches: impl Iterator<Item = &'a Found>,
    file: &PositionalFile,
) -> Result<()> {
    let fits = |b: &Found| b.body.at.checked_add(b.body.len).is_some_and(|end| end <= file.len());
    match batches.all(fits) {
        true => Ok(()),
        false => Err(damaged(&file.name(), "truncated: a record batch lies outside the file")),
    }
}

/// The schema that a stream begins with.
fn read_schema(reader: &mut dyn Read, name: &str) -> Result<Table> {
    let missing = || damaged(name, "the stream does not begin with a schema");
    let (metadata, _) = read_metadata(reader, name)?.ok_or_else(missing)?;
    let message = root_as_message(&metadata).map_err(|e| damaged(name, e))?;
    let schema = message.header_as_schema().ok_or_else(missing)?;
    skip(reader, body_length(message).map_err(|e| damaged(name, e))?, name)?;
    Table::new(schema, message.version()).map_err(|e| damaged(name, e))
}

fn body_length(message: Message<'_>) -> Result<u64, String> {
    u64::try_from(message.bodyLength()).map_err(|_| "a body of negative length".into())
}

/// The next message's description and the bytes before it; `None` at the end
/// of the stream.
fn read_metadata(reader: &mut dyn Read, name: &str) -> Result<Option<(Vec<u8>, u64)>> {
    let mut word = || -> Result<Option<u32>> {
        let bytes = read_up_to(reader, 4, name)?;
        match <[u8; 4]>::try_from(&bytes[..]) {
            Ok(word) => Ok(Some(u32::from_le_bytes(word))),
            Err(_) if bytes.is_empty() => Ok(None),
            Err(_) => Err(damaged(name, "truncated in the length of a message")),
        }
    };
    let (len, prefix) = match word()? {
        Some(CONTINUATION) => (word()?, 8),
        first => (first, 4),
    };
    let len = match len {
        None | Some(0) => return Ok(None),
        Some(len) => u64::from(len),
    };
    if len > LONGEST {
        return Err(damaged(name, format!("a message claims to be {len} bytes long")));
    }
    let metadata = read_up_to(reader, len, name)?;
    if (metadata.len() as u64) < len {
        return Err(damaged(name, "truncated in a message"));
    }
    Ok(Some((metadata, prefix)))
}

fn read_up_to(reader: &mut dyn Read, len: u64, name: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(len).read_to_end(&mut bytes).map_err(|e| stream_error(name, e))?;
    Ok(bytes)
}

fn skip(reader: &mut dyn Read, len: u64, name: &str) -> Result<()> {
    match io::copy(&mut reader.take(len), &mut io::sink()) {
        Ok(n) if n == len => Ok(()),
        Ok(_) => Err(damaged(name, "truncated in a record batch")),
        Err(e) => Err(stream_error(name, e)),
    }
}

/// What every block of a column knows.
struct Reading {
    name: Arc<str>,
    /// The type of the values.
    dtype: DType,
    endian: Endian,
    /// What these stand for.
    unit: Option<Unit>,
    /// What the batches hold in their place.
    keys: Option<Keys>,
    /// The dictionary as far as it was read.
    dictionary: Option<Arc<Dictionary>>,
}

impl Reading {
    fn new(table: &Table, column: usize, name: &str, dtype: DType) -> Self {
        let schema::Column { keys, ref unit, .. } = table.columns[column];
        let unit = unit.clone();
        let dictionary = keys.map(|_| Arc::new(Dictionary::new(dtype)));
        Reading { name: Arc::from(name), dtype, endian: table.endian, unit, keys, dictionary }
    }

    /// The type of the elements in the buffers.
    fn stored(&self) -> DType {
        self.keys.map_or(self.dtype, |keys| keys.dtype)
    }

    fn block(&self, plan: &Plan, validity: Option<Bytes>, data: Bytes) -> ArrowBlock {
        ArrowBlock {
            name: Arc::clone(&self.name),
            stored: self.stored(),
            dictionary: self.dictionary.clone(),
            endian: self.endian,
            rows: plan.rows,
            bytes: plan.bytes(),
            validity,
            data,
            codec: plan.codec,
        }
    }

    /// Where the values of a dictionary lie, if it is the one of this column.
    fn plan(&self, dictionary: DictionaryBatch<'_>, body: u64) -> Result<Option<Plan>, String> {
        if self.keys.is_none_or(|keys| keys.id != dictionary.id()) {
            return Ok(None);
        }
        let values = dictionary.data().ok_or("a dictionary without values")?;
        Plan::dictionary(self.dtype, values, body).map(Some)
    }

    /// Takes in a dictionary, or what is added to it.
    fn learn(
        &mut self,
        is_delta: bool,
        plan: &Plan,
        validity: Option<Bytes>,
        data: Bytes,
    ) -> Result<()> {
        let mut values = self.block(plan, validity, data);
        (values.stored, values.dictionary) = (self.dtype, None);
        let dictionary = self.dictionary.get_or_insert_with(|| Dictionary::new(self.dtype).into());
        if !is_delta {
            *dictionary = Dictionary::new(self.dtype).into();
        }
        // Blocks that are being decoded keep the one that they have.
        Arc::make_mut(dictionary).append(values)
    }
}

/// One column of one batch, and where the batch's body lies.
struct Placed {
    body: Span,
    plan: Plan,
    /// How many dictionaries come before it.
    after: usize,
}

/// A column of a file.
struct FileBlocks {
    file: Arc<PositionalFile>,
    column: Reading,
    batches: VecDeque<Placed>,
    /// A large uncompressed batch, and its next row.
    begun: Option<(Placed, u64)>,
    dictionaries: Arc<Vec<Found>>,
    /// How many of them have been looked at.
    known: usize,
}

impl FileBlocks {
    fn bytes(&self, body: Span, s: Span) -> Bytes {
        Bytes::File(Arc::clone(&self.file), Span { at: body.at + s.at, ..s })
    }

    /// Takes in the dictionaries up to the one of number `after`.
    fn learn(&mut self, after: usize) -> Result<()> {
        while self.known < after {
            let dictionaries = Arc::clone(&self.dictionaries);
            let found = &dictionaries[self.known];
            self.known += 1;
            let read = || -> Result<_, String> {
                let dictionary = dictionary_batch(found.message()?)?;
                let plan = self.column.plan(dictionary, found.body.len)?;
                Ok(plan.map(|plan| (plan, dictionary.isDelta())))
            };
            if let Some((plan, is_delta)) = read().map_err(|e| damaged(&self.column.name, e))? {
                let validity = plan.validity.map(|s| self.bytes(found.body, s));
                let data = self.bytes(found.body, plan.data);
                self.column.learn(is_delta, &plan, validity, data)?;
            }
        }
        Ok(())
    }
}

impl Blocks for FileBlocks {
    fn unit(&self) -> Option<Unit> {
        self.column.unit.clone()
    }

    fn next_block(&mut self) -> Result<Option<Box<dyn Block>>> {
        let Some((placed, first)) =
            self.begun.take().or_else(|| self.batches.pop_front().map(|b| (b, 0)))
        else {
            return Ok(None);
        };
        let Placed { body, plan, after } = placed;
        if self.column.keys.is_some() {
            self.learn(after)?;
        }
        let bytes = |s: Span| self.bytes(body, s);
        let mut block = self.column.block(&plan, plan.validity.map(bytes), bytes(plan.data));
        if plan.codec.is_none() && plan.rows > ROWS {
            // Uncompressed batches come in parts, so that several threads get
            // something to do even if there is only one.
            let rows = (plan.rows - first).min(ROWS);
            let last = first + rows == plan.rows;
            let part = |s: Span, from: u64, len: u64| Span {
                at: s.at.saturating_add(from),
                // The last part gets the padding, so that the sizes add up.
                len: if last { s.len.saturating_sub(from) } else { len },
            };
            let (from, len) = match self.column.stored() {
                DType::Bool => (first / 8, rows / 8),
                d => (first * d.size() as u64, rows * d.size() as u64),
            };
            let data = part(plan.data, from, len);
            let validity = plan.validity.map(|v| part(v, first / 8, rows / 8));
            block.rows = rows;
            block.bytes = data.len + validity.map_or(0, |v| v.len);
            block.data = bytes(data);
            block.validity = validity.map(bytes);
            if !last {
                self.begun = Some((Placed { body, plan, after }, first + rows));
            }
        }
        Ok(Some(Box::new(block)))
    }
}
