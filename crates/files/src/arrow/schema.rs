//! Arrow schemas, as far as finding a column's buffers takes.

use crate::Endian;
use arrow_ipc::{Endianness, Field, MetadataVersion, Precision, Schema, Type, UnionMode};
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
        for field in schema.fields().into_iter().flatten() {
            let first_node = table.nodes.len();
            table.columns.push(Column {
                name: field.name().unwrap_or_default().into(),
                stored_as: stored_as(field),
                read: read_as(field),
                first_node,
            });
            table.flatten(field, version, 64)?;
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

fn read_as(field: Field<'_>) -> Result<DType, String> {
    if field.dictionary().is_some() {
        return Err("dictionary-encoded columns are not supported".into());
    }
    match field.type_type() {
        Type::Bool => Ok(DType::Bool),
        Type::Int => match field.type_as_int().map(|i| (i.bitWidth(), i.is_signed())) {
            Some((8, true)) => Ok(DType::I8),
            Some((16, true)) => Ok(DType::I16),
            Some((32, true)) => Ok(DType::I32),
            Some((64, true)) => Ok(DType::I64),
            Some((8, false)) => Ok(DType::U8),
            Some((16, false)) => Ok(DType::U16),
            Some((32, false)) => Ok(DType::U32),
            Some((64, false)) => Ok(DType::U64),
            _ => Err("integers of this width are not supported".into()),
        },
        Type::FloatingPoint => match field.type_as_floating_point().map(|f| f.precision()) {
            Some(Precision::HALF) => Ok(DType::F16),
            Some(Precision::SINGLE) => Ok(DType::F32),
            Some(Precision::DOUBLE) => Ok(DType::F64),
            _ => Err("floats of this width are not supported".into()),
        },
        Type::Decimal => Err("decimals are not supported; cast the column to double".into()),
        Type::Date | Type::Time | Type::Timestamp | Type::Interval | Type::Duration => {
            Err("dates and times are not numbers".into())
        }
        Type::Binary
        | Type::Utf8
        | Type::LargeBinary
        | Type::LargeUtf8
        | Type::BinaryView
        | Type::Utf8View
        | Type::FixedSizeBinary => Err("text and bytes are not numbers".into()),
        Type::Null => Err("a column of nulls has no numbers".into()),
        _ => Err("nested columns are not supported".into()),
    }
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
        other => other.variant_name().unwrap_or("unknown").trim_end_matches('_').to_lowercase(),
    };
    if field.dictionary().is_some() { format!("dictionary<{kind}>") } else { kind }
}
