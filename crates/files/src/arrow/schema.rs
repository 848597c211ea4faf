//! Arrow schemas, as far as finding a column's buffers takes.

use super::messages::{Field, Integer, Schema, Type};
use crate::{Endian, Unit, unit};
use warpfold::Tick;
use warpfold_core::DType;

/// A column of a table.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// The type in the words of Arrow.
    pub(super) stored_as: String,
    /// The type it is read as, or why it is not.
    pub(super) read: Result<DType, String>,
    /// Its own place among all nodes.
    pub(super) first_node: usize,
    /// The buffers of all nodes before it that every batch has, and how many of these
    /// nodes have more.
    pub(super) first_buffer: usize,
    pub(super) variadic_before: usize,
    /// The unit of the numbers, if they have one.
    pub(super) unit: Option<Unit>,
    /// The bytes of each value, if they are decimals: all are read as 64 bits.
    pub(super) decimal: Option<usize>,
    /// What the batches hold in place of values, if these are in a dictionary.
    pub(super) keys: Option<Keys>,
    /// How its values are stored, if they are texts or bytes.
    pub(super) text: Option<TextForm>,
}

/// How texts are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextForm {
    /// By offsets of so many bytes.
    Offsets(usize),
    /// By views.
    Views,
}

/// The keys of a dictionary-encoded column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) dtype: DType,
    /// The number of the dictionary.
    pub(super) id: i64,
}

impl Column {
    /// The type of the elements that batches hold, if the column is read.
    pub(super) fn stored(&self) -> Option<DType> {
        let dtype = self.read.as_ref().ok().copied()?;
        Some(self.keys.map_or(dtype, |keys| keys.dtype))
    }
}

/// A node of the flattened schema: how many buffers it has in every batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) buffers: usize,
    /// Whether each batch says how many more it has.
    pub(super) variadic: bool,
}

/// The columns of a table and the nodes they flatten to.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) columns: Vec<Column>,
    pub(super) nodes: Vec<Node>,
    pub(super) endian: Endian,
}

impl Table {
    pub(super) fn new(schema: Schema<'_>) -> Result<Self, String> {
        let endian = if schema.is_big_endian()? { Endian::Big } else { Endian::Little };
        let bitmap_of_unions = usize::from(schema.has_bitmaps_of_unions());
        let mut table = Table { columns: Vec::new(), nodes: Vec::new(), endian };
        let (mut first_buffer, mut variadic_before) = (0_usize, 0);
        for field in &schema.fields()? {
            let first_node = table.nodes.len();
            let keys = keys(field);
            let read = keys.clone().and_then(|_| read_as(field));
            let decimal = match field.of {
                Type::Decimal { bits, .. } if read.is_ok() => Some(bits as usize / 8),
                _ => None,
            };
            table.columns.push(Column {
                name: field.name.into(),
                stored_as: stored_as(field),
                unit: unit(field).filter(|_| read.is_ok()),
                decimal,
                read,
                first_node,
                first_buffer,
                variadic_before,
                text: text(field).filter(|_| keys.is_ok()),
                keys: keys.unwrap_or_default(),
            });
            table.flatten(field, bitmap_of_unions);
            for node in &table.nodes[first_node..] {
                first_buffer = first_buffer.saturating_add(node.buffers);
                variadic_before += usize::from(node.variadic);
            }
        }
        Ok(table)
    }

    /// Adds the nodes of a field in the order in which batches list them.
    fn flatten(&mut self, field: &Field<'_>, bitmap_of_unions: usize) {
        let (buffers, variadic) = match field.of {
            // The batch holds the indices only.
            _ if field.dictionary.is_some() => (2, false),
            Type::Union { dense } => (1 + usize::from(dense) + bitmap_of_unions, false),
            Type::Other("none" | "null" | "runendencoded") => (0, false),
            Type::Other("struct" | "fixedsizelist") => (1, false),
            Type::Other(
                "binary" | "utf8" | "largebinary" | "largeutf8" | "listview" | "largelistview",
            ) => (3, false),
            Type::Other("binaryview" | "utf8view") => (2, true),
            _ => (2, false),
        };
        self.nodes.push(Node { buffers, variadic });
        if field.dictionary.is_none() {
            field.children.iter().for_each(|child| self.flatten(child, bitmap_of_unions));
        }
    }
}

/// The keys of a field, if it has a dictionary.
fn keys(field: &Field<'_>) -> Result<Option<Keys>, String> {
    let Some((id, keys)) = field.dictionary else { return Ok(None) };
    let dtype = integer(keys).ok_or("the keys of a dictionary have a width that is not known")?;
    Ok(Some(Keys { dtype, id }))
}

fn integer(int: Integer) -> Option<DType> {
    Some(match int {
        (8, true) => DType::I8,
        (16, true) => DType::I16,
        (32, true) => DType::I32,
        (64, true) => DType::I64,
        (8, false) => DType::U8,
        (16, false) => DType::U16,
        (32, false) => DType::U32,
        (64, false) => DType::U64,
        _ => return None,
    })
}

fn read_as(field: &Field<'_>) -> Result<DType, String> {
    let why = match field.of {
        Type::Other("bool") => return Ok(DType::Bool),
        Type::Int(int) => {
            return integer(int).ok_or_else(|| "integers of this width are not supported".into());
        }
        Type::Float(0) => return Ok(DType::F16),
        Type::Float(1) => return Ok(DType::F32),
        Type::Float(2) => return Ok(DType::F64),
        Type::Float(_) => "floats of this width are not supported",
        Type::Decimal { .. } if field.dictionary.is_some() => {
            "decimals in a dictionary are not supported: decode the column"
        }
        Type::Decimal { bits: 32 | 64 | 128 | 256, scale, .. } => {
            return digits(scale).map(|_| DType::I64).ok_or_else(|| unit::DECIMALS.into());
        }
        Type::Decimal { .. } => unit::DECIMALS,
        Type::Date { days: true } | Type::Time(32, _) => return Ok(DType::I32),
        Type::Date { .. } | Type::Time(64, _) | Type::Timestamp(..) | Type::Duration(_) => {
            return Ok(DType::I64);
        }
        Type::Time(..) => "times of this width are not supported",
        Type::Other("interval") => "months have no fixed length: cast the column to durations",
        Type::Other("fixedsizebinary") => "text and bytes are not numbers",
        Type::Other(_) if text(field).is_some() => "text and bytes are not numbers",
        Type::Other("null") => "a column of nulls has no numbers",
        Type::Other("runendencoded") => "run-end encoding is not supported: decode the column",
        _ => "nested columns are not supported",
    };
    Err(why.into())
}

fn digits(scale: i64) -> Option<u8> {
    i32::try_from(scale).ok().and_then(unit::digits)
}

/// How a field stores texts, if it does.
fn text(field: &Field<'_>) -> Option<TextForm> {
    Some(match field.of {
        Type::Other("utf8" | "binary") => TextForm::Offsets(4),
        Type::Other("largeutf8" | "largebinary") => TextForm::Offsets(8),
        Type::Other("utf8view" | "binaryview") => TextForm::Views,
        _ => return None,
    })
}

/// What the numbers of a field stand for.
fn unit(field: &Field<'_>) -> Option<Unit> {
    match field.of {
        Type::Date { days } => Some(Unit::Date(if days { Tick::Day } else { Tick::Milli })),
        Type::Time(_, tick) => tick.map(Unit::Time),
        // With a time zone, the integers count from midnight in UTC.
        Type::Timestamp(tick, zone) => Some(Unit::Timestamp(tick?, zone.map(str::to_owned))),
        Type::Decimal { scale, .. } => digits(scale).map(Unit::Decimal),
        Type::Duration(tick) => tick.map(Unit::Duration),
        _ => None,
    }
}

fn stored_as(field: &Field<'_>) -> String {
    let symbol = |tick: Option<Tick>| tick.map_or("?", Tick::symbol);
    let kind = match field.of {
        Type::Int((bits, signed)) => format!("{}int{bits}", if signed { "" } else { "u" }),
        Type::Float(precision) => match precision {
            0 => "float16".into(),
            1 => "float32".into(),
            _ => "float64".into(),
        },
        Type::Decimal { bits, precision, scale } => format!("decimal{bits}({precision}, {scale})"),
        Type::Date { days } => if days { "date32" } else { "date64" }.into(),
        Type::Time(bits, tick) => format!("time{bits}[{}]", symbol(tick)),
        Type::Timestamp(tick, zone) => {
            let zone = zone.map(|z| format!(", {z}")).unwrap_or_default();
            format!("timestamp[{}{zone}]", symbol(tick))
        }
        Type::Duration(tick) => format!("duration[{}]", symbol(tick)),
        Type::Union { .. } => "union".into(),
        Type::Other(name) => name.into(),
    };
    if field.dictionary.is_some() { format!("dictionary<{kind}>") } else { kind }
}
