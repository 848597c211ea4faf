//! Arrow schemas, as far as finding a column's buffers takes.

use crate::{Endian, Unit, unit};
use arrow_ipc::{
    DateUnit, Endianness, Field, Int, MetadataVersion, Precision, Schema, TimeUnit, Type, UnionMode,
};
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
    pub(super) fn new(schema: Schema<'_>, version: MetadataVersion) -> Result<Self, String> {
        let endian = match schema.endianness() {
            Endianness::Big => Endian::Big,
            _ => Endian::Little,
        };
        let mut table = Table { columns: Vec::new(), nodes: Vec::new(), endian };
        let (mut first_buffer, mut variadic_before) = (0_usize, 0);
        for field in schema.fields().into_iter().flatten() {
            let first_node = table.nodes.len();
            let keys = keys(field);
            let read = keys.clone().and_then(|_| read_as(field));
            table.columns.push(Column {
                name: field.name().unwrap_or_default().into(),
                stored_as: stored_as(field),
                unit: unit(field).filter(|_| read.is_ok()),
                decimal: field
                    .type_as_decimal()
                    .filter(|_| read.is_ok())
                    .map(|decimal| decimal.bitWidth() as usize / 8),
                read,
                first_node,
                first_buffer,
                variadic_before,
                text: text(field).filter(|_| keys.is_ok()),
                keys: keys.unwrap_or_default(),
            });
            table.flatten(field, version, 64)?;
            for node in &table.nodes[first_node..] {
                first_buffer = first_buffer.saturating_add(node.buffers);
                variadic_before += usize::from(node.variadic);
            }
        }
        Ok(table)
    }

    /// Adds the nodes of a field in the order in which batches list them.
    fn flatten(
        &mut self,
        field: Field<'_>,
        version: MetadataVersion,
        depth: u32,
    ) -> Result<(), String> {
        if depth == 0 {
            return Err("the schema is nested too deeply".into());
        }
        let mut node = |buffers, variadic| self.nodes.push(Node { buffers, variadic });
        if field.dictionary().is_some() {
            // The batch holds the indices only.
            node(2, false);
            return Ok(());
        }
        // Unions had a validity bitmap up to version 4.
        let union_validity = usize::from(version < MetadataVersion::V5);
        match field.type_type() {
            Type::Null | Type::RunEndEncoded => node(0, false),
            Type::Int
            | Type::FloatingPoint
            | Type::Bool
            | Type::Decimal
            | Type::Date
            | Type::Time
            | Type::Timestamp
            | Type::Interval
            | Type::Duration
            | Type::FixedSizeBinary
            | Type::List
            | Type::LargeList
            | Type::Map => node(2, false),
            Type::Binary
            | Type::Utf8
            | Type::LargeBinary
            | Type::LargeUtf8
            | Type::ListView
            | Type::LargeListView => node(3, false),
            Type::BinaryView | Type::Utf8View => node(2, true),
            Type::Struct_ | Type::FixedSizeList => node(1, false),
            Type::Union => match field.type_as_union().map(|u| u.mode()) {
                Some(UnionMode::Dense) => node(2 + union_validity, false),
                _ => node(1 + union_validity, false),
            },
            _ => return Err("the schema has a type this build does not know".into()),
        }
        for child in field.children().into_iter().flatten() {
            self.flatten(child, version, depth - 1)?;
        }
        Ok(())
    }
}

/// The keys of a field, if it has a dictionary.
fn keys(field: Field<'_>) -> Result<Option<Keys>, String> {
    let Some(dictionary) = field.dictionary() else { return Ok(None) };
    // Keys of no stated type have 32 bits.
    let dtype = dictionary.indexType().map_or(Some(DType::I32), integer);
    let dtype = dtype.ok_or("the keys of a dictionary have a width that is not known")?;
    Ok(Some(Keys { dtype, id: dictionary.id() }))
}

fn integer(int: Int<'_>) -> Option<DType> {
    Some(match (int.bitWidth(), int.is_signed()) {
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

fn read_as(field: Field<'_>) -> Result<DType, String> {
    match field.type_type() {
        Type::Bool => Ok(DType::Bool),
        Type::Int => field
            .type_as_int()
            .and_then(integer)
            .ok_or_else(|| "integers of this width are not supported".into()),
        Type::FloatingPoint => match field.type_as_floating_point().map(|f| f.precision()) {
            Some(Precision::HALF) => Ok(DType::F16),
            Some(Precision::SINGLE) => Ok(DType::F32),
            Some(Precision::DOUBLE) => Ok(DType::F64),
            _ => Err("floats of this width are not supported".into()),
        },
        Type::Decimal => match field.type_as_decimal() {
            Some(_) if field.dictionary().is_some() => {
                Err("decimals in a dictionary are not supported: decode the column".into())
            }
            Some(d) if matches!(d.bitWidth(), 32 | 64 | 128 | 256) => {
                unit::digits(d.scale()).map(|_| DType::I64).ok_or_else(|| unit::DECIMALS.into())
            }
            _ => Err(unit::DECIMALS.into()),
        },
        Type::Date => match field.type_as_date().map(|d| d.unit()) {
            Some(DateUnit::DAY) => Ok(DType::I32),
            _ => Ok(DType::I64),
        },
        Type::Time => match field.type_as_time().map(|t| t.bitWidth()) {
            Some(32) => Ok(DType::I32),
            Some(64) => Ok(DType::I64),
            _ => Err("times of this width are not supported".into()),
        },
        Type::Timestamp | Type::Duration => Ok(DType::I64),
        Type::Interval => Err("months have no fixed length: cast the column to durations".into()),
        Type::Binary
        | Type::Utf8
        | Type::LargeBinary
        | Type::LargeUtf8
        | Type::BinaryView
        | Type::Utf8View
        | Type::FixedSizeBinary => Err("text and bytes are not numbers".into()),
        Type::Null => Err("a column of nulls has no numbers".into()),
        Type::RunEndEncoded => Err("run-end encoding is not supported: decode the column".into()),
        _ => Err("nested columns are not supported".into()),
    }
}

/// How a field stores texts, if it does.
fn text(field: Field<'_>) -> Option<TextForm> {
    Some(match field.type_type() {
        Type::Utf8 | Type::Binary => TextForm::Offsets(4),
        Type::LargeUtf8 | Type::LargeBinary => TextForm::Offsets(8),
        Type::Utf8View | Type::BinaryView => TextForm::Views,
        _ => return None,
    })
}

/// What the numbers of a field stand for.
fn unit(field: Field<'_>) -> Option<Unit> {
    match field.type_type() {
        Type::Date => Some(match field.type_as_date()?.unit() {
            DateUnit::DAY => Unit::Date(Tick::Day),
            _ => Unit::Date(Tick::Milli),
        }),
        Type::Time => Some(Unit::Time(tick(field.type_as_time()?.unit())?)),
        Type::Timestamp => {
            let timestamp = field.type_as_timestamp()?;
            // With a time zone, the integers count from midnight in UTC.
            let zone = timestamp.timezone().map(str::to_owned);
            Some(Unit::Timestamp(tick(timestamp.unit())?, zone))
        }
        Type::Decimal => unit::digits(field.type_as_decimal()?.scale()).map(Unit::Decimal),
        Type::Duration => Some(Unit::Duration(tick(field.type_as_duration()?.unit())?)),
        _ => None,
    }
}

fn symbol(unit: TimeUnit) -> &'static str {
    tick(unit).map_or("?", Tick::symbol)
}

fn tick(unit: TimeUnit) -> Option<Tick> {
    Some(match unit {
        TimeUnit::SECOND => Tick::Second,
        TimeUnit::MILLISECOND => Tick::Milli,
        TimeUnit::MICROSECOND => Tick::Micro,
        TimeUnit::NANOSECOND => Tick::Nano,
        _ => return None,
    })
}

fn stored_as(field: Field<'_>) -> String {
    let kind = match field.type_type() {
        Type::Int => match field.type_as_int() {
            Some(i) => format!("{}int{}", if i.is_signed() { "" } else { "u" }, i.bitWidth()),
            None => "int".into(),
        },
        Type::FloatingPoint => match field.type_as_floating_point().map(|f| f.precision()) {
            Some(Precision::HALF) => "float16".into(),
            Some(Precision::SINGLE) => "float32".into(),
            _ => "float64".into(),
        },
        Type::Decimal => match field.type_as_decimal() {
            Some(d) => format!("decimal{}({}, {})", d.bitWidth(), d.precision(), d.scale()),
            None => "decimal".into(),
        },
        Type::Date => match field.type_as_date().map(|d| d.unit()) {
            Some(DateUnit::DAY) => "date32".into(),
            _ => "date64".into(),
        },
        Type::Time => match field.type_as_time() {
            Some(t) => format!("time{}[{}]", t.bitWidth(), symbol(t.unit())),
            None => "time".into(),
        },
        Type::Timestamp => match field.type_as_timestamp() {
            Some(t) => {
                let zone = t.timezone().map(|z| format!(", {z}")).unwrap_or_default();
                format!("timestamp[{}{zone}]", symbol(t.unit()))
            }
            None => "timestamp".into(),
        },
        Type::Duration => match field.type_as_duration() {
            Some(d) => format!("duration[{}]", symbol(d.unit())),
            None => "duration".into(),
        },
        other => other.variant_name().unwrap_or("unknown").trim_end_matches('_').to_lowercase(),
    };
    if field.dictionary().is_some() { format!("dictionary<{kind}>") } else { kind }
}
