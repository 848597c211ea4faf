//! Bytes without a header: the caller says what they are.

use crate::file::PositionalFile;
use crate::fixed::{FixedFile, FixedStream, Layout};
use crate::open::{OpenOptions, Stream};
use crate::source::element_count;
use crate::{Access, Description, Error, Extent, Format, Order, Result, Source};
use std::io::Read;
use std::sync::Arc;
use warpfold_core::DType;

fn dtype(name: &str, options: &OpenOptions) -> Result<DType> {
    options.dtype.ok_or_else(|| {
        Error::format(name, "raw bytes do not say what type their elements have")
            .with_hint("name it: --dtype f32")
    })
}

/// The bytes that a shape takes.
fn needed(name: &str, shape: &[usize], dtype: DType) -> Result<u64> {
    element_count(shape).and_then(|n| n.checked_mul(dtype.size() as u64)).ok_or_else(|| {
        Error::format(name, format!("the shape {shape:?} has more elements than can be counted"))
    })
}

/// The whole of a raw file, as one array.
pub(crate) fn open(file: &Arc<PositionalFile>, options: &OpenOptions) -> Result<Source> {
    let name = file.name();
    let dtype = dtype(&name, options)?;
    let size = dtype.size() as u64;
    let Some(bytes) = file.len().checked_sub(options.offset) else {
        return Err(Error::format(
            &name,
            format!("offset {} lies beyond the data's {} bytes", options.offset, file.len()),
        ));
    };
    let behind = match options.offset {
        0 => String::new(),
        n => format!(" behind offset {n}"),
    };
    let shape = match &options.shape {
        Some(shape) => {
            let needed = needed(&name, shape, dtype)?;
            if needed != bytes {
                return Err(Error::format(
                    &name,
                    format!(
                        "the shape {shape:?} of {dtype} takes {needed} bytes, but the file has \
                         {bytes}{behind}"
                    ),
                )
                .with_hint("check --shape, --dtype and --offset"));
            }
            shape.clone()
        }
        None if bytes % size != 0 => {
            return Err(Error::format(
                &name,
                format!("{bytes} bytes{behind} are not a whole number of {dtype} elements"),
            )
            .with_hint(format!("check --dtype; skip a header with --offset {}", bytes % size)));
        }
        None => vec![usize::try_from(bytes / size).map_err(|_| {
            Error::format(&name, format!("{bytes} bytes are too many for this machine"))
        })?],
    };
    let layout = Layout::packed(dtype, options.endian, options.offset);
    Ok(Source {
        name,
        dtype,
        extent: Extent::Array { shape, order: Order::C },
        bytes: Some(bytes),
        access: Access::Random(Box::new(FixedFile { file: Arc::clone(file), layout, seal: None })),
    })
}

/// A raw stream: an array if the shape is given, otherwise all there is.
pub(crate) fn open_stream(stream: Stream, options: &OpenOptions) -> Result<Source> {
    let to_end = stream.to_end;
    let (name, mut reader) = stream.into_reader();
    let dtype = dtype(&name, options)?;
    let skipped = std::io::copy(&mut (&mut reader).take(options.offset), &mut std::io::sink())
        .map_err(|e| crate::fixed::stream_error(&name, e))?;
    if skipped < options.offset {
        return Err(Error::format(
            &name,
            format!("offset {} lies beyond the data's {skipped} bytes", options.offset),
        ));
    }
    let (extent, left, bytes) = match &options.shape {
        Some(shape) => {
            let bytes = needed(&name, shape, dtype)?;
            let extent = Extent::Array { shape: shape.clone(), order: Order::C };
            (extent, Some(bytes / dtype.size() as u64), Some(bytes))
        }
        None => (Extent::Column { rows: None }, None, None),
    };
    let layout = Layout::packed(dtype, options.endian, 0);
    let blocks = FixedStream { name: name.clone(), reader, layout, left, to_end };
    Ok(Source { name, dtype, extent, bytes, access: Access::Sequential(Box::new(blocks)) })
}

/// What `inspect` says about a raw file.
pub(crate) fn describe(file: &Arc<PositionalFile>, options: &OpenOptions) -> Result<Description> {
    open(file, options).map(|source| description(source, options))
}

/// What `inspect` says about raw bytes on a stream.
pub(crate) fn describe_stream(stream: Stream, options: &OpenOptions) -> Result<Description> {
    open_stream(stream, options).map(|source| description(source, options))
}

fn description(source: Source, options: &OpenOptions) -> Description {
    Description {
        name: source.name,
        format: Format::Raw,
        stored_as: source.dtype.to_string(),
        dtype: Some(source.dtype),
        why_not: None,
        extent: Some(source.extent),
        endian: (source.dtype.size() > 1).then_some(options.endian),
        offset: Some(options.offset),
        bytes: source.bytes,
        compression: None,
        unit: None,
    }
}
