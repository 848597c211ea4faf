//! Where the buffers of one column lie in a record batch.

use super::messages::RecordBatch;
use super::schema::{Column, Table, TextForm};
use warpfold_core::DType;

/// How buffers are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Lz4,
    Zstd,
}

/// Bytes within the body of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) at: u64,
    pub(super) len: u64,
}

/// What an element takes in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Bit,
    Bytes(u64),
}

impl Width {
    pub(super) fn of(dtype: DType) -> Width {
        match dtype {
            DType::Bool => Width::Bit,
            dtype => Width::Bytes(dtype.size() as u64),
        }
    }
}

/// One column of one batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) rows: u64,
    /// The bitmap of rows that have a value; `None` if all have.
    pub(super) validity: Option<Span>,
    pub(super) data: Span,
    pub(super) codec: Option<Codec>,
}

impl Plan {
    /// Finds column `column` in a batch whose body has `body` bytes.
    pub(super) fn new(
        table: &Table,
        column: usize,
        batch: RecordBatch<'_>,
        body: u64,
    ) -> Result<Self, String> {
        let column = &table.columns[column];
        let buffer = first_buffer(column, batch)?;
        let stored = column.keys.map(|keys| keys.dtype).or(column.stored());
        let stored = match column.decimal {
            Some(bytes) => Some(Width::Bytes(bytes as u64)),
            None => stored.map(Width::of),
        };
        Plan::at(column.first_node, buffer, stored, batch, body)
    }

    /// The values of a dictionary in a batch of their own.
    pub(super) fn dictionary(
        dtype: DType,
        batch: RecordBatch<'_>,
        body: u64,
    ) -> Result<Self, String> {
        Plan::at(0, 0, Some(Width::of(dtype)), batch, body)
    }

    /// The node `node`, whose buffers of elements of width `stored` begin with
    /// `buffer`.
    fn at(
        node: usize,
        buffer: usize,
        stored: Option<Width>,
        batch: RecordBatch<'_>,
        body: u64,
    ) -> Result<Self, String> {
        let codec = codec(batch)?;
        let (rows, validity) = rows_of(node, buffer, batch, body)?;
        let data = batch.buffer(buffer.saturating_add(1), body)?;
        if codec.is_none() {
            let needed = match stored {
                Some(Width::Bit) => Some(rows.div_ceil(8)),
                Some(Width::Bytes(bytes)) => rows.checked_mul(bytes),
                None => Some(0),
            };
            if needed.is_none_or(|n| data.len < n)
                || validity.is_some_and(|v| v.len < rows.div_ceil(8))
            {
                return Err("a buffer is shorter than its column".into());
            }
        }
        Ok(Plan { rows, validity, data, codec })
    }

    /// The bytes to be read.
    pub(super) fn bytes(&self) -> u64 {
        self.data.len + self.validity.map_or(0, |v| v.len)
    }
}

/// A column of texts in one batch.
#[derive(Clone, Debug)]
pub(super) struct TextPlan {
    pub(super) rows: u64,
    /// The bitmap of rows that have a value; `None` if all have.
    pub(super) validity: Option<Span>,
    /// Offsets and bytes; or views, and what they lead to.
    pub(super) buffers: Vec<Span>,
    pub(super) codec: Option<Codec>,
}

impl TextPlan {
    /// Finds column `column`, which is one of texts, in a batch whose body has `body` bytes.
    pub(super) fn new(
        table: &Table,
        column: usize,
        form: TextForm,
        batch: RecordBatch<'_>,
        body: u64,
    ) -> Result<Self, String> {
        let column = &table.columns[column];
        let buffer = first_buffer(column, batch)?;
        TextPlan::at(column.first_node, buffer, (form, column.variadic_before), batch, body)
    }

    /// The texts of a dictionary in a batch of their own.
    pub(super) fn dictionary(
        form: TextForm,
        batch: RecordBatch<'_>,
        body: u64,
    ) -> Result<Self, String> {
        TextPlan::at(0, 0, (form, 0), batch, body)
    }

    fn at(
        node: usize,
        buffer: usize,
        (form, variadic): (TextForm, usize),
        batch: RecordBatch<'_>,
        body: u64,
    ) -> Result<Self, String> {
        let codec = codec(batch)?;
        let (rows, validity) = rows_of(node, buffer, batch, body)?;
        let more = match form {
            TextForm::Offsets(_) => 1,
            TextForm::Views => {
                let count = batch.variadic().nth(variadic);
                let count = count.and_then(|count| usize::try_from(count).ok());
                count.ok_or("a record batch does not say how many buffers a column has")?
            }
        };
        let first = buffer.saturating_add(1);
        if more >= batch.buffers() {
            return Err("a record batch lacks a buffer".into());
        }
        let buffers = (first..=first + more).map(|i| batch.buffer(i, body));
        Ok(TextPlan { rows, validity, buffers: buffers.collect::<Result<_, _>>()?, codec })
    }

    /// The bytes to be read.
    pub(super) fn bytes(&self) -> u64 {
        self.buffers.iter().chain(&self.validity).map(|span| span.len).sum()
    }
}

/// The number of a column's first buffer in a batch.
fn first_buffer(column: &Column, batch: RecordBatch<'_>) -> Result<usize, String> {
    let mut buffer = column.first_buffer;
    for count in batch.variadic().take(column.variadic_before) {
        let count = usize::try_from(count).map_err(|e| e.to_string())?;
        buffer = buffer.saturating_add(count);
    }
    Ok(buffer)
}

fn codec(batch: RecordBatch<'_>) -> Result<Option<Codec>, String> {
    Ok(match batch.codec {
        None => None,
        Some(0) => Some(Codec::Lz4),
        Some(1) => Some(Codec::Zstd),
        Some(other) => return Err(format!("compression {other} is not known")),
    })
}

/// How many rows a node has, and where the bitmap of those with a value lies.
fn rows_of(
    node: usize,
    buffer: usize,
    batch: RecordBatch<'_>,
    body: u64,
) -> Result<(u64, Option<Span>), String> {
    let rows = batch.rows;
    let (len, nulls) = batch.node(node)?;
    if u64::try_from(len) != Ok(rows) {
        return Err("a column is not as long as its record batch".into());
    }
    let validity = batch.buffer(buffer, body)?;
    Ok((rows, Some(validity).filter(|s| s.len > 0 && nulls != 0)))
}
