//! Columns as an Arrow file (Feather version 2).

mod flat;

use super::columns::{Column, Columns, Values, is_128_bits};
use super::parquet::{beyond, lacks_bf16};
use anyhow::Result;
use flat::{Item, pad};
use std::io::Write;
use std::ops::Range;
use warpfold::internal::Known;
use warpfold::{Tick, Unit};

/// Rows of a batch.
const BATCH: usize = 1 << 20;

/// What the file begins and ends with.
const MAGIC: &[u8] = b"ARROW1";

/// Where buffers begin: at multiples of this.
const ALIGNED: usize = 64;

/// Of the format: the fifth.
const VERSION: Item = Item::Short(4);

/// # Errors
/// bf16, which Arrow lacks, and what the system says.
pub(super) fn write(columns: &Columns<'_>, out: &mut dyn Write) -> Result<()> {
    let types = columns.columns.iter().map(Type::of).collect::<Result<Vec<Type>>>()?;
    let schema = || {
        let fields = columns.columns.iter().zip(&types).map(|(column, of)| {
            let name = Item::Text(column.name.clone());
            let nullable = Item::Byte((!column.missing.is_empty()).into());
            let (code, of) =
                (Item::Byte(of.code), Item::Table(of.fields.iter().cloned().map(Some).collect()));
            let no_children = Item::Tables(Vec::new());
            let field = [name, nullable, code, of].map(Some).into_iter();
            Item::Table(field.chain([None, Some(no_children)]).collect())
        });
        Item::Table(vec![Some(Item::Short(0)), Some(Item::Tables(fields.collect()))])
    };
    let mut begin = MAGIC.to_vec();
    pad(&mut begin, ALIGNED, 0);
    out.write_all(&begin)?;
    let (_, mut at) = write_message(1, schema(), &[], begin.len(), out)?;
    let mut blocks = Vec::new();
    for begin in (0..columns.rows).step_by(BATCH) {
        let rows = begin..columns.rows.min(begin + BATCH);
        let (mut nodes, mut buffers, mut body) = (Vec::new(), Vec::new(), Vec::new());
        for (column, of) in columns.columns.iter().zip(&types) {
            let valid = column.valid(rows.clone());
            let nulls = valid.iter().filter(|valid| !**valid).count();
            nodes.extend([rows.len() as i64, nulls as i64]);
            let bitmap = if column.missing.is_empty() { Vec::new() } else { bits(&valid) };
            for buffer in [bitmap].into_iter().chain(of.buffers(column, rows.clone(), &valid)?) {
                buffers.extend([body.len() as i64, buffer.len() as i64]);
                body.extend(buffer);
                pad(&mut body, ALIGNED, 0);
            }
        }
        let nodes = Item::Structs(nodes.len() / 2, nodes);
        let buffers = Item::Structs(buffers.len() / 2, buffers);
        let batch = [Item::Long(rows.len() as i64), nodes, buffers].map(Some);
        let (described, end) = write_message(3, Item::Table(batch.into()), &body, at, out)?;
        blocks.extend([at as i64, described as i64, body.len() as i64]);
        at = end;
    }
    let blocks = Item::Structs(blocks.len() / 3, blocks);
    let footer = [VERSION, schema(), Item::Structs(0, Vec::new()), blocks].map(Some);
    let footer = Item::Table(footer.into()).buffer();
    // A message of no length is the end of them.
    out.write_all(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])?;
    out.write_all(&footer)?;
    out.write_all(&(footer.len() as u32).to_le_bytes())?;
    Ok(out.write_all(MAGIC)?)
}

/// Writes a message of a kind with its body. Returns the bytes before the body, and where it ends.
fn write_message(
    kind: u8,
    header: Item,
    body: &[u8],
    at: usize,
    out: &mut dyn Write,
) -> Result<(usize, usize)> {
    let fields = [VERSION, Item::Byte(kind), header, Item::Long(body.len() as i64)].map(Some);
    let mut message = [u32::MAX.to_le_bytes(), [0; 4]].concat();
    message.extend(Item::Table(fields.into()).buffer());
    pad(&mut message, ALIGNED, 0);
    let len = message.len() as u32 - 8;
    message[4..8].copy_from_slice(&len.to_le_bytes());
    out.write_all(&message)?;
    out.write_all(body)?;
    Ok((message.len(), at + message.len() + body.len()))
}

/// A type of Arrow: its code, and what its table says.
struct Type {
    code: u8,
    fields: Vec<Item>,
    /// The bytes of each and its name, if its elements count something.
    counts: Option<(usize, String)>,
}

impl Type {
    /// # Errors
    /// bf16.
    fn of(column: &Column<'_>) -> Result<Type> {
        use Item::{Byte, Int, Short};
        let of = |code, fields: &[Item]| Type { code, fields: fields.to_vec(), counts: None };
        if let Some((digits, decimals)) = column.decimals() {
            let (all, bits) = if is_128_bits(&decimals) { (38, 128) } else { (76, 256) };
            return Ok(of(7, &[Int(all), Int(digits.into()), Int(bits)]));
        }
        if let Some(of) = column.counts().and_then(|(unit, _)| Type::of_unit(unit)) {
            return Ok(of);
        }
        let integer = |bits, signed| of(2, &[Int(bits), Byte(signed)]);
        Ok(match &column.values {
            Values::Texts(texts) => {
                // Offsets of 32 bits are for less than 2 GiB in a batch.
                let bytes = |row| texts.text_bytes(row).map_or(0, <[u8]>::len);
                let large = (0..texts.len()).map(bytes).sum::<usize>() > i32::MAX as usize;
                match (texts.are_utf8(), large) {
                    (true, false) => of(5, &[]),
                    (true, true) => of(LARGE_UTF8, &[]),
                    (false, false) => of(4, &[]),
                    (false, true) => of(LARGE_BINARY, &[]),
                }
            }
            Values::Numbers(numbers) => match numbers.dtype().known() {
                Known::Bool => of(BOOL, &[]),
                Known::I8 => integer(8, 1),
                Known::I16 => integer(16, 1),
                Known::I32 => integer(32, 1),
                Known::I64 => integer(64, 1),
                Known::U8 => integer(8, 0),
                Known::U16 => integer(16, 0),
                Known::U32 => integer(32, 0),
                Known::U64 => integer(64, 0),
                Known::F16 => of(3, &[Short(0)]),
                Known::F32 => of(3, &[Short(1)]),
                Known::F64 => of(3, &[Short(2)]),
                Known::BF16 => return Err(lacks_bf16("Arrow", column)),
            },
        })
    }

    /// That of elements that count something, where Arrow has such.
    fn of_unit(unit: &Unit) -> Option<Type> {
        use Item::{Int, Short, Text};
        let of = |code, size, name: String, fields: &[Item]| {
            Some(Type { code, fields: fields.to_vec(), counts: Some((size, name)) })
        };
        let (tick, step) = match unit.tick() {
            Some(Tick::Second) => (0, "s"),
            Some(Tick::Milli) => (1, "ms"),
            Some(Tick::Micro) => (2, "µs"),
            Some(Tick::Nano) => (3, "ns"),
            _ if matches!(unit, Unit::Date(Tick::Day)) => {
                return of(8, 4, "Date32".into(), &[Short(0)]);
            }
            _ => return None,
        };
        match unit {
            Unit::Date(Tick::Milli) => of(8, 8, "Date64".into(), &[Short(1)]),
            Unit::Time(_) => {
                let bits = if tick < 2 { 32 } else { 64 };
                of(9, bits / 8, format!("Time{bits}({step})"), &[Short(tick), Int(bits as i32)])
            }
            Unit::Timestamp(_, None) => of(10, 8, format!("Timestamp({step})"), &[Short(tick)]),
            Unit::Timestamp(_, Some(zone)) => {
                let name = format!("Timestamp({step}, {zone:?})");
                of(10, 8, name, &[Short(tick), Text(zone.to_string())])
            }
            Unit::Duration(_) => of(18, 8, format!("Duration({step})"), &[Short(tick)]),
            _ => None,
        }
    }

    /// What a column holds in some rows, which have values where `valid` says so: elements, or offsets and bytes.
    ///
    /// # Errors
    /// Counts that the type has no room for.
    fn buffers(
        &self,
        column: &Column<'_>,
        rows: Range<usize>,
        valid: &[bool],
    ) -> Result<Vec<Vec<u8>>> {
        let these = rows.clone().zip(valid);
        if let Some((_, decimals)) = column.decimals() {
            let size = if is_128_bits(&decimals) { 16 } else { 32 };
            let mut all = Vec::with_capacity(size * rows.len());
            for (row, valid) in these {
                let bytes = if *valid { decimals[row].to_le_bytes() } else { [0; 24] };
                let sign = if bytes[23] >= 0x80 { 0xff } else { 0 };
                all.extend(bytes.into_iter().chain([sign; 8]).take(size));
            }
            return Ok(vec![all]);
        }
        if let (Some((size, name)), Some((_, counts))) = (&self.counts, column.counts()) {
            let mut all = Vec::with_capacity(size * rows.len());
            for (row, valid) in these {
                let count = if *valid { counts[row] } else { 0 };
                let bytes = count.to_le_bytes();
                let bits = 8 * *size as u32;
                let fits = count << (128 - bits) >> (128 - bits) == count;
                fits.then_some(()).ok_or_else(|| beyond("Arrow", column, name))?;
                all.extend(&bytes[..*size]);
            }
            return Ok(vec![all]);
        }
        let numbers = match &column.values {
            Values::Numbers(numbers) => numbers,
            Values::Texts(texts) => {
                let size = if matches!(self.code, LARGE_BINARY | LARGE_UTF8) { 8 } else { 4 };
                let (mut offsets, mut bytes) = (vec![0; size], Vec::new());
                for row in rows {
                    bytes.extend(texts.text_bytes(row).unwrap_or_default());
                    offsets.extend(&bytes.len().to_le_bytes()[..size]);
                }
                return Ok(vec![offsets, bytes]);
            }
        };
        if self.code == BOOL {
            let truth = |(row, valid): (usize, &bool)| {
                *valid && numbers.get(row).is_some_and(|truth| truth.to_bits() != 0)
            };
            return Ok(vec![bits(&these.map(truth).collect::<Vec<_>>())]);
        }
        let size = numbers.dtype().size();
        Ok(vec![numbers.bytes()[size * rows.start..size * rows.end].to_vec()])
    }
}

const BOOL: u8 = 6;
const LARGE_BINARY: u8 = 19;
const LARGE_UTF8: u8 = 20;

/// A bit for each of them.
fn bits(truths: &[bool]) -> Vec<u8> {
    let byte = |eight: &[bool]| eight.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit));
    truths.chunks(8).map(byte).collect()
}
