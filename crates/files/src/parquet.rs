//! Apache Parquet: one column's pages, row group by row group.

mod codes;
mod pages;

use crate::columns::{self, ColumnSelector};
use crate::file::{Cursor, PositionalFile};
use crate::groups::{Keyed, Kind};
use crate::open::OpenOptions;
use crate::table::Typing;
use crate::{
    Access, Batch, Block, Blocks, Description, Error, Extent, Format, Result, Source, Unit, guard,
    thrift::{self, Found, Look},
    unit,
};
use bytes::Bytes;
use pages::Pages;
use parquet::basic::{ConvertedType, Encoding, LogicalType, TimeUnit, Type};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{self, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};
use std::cell::Cell;
use std::io::{self, BufReader, Read};
use std::sync::Arc;
use warpfold::Tick;
use warpfold_core::DType;
use warpfold_core::element::{Known, f16};

/// The zone of moments whose zone the file does not name.
const UTC: &str = "UTC";

/// Rows decoded at a time.
const ROWS: u64 = 1 << 16;

/// The columns chosen from a file.
pub(crate) fn open(
    file: &Arc<PositionalFile>,
    columns: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Vec<Source>> {
    let table = Table::open(file)?;
    let file_name = file.name();
    table
        .choose(&file_name, columns)?
        .into_iter()
        .map(|column| {
            let name = format!("{file_name}:{}", table.names[column]);
            let dtype = table.types[column].clone().map_err(|why| {
                let stored = stored_as(&table.column(column));
                Error::format(&name, format!("a column of type {stored}: {why}"))
                    .with_hint(format!("the columns of numbers are {}", table.numeric_names()))
            })?;
            options.expect_dtype(options.dtype, dtype, &name)?;
            let mut bytes = 0;
            for group in table.metadata.row_groups() {
                bytes += checked_chunk(group.columns().get(column), file, &name)?;
            }
            let blocks = RowGroups {
                column: Arc::new(Column {
                    file: Arc::clone(file),
                    name: name.clone(),
                    dtype,
                    column,
                    text: false,
                }),
                metadata: Arc::clone(&table.metadata),
                next: 0,
            };
            Ok(Source {
                name,
                dtype,
                extent: Extent::Column { rows: Some(table.rows) },
                bytes: Some(bytes),
                access: Access::Sequential(Box::new(blocks)),
            })
        })
        .collect()
}

/// The chosen columns, and those of keys, which may be texts.
pub(crate) fn open_keyed(
    file: &Arc<PositionalFile>,
    columns: &[ColumnSelector],
    keys: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Keyed> {
    let table = Table::open(file)?;
    let file_name = file.name();
    let keys = columns::resolve(keys, &table.names, &file_name)?;
    let chosen = match columns {
        [] => {
            let mut numeric = table.numeric();
            numeric.retain(|place| !keys.contains(place));
            match options.all_columns && !numeric.is_empty() {
                true => numeric,
                false => columns::only_numeric(&numeric, &table.names, &file_name)?,
            }
        }
        columns => columns::resolve(columns, &table.names, &file_name)?,
    };
    let (mut key_columns, mut values, mut blocks) = (Vec::new(), Vec::new(), Vec::new());
    let mut bytes = 0u64;
    for (i, &column) in keys.iter().chain(&chosen).enumerate() {
        let (is_key, label) = (i < keys.len(), table.names[column].clone());
        let name = format!("{file_name}:{label}");
        let text = is_key && is_text(&table.column(column));
        let dtype = match &table.types[column] {
            _ if text => DType::U32,
            Ok(dtype) => *dtype,
            Err(_) if is_key => {
                let can = |i: &usize| table.types[*i].is_ok() || is_text(&table.column(*i));
                let keys = (0..table.names.len()).filter(can).map(|i| &table.names[i]);
                let stored = stored_as(&table.column(column));
                return Err(columns::no_key(name, &stored, &keys.collect::<Vec<_>>()));
            }
            Err(why) => {
                let stored = stored_as(&table.column(column));
                return Err(Error::format(&name, format!("a column of type {stored}: {why}"))
                    .with_hint(format!("the columns of numbers are {}", table.numeric_names())));
            }
        };
        if !is_key {
            options.expect_dtype(options.dtype, dtype, &name)?;
        }
        for group in table.metadata.row_groups() {
            bytes += checked_chunk(group.columns().get(column), file, &name)?;
        }
        let kind = match text {
            true => Kind::plain(Typing::Text),
            false => Kind { typing: Typing::Fixed(dtype), unit: unit_of(&table.column(column)) },
        };
        if is_key {
            key_columns.push((label, kind))
        } else {
            values.push((label, kind))
        }
        let column = Arc::new(Column { file: Arc::clone(file), name, dtype, column, text });
        let metadata = Arc::clone(&table.metadata);
        blocks.push(Box::new(RowGroups { column, metadata, next: 0 }) as Box<dyn Blocks>);
    }
    Ok(Keyed::of_blocks(file_name, key_columns, values, blocks, Some(bytes)))
}

/// Whether a leaf holds texts, or bytes.
fn is_text(column: &ColumnDescriptor) -> bool {
    let logical = column.logical_type_ref();
    let text =
        matches!(logical, None | Some(LogicalType::String | LogicalType::Enum | LogicalType::Json));
    column.max_rep_level() == 0
        && column.physical_type() == Type::BYTE_ARRAY
        && text
        && column.converted_type() != ConvertedType::DECIMAL
}

/// What `inspect` says about a file.
pub(crate) fn inspect(file: &Arc<PositionalFile>) -> Result<Vec<Description>> {
    let table = Table::open(file)?;
    let file_name = file.name();
    Ok((0..table.names.len())
        .map(|i| {
            let chunks = || table.metadata.row_groups().iter().filter_map(|g| g.columns().get(i));
            let codec =
                chunks().next().map(|c| format!("{:?}", c.compression_codec()).to_lowercase());
            let read = table.types[i].as_ref();
            Description {
                name: format!("{file_name}:{}", table.names[i]),
                format: Format::Parquet,
                stored_as: stored_as(&table.column(i)),
                dtype: read.ok().copied(),
                why_not: read.err().cloned(),
                extent: Some(Extent::Column { rows: Some(table.rows) }),
                endian: None,
                offset: None,
                bytes: chunks().map(|c| u64::try_from(c.compressed_size()).ok()).sum(),
                compression: codec.filter(|c| c != "uncompressed"),
                unit: read.ok().and_then(|_| unit_of(&table.column(i))),
            }
        })
        .collect())
}

/// The footer of a file.
struct Table {
    metadata: Arc<ParquetMetaData>,
    /// The leaves of the schema: `price`, `position.x`.
    names: Vec<String>,
    /// The type each is read as, or why it is not.
    types: Vec<Result<DType, String>>,
    rows: u64,
}

impl Table {
    fn open(file: &Arc<PositionalFile>) -> Result<Self> {
        let name = file.name();
        let footer = Reader { file: Arc::clone(file) };
        if let Some(start) = footer.start()? {
            footer.check(start).map_err(|e| damaged(&name, e))?;
        }
        let metadata = guard::quietly(&name, || {
            ParquetMetaDataReader::new().parse_and_finish(&footer).map_err(|e| damaged(&name, e))
        })?;
        let mut rows = 0_u64;
        for group in metadata.row_groups() {
            let more = u64::try_from(group.num_rows()).ok();
            rows = more.and_then(|n| rows.checked_add(n)).ok_or_else(|| {
                Error::format(&name, "damaged Parquet file: a row group of impossible length")
            })?;
        }
        let leaves = metadata.file_metadata().schema_descr().columns();
        let names = leaves.iter().map(|c| c.path().parts().join(".")).collect();
        let types = leaves.iter().map(|c| read_as(c)).collect();
        Ok(Table { metadata: Arc::new(metadata), names, types, rows })
    }

    fn column(&self, i: usize) -> ColumnDescPtr {
        self.metadata.file_metadata().schema_descr().column(i)
    }

    /// The columns of plain numbers.
    fn numeric(&self) -> Vec<usize> {
        let is_plain = |i: usize| self.types[i].is_ok() && unit_of(&self.column(i)).is_none();
        (0..self.names.len()).filter(|&i| is_plain(i)).collect()
    }

    fn numeric_names(&self) -> String {
        columns::list(&self.numeric().iter().map(|&i| &self.names[i]).collect::<Vec<_>>())
    }

    fn choose(&self, file: &str, columns: &[ColumnSelector]) -> Result<Vec<usize>> {
        if columns.is_empty() {
            columns::only_numeric(&self.numeric(), &self.names, file)
        } else {
            columns::resolve(columns, &self.names, file)
        }
    }
}

/// The file as the parquet crate wants to read it: by position, so that
/// threads do not share a cursor.
struct Reader {
    file: Arc<PositionalFile>,
}

impl Reader {
    /// Where the footer begins, if the file ends as one of this format does.
    fn start(&self) -> Result<Option<u64>> {
        let Some(end) = self.file.len().checked_sub(8) else { return Ok(None) };
        let mut tail = [0; 8];
        self.file.read_exact_at(&mut tail, end)?;
        let len = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        Ok(if &tail[4..] == b"PAR1" { end.checked_sub(len) } else { None })
    }

    /// That the structure at `start`, the footer or a page's header, holds as
    /// much as it says: see [`thrift`].
    fn check(&self, start: u64) -> parquet::errors::Result<Found> {
        let available = self.file.len().saturating_sub(start);
        let mut len = available.min(512);
        loop {
            match thrift::look(&reads(&self.file, start, len)?, available) {
                Ok(found) => return Ok(found),
                Err(Look::Unfinished) if len < available => len = available.min(len * 4),
                _ => {
                    return Err(ParquetError::General(format!(
                        "the structure at byte {start} is inconsistent"
                    )));
                }
            }
        }
    }
}

impl Length for Reader {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

/// A reader whose end is an error: the parquet crate skips what is not there
/// without a word, field by field of a list that claims 2^31 of them.
struct Endless(Cursor);

impl Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.0.read(out)? {
            0 if !out.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            n => Ok(n),
        }
    }
}

impl ChunkReader for Reader {
    type T = BufReader<Endless>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        let rest = Cursor::part(Arc::clone(&self.file), start, u64::MAX);
        Ok(BufReader::with_capacity(512, Endless(rest)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        reads(&self.file, start, length as u64).map(Bytes::from)
    }
}

/// Bytes of a file, whose errors are on their way through the library.
fn reads(file: &PositionalFile, start: u64, len: u64) -> parquet::errors::Result<Vec<u8>> {
    file.read_vec(start, len).map_err(|e| ParquetError::External(Box::new(e)))
}

fn damaged(name: &str, error: ParquetError) -> Error {
    match error {
        // Our own, on its way through.
        ParquetError::External(e) => match e.downcast::<Error>() {
            Ok(e) => *e,
            Err(e) => Error::format(name, format!("damaged Parquet file: {e}")),
        },
        e => {
            let text = e.to_string();
            let what = text.strip_prefix("Parquet error: ").unwrap_or(&text);
            Error::format(name, format!("damaged Parquet file: {what}"))
        }
    }
}

/// The size of a column chunk, once its place is known to lie in the file.
fn checked_chunk(
    chunk: Option<&ColumnChunkMetaData>,
    file: &PositionalFile,
    name: &str,
) -> Result<u64> {
    chunk
        .and_then(|c| {
            let (start, len) = chunk_of(c)?;
            (start.checked_add(len)? <= file.len()).then_some(len)
        })
        .ok_or_else(|| {
            Error::format(name, "damaged Parquet file: a column chunk lies outside the file")
        })
}

/// Where a column chunk begins, and its bytes.
fn chunk_of(chunk: &ColumnChunkMetaData) -> Option<(u64, u64)> {
    let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
    Some((u64::try_from(start).ok()?, u64::try_from(chunk.compressed_size()).ok()?))
}

/// The type a leaf is read as.
fn read_as(column: &ColumnDescriptor) -> Result<DType, String> {
    if column.max_rep_level() > 0 {
        return Err("lists are not supported".into());
    }
    let logical = column.logical_type_ref();
    let plain = logical.is_none() && column.converted_type() == ConvertedType::NONE;
    let width = match (logical, column.converted_type()) {
        (Some(LogicalType::Integer(int)), _) => Some((int.bit_width, int.is_signed)),
        (None, ConvertedType::INT_8) => Some((8, true)),
        (None, ConvertedType::INT_16) => Some((16, true)),
        (None, ConvertedType::INT_32) => Some((32, true)),
        (None, ConvertedType::INT_64) => Some((64, true)),
        (None, ConvertedType::UINT_8) => Some((8, false)),
        (None, ConvertedType::UINT_16) => Some((16, false)),
        (None, ConvertedType::UINT_32) => Some((32, false)),
        (None, ConvertedType::UINT_64) => Some((64, false)),
        _ => None,
    };
    match (column.physical_type(), width) {
        (Type::FIXED_LEN_BYTE_ARRAY | Type::BYTE_ARRAY, None)
            if matches!(unit_of(column), Some(Unit::Decimal(_))) =>
        {
            Ok(DType::I64)
        }
        (Type::INT32, None) if unit_of(column).is_some() => Ok(DType::I32),
        (Type::INT64, None) if unit_of(column).is_some() => Ok(DType::I64),
        (Type::BOOLEAN, _) if plain => Ok(DType::Bool),
        (Type::INT32, None) if plain => Ok(DType::I32),
        (Type::INT32, Some((8, true))) => Ok(DType::I8),
        (Type::INT32, Some((16, true))) => Ok(DType::I16),
        (Type::INT32, Some((32, true))) => Ok(DType::I32),
        (Type::INT32, Some((8, false))) => Ok(DType::U8),
        (Type::INT32, Some((16, false))) => Ok(DType::U16),
        (Type::INT32, Some((32, false))) => Ok(DType::U32),
        (Type::INT64, None) if plain => Ok(DType::I64),
        (Type::INT64, Some((64, true))) => Ok(DType::I64),
        (Type::INT64, Some((64, false))) => Ok(DType::U64),
        (Type::FLOAT, _) if plain => Ok(DType::F32),
        (Type::DOUBLE, _) if plain => Ok(DType::F64),
        (Type::FIXED_LEN_BYTE_ARRAY, _)
            if logical == Some(&LogicalType::Float16) && column.type_length() == 2 =>
        {
            Ok(DType::F16)
        }
        (physical, _) => Err(why_not(physical, logical, column.converted_type()).into()),
    }
}

/// The unit of a leaf's integers, if they have one.
fn unit_of(column: &ColumnDescriptor) -> Option<Unit> {
    use ConvertedType as C;
    let tick = |unit: &TimeUnit| match unit {
        TimeUnit::MILLIS => Tick::Milli,
        TimeUnit::MICROS => Tick::Micro,
        TimeUnit::NANOS => Tick::Nano,
    };
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Date), _) | (None, C::DATE) => Some(Unit::Date(Tick::Day)),
        (Some(LogicalType::Time(time)), _) => Some(Unit::Time(tick(&time.unit))),
        (Some(LogicalType::Timestamp(timestamp)), _) => {
            let tick = tick(&timestamp.unit);
            Some(Unit::Timestamp(tick, timestamp.is_adjusted_to_u_t_c.then(|| UTC.into())))
        }
        (Some(LogicalType::Decimal(decimal)), _) => unit::digits(decimal.scale).map(Unit::Decimal),
        (None, C::DECIMAL) => unit::digits(column.type_scale()).map(Unit::Decimal),
        (None, C::TIME_MILLIS) => Some(Unit::Time(Tick::Milli)),
        (None, C::TIME_MICROS) => Some(Unit::Time(Tick::Micro)),
        // Before logical types came, all were in UTC.
        (None, C::TIMESTAMP_MILLIS) => Some(Unit::Timestamp(Tick::Milli, Some(UTC.into()))),
        (None, C::TIMESTAMP_MICROS) => Some(Unit::Timestamp(Tick::Micro, Some(UTC.into()))),
        _ => None,
    }
}

fn why_not(
    physical: Type,
    logical: Option<&LogicalType>,
    converted: ConvertedType,
) -> &'static str {
    use ConvertedType as C;
    match (logical, converted) {
        (Some(LogicalType::Decimal(_)), _) | (None, C::DECIMAL) => unit::DECIMALS,
        (None, C::INTERVAL) => "months have no fixed length: cast the column to durations",
        _ => match physical {
            Type::INT96 => {
                "timestamps of the old kind: write the file with timestamps of 64 bits, in Spark \
                 with spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS"
            }
            Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => "text and bytes are not numbers",
            _ => "this type is not supported",
        },
    }
}

/// The type in the words of the file: `INT32 (Date)`.
fn stored_as(column: &ColumnDescriptor) -> String {
    let physical = column.physical_type();
    let list = if column.max_rep_level() > 0 { "list of " } else { "" };
    list.to_string()
        + &match (column.logical_type_ref(), column.converted_type()) {
            (Some(LogicalType::Integer(i)), _) => {
                format!(
                    "{physical} ({}{})",
                    if i.is_signed { "INT_" } else { "UINT_" },
                    i.bit_width
                )
            }
            (Some(LogicalType::Decimal(d)), _) => {
                format!("{physical} (Decimal {},{})", d.precision, d.scale)
            }
            (Some(LogicalType::Time(_) | LogicalType::Timestamp(_)), _) => {
                let text = unit_of(column).map(|unit| unit.to_string());
                format!("{physical} ({})", text.unwrap_or_default())
            }
            (Some(logical), _) => {
                let text = format!("{logical:?}");
                format!("{physical} ({})", text.split(['(', ' ']).next().unwrap_or_default())
            }
            (None, ConvertedType::NONE) => physical.to_string(),
            (None, converted) => format!("{physical} ({converted})"),
        }
}

/// What every row group of a column knows.
struct Column {
    file: Arc<PositionalFile>,
    name: String,
    dtype: DType,
    /// Its place among the leaves.
    column: usize,
    /// Whether it is read as texts.
    text: bool,
}

struct RowGroups {
    column: Arc<Column>,
    metadata: Arc<ParquetMetaData>,
    next: usize,
}

impl Blocks for RowGroups {
    fn unit(&self) -> Option<Unit> {
        unit_of(&self.metadata.file_metadata().schema_descr().column(self.column.column))
    }

    fn next_block(&mut self) -> Result<Option<Box<dyn Block>>> {
        let Some(group) = self.metadata.row_groups().get(self.next) else { return Ok(None) };
        self.next += 1;
        let column = Arc::clone(&self.column);
        // `open` has checked the place, `Table::open` the number of rows.
        let bytes = checked_chunk(group.columns().get(column.column), &column.file, &column.name)?;
        let rows = group.num_rows() as u64;
        let chunk = group.column(column.column).clone();
        Ok(Some(Box::new(RowGroup { column, chunk, rows, bytes })))
    }
}

struct RowGroup {
    column: Arc<Column>,
    chunk: ColumnChunkMetaData,
    rows: u64,
    bytes: u64,
}

impl Block for RowGroup {
    fn rows(&self) -> Option<u64> {
        Some(self.rows)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn decode(
        self: Box<Self>,
        batch: &mut Batch,
        sink: &mut dyn FnMut(&Batch) -> Result<()>,
    ) -> Result<()> {
        use data_type::{
            BoolType, ByteArrayType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type,
            Int64Type,
        };
        if self.column.text {
            if self.read_codes(batch)? {
                return sink(batch);
            }
            return self.read::<ByteArrayType>(batch, sink, &|values, batch| {
                for value in values {
                    if !batch.push_text(value.data()) {
                        return Err("the texts of some rows are longer than 4 GiB".into());
                    }
                }
                Ok(())
            });
        }
        let descr = self.chunk.column_descr_ptr();
        if let Some(Unit::Decimal(_)) = unit_of(&descr) {
            let beyond = Cell::new(false);
            let number = |bytes: &[u8], batch: &mut Batch| {
                let decimal = unit::of_bytes(bytes);
                beyond.set(beyond.get() || decimal.is_none());
                batch.push_decimal(decimal.unwrap_or(0));
            };
            let read = match descr.physical_type() {
                Type::FIXED_LEN_BYTE_ARRAY => {
                    Some(self.read::<FixedLenByteArrayType>(batch, sink, &|values, batch| {
                        values.iter().for_each(|value| number(value.data(), batch));
                        Ok(())
                    }))
                }
                Type::BYTE_ARRAY => {
                    Some(self.read::<ByteArrayType>(batch, sink, &|values, batch| {
                        values.iter().for_each(|value| number(value.data(), batch));
                        Ok(())
                    }))
                }
                _ => None,
            };
            if beyond.get() {
                return Err(unit::beyond(&self.column.name));
            }
            if let Some(read) = read {
                return read;
            }
        }
        match self.column.dtype.known() {
            Known::Bool => self.read::<BoolType>(batch, sink, &|values, batch| {
                let out = batch.grow(values.len());
                out.iter_mut().zip(values).for_each(|(o, &v)| *o = u8::from(v));
                Ok(())
            }),
            Known::I8 => self.read::<Int32Type>(batch, sink, &narrow::<i8>),
            Known::I16 => self.read::<Int32Type>(batch, sink, &narrow::<i16>),
            Known::U8 => self.read::<Int32Type>(batch, sink, &narrow::<u8>),
            Known::U16 => self.read::<Int32Type>(batch, sink, &narrow::<u16>),
            // Unsigned numbers are stored as the signed ones of the same bits.
            Known::I32 | Known::U32 => self.read::<Int32Type>(batch, sink, &as_they_are),
            Known::I64 | Known::U64 => self.read::<Int64Type>(batch, sink, &as_they_are),
            Known::F32 => self.read::<FloatType>(batch, sink, &as_they_are),
            Known::F64 => self.read::<DoubleType>(batch, sink, &as_they_are),
            Known::F16 | Known::BF16 => {
                self.read::<FixedLenByteArrayType>(batch, sink, &|values, batch| {
                    for value in values {
                        let bytes = <[u8; 2]>::try_from(value.data());
                        batch.push(f16::from_le_bytes(
                            bytes.map_err(|_| "a value of wrong length")?,
                        ));
                    }
                    Ok(())
                })
            }
        }
    }
}

/// Appends values of a type that batches hold as it is.
fn as_they_are<T: bytemuck::Pod>(values: &[T], batch: &mut Batch) -> Result<(), String> {
    batch.extend(values);
    Ok(())
}

/// Appends small integers, which Parquet stores as 32 bits.
fn narrow<T: bytemuck::Pod + TryFrom<i32>>(
    values: &[i32],
    batch: &mut Batch,
) -> Result<(), String> {
    for &value in values {
        match T::try_from(value) {
            Ok(v) => batch.push(v),
            Err(_) => return Err(format!("the value {value} does not fit the column's type")),
        }
    }
    Ok(())
}

/// Appends decoded values to a batch.
type Put<'a, T> = &'a dyn Fn(&[T], &mut Batch) -> Result<(), String>;

impl RowGroup {
    fn pages(&self) -> Result<Pages> {
        let name = &self.column.name;
        let size = match self.chunk.column_type() {
            Type::INT64 | Type::DOUBLE => 8,
            Type::FIXED_LEN_BYTE_ARRAY => {
                usize::try_from(self.chunk.column_descr().type_length()).unwrap_or(2).max(1)
            }
            _ => 4,
        };
        let (at, left) = chunk_of(&self.chunk)
            .ok_or_else(|| Error::format(name, "damaged Parquet file: a negative place"))?;
        Ok(Pages {
            reader: Reader { file: Arc::clone(&self.column.file) },
            at,
            left,
            codec: self.chunk.compression_codec(),
            optional: self.chunk.column_descr().max_def_level() > 0,
            size,
            zstd: None,
        })
    }

    /// Puts the codes of texts into the batch; `false` if there are not only codes.
    fn read_codes(&self, batch: &mut Batch) -> Result<bool> {
        let descr = self.chunk.column_descr();
        let flat = descr.max_rep_level() == 0 && self.chunk.column_type() == Type::BYTE_ARRAY;
        let is_coded = |of| matches!(of, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY);
        if !flat || !self.chunk.encodings().any(is_coded) {
            return Ok(false);
        }
        let chunk = codes::Chunk { rows: self.rows, full: descr.max_def_level() };
        let mut pages = self.pages()?;
        guard::quietly(&self.column.name, || Ok(codes::read(&mut pages, chunk, batch).is_some()))
    }

    fn read<D: DataType>(
        &self,
        batch: &mut Batch,
        sink: &mut dyn FnMut(&Batch) -> Result<()>,
        put: Put<'_, D::T>,
    ) -> Result<()> {
        let name = &self.column.name;
        let broken = |what: String| Error::format(name, format!("damaged Parquet file: {what}"));
        let full = self.chunk.column_descr().max_def_level();
        let descr = self.chunk.column_descr_ptr();
        let pages = self.pages()?;
        let mut reader = ColumnReaderImpl::<D>::new(descr, Box::new(pages));
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        let mut left = self.rows;
        while left > 0 {
            values.clear();
            levels.clear();
            let wanted = left.min(ROWS) as usize;
            let (rows, ..) = guard::quietly(name, || {
                reader
                    .read_records(wanted, Some(&mut levels), None, &mut values)
                    .map_err(|e| damaged(name, e))
            })?;
            if rows == 0 {
                return Err(broken(format!("a row group lacks {left} of {} rows", self.rows)));
            }
            batch.reset(self.column.dtype);
            if values.len() == rows {
                put(&values, batch).map_err(broken)?;
            } else {
                let mut rest = &values[..];
                for run in levels.chunk_by(|a, b| (*a == full) == (*b == full)) {
                    if run[0] < full {
                        batch.skip(run.len() as u64);
                        continue;
                    }
                    let (now, later) = rest
                        .split_at_checked(run.len())
                        .ok_or_else(|| broken("values are missing".into()))?;
                    put(now, batch).map_err(broken)?;
                    rest = later;
                }
            }
            if batch.rows() != rows as u64 {
                return Err(broken("levels and values disagree".into()));
            }
            left = left.saturating_sub(rows as u64);
            sink(batch)?;
        }
        Ok(())
    }
}
