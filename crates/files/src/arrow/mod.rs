//! Arrow IPC, file and stream, and with it Feather version 2.
//!
//! Only the buffers of the wanted column are read, and these piece by piece,
//! also where they are compressed: a batch may be as large as the file.

mod decode;
mod dictionary;
mod messages;
mod plan;
mod schema;
mod stream;
mod texts;

use crate::columns::{self, ColumnSelector};
use crate::file::{Cursor, PositionalFile};
use crate::fixed::{self, stream_error};
use crate::groups::{Keyed, Kind};
use crate::open::{OpenOptions, Stream};
use crate::table::Typing;
use crate::{
    Access, Block, Blocks, Description, Endian, Error, Extent, Format, Result, Source, Unit,
};
use decode::{ArrowBlock, Bytes, ROWS};
use dictionary::Dictionary;
use messages::{DictionaryBatch, Footer, Header, Message, Place};
use plan::{Plan, Span, TextPlan, Width};
use schema::{Keys, Table, TextForm};
use std::collections::{HashSet, VecDeque};
use std::io::{self, Read};
use std::sync::Arc;
use texts::{TextBlock, TextBuffers, TextDictionary};
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
            let column = Reading::new(&table, column, &name, dtype);
            let (blocks, rows, bytes) =
                FileBlocks::new(file, &table, column, &batches, &dictionaries)?;
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

/// The chosen columns, and those of keys, which may be texts.
pub(crate) fn open_keyed(
    file: &Arc<PositionalFile>,
    format: Format,
    columns: &[ColumnSelector],
    keys: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Keyed> {
    let file_name = file.name();
    let Layout { table, batches, dictionaries } = read_layout(file, format)?;
    let dictionaries = Arc::new(dictionaries);
    let names: Vec<String> = table.columns.iter().map(|c| c.name.clone()).collect();
    let keys = columns::resolve(keys, &names, &file_name)?;
    let chosen = match columns {
        [] => {
            let mut numbers = numeric(&table);
            numbers.retain(|place| !keys.contains(place));
            match options.all_columns && !numbers.is_empty() {
                true => numbers,
                false => columns::only_numeric(&numbers, &names, &file_name)?,
            }
        }
        columns => columns::resolve(columns, &names, &file_name)?,
    };
    let text = |column: usize| table.columns[column].text;
    // Texts of a batch are read at once, and so are the numbers beside them then.
    let whole = keys.iter().any(|&column| text(column).is_some());
    let (mut key_columns, mut values, mut blocks) = (Vec::new(), Vec::new(), Vec::new());
    let mut all_bytes = 0u64;
    for (i, &column) in keys.iter().chain(&chosen).enumerate() {
        let (is_key, label) = (i < keys.len(), names[column].clone());
        let (kind, bytes): (_, u64) = match text(column).filter(|_| is_key) {
            Some(form) => {
                let (some, bytes) =
                    TextBlocks::new(file, &table, (column, form), &batches, &dictionaries)?;
                blocks.push(Box::new(some) as Box<dyn Blocks>);
                (Kind::plain(Typing::Text), bytes)
            }
            None => {
                let (name, dtype) = match is_key {
                    true => key(&table, column, &file_name)?,
                    false => number(&table, column, &file_name, options)?,
                };
                let unit = table.columns[column].unit.clone();
                let column = Reading::new(&table, column, &name, dtype);
                let (mut some, _, bytes) =
                    FileBlocks::new(file, &table, column, &batches, &dictionaries)?;
                some.whole = whole;
                blocks.push(Box::new(some) as Box<dyn Blocks>);
                (Kind { typing: Typing::Fixed(dtype), unit }, bytes)
            }
        };
        all_bytes = all_bytes.saturating_add(bytes);
        let columns = if is_key { &mut key_columns } else { &mut values };
        columns.push((label, kind));
    }
    Ok(Keyed::of_blocks(file_name, key_columns, values, blocks, Some(all_bytes)))
}

/// What `inspect` says about a file.
pub(crate) fn inspect(file: &Arc<PositionalFile>, format: Format) -> Result<Vec<Description>> {
    let name = file.name();
    let Layout { table, batches, .. } = read_layout(file, format)?;
    let mut rows = 0_u64;
    let mut compression = None;
    for batch in &batches {
        let message = Message::new(&batch.metadata);
        let record = message.and_then(|m| m.batch()).map_err(|e| damaged(&name, e))?;
        rows = rows.saturating_add(record.rows);
        compression = compression.or(record.codec);
    }
    let compression = match compression {
        Some(0) => Some("lz4_frame".into()),
        Some(1) => Some("zstd".into()),
        _ => None,
    };
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

/// The full name and type of a column of keys that are no texts.
fn key(table: &Table, column: usize, file: &str) -> Result<(String, DType)> {
    let column = &table.columns[column];
    let name = format!("{file}:{}", column.name);
    match column.read {
        Ok(dtype) => Ok((name, dtype)),
        Err(_) => {
            let is_key = |c: &&schema::Column| c.read.is_ok() || c.text.is_some();
            let keys: Vec<_> = table.columns.iter().filter(is_key).map(|c| &c.name).collect();
            Err(columns::no_key(name, &column.stored_as, &keys))
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
    fn plan(&self, table: &Table, column: usize) -> Result<Plan, String> {
        Plan::new(table, column, Message::new(&self.metadata)?.batch()?, self.body.len)
    }
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
    let footer = Footer::new(&footer).map_err(|e| damaged(&name, e))?;
    let schema = footer.schema.ok_or_else(|| fail("the schema is missing"))?;
    let table = Table::new(schema).map_err(|e| damaged(&name, e))?;
    let found = |(at, metadata_len, body_len): Place, after: usize| -> Result<Found> {
        let place = |n: i64| u64::try_from(n).map_err(|_| fail("a negative place in the footer"));
        let (at, metadata_len) = (place(at)?, place(metadata_len)?);
        let body_len = place(body_len)?;
        if metadata_len < 8 {
            return Err(fail("a record batch without a description"));
        }
        let metadata = file.read_vec(at, metadata_len)?;
        // Before version 0.15 the length came without the mark.
        let skip = if metadata.starts_with(&CONTINUATION.to_le_bytes()) { 8 } else { 4 };
        let body = Span { at: at + metadata_len, len: body_len };
        Ok(Found { metadata: metadata[skip..].to_vec(), body, after })
    };
    let dictionaries: Vec<Found> =
        footer.dictionaries().map(|block| found(block, 0)).collect::<Result<_>>()?;
    let batches = footer.batches().map(|block| found(block, dictionaries.len()));
    let batches: Vec<Found> = batches.collect::<Result<_>>()?;
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
        let message = Message::new(&metadata).map_err(|e| damaged(&name, e))?;
        let body_at = at + prefix + metadata.len() as u64;
        let body_len = message.body;
        if let Header::Schema(schema) = message.header {
            let found = Table::new(schema).map_err(|e| damaged(&name, e))?;
            table.get_or_insert(found);
        }
        let (is_batch, is_dictionary) = (message.batch().is_ok(), message.dictionary().is_ok());
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
        let DictionaryBatch { id, is_delta, .. } = Message::new(&found.metadata)?.dictionary()?;
        if !ids.insert(id) && !is_delta {
            return Err(format!("dictionary {id} is there twice"));
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
    let message = Message::new(&metadata).map_err(|e| damaged(name, e))?;
    let Header::Schema(schema) = message.header else { return Err(missing()) };
    skip(reader, message.body, name)?;
    Table::new(schema).map_err(|e| damaged(name, e))
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
    fixed::read_up_to(reader, len, &mut bytes, name)?;
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
    /// Its place in the table.
    place: usize,
    /// The type of the values.
    dtype: DType,
    endian: Endian,
    /// What these stand for.
    unit: Option<Unit>,
    /// The bytes of each, if they are decimals.
    decimal: Option<usize>,
    /// What the batches hold in their place.
    keys: Option<Keys>,
    /// The dictionary as far as it was read.
    dictionary: Option<Arc<Dictionary>>,
}

impl Reading {
    fn new(table: &Table, column: usize, name: &str, dtype: DType) -> Self {
        let schema::Column { keys, decimal, ref unit, .. } = table.columns[column];
        let unit = unit.clone();
        let dictionary = keys.map(|_| Arc::new(Dictionary::new(dtype)));
        let (name, place, endian) = (Arc::from(name), column, table.endian);
        Reading { name, place, dtype, endian, unit, decimal, keys, dictionary }
    }

    /// The type of the elements in the buffers.
    fn stored(&self) -> DType {
        self.keys.map_or(self.dtype, |keys| keys.dtype)
    }

    fn block(&self, plan: &Plan, validity: Option<Bytes>, data: Bytes) -> ArrowBlock {
        ArrowBlock {
            name: Arc::clone(&self.name),
            stored: self.stored(),
            decimal: self.decimal,
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
        if self.keys.is_none_or(|keys| keys.id != dictionary.id) {
            return Ok(None);
        }
        Plan::dictionary(self.dtype, dictionary.values()?, body).map(Some)
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
    /// Whether batches are handed over as they are, however large.
    whole: bool,
}

impl FileBlocks {
    /// Those of a column, with its rows and bytes.
    fn new(
        file: &Arc<PositionalFile>,
        table: &Table,
        column: Reading,
        found: &[Found],
        dictionaries: &Arc<Vec<Found>>,
    ) -> Result<(FileBlocks, u64, u64)> {
        let (mut rows, mut bytes) = (0_u64, 0);
        let mut batches = VecDeque::new();
        for batch in found {
            let damaged = |what: String| damaged(&column.name, what);
            let plan = batch.plan(table, column.place).map_err(damaged)?;
            let total = rows.checked_add(plan.rows);
            rows = total.ok_or_else(|| damaged("too many rows".into()))?;
            bytes += plan.bytes();
            let Found { body, after, .. } = *batch;
            batches.push_back(Placed { body, plan, after });
        }
        let (file, dictionaries) = (Arc::clone(file), Arc::clone(dictionaries));
        let blocks =
            FileBlocks { file, column, batches, begun: None, dictionaries, known: 0, whole: false };
        Ok((blocks, rows, bytes))
    }

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
                let dictionary = Message::new(&found.metadata)?.dictionary()?;
                let plan = self.column.plan(dictionary, found.body.len)?;
                Ok(plan.map(|plan| (plan, dictionary.is_delta)))
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
        if plan.codec.is_none() && plan.rows > ROWS && !self.whole {
            // Uncompressed batches come in parts, so that several threads get
            // something to do even if there is only one.
            let rows = (plan.rows - first).min(ROWS);
            let last = first + rows == plan.rows;
            let part = |s: Span, from: u64, len: u64| Span {
                at: s.at.saturating_add(from),
                // The last part gets the padding, so that the sizes add up.
                len: if last { s.len.saturating_sub(from) } else { len },
            };
            let width = match self.column.decimal {
                Some(bytes) => Width::Bytes(bytes as u64),
                None => Width::of(self.column.stored()),
            };
            let (from, len) = match width {
                Width::Bit => (first / 8, rows / 8),
                Width::Bytes(bytes) => (first * bytes, rows * bytes),
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

/// A column of texts of a file.
struct TextBlocks {
    file: Arc<PositionalFile>,
    name: Arc<str>,
    form: TextForm,
    endian: Endian,
    keys: Option<Keys>,
    batches: VecDeque<PlacedTexts>,
    dictionaries: Arc<Vec<Found>>,
    /// How many of them have been looked at.
    known: usize,
    /// The dictionary as far as it was read.
    dictionary: Arc<TextDictionary>,
}

/// A batch of texts, or of the keys of some.
struct PlacedTexts {
    body: Span,
    plan: TextsOrKeys,
    after: usize,
}

enum TextsOrKeys {
    Texts(TextPlan),
    Keys(Plan, DType),
}

impl TextBlocks {
    /// Those of a column, with its bytes.
    fn new(
        file: &Arc<PositionalFile>,
        table: &Table,
        (column, form): (usize, TextForm),
        found: &[Found],
        dictionaries: &Arc<Vec<Found>>,
    ) -> Result<(TextBlocks, u64)> {
        let schema::Column { name, keys, .. } = &table.columns[column];
        let name: Arc<str> = format!("{}:{name}", file.name()).into();
        let mut bytes = 0u64;
        let mut batches = VecDeque::new();
        for batch in found {
            let plan = || -> Result<(TextsOrKeys, u64), String> {
                if let Some(keys) = keys {
                    let plan = batch.plan(table, column)?;
                    return Ok((TextsOrKeys::Keys(plan, keys.dtype), plan.bytes()));
                }
                let record = Message::new(&batch.metadata)?.batch()?;
                let plan = TextPlan::new(table, column, form, record, batch.body.len)?;
                let bytes = plan.bytes();
                Ok((TextsOrKeys::Texts(plan), bytes))
            };
            let (plan, more) = plan().map_err(|what| damaged(&name, what))?;
            bytes = bytes.saturating_add(more);
            batches.push_back(PlacedTexts { body: batch.body, plan, after: batch.after });
        }
        let blocks = TextBlocks {
            file: Arc::clone(file),
            name,
            form,
            endian: table.endian,
            keys: *keys,
            batches,
            dictionaries: Arc::clone(dictionaries),
            known: 0,
            dictionary: Arc::default(),
        };
        Ok((blocks, bytes))
    }

    fn bytes(&self, body: Span, s: Span) -> Bytes {
        Bytes::File(Arc::clone(&self.file), Span { at: body.at + s.at, ..s })
    }

    fn buffers(&self, body: Span, plan: &TextPlan) -> TextBuffers {
        TextBuffers::new(&self.name, (self.form, self.endian), plan, |s| self.bytes(body, s))
    }

    /// Takes in the dictionaries up to the one of number `after`.
    fn learn(&mut self, keys: Keys, after: usize) -> Result<()> {
        while self.known < after {
            let dictionaries = Arc::clone(&self.dictionaries);
            let found = &dictionaries[self.known];
            self.known += 1;
            let read = || -> Result<_, String> {
                let dictionary = Message::new(&found.metadata)?.dictionary()?;
                if dictionary.id != keys.id {
                    return Ok(None);
                }
                let plan = TextPlan::dictionary(self.form, dictionary.values()?, found.body.len)?;
                Ok(Some((plan, dictionary.is_delta)))
            };
            if let Some((plan, is_delta)) = read().map_err(|e| damaged(&self.name, e))? {
                if !is_delta {
                    self.dictionary = Arc::default();
                }
                let texts = self.buffers(found.body, &plan);
                // Blocks that are being decoded keep the one that they have.
                Arc::make_mut(&mut self.dictionary).append(texts)?;
            }
        }
        Ok(())
    }
}

impl Blocks for TextBlocks {
    fn next_block(&mut self) -> Result<Option<Box<dyn Block>>> {
        let Some(PlacedTexts { body, plan, after }) = self.batches.pop_front() else {
            return Ok(None);
        };
        if let Some(keys) = self.keys {
            self.learn(keys, after)?;
        }
        Ok(Some(Box::new(match plan {
            TextsOrKeys::Texts(plan) => TextBlock::Plain(self.buffers(body, &plan)),
            TextsOrKeys::Keys(plan, stored) => {
                let keys = ArrowBlock {
                    name: Arc::clone(&self.name),
                    stored,
                    decimal: None,
                    dictionary: None,
                    endian: self.endian,
                    rows: plan.rows,
                    bytes: plan.bytes(),
                    validity: plan.validity.map(|s| self.bytes(body, s)),
                    data: self.bytes(body, plan.data),
                    codec: plan.codec,
                };
                TextBlock::Coded(keys, Arc::clone(&self.dictionary))
            }
        })))
    }
}
