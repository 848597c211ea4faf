//! NumPy's own format.

mod dtype;
mod header;
mod literal;

pub(crate) use dtype::Descr;
pub(crate) use header::Header;

use crate::columns::{self, ColumnSelector};
use crate::file::{Cursor, PositionalFile};
use crate::fixed::{FixedFile, FixedStream, Layout};
use crate::open::{OpenOptions, Stream};
use crate::seal::Seal;
use crate::{Access, Description, Endian, Error, Extent, Format, Result, Source};
use std::io::Read;
use std::sync::Arc;
use warpfold_core::DType;

/// The arrays chosen from an npy file.
pub(crate) fn open(
    file: &Arc<PositionalFile>,
    columns: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Vec<Source>> {
    let name = file.name();
    let header = Header::read(&mut Cursor::new(Arc::clone(file)), &name)?;
    header.check_length(file.len() - header.data_start, &name)?;
    let mut sources = Vec::new();
    for (name, layout) in choose(&header, &name, header.data_start, columns, options)? {
        sources.push(file_source(name, &header, layout, Arc::clone(file), None));
    }
    Ok(sources)
}

/// The array of an npy stream.
pub(crate) fn open_stream(
    stream: Stream,
    columns: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Vec<Source>> {
    let to_end = stream.to_end;
    let (name, mut reader) = stream.into_reader();
    let header = Header::read(&mut reader, &name)?;
    stream_source(&name, &header, reader, to_end, columns, options).map(|s| vec![s])
}

/// The array behind a header that was just taken off `reader`, which is read
/// `to_end` if its end has something to check.
pub(crate) fn stream_source(
    name: &str,
    header: &Header,
    reader: Box<dyn Read + Send>,
    to_end: bool,
    columns: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Source> {
    let chosen = choose(header, name, 0, columns, options)?;
    let Ok([(full_name, layout)]) = <[_; 1]>::try_from(chosen) else {
        return Err(Error::format(name, "only one field at a time can be read from a stream")
            .with_hint("choose one field, or unpack the array into a file of its own"));
    };
    let left = Some(header.count);
    let reader = FixedStream { name: name.into(), reader, layout, left, to_end };
    Ok(Source {
        name: full_name,
        dtype: layout.dtype,
        extent: extent(header),
        bytes: Some(header.data_bytes()),
        access: Access::Sequential(Box::new(reader)),
    })
}

/// An array that lies uncompressed in a file.
pub(crate) fn file_source(
    name: String,
    header: &Header,
    layout: Layout,
    file: Arc<PositionalFile>,
    seal: Option<Seal>,
) -> Source {
    Source {
        name,
        dtype: layout.dtype,
        extent: extent(header),
        bytes: Some(header.count * layout.dtype.size() as u64),
        access: Access::Random(Box::new(FixedFile { file, layout, seal })),
    }
}

fn extent(header: &Header) -> Extent {
    Extent::Array { shape: header.shape.clone(), order: header.order }
}

/// The array, or the chosen fields of an array of records, whose data begin
/// at `start`: names and places.
pub(crate) fn choose(
    header: &Header,
    name: &str,
    start: u64,
    columns: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Vec<(String, Layout)>> {
    match &header.descr {
        Descr::Scalar(scalar) => {
            if let Some(column) = columns.first() {
                return Err(Error::format(
                    name,
                    format!("there is no column {:?}: the array has no fields", column.to_string()),
                ));
            }
            let (dtype, endian) = number(&scalar.read, &scalar.text, name, options)?;
            Ok(vec![(name.into(), Layout::packed(dtype, endian, start))])
        }
        Descr::Record { size, fields } => {
            let names: Vec<String> = fields.iter().map(|f| f.name.clone()).collect();
            let chosen = match fields.len() {
                1 if columns.is_empty() => vec![0],
                _ if columns.is_empty() => {
                    return Err(Error::format(
                        name,
                        format!("an array of records; its fields are {}", columns::list(&names)),
                    )
                    .with_hint("choose a field with -c NAME"));
                }
                _ => columns::resolve(columns, &names, name)?,
            };
            chosen
                .into_iter()
                .map(|i| {
                    let field = &fields[i];
                    let full_name = format!("{name}:{}", field.name);
                    let scalar = &field.scalar;
                    let (dtype, endian) = number(&scalar.read, &scalar.text, &full_name, options)?;
                    let layout =
                        Layout { dtype, endian, start, stride: *size, field: field.offset };
                    Ok((full_name, layout))
                })
                .collect()
        }
    }
}

/// The type of a field, if it is one we read and the one that was asked for.
fn number(
    read: &Result<(DType, Endian), String>,
    text: &str,
    name: &str,
    options: &OpenOptions,
) -> Result<(DType, Endian)> {
    let void = |s: &str| s.ends_with("V2");
    match (read, options.dtype) {
        // ml_dtypes saves bfloat16 as two bytes without a type.
        (Err(_), Some(DType::BF16)) if void(text) => {
            let endian = if text.starts_with('>') { Endian::Big } else { Endian::Little };
            Ok((DType::BF16, endian))
        }
        (Err(why), _) => {
            let error = Error::format(name, format!("elements of type {text:?}: {why}"));
            Err(if void(text) {
                error.with_hint("if they are bfloat16, say so: --dtype bf16")
            } else {
                error
            })
        }
        (&Ok((dtype, endian)), asked) => {
            options.expect_dtype(asked, dtype, name)?;
            Ok((dtype, endian))
        }
    }
}

/// What `inspect` says about an npy file or stream.
pub(crate) fn describe(name: &str, header: &Header, format: Format) -> Vec<Description> {
    let one = |name: String, scalar: &dtype::Scalar, offset: u64| {
        let read = scalar.read.as_ref();
        let dtype = read.ok().map(|r| r.0);
        Description {
            name,
            format,
            stored_as: scalar.text.clone(),
            dtype,
            why_not: read.err().cloned(),
            extent: Some(extent(header)),
            endian: read.ok().filter(|_| scalar.size > 1).map(|r| r.1),
            offset: Some(offset),
            bytes: header.count.checked_mul(scalar.size),
            compression: None,
            unit: None,
        }
    };
    match &header.descr {
        Descr::Scalar(scalar) => vec![one(name.into(), scalar, header.data_start)],
        Descr::Record { fields, .. } => fields
            .iter()
            .map(|f| one(format!("{name}:{}", f.name), &f.scalar, header.data_start + f.offset))
            .collect(),
    }
}
